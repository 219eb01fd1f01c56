package codeapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"writ"
	"writ/response"
)

// ServeHTTP is the one wrapper of all handlers: it answers for those that panic, breaks
// the connection of an answer that is not whole, and writes the one log line.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	rec := record(w, r)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 {
		// Also for handlers that do not read a body: the server reads it after them.
		_ = rec.Control.SetReadDeadline(start.Add(a.bodyTime))
	}
	if err := a.attempt(rec, r); err != nil {
		rec.cut = rec.Status != 0
		refuse(rec, err)
	}
	took := time.Since(start)
	a.logRequest(r, rec, took)
	if a.opt.Observe != nil {
		a.opt.Observe(Observation{Route: rec.route, Status: rec.Status, Took: took})
	}
	if rec.err != nil && rec.cut {
		panic(http.ErrAbortHandler) // else a client takes a part for the whole
	}
}

// attempt answers r, also when it may not. Its error is a panic.
func (a *API) attempt(rec *recorder, r *http.Request) (err error) {
	defer response.Catch(&err)
	a.enter(rec, r)
	return nil
}

// cutOff ends an answer that was begun and cannot be ended well: the client sees the
// connection break.
func cutOff(w http.ResponseWriter, err error) {
	if rec, ok := w.(*recorder); ok {
		rec.cut = true
	}
	refuse(w, err)
}

// logRequest writes the one line of r. The texts of errors that the client caused stay out
// of it, whatever the contract's status is: they may quote what it sent.
func (a *API) logRequest(r *http.Request, rec *recorder, took time.Duration) {
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("method", methodName(r.Method)),
		slog.String("route", rec.route),
		slog.Int("status", rec.Status),
		slog.Int64("bytes", rec.Bytes),
		slog.Duration("took", took),
	}
	if rec.who.ID != "" {
		attrs = append(attrs, slog.String("by", rec.who.String()))
	}
	if id := writ.SessionID(r.PathValue("session")); id.Valid() {
		attrs = append(attrs, slog.String("session", string(id)))
	}
	if id := writ.ObjectID(r.PathValue("object")); id.Valid() {
		attrs = append(attrs, slog.String("object", string(id)))
	}
	if err := rec.err; err != nil {
		if code := writ.CodeOf(err); code != "" {
			attrs = append(attrs, slog.String("code", code))
		}
		fault, _ := errors.AsType[*refusal](err)
		switch {
		case rec.gone():
			attrs = append(attrs, slog.Bool("client_gone", true))
		case fault != nil && fault.sender: // nothing failed here
		case rec.Status >= http.StatusInternalServerError || rec.cut:
			level = slog.LevelError
			attrs = append(attrs, slog.String("error", writ.Reveal(err)))
		}
		if p, ok := errors.AsType[*response.Panic](err); ok {
			attrs = append(attrs, slog.String("stack", string(p.Stack)))
		}
	}
	a.log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
}

// methodName is a method as it may stand in a log: a client chooses what it is.
func methodName(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
