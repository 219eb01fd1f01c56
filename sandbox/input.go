package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"writ"
)

// input is our end of what a program reads: a pipe, or its terminal, or nothing.
type input struct {
	to       *os.File // nil for nothing; a terminal is closed by whoever reads it
	terminal bool
	turn     chan struct{} // holds one token; who has it writes
}

func newInput(to *os.File, terminal bool) *input {
	in := &input{to: to, terminal: terminal, turn: make(chan struct{}, 1)}
	in.turn <- struct{}{}
	return in
}

// inputError is what Run.Input answers.
func inputError(err error) error {
	e := &writ.Error{Kind: writ.Conflict, Op: "input", Err: err, Msg: "the program reads no more: its input is closed"}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, unix.EAGAIN):
		e.Kind, e.Msg = writ.Exhausted, "the program has not read what it was given before: there is no room for more, try again when it has"
	case errors.Is(err, os.ErrClosed), errors.Is(err, unix.EPIPE), errors.Is(err, unix.EIO):
	default:
		e.Kind, e.Msg = writ.Internal, ""
	}
	return e
}

// write gives b to the program as far as it goes before ctx is done.
func (in *input) write(ctx context.Context, b []byte) (n int, err error) {
	if in.to == nil {
		return 0, &writ.Error{Kind: writ.Conflict, Op: "input", Msg: "the program was started without an open input"}
	}
	select {
	case <-in.turn:
	case <-ctx.Done():
		return 0, inputError(context.Cause(ctx))
	}
	defer func() { in.turn <- struct{}{} }()
	_ = in.to.SetWriteDeadline(time.Time{}) // closed: the write says so
	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(fired)
		_ = in.to.SetWriteDeadline(time.Unix(1, 0)) // closed: then nothing waits
	})
	n, err = in.to.Write(b)
	if !stop() {
		<-fired // it must not fall into the next one's turn
	}
	if err != nil {
		return n, inputError(err)
	}
	return n, nil
}

// closePatience is how long CloseInput waits for room for one character.
const closePatience = 100 * time.Millisecond

// end makes the program see the end of its input.
func (in *input) end() error {
	if in.to == nil || !in.terminal {
		return in.close()
	}
	eof := byte('D' & 0x1f)
	err := control(in.to, func(fd int) error {
		t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil && t.Cc[unix.VEOF] != 0 {
			eof = t.Cc[unix.VEOF]
		}
		return err
	})
	if err != nil {
		return inputError(err)
	}
	return in.typeNow(eof, closePatience)
}

// typeNow types one character when there is room, or is within patience. It looks once at
// least, however late that is: time that passed before is no sign that there is none.
func (in *input) typeNow(c byte, patience time.Duration) error {
	for late := time.Now().Add(patience); ; time.Sleep(patience / 20) {
		last := time.Now().After(late)
		err := error(unix.EAGAIN) // somebody else is typing
		select {
		case <-in.turn:
			err = control(in.to, func(fd int) error { _, err := unix.Write(fd, []byte{c}); return err })
			in.turn <- struct{}{}
		default:
		}
		switch {
		case err == nil:
			return nil
		case last || err != unix.EAGAIN && err != unix.EINTR:
			return inputError(err)
		}
	}
}

// close closes a pipe; whoever waits in write returns.
func (in *input) close() error {
	if in.to == nil || in.terminal {
		return nil
	}
	if err := in.to.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("closing the input of a program: %w", err)
	}
	return nil
}

// resize sets the size of the terminal.
func (in *input) resize(s Size) error {
	e := &writ.Error{Kind: writ.Conflict, Op: "resize", Msg: "the program has no terminal"}
	switch {
	case s.Rows == 0 || s.Cols == 0:
		e.Kind, e.Msg = writ.Invalid, fmt.Sprintf("a terminal of %d rows and %d columns: want both positive", s.Rows, s.Cols)
		return e
	case !in.terminal:
		return e
	}
	e.Err = control(in.to, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: s.Rows, Col: s.Cols})
	})
	if e.Err != nil {
		e.Msg = "the terminal is gone with its program"
		return e
	}
	return nil
}

// control calls do with the descriptor of f, which is not closed meanwhile.
func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var done error
	if c.Control(func(fd uintptr) { done = do(int(fd)) }) != nil {
		return os.ErrClosed // the only reason, which has another name there
	}
	return done
}
