package mcp

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"writ"
)

// body is the error of a tool on the wire (spec/02 §2).
type body struct {
	Code      string           `json:"code"`
	Message   string           `json:"message"`
	Operation writ.OperationID `json:"operation_id,omitempty"`
	Approval  writ.ApprovalID  `json:"approval_id,omitempty"`
}

// The codes that this package itself gives.
const (
	codeTimeout           = "TIMEOUT"
	codeInvalidPatch      = "INVALID_PATCH"
	codeUnauthorized      = "UNAUTHORIZED"
	codeOperationNotFound = "OPERATION_NOT_FOUND"
	codeApprovalRequired  = "APPROVAL_REQUIRED"
	codeApprovalConflict  = "APPROVAL_CONFLICT"
)

// codeOf is the code of an error that has none of its own. It is the only such table.
func codeOf(k writ.Kind) string {
	switch k {
	case writ.Invalid:
		return codeInvalidPatch // the one thing that tools take which can be malformed
	case writ.Unauthenticated, writ.Denied:
		return codeUnauthorized
	case writ.NotFound:
		return "WORKSPACE_NOT_FOUND"
	case writ.Conflict:
		return codeApprovalConflict
	case writ.Exhausted:
		return "WORKSPACE_BUSY"
	}
	return "INTERNAL"
}

// maxMessage bounds the message of an error, which may quote what the client sent.
const maxMessage = 4000

// bodyOf is what a client is told about err. approval is the hold that the call was
// about, if any: the errors of approvals carry it.
func bodyOf(err error, approval writ.ApprovalID) body {
	b := body{Code: writ.CodeOf(err), Message: shorten(writ.Message(err))}
	if b.Code == "" {
		b.Code = codeOf(writ.KindOf(err))
		if errors.Is(err, context.DeadlineExceeded) {
			b.Code = codeTimeout
			b.Message = "not finished within 50 seconds: ask operation_status before you send a patch again"
		}
	}
	if strings.HasPrefix(b.Code, "APPROVAL_") {
		b.Approval = approval
	}
	if h, ok := errors.AsType[*writ.Held](err); ok {
		b.Approval = h.Approval
	}
	if o, ok := errors.AsType[*writ.OperationError](err); ok {
		b.Operation = o.Operation
	}
	return b
}

// shorten is s in at most maxMessage bytes, cut on a character boundary.
func shorten(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= maxMessage {
		return s
	}
	n := maxMessage - len("…")
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// reveal is err with the operator's part, which the text of a *writ.Error leaves out.
func reveal(err error) string {
	if e, ok := errors.AsType[*writ.Error](err); ok && e.Err != nil && e.Msg != "" {
		return err.Error() + ": " + e.Err.Error()
	}
	return err.Error()
}
