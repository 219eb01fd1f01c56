package writ

import "errors"

// Kind is what a caller may do about an error. Its zero value is Internal.
type Kind int

const (
	Internal        Kind = iota // our fault; the message is not for the caller
	Invalid                     // the request is malformed; send another
	Unauthenticated             // no credential, or not one of ours
	Denied                      // understood and refused
	NotFound                    // no such thing, or none that the caller may see
	Conflict                    // the thing is in another state than the request needs
	Exhausted                   // a bound is reached; try again later
	Unavailable                 // a part that we need does not answer
)

// Kinds lists every kind, for tables that must cover them all.
var Kinds = []Kind{Internal, Invalid, Unauthenticated, Denied, NotFound, Conflict, Exhausted, Unavailable}

func (k Kind) String() string {
	switch k {
	case Invalid:
		return "invalid"
	case Unauthenticated:
		return "unauthenticated"
	case Denied:
		return "denied"
	case NotFound:
		return "not_found"
	case Conflict:
		return "conflict"
	case Exhausted:
		return "exhausted"
	case Unavailable:
		return "unavailable"
	}
	return "internal"
}

// CodeMisconfigured is the Code of an Internal error whose message a client may see: what
// the operator configured cannot be used.
const CodeMisconfigured = "MISCONFIGURED"

// Error is a failure that somebody acts on. Msg is for the client: what was
// wrong, where, and what to do. Err is for the operator and never leaves.
type Error struct {
	Kind Kind
	// Code is the contract's own word for the failure (spec/02 §5.14), where the
	// contract of the caller has one: "PATH_ESCAPE". Else empty.
	Code string
	Op   string // what was being done: "create task"
	Msg  string
	Err  error
}

func (e *Error) Error() string {
	s := e.Msg
	if s == "" && e.Err != nil {
		s = e.Err.Error()
	}
	if e.Op != "" {
		return e.Op + ": " + s
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of the first *Error in err's chain, or Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// CodeOf is the Code of the first *Error in err's chain, or empty.
func CodeOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

// Message is what a client may be told about err: the Msg of the first *Error in
// its chain when that is not Internal, else "internal error".
func Message(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Kind != Internal && e.Msg != "" {
		return e.Msg
	}
	return "internal error"
}

// Reveal is err with what an operator may see beside: the cause of the first *Error in its
// chain, which its text leaves out where it has a Msg.
func Reveal(err error) string {
	if e, ok := errors.AsType[*Error](err); ok && e.Err != nil && e.Msg != "" {
		return err.Error() + ": " + e.Err.Error()
	}
	return err.Error()
}
