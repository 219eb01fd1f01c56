package runner

import (
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"writ"
	"writ/sandbox"
)

// meter passes on what a program writes and counts its text in UTF-16 code units, each
// byte that is not UTF-8 as one. Of what is beyond bytes it passes on nothing.
type meter struct {
	to    io.Writer
	most  int64  // bytes that are passed on
	bytes int64  // of them that may yet be
	units int64  // that may yet be written
	over  func() // may be nil; called once, when there are more
	done  bool   // over was called
	rest  []byte // of a character that is not yet whole
}

func (m *meter) Write(p []byte) (int, error) {
	if b := p[:min(int64(len(p)), m.bytes)]; len(b) > 0 {
		m.bytes -= int64(len(b))
		if _, err := m.to.Write(b); err != nil {
			return 0, err
		}
	}
	if m.done {
		return len(p), nil
	}
	b := append(m.rest, p...)
	for len(b) > 0 && utf8.FullRune(b) {
		r, n := utf8.DecodeRune(b)
		if m.units--; r > 0xFFFF {
			m.units--
		}
		b = b[n:]
	}
	m.rest = append([]byte(nil), b...)
	if m.units < 0 {
		m.done = true
		if m.over != nil {
			m.over()
		}
	}
	return len(p), nil
}

// errStdout ends a run whose meter is over.
var errStdout = errors.New(writ.ReasonStdout)

// judge has what is said of a run agree with what its stdout was, which comes out only
// when the program may be over already. It is called when the run is.
func (m *meter) judge(ctx context.Context, r *writ.Result) {
	r.Stdout, r.Stderr = trimmed(r.Stdout, m.most), trimmed(r.Stderr, m.most)
	if !m.done || ctx.Err() != nil || r.Outcome == writ.TimedOut || r.Outcome == writ.OutOfMemory {
		return
	}
	r.Outcome, r.Reason = writ.Killed, writ.ReasonStdout
	r.ExitCode, r.Signal = nil, sandbox.SIGKILL.String()
}

// trimmed is o with at most so many bytes.
func trimmed(o writ.Output, bytes int64) writ.Output {
	if b := o.Data(); int64(len(b)) > bytes {
		return writ.NewOutput(b[:bytes], o.Bytes)
	}
	return o
}
