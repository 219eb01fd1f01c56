package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"writ"
	"writ/sandbox"
)

// Start starts a process and returns once it has been executed. It goes on when ctx ends
// after that, and when the caller is gone: it ends by itself, by its time limit, by
// Terminate or by Close. A second call with the same id answers what the first did and
// starts nothing.
//
// An error means that it is certain that nothing was executed, and that the id is still
// good:
//   - INVALID_COMMAND: the order is faulty;
//   - PATH_ESCAPE: its folder is not beneath the root;
//   - UNAUTHORIZED: the workspace is read-only, or not on this host;
//   - WORKSPACE_BUSY, Exhausted: as many processes run as may;
//   - PROCESS_SPAWN_FAILED: the program or its folder is missing, no sandbox can be made,
//     or none that holds the rules of the workspace: the message says which;
//   - Conflict, without a code: the id was used for a process that is forgotten;
//   - Unavailable, without a code: the runner is shutting down.
func (m *Processes) Start(ctx context.Context, o writ.ProcessOrder) error {
	if err := checkOrder(o); err != nil {
		return err
	}
	p, first, err := m.reserve(o)
	if err != nil {
		return err
	}
	if !first {
		failed, err := p.awaitStart(ctx)
		return cmp.Or(err, failed)
	}
	if err = m.launch(ctx, p, o); err != nil {
		m.unreserve(p)
	} else {
		m.ids.end(string(p.id), true)
	}
	p.settle(err)
	return err
}

// reserve takes a slot for a new process, or finds the one that has its id.
func (m *Processes) reserve(o writ.ProcessOrder) (_ *process, first bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.evict(time.Now())
	if p := m.known[o.ID]; p != nil {
		return p, false, nil
	}
	switch {
	case m.closed:
		return nil, false, shuttingDown("start process")
	case m.live >= m.opt.Live:
		return nil, false, &writ.Error{
			Kind: writ.Exhausted, Code: codeBusy, Op: "start process",
			Msg: fmt.Sprintf("%d processes run, which is as many as may: nothing was started; end one, or try again when one has ended", m.live),
		}
	}
	if m.ids.begin(string(o.ID)) != nil {
		return nil, false, &writ.Error{Kind: writ.Conflict, Op: "start process", Msg: fmt.Sprintf("process %s was started before, and is forgotten: nothing was started", o.ID)}
	}
	p := newProcess(o, m.opt.Output)
	m.known[p.id] = p
	m.live++
	m.boxes.Add(1)
	return p, true, nil
}

// unreserve gives up what was reserved for a process that was not started.
func (m *Processes) unreserve(p *process) {
	m.ids.end(string(p.id), false)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, p.id)
	m.live--
	m.boxes.Done()
}

// launch makes a box and starts the process in it.
func (m *Processes) launch(ctx context.Context, p *process, o writ.ProcessOrder) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.closing, func() { cancel(context.Cause(m.closing)) })()

	root, err := filepath.EvalSymlinks(o.Workspace.Root)
	if err != nil {
		return &writ.Error{
			Kind: writ.NotFound, Code: codeSpawnFailed, Op: "start process", Err: err,
			Msg: fmt.Sprintf("the root of workspace %s cannot be found: nothing was started", o.Workspace.ID),
		}
	}
	cmd := p.command(o, root, m.opt.Env)
	box, err := m.prepare(ctx, o.Workspace, root, cmd.Limits)
	if err != nil {
		return spawnFailed(ctx, err)
	}
	life, kill := context.WithCancelCause(m.closing)
	p.kill = kill
	err = context.Cause(ctx)
	if err == nil {
		p.run, err = box.Start(life, cmd)
	}
	if err != nil {
		kill(nil)
		m.discard(box)
		return spawnFailed(ctx, err)
	}
	go func() { // ends with the box; Close waits for it
		defer m.boxes.Done()
		defer kill(nil)
		res := p.run.Wait()
		m.over(p, res, context.Cause(life))
		m.opt.Log.Info("process ended", "process", p.id, "termination", p.status().Termination, "outcome", res.Outcome, "wall_ms", res.WallMS)
		m.discard(box)
	}()
	return nil
}

