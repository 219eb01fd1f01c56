package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
	"writ/origin"
	"writ/response"
)

// Path is where the endpoint is.
const Path = "/mcp"

// HTTPOptions are what a caller may set. The zero value answers on loopback names.
type HTTPOptions struct {
	Hosts   []string // that the server is known as beside loopback, without port
	Origins []string // of pages that may call it beside its own, as "https://host:port"
	// Issuer and Resource, both set, are told to clients that look for whom to ask for a
	// key (RFC 9728): the URL of the authorization server, and the public URL of the
	// endpoint.
	Issuer   string
	Resource string
}

const (
	bodyTime    = 2 * time.Minute  // to send a body
	sessionTime = 30 * time.Minute // that a session may be idle
)

// Handler is the endpoint for HTTP (spec/02 §2 and §11). It answers on [Path] and, with
// an issuer, where RFC 9728 has the metadata of it.
type Handler struct {
	server   *Server
	auth     Authenticator
	opt      HTTPOptions
	sessions *sessions

	// Requests that stand alone, and sessions; of each those whose answer is one JSON
	// value, and those whose answer is a stream of events.
	alone, aloneStream http.Handler
	json, stream       http.Handler
	shared             *sdk.Server // of requests that open no session
}

// HTTP is the endpoint for bearers of keys that auth knows. The caller serves it with
// a header timeout, and must call Close.
func (s *Server) HTTP(auth Authenticator, opt HTTPOptions) *Handler {
	h := &Handler{server: s, auth: auth, opt: opt, sessions: newSessions(), shared: s.connect(bearer, nil, nil)}
	common := sdk.StreamableHTTPOptions{
		MaxRequestBodyBytes: MaxMessageBytes,
		SessionTimeout:      sessionTime,
		// Its rule would be in the way of hosts that are known, and lets others through.
		DisableLocalhostProtection: true,
	}
	handler := func(alone, whole bool) http.Handler {
		opt := common
		opt.Stateless, opt.PropagateRequestCancellation, opt.JSONResponse = alone, alone, whole
		return sdk.NewStreamableHTTPHandler(h.sdkServer, &opt)
	}
	h.alone, h.aloneStream = handler(true, true), handler(true, false)
	h.json, h.stream = handler(false, true), handler(false, false)
	return h
}

// Close ends all sessions and their streams, after the calls under way in them, or when
// ctx ends: those whose clients take no answer go on until they are cut off.
// http.Server.Shutdown waits for streams: call it before, or on shutdown.
func (h *Handler) Close(ctx context.Context) { h.sessions.closeAll(ctx) }

// freshKey is where open, the one way to the SDK's choice of a server, leaves the
// server of a session that is about to begin. sdkServer alone reads it.
type freshKey struct{}

func (h *Handler) sdkServer(r *http.Request) *sdk.Server {
	if srv, ok := r.Context().Value(freshKey{}).(*sdk.Server); ok {
		return srv
	}
	return h.shared
}

// bearer is who sent a request over HTTP: what pass put there.
func bearer(extra *sdk.RequestExtra) writ.Principal {
	if extra == nil || extra.TokenInfo == nil {
		return writ.Principal{}
	}
	who, _ := extra.TokenInfo.Extra[principalKey].(writ.Principal)
	return who
}

const principalKey = "principal"

// refusal is an answer of HTTP that ends a request before the SDK sees it.
type refusal struct {
	status int
	body   []byte // JSON
	reason string // for the log
	err    error  // for the log, when it is ours to mend
}

func (r *refusal) Error() string { return r.reason }

// refuse is a refusal as {"error": msg} (spec/02 §11).
func refuse(status int, msg string) error {
	body, err := json.Marshal(map[string]string{"error": msg})
	if err != nil {
		panic("mcp: a string always encodes: " + err.Error())
	}
	return &refusal{status: status, body: body, reason: msg}
}

// refuseMessage is a refusal as the JSON-RPC error r.
func refuseMessage(status int, r *rejection) error {
	return &refusal{status: status, body: r.response(), reason: fmt.Sprintf("message refused with %d", r.code)}
}

