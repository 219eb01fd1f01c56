package codeapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ"
	"writ/interpreter"
)

// execBody is what POST /v1/exec reads of its body (spec/03 §6.1): whatever else is in
// there has no meaning here.
type execBody struct {
	Lang  text           `json:"lang"`
	Code  text           `json:"code"`
	Args  jsontext.Value `json:"args"`
	Files jsontext.Value `json:"files"`
	Hint  text           `json:"runtime_session_hint"`
	// Timeout is what the contract's reference ignores, and clients send who mean it.
	Timeout jsontext.Value `json:"timeout"`
}

// badRequest is the "error" of faults that the contract's reference finds late.
const badRequest = "bad_request"

// exec runs code, and answers when it ended. A client that goes away ends it.
func (a *API) exec(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	req, err := a.execRequest(r, who)
	if err != nil {
		refuse(w, err)
		return
	}
	got, err := a.svc.Runs.Exec(r.Context(), who, req)
	if err != nil {
		refuse(w, execError(err))
		return
	}
	reply(w, http.StatusOK, execReplyOf(got))
}

// execRequest reads r in the contract's order: language, hint, file references, and what
// its runner looks at.
func (a *API) execRequest(r *http.Request, who writ.Principal) (req interpreter.Request, err error) {
	var b execBody
	if err := decode(r, &b); err != nil {
		return req, err
	}
	req.Language = writ.Language(b.Lang.value)
	switch {
	case b.Lang.kind == 0:
		return req, invalid("lang is required: name the language of the code in a JSON body, such as \"python\"")
	case !b.Lang.has():
		return req, invalid("lang must be a string")
	case len(b.Lang.value) > maxLanguage:
		return req, invalid("Unsupported language: %s…", b.Lang.value[:maxLanguage])
	}
	if err := a.svc.Runs.Language(r.Context(), req.Language); err != nil {
		return req, err
	}
	if req.Hint, err = a.hintOf(b.Hint, who); err != nil {
		return req, err
	}
	if req.Files, err = refsOf(b.Files); err != nil {
		return req, err
	}
	if !b.Code.has() {
		return req, &writ.Error{Kind: writ.Invalid, Code: badRequest, Op: "read request",
			Msg: "files[0] must contain exactly one of non-empty id or string content"} // the contract's name of the code
	}
	req.Code, req.WallMS = b.Code.value, wallOf(b.Timeout)
	if req.Args, err = argsOf(b.Args); err != nil {
		return req, err
	}
	if req.ID, err = requestIDOf(r.Header); err != nil {
		return req, err
	}
	return req, nil
}

// maxLanguage bounds what is quoted of a language that there is not.
const maxLanguage = 64

// hintOf is the hint of who's runtime session, which has no meaning in stateless mode, and
// none for synthetic tests.
func (a *API) hintOf(t text, who writ.Principal) (string, error) {
	if a.svc.Runs.Mode() == interpreter.Stateless || who.Synthetic {
		return "", nil
	}
	if t.kind != 0 && t.kind != jsontext.KindNull && !t.has() {
		return "", invalid("runtime_session_hint must be a string")
	}
	return t.value, a.svc.Runs.Hint(t.value)
}

// argsOf is the arguments of the program: null, which models send for what they leave out,
// is none.
func argsOf(v jsontext.Value) ([]string, error) {
	if len(v) == 0 || v.Kind() == jsontext.KindNull {
		return nil, nil
	}
	var list []text
	ok := v.Kind() == jsontext.KindBeginArray && json.Unmarshal(v, &list, lenient()) == nil
	args := make([]string, len(list))
	for i, t := range list {
		ok = ok && t.has()
		args[i] = t.value
	}
	if !ok {
		return nil, &writ.Error{Kind: writ.Invalid, Code: badRequest, Op: "read request", Msg: "args must be an array of strings if provided"}
	}
	return args, nil
}

// wallOf is the time that a run asks for, in milliseconds, 0 when it asks for none: what is
// no number above 0 has no meaning.
func wallOf(timeout jsontext.Value) int64 {
	if timeout.Kind() != jsontext.KindNumber {
		return 0
	}
	ms, err := strconv.ParseFloat(string(timeout), 64)
	switch {
	case ms >= math.MaxInt32: // beyond all limits, and what err is about
		return math.MaxInt32
	case err != nil || ms <= 0:
		return 0
	}
	return max(int64(ms), 1)
}

var requestID = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)

// requestIDOf is by what a client that waits for r may have it cancelled, empty for
// nothing (spec/03 §13).
func requestIDOf(h http.Header) (string, error) {
	switch values := h.Values("X-LibreChat-Code-Request-ID"); {
	case len(values) == 0:
		return "", nil
	case len(values) > 1 || !requestID.MatchString(values[0]):
		return "", invalid("Invalid programmatic request ID")
	default:
		return values[0], nil
	}
}

// execError is an error of Exec as the contract has it.
func execError(err error) error {
	e, ok := errors.AsType[*writ.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &refusal{status: http.StatusGatewayTimeout, body: envelope{Error: "execution_timeout", Message: "Execution timed out"}, err: err}
	case ok && e.Kind == writ.Exhausted && e.Code == "":
		// Clients know no other word for "later".
		return &refusal{status: http.StatusTooManyRequests, body: envelope{Error: "rate_limited", Message: shorten(e.Msg), Retry: retrySeconds}, err: err}
	}
	return err
}

// retrySeconds is after how long a client may try again that was refused because too much
// runs.
const retrySeconds = 5
