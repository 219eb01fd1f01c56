package codeapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"writ"
	"writ/response"
)

// envelope is the body of an answer that is an error (spec/03 §2).
type envelope struct {
	Error   string `json:"error"`
	Message string `json:"message,omitempty"`
	// Retry is in how many seconds to come again, of a 429 of runs.
	Retry int `json:"retry_after_seconds,omitempty"`
}

// refusal is an error with the answer that the contract has for it.
type refusal struct {
	status int
	body   any
	err    error // for the operator; may be nil
	sender bool  // it is the fault of who sent the request, whatever the status is
}

func (r *refusal) Error() string {
	if r.err != nil {
		return r.err.Error()
	}
	return "refused with " + strconv.Itoa(r.status)
}

func (r *refusal) Unwrap() error { return r.err }

// fail is the refusal {"error": text}.
func fail(status int, text string) error {
	return &refusal{status: status, body: envelope{Error: shorten(text)}}
}

// notFound is the answer at every place where nothing is.
func notFound() error { return fail(http.StatusNotFound, "Not found") }

// invalid is what is wrong with a request, in the contract's words where it has some.
func invalid(format string, args ...any) error {
	return &writ.Error{Kind: writ.Invalid, Op: "read request", Msg: fmt.Sprintf(format, args...)}
}

// codeStatus has the contract's words for failures whose status is not that of their kind
// (spec/03 §6.3).
func codeStatus(code string) (status int, ok bool) {
	switch code {
	case writ.CodeFileTooLarge, "session_input_too_large":
		return http.StatusRequestEntityTooLarge, true
	case "session_input_unavailable":
		return http.StatusUnprocessableEntity, true
	case "session_input_preparation_failed":
		return http.StatusInternalServerError, true
	case "sandbox_execution_failed", "session_input_source_failed":
		return http.StatusBadGateway, true
	case "execution_timeout", "session_input_aborted":
		return http.StatusGatewayTimeout, true
	}
	return 0, false
}

// answerOf is what a client is told about err: what the contract has for it, if err says
// so itself (refusal), else the message of the first *writ.Error, with its code as "error"
// when it has one, under the status of that code (codeStatus) or else of its kind. Of what
// is Internal no message leaves, unless its code has a status or is
// writ.CodeMisconfigured; of all other errors nothing does.
func answerOf(err error) (status int, body any) {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status, r.body
	}
	e, ok := errors.AsType[*writ.Error](err)
	switch {
	case !ok, e.Msg == "":
		return http.StatusInternalServerError, envelope{Error: "Internal server error"}
	case e.Code == writ.CodeMisconfigured:
		return http.StatusInternalServerError, envelope{Error: shorten(e.Msg)}
	}
	status = response.Status(e.Kind)
	if s, known := codeStatus(e.Code); known {
		status = s
	} else if e.Kind == writ.Internal {
		return status, envelope{Error: "Internal server error"}
	}
	if e.Code != "" {
		return status, envelope{Error: e.Code, Message: shorten(e.Msg)}
	}
	return status, envelope{Error: shorten(e.Msg)}
}

// refuse answers err, and has the log line tell of it. What failed because the client is
// gone is answered with clientGone.
func refuse(w http.ResponseWriter, err error) {
	note(w, err)
	rec, ok := w.(*recorder)
	if ok && rec.Status != 0 {
		return // too late for another answer
	}
	status, body := answerOf(err)
	if ok && rec.gone() && (status >= http.StatusInternalServerError || errors.Is(err, rec.body.err)) {
		status, body = clientGone, envelope{Error: "The client closed the connection before the answer"}
	}
	if e, ok := body.(envelope); ok && e.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.Retry))
	}
	reply(w, status, body)
}

// maxText bounds a text of an error in bytes: it may quote what the client sent.
const maxText = 1000

// shorten is s in at most maxText bytes.
func shorten(s string) string { return response.Shorten(s, maxText) }
