package mcp

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"writ"
	"writ/response"
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
	codeInvalidCommand    = "INVALID_COMMAND"
	codeOutputLimit       = "OUTPUT_LIMIT"
	codeProcessNotFound   = "PROCESS_NOT_FOUND"
	codeUnauthorized      = "UNAUTHORIZED"
	codeOperationNotFound = "OPERATION_NOT_FOUND"
	codeApprovalRequired  = "APPROVAL_REQUIRED"
	codeApprovalConflict  = "APPROVAL_CONFLICT"
)

// faults are what is meant by an error of a tool that has no code of its own. Zero fields
// mean what files and patches are about.
type faults struct{ invalid, notFound string }

// codeOf is the code of an error that has none of its own. It is the only such table.
func codeOf(k writ.Kind, f faults) string {
	switch k {
	case writ.Invalid:
		return cmp.Or(f.invalid, codeInvalidPatch)
	case writ.Unauthenticated, writ.Denied:
		return codeUnauthorized
	case writ.NotFound:
		return cmp.Or(f.notFound, "WORKSPACE_NOT_FOUND")
	case writ.Conflict:
		return codeApprovalConflict
	case writ.Exhausted:
		return "WORKSPACE_BUSY"
	}
	return "INTERNAL"
}

// maxMessage bounds the message of an error, which may quote what the client sent.
const maxMessage = 4000

// bodyOf is what a client is told about err, which is of a tool with f. approval is the
// hold that the call was about, if any: the errors of approvals carry it.
func bodyOf(err error, f faults, approval writ.ApprovalID) body {
	b := body{Code: writ.CodeOf(err), Message: shorten(writ.Message(err))}
	if b.Code == "" {
		b.Code = codeOf(writ.KindOf(err), f)
		if errors.Is(err, context.DeadlineExceeded) {
			b.Code = codeTimeout
			b.Message = "not finished within 50 seconds: ask operation_status before you send a patch again, and process_list before a command"
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

// shorten is s in at most maxMessage bytes.
func shorten(s string) string { return response.Shorten(s, maxMessage) }
