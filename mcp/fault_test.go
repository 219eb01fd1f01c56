package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"writ"
)

// TestBodyOf_EveryKind: each has a code of the contract, and what is not for the
// client stays here.
func TestBodyOf_EveryKind(t *testing.T) {
	known := " INTERNAL INVALID_PATCH UNAUTHORIZED WORKSPACE_NOT_FOUND APPROVAL_CONFLICT WORKSPACE_BUSY TIMEOUT "
	for _, k := range writ.Kinds {
		b := bodyOf(&writ.Error{Kind: k, Msg: "for you", Err: errors.New("secret")}, faults{}, "")
		if !strings.Contains(known, " "+b.Code+" ") || strings.Contains(b.Message, "secret") {
			t.Errorf("%s: %+v", k, b)
		}
		if k == writ.Internal && b.Message == "for you" {
			t.Errorf("%s: %+v", k, b)
		}
	}
	if b := bodyOf(fmt.Errorf("read: %w", context.DeadlineExceeded), faults{}, ""); b.Code != "TIMEOUT" {
		t.Errorf("%+v", b)
	}
	if b := bodyOf(&writ.Error{Kind: writ.Invalid, Code: "OUTPUT_LIMIT", Msg: strings.Repeat("é", maxMessage)}, faults{}, "appr-1"); b.Code != "OUTPUT_LIMIT" || len(b.Message) > maxMessage || b.Approval != "" {
		t.Errorf("%+v", b)
	}
	err := &writ.OperationError{Operation: "op-1", Err: &writ.Error{Kind: writ.Conflict, Code: "APPROVAL_AMBIGUOUS", Msg: "m"}}
	if b := bodyOf(err, faults{}, "appr-1"); b.Operation != "op-1" || b.Approval != "appr-1" {
		t.Errorf("%+v", b)
	}
}
