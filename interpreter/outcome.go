package interpreter

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"writ"
)

// unanswerable is the error of a task that has no outcome to tell, nil when it has one.
func unanswerable(t writ.Task) error {
	e := &writ.Error{Op: "run code"}
	switch {
	case t.State == writ.TaskDenied, t.State == writ.TaskExpired:
		e.Kind, e.Code, e.Msg = writ.Denied, "denied", t.Reason
	case t.State == writ.TaskInterrupted:
		e.Kind, e.Code, e.Msg = writ.Internal, "sandbox_execution_failed", "Sandbox execution failed"
	case t.Result == nil || !t.Result.Started && t.State != writ.TaskFailed:
		e.Kind, e.Code, e.Msg = writ.Conflict, "cancelled", "The run was cancelled"
	case t.Result.Started:
		return nil
	case t.Result.Code == writ.CodeInputUnavailable:
		e.Kind, e.Code, e.Msg = writ.NotFound, t.Result.Code, "One or more input files are unavailable"
	case t.Result.Code == writ.CodeInputSource:
		e.Kind, e.Code, e.Msg = writ.Unavailable, t.Result.Code, "Input file service is unavailable"
	case t.Result.Code == writ.CodeInputTooLarge:
		return inputTooLarge(errors.New(t.Result.Reason))
	default:
		e.Kind, e.Code, e.Msg = writ.Unavailable, "sandbox_setup_failed", t.Result.Reason
	}
	return e
}

// inputTooLarge is the error for files that do not fit in the folder of a run.
func inputTooLarge(err error) error {
	return &writ.Error{Op: "run code", Kind: writ.Invalid, Code: writ.CodeInputTooLarge, Msg: "Input files exceed the delivery limit", Err: err}
}

// outcome is the answer of spec/03 §6.2 but for its files. units are what is kept of each
// output.
func outcome(r writ.Result, units int64) Reply {
	reply := Reply{WallMS: r.WallMS}
	stdout, over := cutUnits(r.Stdout, units)
	stderr, long := cutUnits(r.Stderr, units)
	reply.Stdout, reply.Stderr = stdout, stderr
	code := func(n int) { reply.Code = &n }
	ended := func(status, message string) {
		code(128 + int(unix.SIGKILL))
		reply.Signal, reply.Status, reply.Message = "SIGKILL", status, message
	}
	switch {
	case over, r.Reason == writ.ReasonStdout:
		ended("OL", "stdout length exceeded")
	case r.Outcome == writ.TimedOut:
		ended("TO", "Time limit exceeded")
	case r.Outcome == writ.OutOfMemory:
		ended("SG", "Out of memory")
	case r.Outcome == writ.Killed:
		ended("", r.Reason)
	case r.ExitCode != nil:
		code(*r.ExitCode)
		if s := signalOf(*r.ExitCode); s != "" {
			reply.Signal = s // a shell says so of what it ran
		}
	default:
		reply.Signal = r.Signal
		code(128 + int(unix.SignalNum(r.Signal)))
	}
	if reply.Message != "" {
		reply.Stderr += tail(reply.Message)
	} else if long {
		reply.Message = fmt.Sprintf("stderr truncated at %d bytes", units)
		reply.Stderr += tail(reply.Message)
	}
	return reply
}

func tail(message string) string { return "\n[sandbox] " + message + "\n" }

// signalOf is the signal that an exit code above 128 tells of, empty for none.
func signalOf(code int) string {
	if code <= 128 {
		return ""
	}
	return unix.SignalName(unix.Signal(code - 128))
}

// cutUnits is at most so many UTF-16 code units of o, with U+FFFD for each byte that is not
// UTF-8, and whether there was more.
func cutUnits(o writ.Output, units int64) (text string, over bool) {
	b := o.Data()
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		size := int64(1)
		if r > 0xFFFF {
			size = 2
		}
		if units -= size; units < 0 {
			return out.String(), true
		}
		out.WriteRune(r)
		b = b[n:]
	}
	return out.String(), o.Truncated
}