// ServeHTTP is the one wrapper of all requests: it turns refusals and panics into
// answers, and logs what did not come to a tool.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	rec := response.Record(w)
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	rec.Header().Set("Cache-Control", "no-store")
	err := h.attempt(&rec, r)
	if err == nil {
		if rec.Status >= http.StatusBadRequest {
			h.logRefusal(r, rec.Status, "by the protocol", nil)
		}
		return
	}
	ref, ok := errors.AsType[*refusal](err)
	if !ok {
		ref = refuse(http.StatusInternalServerError, "internal error").(*refusal)
		ref.err = err
	}
	h.logRefusal(r, ref.status, ref.reason, ref.err)
	if rec.Status != 0 {
		panic(http.ErrAbortHandler) // it is too late for another answer: break it off
	}
	switch ref.status {
	case http.StatusUnauthorized:
		rec.Header().Set("WWW-Authenticate", h.challenge())
	case http.StatusMethodNotAllowed:
		rec.Header().Set("Allow", "GET, POST, DELETE")
	case http.StatusTooManyRequests:
		rec.Header().Set("Retry-After", "1")
	}
	rec.Header().Set("Content-Type", "application/json")
	rec.WriteHeader(ref.status)
	_, _ = rec.Write(ref.body) // fails when the client is gone; nobody is left to tell
}

// attempt answers r or says why not. A panic is an internal error.
func (h *Handler) attempt(w *response.Recorder, r *http.Request) (err error) {
	defer response.Catch(&err)
	if !origin.Known(r.Host, h.opt.Hosts) {
		return refuse(http.StatusForbidden, "this server is not called so: use a loopback address, or the host it listens as")
	}
	if origin.Foreign(r.Host, r.Header.Values, h.opt.Origins) {
		return refuse(http.StatusForbidden, "the request comes from a page of another site")
	}
	if h.isMetadata(r.URL.Path) {
		return h.metadata(w, r)
	}
	if r.URL.Path != Path {
		return refuse(http.StatusNotFound, "there is nothing here: the endpoint is "+Path)
	}
	who, err := h.authenticate(r)
	if err != nil {
		return err
	}
	switch r.Method {
	case http.MethodPost:
		return h.post(w, r, who)
	case http.MethodGet, http.MethodDelete:
		return h.resume(w, r, who)
	}
	return refuse(http.StatusMethodNotAllowed, "want POST, GET or DELETE")
}

// authenticate makes the principal of r (spec/02 §11: one scheme, spelt so).
func (h *Handler) authenticate(r *http.Request) (writ.Principal, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 || !strings.HasPrefix(values[0], "Bearer ") {
		return writ.Principal{}, refuse(http.StatusUnauthorized, "unauthorized")
	}
	who, err := h.auth.Bearer(r.Context(), strings.TrimSpace(values[0][len("Bearer "):]), time.Now())
	if err == nil {
		return who, nil
	}
	switch writ.KindOf(err) {
	case writ.Internal:
		return writ.Principal{}, fmt.Errorf("authenticating: %w", err)
	case writ.Unavailable:
		return writ.Principal{}, refuse(http.StatusServiceUnavailable, writ.Message(err))
	case writ.Exhausted:
		return writ.Principal{}, refuse(http.StatusTooManyRequests, writ.Message(err))
	}
	return writ.Principal{}, refuse(http.StatusUnauthorized, "unauthorized")
}

// post takes one message.
func (h *Handler) post(w *response.Recorder, r *http.Request, who writ.Principal) error {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, "want Content-Type: application/json")
	}
	_ = w.Control.SetReadDeadline(time.Now().Add(bodyTime))
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessageBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return refuseMessage(http.StatusRequestEntityTooLarge, &rejection{
			code: jsonrpc.CodeInvalidRequest, msg: fmt.Sprintf("the message has more than %d bytes", MaxMessageBytes),
		})
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "the body could not be read")
	}
	_ = w.Control.SetReadDeadline(time.Time{}) // a call, or a stream, may take its time
	m, refused := inspect(data)
	if refused != nil {
		return refuseMessage(http.StatusBadRequest, refused)
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	return h.route(w, r, m, who)
}

// logRefusal writes one line for a request that came to no tool. It says nothing that
// the client sent.
func (h *Handler) logRefusal(r *http.Request, status int, reason string, err error) {
	level := slog.LevelInfo
	attrs := []slog.Attr{slog.String("method", r.Method), slog.Int("status", status), slog.String("reason", reason)}
	if err != nil && r.Context().Err() == nil {
		level = slog.LevelError
		attrs = append(attrs, slog.String("error", writ.Reveal(err)))
		if p, ok := errors.AsType[*response.Panic](err); ok {
			attrs = append(attrs, slog.String("stack", string(p.Stack)))
		}
	}
	h.server.log.LogAttrs(context.WithoutCancel(r.Context()), level, "mcp request refused", attrs...)
}
