package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

// startTimeout bounds how long a box may take from the command to its first
// instruction: placing the files is all there is to do.
const startTimeout = 15 * time.Second

// bubblewrapBox is a Box of Bubblewrap.
type bubblewrapBox struct {
	provider *Bubblewrap
	process  *process
	group    *cgroup // nil on a host without control groups
	uid      int     // lent by provider.uids, or 0
	limits   writ.Limits
	sandbox  writ.Enforcement

	closed atomic.Bool
	sent   atomic.Pointer[run] // what Close must stop, also while Start waits for it
	close  func() error        // once

	mu      sync.Mutex // held by Start
	started bool       // guarded by mu
	run     *run       // guarded by mu; nil until something may have been executed
}

func newBox(b *Bubblewrap, p *process, uid int, l writ.Limits, e writ.Enforcement) *bubblewrapBox {
	box := &bubblewrapBox{provider: b, process: p, group: p.group, uid: uid, limits: l, sandbox: e}
	box.close = sync.OnceValue(box.dispose)
	return box
}

// Start implements Box.
func (b *bubblewrapBox) Start(ctx context.Context, cmd Command) (Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed.Load():
		return nil, &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "the box is closed: nothing was executed"}
	case b.started:
		return nil, &writ.Error{Kind: writ.Conflict, Op: "start", Msg: "the box has been used: a box runs one program"}
	case ctx.Err() != nil:
		return nil, &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "cancelled before it started: nothing was executed", Err: context.Cause(ctx)}
	}
	b.started = true
	r, err := b.send(cmd)
	if _, ours := errors.AsType[*writ.Error](err); err != nil && !ours {
		err = &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "the command could not be given to its sandbox: nothing was executed", Err: err}
	}
	if err != nil {
		return nil, err
	}
	rec, err := r.awaitStart()
	if err == nil && rec.Kind == jail.Failed {
		return nil, errors.Join(stageError(cmd, rec), r.abandon())
	}
	// Whatever else happened, it may have been executed, and its result says so.
	b.run = r
	go r.supervise(ctx, err)
	return r, nil
}

// send gives the command to the jail. On error nothing was given.
func (b *bubblewrapBox) send(cmd Command) (_ *run, err error) {
	if cmd.Limits != b.limits {
		if err := b.group.setLimits(groupLimits(cmd.Limits)); err != nil {
			return nil, &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "the limits of the run cannot be set on its control group", Err: err}
		}
	}
	message, file, err := b.commandFile(cmd)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	stdin, err := standardInput(cmd.Stdin)
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	r := &run{box: b, limits: cmd.Limits, finished: make(chan struct{})}
	var theirs [2]*os.File
	if r.stdout, theirs[0], err = newDrain(cmd.Stdout, cmd.Limits.OutputBytes); err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer theirs[0].Close()
	if r.stderr, theirs[1], err = newDrain(cmd.Stderr, cmd.Limits.OutputBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("making a pipe: %w", err), r.stdout.from.Close())
	}
	defer theirs[1].Close()
	r.cpuBefore, _, r.oomBefore, _ = b.group.usage() // zero where nothing counts
	r.began = time.Now()
	b.sent.Store(r)
	rights := unix.UnixRights(int(file.Fd()), int(stdin.Fd()), int(theirs[0].Fd()), int(theirs[1].Fd()))
	if _, _, err := b.process.conn.WriteMsgUnix(message, rights, nil); err != nil {
		return nil, errors.Join(b.lost(err), r.stdout.from.Close(), r.stderr.from.Close())
	}
	return r, nil
}

// lost is the error of a box that ended before it was used.
func (b *bubblewrapBox) lost(err error) error {
	return &writ.Error{Kind: writ.Unavailable, Op: "start", Err: err,
		Msg: "the prepared sandbox is gone: nothing was executed, try again"}
}

// commandFile is the sealed memory file of a command and the message that goes
// with it. The caller closes the file.
func (b *bubblewrapBox) commandFile(cmd Command) ([]byte, *os.File, error) {
	c := jail.Command{Argv: cmd.Argv, Env: cmd.Env, Dir: cmd.Dir, Limits: rlimits(cmd.Limits, b.group)}
	parts := make([][]byte, 1, len(cmd.Files)+1)
	for _, f := range cmd.Files {
		c.Files = append(c.Files, jail.File{Path: f.Path, Mode: uint32(f.Mode.Perm()), Size: int64(len(f.Content))})
		parts = append(parts, f.Content)
	}
	parts[0] = c.AppendHeader(nil)
	// As the jail will read it, so that a command beyond its bounds fails here with words.
	if _, err := jail.ParseHeader(parts[0]); err != nil || len(parts[0]) > jail.MaxHeaderBytes {
		return nil, nil, &writ.Error{Kind: writ.Invalid, Op: "start", Msg: fmt.Sprintf("the command cannot be sent to a sandbox (%d bytes): %v", len(parts[0]), err), Err: err}
	}
	file, err := sealed("writ command", parts...)
	if err != nil {
		return nil, nil, err
	}
	return jail.CommandMessage(len(parts[0])), file, nil
}

// standardInput is a file with content, at its start and then at its end.
func standardInput(content []byte) (*os.File, error) {
	if len(content) == 0 {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return nil, fmt.Errorf("opening standard input: %w", err)
		}
		return f, nil
	}
	return sealed("writ stdin", content)
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
		switch r.Errno {
		case syscall.EAGAIN, syscall.ENOMEM:
			e.Kind = writ.Unavailable
		}
	case jail.StepFile:
		name := "a file"
		if int(r.Index) < len(cmd.Files) {
			f := cmd.Files[r.Index]
			name = fmt.Sprintf("%q (%d bytes)", f.Path, len(f.Content))
		}
		if r.Errno == syscall.ENOSPC {
			why = "no space left; the workspace limit is " + fmt.Sprint(cmd.Limits.WorkspaceBytes) + " bytes"
		}
		e.Msg = fmt.Sprintf("cannot place %s: %s; nothing was executed", name, why)
	default:
		e.Kind = writ.Unavailable
		e.Msg = fmt.Sprintf("the sandbox could not %v: %s; nothing was executed", r.Step, why)
	}
	return e
}

// Close implements Box.
func (b *bubblewrapBox) Close() error { return b.close() }

func (b *bubblewrapBox) dispose() error {
	b.closed.Store(true)
	if r := b.sent.Load(); r != nil {
		r.stop(end{cause: causeCancelled, reason: "the box was closed"})
	} else {
		b.process.kill()
	}
	b.mu.Lock() // a Start under way has lost its box and returns
	defer b.mu.Unlock()
	if b.run != nil {
		<-b.run.finished
	}
	return b.provider.dispose(b.process, b.group, b.uid)
}
