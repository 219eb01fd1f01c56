package writ

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxReasonBytes bounds the words with which somebody explains a decision.
const MaxReasonBytes = 2000

// KeyRequest asks for a new API key of a registered identity or of an operator.
type KeyRequest struct {
	Kind    PrincipalKind `json:"kind"`              // agent or operator
	Subject string        `json:"subject"`           // the identity or the operator
	Expires *time.Time    `json:"expires,omitempty"` // nil means never
}

// Validate reports every fault of the request at once.
func (r KeyRequest) Validate() error {
	var errs []error
	if r.Kind != KindAgent && r.Kind != KindOperator {
		errs = append(errs, fmt.Errorf("kind %q: want %q or %q", r.Kind, KindAgent, KindOperator))
	}
	if !ValidName(r.Subject) {
		errs = append(errs, fmt.Errorf("subject %q: want the name of an identity or an operator", r.Subject))
	}
	return errors.Join(errs...)
}

// OperatorRequest names an operator to add.
type OperatorRequest struct {
	ID     string   `json:"id"`
	Tenant Tenant   `json:"tenant,omitempty"` // empty means the caller's
	Roles  []string `json:"roles,omitempty"`
}

// Validate reports every fault of the request at once.
func (r OperatorRequest) Validate() error {
	var errs []error
	check := func(what, s string) {
		if !ValidName(s) {
			errs = append(errs, fmt.Errorf("%s %q: want 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit", what, s))
		}
	}
	check("id", r.ID)
	if r.Tenant != "" {
		check("tenant", string(r.Tenant))
	}
	for _, role := range r.Roles {
		check("role", role)
	}
	return errors.Join(errs...)
}

// CancelRequest asks for the end of a task.
type CancelRequest struct {
	Reason string `json:"reason,omitempty"`
}

// Validate reports every fault of the request at once.
func (r CancelRequest) Validate() error { return validReason(r.Reason) }

// Validate reports every fault of the vote at once. It does not know whether the
// approval needs a reason.
func (r VoteRequest) Validate() error {
	var errs []error
	if r.Verdict != Grant && r.Verdict != Refuse {
		errs = append(errs, fmt.Errorf("verdict %q: want %q or %q", r.Verdict, Grant, Refuse))
	}
	if r.Shown != "" && !r.Shown.Valid() {
		errs = append(errs, fmt.Errorf("shown: want the 64 hexadecimal digits that the approval shows"))
	}
	return errors.Join(append(errs, validReason(r.Reason))...)
}

// UndoRequest asks for an applied operation to be taken back. That is an operation
// too: it is decided, held and recorded as a patch is.
type UndoRequest struct {
	CheckOnly bool `json:"check_only,omitempty"` // change nothing, and say what would change
	// Key makes the request idempotent, as that of a PatchRequest.
	Key string `json:"key,omitempty"`
}

// MaxOperationKeyBytes bounds the key of an operation.
const MaxOperationKeyBytes = 256

// Validate reports every fault of the request at once.
func (r UndoRequest) Validate() error {
	if len(r.Key) > MaxOperationKeyBytes || !utf8.ValidString(r.Key) || strings.IndexByte(r.Key, 0) >= 0 {
		return fmt.Errorf("key: want UTF-8 text of at most %d bytes", MaxOperationKeyBytes)
	}
	return nil
}

// VerifyRequest asks for a verification of the audit log.
type VerifyRequest struct {
	// Anchors are signed checkpoints that the caller kept: the log must contain
	// each of them.
	Anchors []string `json:"anchors,omitempty"`
}

// MaxAnchors bounds VerifyRequest.Anchors.
const MaxAnchors = 100

// Validate reports every fault of the request at once.
func (r VerifyRequest) Validate() error {
	if len(r.Anchors) > MaxAnchors {
		return fmt.Errorf("anchors: %d are given, the most is %d", len(r.Anchors), MaxAnchors)
	}
	return nil
}

// Valid reports whether d has the form of a digest.
func (d Digest) Valid() bool {
	return len(d) == 64 && strings.Trim(string(d), "0123456789abcdef") == ""
}

func validReason(s string) error {
	if len(s) > MaxReasonBytes || !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("reason: want UTF-8 text of at most %d bytes", MaxReasonBytes)
	}
	return nil
}
