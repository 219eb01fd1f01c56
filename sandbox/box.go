package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

// startTimeout bounds how long a box may take from a command with few files to its first
// instruction (patience).
const startTimeout = 15 * time.Second

// bubblewrapBox is a Box of Bubblewrap.
type bubblewrapBox struct {
	provider *Bubblewrap
	process  *process
	group    *cgroup // nil on a host without control groups
	uid      int     // lent by provider.uids, or 0
	limits   writ.Limits
	dir      string // where it works in memory; empty with a workspace
	sandbox  writ.Enforcement

	workspace *Workspace // nil for a box in memory
	unheld    []string   // of its paths, when it was made

	closed atomic.Bool
	sent   atomic.Pointer[run] // what Close must stop, also while Start waits for it
	close  func() error        // once

	mu      sync.Mutex // held by Start
	started bool       // guarded by mu
	run     *run       // guarded by mu; nil until something may have been executed
}

func newBox(b *Bubblewrap, p *process, uid int, plan boxPlan, e writ.Enforcement) *bubblewrapBox {
	box := &bubblewrapBox{provider: b, process: p, group: p.group, uid: uid, limits: plan.limits, dir: plan.dir, sandbox: e}
	box.close = sync.OnceValue(box.dispose)
	return box
}

// Start implements Box.
func (b *bubblewrapBox) Start(ctx context.Context, cmd Command) (Run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed.Load():
		return nil, errClosed()
	case b.started:
		return nil, &writ.Error{Kind: writ.Conflict, Op: "start", Msg: "the box has been used: a box runs one program"}
	case ctx.Err() != nil:
		return nil, errCancelled(ctx)
	}
	if err := b.check(cmd); err != nil {
		return nil, err
	}
	b.started = true
	r, err := b.send(ctx, cmd)
	if _, ours := errors.AsType[*writ.Error](err); err != nil && !ours {
		err = &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "the command could not be given to its sandbox: nothing was executed", Err: err}
	}
	if err != nil {
		return nil, err
	}
	rec, err := r.awaitStart(cmd)
	if err == nil && rec.Kind == jail.Failed {
		return nil, errors.Join(stageError(cmd, rec), r.abandon())
	}
	// Whatever else happened, it may have been executed, and its result says so.
	b.run = r
	go r.supervise(ctx, err)
	return r, nil
}

// send gives the command to the jail. On error nothing was given.
func (b *bubblewrapBox) send(ctx context.Context, cmd Command) (_ *run, err error) {
	if cmd.Limits != b.limits {
		if err := b.group.setLimits(groupLimits(cmd.Limits)); err != nil {
			return nil, &writ.Error{Kind: writ.Unavailable, Op: "start", Msg: "the limits of the run cannot be set on its control group", Err: err}
		}
	}
	message, file, err := b.commandFile(ctx, cmd)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := &run{box: b, limits: cmd.Limits, finished: make(chan struct{})}
	theirs, err := r.openStreams(cmd)
	defer func() {
		for _, f := range theirs {
			_ = f.Close() // the program has its own
		}
		if err != nil {
			err = errors.Join(err, r.abandon())
		}
	}()
	if err != nil {
		return nil, err
	}
	rights := []int{int(file.Fd())}
	for _, f := range theirs {
		rights = append(rights, int(f.Fd()))
	}
	r.cpuBefore, _, r.oomBefore, _ = b.group.usage() // zero where nothing counts
	r.began = time.Now()
	b.sent.Store(r)
	if b.closed.Load() { // by a Close that may not have seen r
		return nil, errClosed()
	}
	if _, _, err := b.process.conn.WriteMsgUnix(message, unix.UnixRights(rights...), nil); err != nil {
		return nil, b.lost(err)
	}
	return r, nil
}

// check refuses a command that no box of this kind can run.
func (b *bubblewrapBox) check(cmd Command) error {
	e := &writ.Error{Kind: writ.Invalid, Op: "start"}
	switch {
	case (cmd.Input || cmd.Terminal != nil) && len(cmd.Stdin) > 0:
		e.Msg = "a program has an input that is given beforehand, or one that stays open, not both"
	case cmd.Terminal != nil && (cmd.Terminal.Rows == 0 || cmd.Terminal.Cols == 0):
		e.Msg = fmt.Sprintf("a terminal of %d rows and %d columns: want both positive", cmd.Terminal.Rows, cmd.Terminal.Cols)
	case slices.ContainsFunc(cmd.Files, func(f File) bool { return f.fault() != "" }):
		f := cmd.Files[slices.IndexFunc(cmd.Files, func(f File) bool { return f.fault() != "" })]
		e.Msg = fmt.Sprintf("cannot place %q: %s", f.Path, f.fault())
	case b.workspace != nil && slices.ContainsFunc(cmd.Files, func(f File) bool { return within(path.Clean(f.Path), b.workspace.Root) }):
		e.Msg = "a file of the command would be placed in the workspace: that is for patches"
	default:
		return nil
	}
	return e
}

// openStreams makes our ends of what the program reads and writes, and gives its three,
// which the caller closes; with a terminal there are none, and ours comes when it has
// started. On error what was made is r's.
func (r *run) openStreams(cmd Command) (theirs []*os.File, err error) {
	r.input, r.stdout, r.stderr = newInput(nil, false), newDrain(nil, nil, 0), newDrain(nil, nil, 0)
	if cmd.Terminal != nil {
		return nil, nil
	}
	var stdin, ours *os.File
	if !cmd.Input {
		stdin, err = standardInput(cmd.Stdin)
	} else if stdin, ours, err = os.Pipe(); err == nil {
		r.input = newInput(ours, false)
	}
	if err != nil {
		return nil, fmt.Errorf("opening standard input: %w", err)
	}
	theirs = append(theirs, stdin)
	for _, d := range []struct {
		drain **drain
		to    io.Writer
	}{{&r.stdout, cmd.Stdout}, {&r.stderr, cmd.Stderr}} {
		ours, out, err := os.Pipe()
		if err != nil {
			return theirs, fmt.Errorf("making a pipe: %w", err)
		}
		*d.drain = newDrain(ours, d.to, cmd.Limits.OutputBytes)
		theirs = append(theirs, out)
	}
	return theirs, nil
}

// lost is the error of a box that ended before it was used.
func (b *bubblewrapBox) lost(err error) error {
	return &writ.Error{Kind: writ.Unavailable, Op: "start", Err: err,
		Msg: "the prepared sandbox is gone: nothing was executed, try again"}
}

// standardInput is a file with content, at its start and then at its end.
func standardInput(content []byte) (*os.File, error) {
	if len(content) == 0 {
		return os.Open(os.DevNull)
	}
	return sealedBytes("writ stdin", content)
}

// Unheld implements Box.
func (b *bubblewrapBox) Unheld() []string {
	if b.workspace == nil {
		return nil
	}
	list := slices.Clone(b.unheld)
	root := b.process.dirs[len(b.process.dirs)-1]
	_ = control(root, func(fd int) error { // closed with the box
		now, err := b.workspace.unheld(fd)
		if err == nil {
			list = now
		}
		return err
	})
	return list
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
