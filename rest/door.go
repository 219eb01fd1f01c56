package rest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"writ"
	"writ/response"
)

// handler answers one request of who. Its error becomes the answer; it must not
// return one after it wrote, unless the client cannot be told otherwise that what
// it has is not all.
type handler func(w *recorder, r *http.Request, who writ.Principal) error

// route is one operation of the API. An open route needs no credential.
type route struct {
	method, path string
	open         bool
	handle       handler
}

// door is the API as one listener offers it.
type door struct {
	api      *API
	hosts    []string        // that it is known as, beside loopback
	guarded  bool            // check Host and Origin
	stopping context.Context // ends when the server shuts down
	mux      *http.ServeMux
}

func (d *door) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, rt := range d.api.routes(d.stopping) {
		mux.HandleFunc(rt.method+" "+rt.path, func(w http.ResponseWriter, r *http.Request) {
			rec := w.(*recorder) // mux passes on what ServeHTTP gave it
			rec.err = d.enter(rec, r, rt)
		})
	}
	return mux
}

// ServeHTTP is the one wrapper of all handlers: it turns their errors and panics
// into answers and writes the one log line of the request.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	rec := &recorder{Recorder: response.Record(w)}
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")

	if r.ContentLength != 0 {
		// Also for handlers that do not read a body: the server reads it after them.
		_ = rec.Control.SetReadDeadline(start.Add(bodyTime))
	}
	err := d.attempt(rec, r)
	cut := err != nil && rec.Status != 0 // it is too late for another status
	switch {
	case err == nil, cut:
	case ofInbox(r):
		sendInboxFault(rec, err)
	default:
		sendProblem(rec, err)
	}
	d.logRequest(r, rec, err, time.Since(start))
	if cut {
		// Breaks the connection, so that a client does not take a part for the whole.
		panic(http.ErrAbortHandler)
	}
}

// attempt answers r or says why not. A panic is an internal error.
func (d *door) attempt(rec *recorder, r *http.Request) (err error) {
	defer response.Catch(&err)
	if d.guarded {
		if err := checkOrigin(r, d.hosts); err != nil {
			return err
		}
	}
	// The mux would redirect to the clean path; no client of this API needs that.
	if clean := path.Clean("/" + r.URL.Path); clean != r.URL.Path {
		return noRoute(r)
	}
	h, pattern := d.mux.Handler(r)
	if pattern == "" {
		return unmatched(h, rec, r)
	}
	d.mux.ServeHTTP(rec, r)
	return rec.err
}

// enter authenticates r and calls the handler of rt.
func (d *door) enter(rec *recorder, r *http.Request, rt route) error {
	if rt.open {
		return rt.handle(rec, r, writ.Principal{})
	}
	who, err := d.authenticate(r)
	if err != nil {
		return err
	}
	rec.who = who.Ref()
	return rt.handle(rec, r, who)
}

// authenticate makes the principal of r: of its bearer key when it has one, else
// of the connection's peer.
func (d *door) authenticate(r *http.Request) (writ.Principal, error) {
	if values := r.Header.Values("Authorization"); len(values) > 0 {
		scheme, token, _ := strings.Cut(values[0], " ")
		token = strings.TrimSpace(token)
		if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" {
			return writ.Principal{}, unauthenticated("the Authorization header is not one bearer key: send \"Authorization: Bearer KEY\"")
		}
		return d.api.Auth.Bearer(r.Context(), token, time.Now())
	}
	if p, ok := r.Context().Value(peerKey{}).(peerOf); ok {
		return p.who, p.err
	}
	return writ.Principal{}, unauthenticated("no credential: send \"Authorization: Bearer KEY\"")
}

func unauthenticated(msg string) error {
	return &writ.Error{Kind: writ.Unauthenticated, Op: "authenticate", Msg: msg}
}

// unmatched says why no route takes r. h is the mux's own answer, which knows the
// methods that the path does have.
func unmatched(h http.Handler, rec *recorder, r *http.Request) error {
	probe := &headerOnly{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status != http.StatusMethodNotAllowed {
		return noRoute(r)
	}
	allow := probe.header.Get("Allow")
	rec.Header().Set("Allow", allow)
	return &refusal{http.StatusMethodNotAllowed, &writ.Error{
		Kind: writ.Invalid, Msg: fmt.Sprintf("%s does not take %s: use %s", r.URL.Path, r.Method, allow),
	}}
}

func noRoute(r *http.Request) error {
	return &writ.Error{Kind: writ.NotFound, Msg: fmt.Sprintf("there is nothing at %s: see /openapi.yaml", r.URL.Path)}
}

// logRequest writes the one line of r. The texts of errors that the client caused
// stay out of it: they may quote what it sent.
func (d *door) logRequest(r *http.Request, rec *recorder, err error, took time.Duration) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("route", r.Pattern),
		slog.Int("status", rec.Status),
		slog.Int64("bytes", rec.Bytes),
		slog.Duration("took", took),
	}
	if rec.who.ID != "" {
		attrs = append(attrs, slog.String("by", rec.who.String()))
	}
	if id := r.PathValue("id"); writ.ValidName(id) {
		attrs = append(attrs, slog.String("id", id))
	}
	if rec.made != "" {
		attrs = append(attrs, slog.String("made", rec.made))
	}
	if err != nil {
		kind := writ.KindOf(err)
		attrs = append(attrs, slog.String("kind", kind.String()))
		p := problemOf(err)
		for _, attr := range [][2]string{{"code", p.Code}, {"approval", string(p.Approval)}, {"operation", string(p.Operation)}} {
			if attr[1] != "" {
				attrs = append(attrs, slog.String(attr[0], attr[1]))
			}
		}
		if r.Context().Err() != nil {
			attrs = append(attrs, slog.Bool("client_gone", true))
		} else if errors.Is(err, errStopping) {
			attrs = append(attrs, slog.Bool("stopping", true))
		} else if kind == writ.Internal || kind == writ.Unavailable {
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", writ.Reveal(err)))
		}
		if p, ok := errors.AsType[*response.Panic](err); ok {
			attrs = append(attrs, slog.String("stack", string(p.Stack)))
		}
	}
	d.api.log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
}
