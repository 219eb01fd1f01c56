package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"writ"
	"writ/response"
)

// problem is an error on the wire (RFC 9457). Kind is a writ.Kind by name.
type problem struct {
	Type   string `json:"type"` // always about:blank: title and status say what it is
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Kind   string `json:"kind"`
	// Code is the contract's own word for it (spec/02 §5.14), where there is one.
	Code      string           `json:"code,omitempty"`
	Approval  writ.ApprovalID  `json:"approval_id,omitempty"`  // that must be granted first
	Operation writ.OperationID `json:"operation_id,omitempty"` // that failed; the ledger has it
}

// refusal is an error with a status that says more than its kind does.
type refusal struct {
	status int
	err    *writ.Error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// maxDetail bounds the detail of a problem, and the reason of a recorded refusal:
// a message may quote what the client sent.
const maxDetail = 1000

// problemOf is what a client is told about err.
func problemOf(err error) problem {
	kind := writ.KindOf(err)
	code := response.Status(kind)
	if r, ok := errors.AsType[*refusal](err); ok {
		code = r.status
	}
	p := problem{
		Type: "about:blank", Title: http.StatusText(code), Status: code,
		Detail: shorten(writ.Message(err)), Kind: kind.String(), Code: writ.CodeOf(err),
	}
	if h, ok := errors.AsType[*writ.Held](err); ok {
		p.Approval = h.Approval
	}
	if o, ok := errors.AsType[*writ.OperationError](err); ok {
		p.Operation = o.Operation
	}
	return p
}

// shorten is s in at most maxDetail bytes.
func shorten(s string) string { return response.Shorten(s, maxDetail) }

// sendProblem answers err.
func sendProblem(w http.ResponseWriter, err error) {
	p := problemOf(err)
	h := w.Header()
	switch p.Status {
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="writ"`)
	case http.StatusTooManyRequests:
		h.Set("Retry-After", "1")
	}
	h.Set("Content-Type", "application/problem+json")
	// A problem always encodes: strings and an integer only. A failed write means
	// that the client is gone.
	body, _ := encode(p)
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

// send answers v as JSON.
func send(w http.ResponseWriter, code int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(body) // fails when the client is gone; nobody is left to tell
	return nil
}

// encode is v as one line of JSON, with characters of HTML as they are: the
// content type and nosniff keep browsers from reading them as such.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
