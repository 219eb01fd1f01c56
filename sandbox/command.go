package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"writ"
	"writ/sandbox/jail"
)

// placeRate and placeFiles are what a slow machine places in a second: bytes and files.
const (
	placeRate  = 64 << 20
	placeFiles = 4096
)

// size is how many bytes f has.
func (f File) size() int64 {
	if f.Body != nil {
		return f.Size
	}
	return int64(len(f.Content))
}

// fault says what is wrong with f; empty when nothing is.
func (f File) fault() string {
	switch {
	case f.Folder && (f.Body != nil || len(f.Content) > 0 || f.Size != 0):
		return "it is a folder and has content"
	case f.Link && (f.Folder || f.size() < 1 || f.size() > writ.MaxLinkBytes):
		return "it is a symlink, and leads nowhere or too far"
	case f.Body != nil && len(f.Content) > 0:
		return "it has its content twice"
	case f.Body == nil && f.Size != 0, f.Size < 0:
		return "it has a size without a body, or a negative one"
	}
	return ""
}

// commandFile is the sealed memory file of a command and the message that goes
// with it. The caller closes the file. On error every body is closed.
func (b *bubblewrapBox) commandFile(ctx context.Context, cmd Command) ([]byte, *os.File, error) {
	c := jail.Command{Argv: cmd.Argv, Env: cmd.Env, Dir: cmd.Dir, Limits: rlimits(cmd.Limits, b.group)}
	if cmd.Terminal != nil {
		c.Rows, c.Cols = cmd.Terminal.Rows, cmd.Terminal.Cols
	}
	room := b.room()
	for i, f := range cmd.Files {
		file := jail.File{Path: f.Path, Mode: uint32(f.Mode.Perm()), Size: f.size()}
		switch {
		case f.Folder:
			file.Kind, file.Mode = jail.Folder, 0o700
		case f.Link:
			file.Kind = jail.Link
		}
		// Before a byte of it is read: it would all be in memory, and then have no place.
		if room -= file.Size; room < 0 {
			return nil, nil, stageError(cmd, jail.Record{Step: jail.StepFile, Errno: syscall.ENOSPC, Index: uint32(i)})
		}
		c.Files = append(c.Files, file)
	}
	header := c.AppendHeader(nil)
	// As the jail will read it, so that a command beyond its bounds fails here with words.
	if _, err := jail.ParseHeader(header); err != nil || len(header) > jail.MaxHeaderBytes {
		return nil, nil, &writ.Error{Kind: writ.Invalid, Op: "start", Msg: fmt.Sprintf("the command cannot be sent to a sandbox (%d bytes): %v", len(header), err), Err: err}
	}
	file, err := sealed("writ command", func(w io.Writer) error {
		if _, err := w.Write(header); err != nil {
			return err
		}
		buf := make([]byte, writ.MaxChunkBytes)
		for _, f := range cmd.Files {
			if err := f.writeTo(w, buf, func() error { return b.interrupted(ctx) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return jail.CommandMessage(len(header)), file, nil
}

// room is more than all files of a command can have together in the box.
func (b *bubblewrapBox) room() int64 {
	room := int64(codeBytes)
	for _, size := range []int64{b.limits.WorkspaceBytes, b.limits.TmpBytes, b.limits.TmpBytes, b.limits.TmpBytes} {
		room += min(size, maxMemory)
	}
	return room
}

// interrupted is why a command that is being put together is not needed any more.
func (b *bubblewrapBox) interrupted(ctx context.Context) error {
	switch {
	case b.closed.Load():
		return errClosed()
	case ctx.Err() != nil:
		return errCancelled(ctx)
	}
	return nil
}

func errClosed() error {
	return &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "the box is closed: nothing was executed"}
}

func errCancelled(ctx context.Context) error {
	return &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "cancelled before it started: nothing was executed", Err: context.Cause(ctx)}
}

// writeTo writes the content of f, exactly its size, as long as interrupted says nothing.
// buf is for copying.
func (f File) writeTo(w io.Writer, buf []byte, interrupted func() error) (err error) {
	if f.Body == nil {
		_, err := w.Write(f.Content)
		return err
	}
	fail := func(kind writ.Kind, why string, err error) error {
		if _, ours := errors.AsType[*writ.Error](err); ours {
			return err
		}
		return &writ.Error{Kind: kind, Op: "start", Err: err, Msg: fmt.Sprintf("cannot place %q (%d bytes): %s; nothing was executed", f.Path, f.Size, why)}
	}
	body, err := f.Body()
	if err != nil {
		return fail(writ.Unavailable, "its content cannot be opened", err)
	}
	defer func() {
		if e := body.Close(); e != nil && err == nil {
			err = fail(writ.Unavailable, "its content cannot be read", e)
		}
	}()
	from := &io.LimitedReader{R: body, N: f.Size}
	for {
		if err := interrupted(); err != nil {
			return err
		}
		n, readErr := from.Read(buf)
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
		switch {
		case readErr == io.EOF && from.N > 0:
			return fail(writ.Invalid, fmt.Sprintf("its content ends after %d", f.Size-from.N), io.ErrUnexpectedEOF)
		case readErr != nil && readErr != io.EOF:
			return fail(writ.Unavailable, "its content cannot be read", readErr)
		case readErr == io.EOF:
			return f.atEnd(body, buf, fail)
		}
	}
}

// atEnd checks that body has no more. The error of a reader that checks what it reads
// comes here, too.
func (f File) atEnd(body io.Reader, buf []byte, fail func(writ.Kind, string, error) error) error {
	for range 100 { // as bufio has it: readers that give nothing must not go on for ever
		n, err := body.Read(buf[:1])
		switch {
		case n > 0:
			return fail(writ.Invalid, "its content is longer", nil)
		case err == io.EOF:
			return nil
		case err != nil:
			return fail(writ.Unavailable, "its content cannot be read", err)
		}
	}
	return fail(writ.Unavailable, "its content cannot be read", io.ErrNoProgress)
}

// patience bounds how long a box may take from cmd to its first instruction: placing the
// files is all there is to do.
func patience(cmd Command) time.Duration {
	total := int64(0)
	for _, f := range cmd.Files {
		total += f.size()
	}
	return startTimeout + time.Duration(total/placeRate+int64(len(cmd.Files)/placeFiles))*time.Second
}

// stageError says in words why a command was not executed.
func stageError(cmd Command, r jail.Record) error {
	e := &writ.Error{Kind: writ.Invalid, Op: "start", Err: fmt.Errorf("%v: %w", r.Step, r.Errno)}
	why := r.Errno.Error()
	switch r.Step {
	case jail.StepDir:
		switch r.Errno {
		case syscall.ENOENT:
			why = "there is no such directory"
		case syscall.ENOTDIR:
			why = "it is not a directory"
		}
		e.Msg = fmt.Sprintf("cannot work in %q: %s; nothing was executed", cmd.Dir, why)
	case jail.StepExec:
		e.Msg = fmt.Sprintf("cannot execute %q: %s", cmd.Argv[0], why)
		switch {
		case r.Errno == syscall.EAGAIN, r.Errno == syscall.ENOMEM:
			e.Kind = writ.Unavailable
		case r.Errno == syscall.ENOENT && !strings.Contains(cmd.Argv[0], "/"):
			e.Msg = fmt.Sprintf("there is no program %q in the PATH of the sandbox", cmd.Argv[0])
		}
	case jail.StepFile:
		name := "a file"
		if int(r.Index) < len(cmd.Files) {
			f := cmd.Files[r.Index]
			name = fmt.Sprintf("%q (%d bytes)", f.Path, f.size())
		}
		if r.Errno == syscall.ENOSPC {
			e.Code = writ.CodeInputTooLarge
			why = "no space left; the workspace limit is " + fmt.Sprint(cmd.Limits.WorkspaceBytes) + " bytes"
		}
		e.Msg = fmt.Sprintf("cannot place %s: %s; nothing was executed", name, why)
	default:
		e.Kind = writ.Unavailable
		e.Msg = fmt.Sprintf("the sandbox could not %v: %s; nothing was executed", r.Step, why)
	}
	return e
}