// prepare makes a box that holds what the rules of the workspace deny. Where something
// moves away between looking and holding, it looks again, once.
func (m *Processes) prepare(ctx context.Context, w writ.Workspace, root string, l writ.Limits) (sandbox.Box, error) {
	for again := false; ; again = true {
		hidden, protected, err := deniedPaths(ctx, w, root)
		if err != nil {
			return nil, err
		}
		box, err := m.provider.Prepare(ctx, sandbox.Template{Limits: l, Workspace: &sandbox.Workspace{
			Root: root, Writable: true, Hidden: hidden, Protected: append(slices.Clone(guarded), protected...),
		}})
		if err != nil {
			return nil, err
		}
		loose := box.Unheld()
		i := slices.IndexFunc(loose, func(p string) bool { return slices.Contains(hidden, p) || slices.Contains(protected, p) })
		if i < 0 {
			return box, nil
		}
		m.discard(box)
		if again {
			return nil, &writ.Error{
				Kind: writ.Conflict, Op: "start process",
				Msg: fmt.Sprintf("%q, which the rules of the workspace deny, was moved while its sandbox was made: nothing was started, try again", loose[i]),
			}
		}
	}
}

func (m *Processes) discard(box sandbox.Box) {
	if err := box.Close(); err != nil {
		m.opt.Log.Warn("box left something behind", "err", err)
	}
}

// spawnFailed is an error that nothing was started, with words for the caller.
func spawnFailed(ctx context.Context, err error) error {
	const op = "start process"
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed):
		return shuttingDown(op)
	case cause != nil:
		return fmt.Errorf("%s: %w", op, cause)
	}
	e := &writ.Error{Kind: writ.Unavailable, Code: codeSpawnFailed, Op: op, Msg: "the sandbox could not be set up, so nothing was started; see writ doctor", Err: err}
	if given, ok := errors.AsType[*writ.Error](err); ok && given.Kind != writ.Internal && given.Msg != "" {
		e.Kind, e.Msg = given.Kind, given.Msg
	}
	return e
}

// checkOrder refuses what no box is made for.
func checkOrder(o writ.ProcessOrder) error {
	e := &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "start process"}
	w := o.Workspace
	switch err := (writ.CommandRequest{Workspace: w.ID, Command: o.Command, TTY: o.TTY, Dir: o.Dir}).Validate(); {
	case err != nil:
		e.Msg = err.Error()
	case !writ.ValidName(string(o.ID)):
		e.Msg = fmt.Sprintf("%.80q is not the id of a process", string(o.ID))
	case w.Validate() != nil:
		e.Msg = fmt.Sprintf("workspace %.80q: %v", string(w.ID), w.Validate())
	case slices.ContainsFunc(o.Limits.Fields(), func(f writ.LimitField) bool { return *f.Value <= 0 }):
		e.Msg = "the order lacks limits: one that was admitted has every limit"
	case w.EnvironmentKind != writ.EnvironmentHost:
		e.Kind, e.Code, e.Msg = writ.Denied, codeUnauthorized, fmt.Sprintf("workspace %s is in an environment of kind %q, in which nothing here can start a command", w.ID, w.EnvironmentKind)
	case w.Profile != writ.WorkspaceWrite:
		e.Kind, e.Code, e.Msg = writ.Denied, codeUnauthorized, fmt.Sprintf("workspace %s is read-only: no command runs in it", w.ID)
	case w.Network != writ.NetworkRestricted:
		e.Kind, e.Code, e.Msg = writ.Unavailable, codeSpawnFailed, fmt.Sprintf("commands of workspace %s are to reach the network, for which there is no way out yet: nothing was started; set its network to %q", w.ID, writ.NetworkRestricted)
	case len(w.Rules.Write) > 0:
		e.Kind, e.Code, e.Msg = writ.Denied, codeSpawnFailed, fmt.Sprintf("the rules of workspace %s let some paths alone be written, to which no sandbox can hold a command: use deny_write for what it must not write", w.ID)
	case escapes(o.Dir):
		e.Kind, e.Code, e.Msg = writ.Denied, codePathEscape, fmt.Sprintf("cwd %.200q is not a relative path beneath the root of the workspace", o.Dir)
	default:
		return nil
	}
	return e
}

// escapes reports whether a folder that somebody asked for is not beneath the root.
func escapes(dir string) bool {
	if path.IsAbs(dir) {
		return true
	}
	depth := 0
	for name := range strings.SplitSeq(dir, "/") {
		switch name {
		case "", ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			return true
		}
	}
	return false
}
