package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"writ"
	"writ/policy"
	"writ/store"
	"writ/workspace"
)

// Processes run commands in boxes with a workspace bound, and keep what they write.
type Processes interface {
	// Start starts o once under its id. An error means that nothing was started, but for
	// one that is writ.ErrDispatchUnknown: it may have been.
	Start(ctx context.Context, o writ.ProcessOrder) error
	Input(ctx context.Context, id writ.ProcessID, data []byte) (n int, err error)
	CloseInput(ctx context.Context, id writ.ProcessID) error
	Output(ctx context.Context, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error)
	Status(ctx context.Context, id writ.ProcessID) (writ.ProcessStatus, error)
	Resize(ctx context.Context, id writ.ProcessID, size writ.TerminalSize) error
	Terminate(ctx context.Context, id writ.ProcessID, k writ.Kill) error
	// Processes are all that are known, running and ended.
	Processes(ctx context.Context) ([]writ.ProcessStatus, error)
	// Exits calls fn for each process that has ended, also before the call, at least
	// once, until ctx, contact, or fn by an error ends it.
	Exits(ctx context.Context, fn func(writ.ProcessStatus) error) error
}

// The codes of spec/02 §5.14 for processes.
const (
	codeInvalidCommand    = "INVALID_COMMAND"
	codeSpawnFailed       = "PROCESS_SPAWN_FAILED"
	codeProcessNotFound   = "PROCESS_NOT_FOUND"
	codePolicyUnsupported = "RESOURCE_POLICY_UNSUPPORTED"
)

// liveProcess is a process whose end is not recorded, with the root that it holds.
type liveProcess struct {
	// begun is closed when the runner has said whether it was started, or contact was
	// lost over that. Before, that the runner does not know it means nothing.
	begun chan struct{}

	mu      sync.Mutex
	process writ.Process     // guarded by mu
	failed  error            // guarded by mu; why it was not started, nil if it was
	lease   *workspace.Lease // guarded by mu; nil once it is released
}

func newLive(p writ.Process, lease *workspace.Lease) *liveProcess {
	return &liveProcess{begun: make(chan struct{}), process: p, lease: lease}
}

// awaitStart waits until the process was started, or was not.
func (p *liveProcess) awaitStart(ctx context.Context) error {
	select {
	case <-p.begun:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// known is the process as it was recorded last.
func (p *liveProcess) known() writ.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// ended is the process as it ended with s, and why it was not started; as it ended before,
// where that could not be recorded.
func (p *liveProcess) ended(s writ.ProcessStatus, failed error) (writ.Process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.process
	if q.State == writ.ProcessExited {
		return q, p.failed
	}
	q.ProcessStatus = asRecorded(q, s)
	if q.Dispatch == "" && failed == nil { // its end came before the answer that it was started
		q.Dispatch = writ.DispatchConfirmed
	}
	return q, failed
}

// unrecorded keeps how the process ended, and why it was not started, for the next try.
func (p *liveProcess) unrecorded(q writ.Process, failed error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.process, p.failed = q, failed
}

// keep makes the root the process's until it has ended.
func (p *liveProcess) keep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != nil { // else it has ended already
		p.lease.Keep(p.process.ID)
	}
}

func (p *liveProcess) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lease != nil {
		p.lease.Release()
	}
	p.lease = nil
}

// commandOrder is a request of a command with all that decides about it.
type commandOrder struct {
	who   writ.Principal
	actor writ.Ref
	ws    writ.Workspace
	req   writ.CommandRequest

	line     policy.LineFacts
	commands []policy.CommandFacts
}

// commandOrder checks req before there is an id or a lease (spec/02 §5.6).
func (w *Workspaces) commandOrder(who writ.Principal, req writ.CommandRequest) (commandOrder, error) {
	o := commandOrder{who: who, actor: who.Ref(), req: req}
	var err error
	if o.ws, err = w.registry.Get(who, req.Workspace); err != nil {
		return o, err
	}
	if err := req.Validate(); err != nil {
		return o, &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "start command", Msg: err.Error()}
	}
	o.line, o.commands = policy.CommandFactsOf(req)
	return o, nil
}

// decideCommand answers whether the command may be started: each of the commands that it
// would run is asked about, and the strictest answer counts.
func (w *Workspaces) decideCommand(o commandOrder) writ.Decision {
	return w.ask(o.who, o.ws, writ.ActionExec, func(rules *policy.Set, r policy.Request) writ.Decision {
		r.Line = o.line
		return rules.DecideCommand(r, o.commands)
	})
}

// refuseCommand records that a command was turned down, and answers why.
func (w *Workspaces) refuseCommand(ctx context.Context, o commandOrder, d writ.Decision) error {
	return w.refuse(ctx, o.who, o.ws, writ.ActionExec, nil, d)
}

// startable refuses what no decision could make possible. Nothing was started.
func startable(ws writ.Workspace) error {
	if ws.Participation == writ.ParticipationRequired {
		return &writ.Error{Kind: writ.Denied, Code: codePolicyUnsupported, Op: "start command", Msg: fmt.Sprintf(
			"workspace %s wants the leave of a resource authority for each command, and this server is connected to none: nothing was started", ws.ID)}
	}
	if ws.Network == writ.NetworkEnabled {
		return &writ.Error{Kind: writ.Denied, Code: codeSpawnFailed, Op: "start command", Msg: fmt.Sprintf(
			"workspace %s has network %q, which commands cannot be given yet: nothing was started; an operator can set it to %q", ws.ID, ws.Network, writ.NetworkRestricted)}
	}
	return nil
}

// Exec starts a command in a workspace (spec/02 §5.6). The process outlives the request.
// Its Dispatch says whether it was certainly started: when that is unknown it may run,
// holds the workspace, and is not started again. Held requests are errors as those of
// Patch; every other error means that nothing was started.
func (w *Workspaces) Exec(ctx context.Context, who writ.Principal, req writ.CommandRequest) (p writ.Process, err error) {
	if err := w.enter(); err != nil {
		return p, err
	}
	defer w.leave()
	o, err := w.commandOrder(who, req)
	if err != nil {
		return p, err
	}
	d := w.decideCommand(o)
	if d.Effect == writ.Deny {
		return p, w.refuseCommand(ctx, o, d)
	}
	if err := startable(o.ws); err != nil {
		return p, err
	}
	if mode := holds(o.ws, d); mode != writ.ApprovalsOff {
		return p, w.holdCommand(ctx, o, d, mode, nil)
	}
	lease, err := w.leases.Acquire(ctx, o.ws.Root)
	if err != nil {
		return p, err
	}
	switch d = w.decideCommand(o); d.Effect { // the rules may have moved meanwhile
	case writ.Deny:
		lease.Release()
		return p, w.refuseCommand(ctx, o, d)
	case writ.Hold:
		lease.Release()
		return p, w.holdCommand(ctx, o, d, writ.ApprovalsReview, nil)
	}
	return w.start(ctx, o, d, lease, nil)
}

// start records the intent and starts the command. The lease is its own from here on.
// a is the approval it is started for, nil for none.
func (w *Workspaces) start(ctx context.Context, o commandOrder, d writ.Decision, lease *workspace.Lease, a *writ.Approval) (writ.Process, error) {
	now := writ.Now()
	p := writ.Process{
		Workspace: o.ws.ID, Root: o.ws.Root, Tenant: o.ws.Tenant, By: o.who.Ref(), Owner: w.g.opt.Owner,
		Fingerprint: o.req.Fingerprint(), Program: path.Base(o.req.Command[0]), TTY: o.req.TTY, Programs: bounded(o.line.Programs),
		ProcessStatus: writ.ProcessStatus{ID: writ.NewProcessID(), State: writ.ProcessRunning, Started: now},
	}
	if a != nil {
		p.Approval = a.ID
	}
	live := newLive(p, lease)
	defer close(live.begun)
	w.procs.add(p.ID, live) // before it is stored, so that no sweep takes it for lost
	err := w.g.db.Update(ctx, func(tx *store.Tx) error {
		if a != nil {
			if err := resuming(ctx, tx, *a, func(c *writ.HeldCall) { c.Process = p.ID }); err != nil {
				return err
			}
		}
		if err := tx.InsertProcess(ctx, p); err != nil {
			return err
		}
		return w.g.record(ctx, tx, processStarted(p, o, d, a))
	})
	if err != nil {
		w.procs.remove(p.ID)
		live.release()
		return writ.Process{}, err
	}
	err = w.processes.Start(ctx, writ.ProcessOrder{
		ID: p.ID, Workspace: o.ws, Command: o.req.Command, TTY: o.req.TTY, Dir: o.req.Dir, Limits: w.limits,
	})
	ctx = context.WithoutCancel(ctx) // what happened is recorded
	switch {
	case err == nil:
		p.Dispatch = writ.DispatchConfirmed
	case errors.Is(err, writ.ErrDispatchUnknown):
		p.Dispatch = writ.DispatchUnknown
		w.g.slog.Warn("it is not known whether a process was started", "process", p.ID, "err", err)
	default:
		return writ.Process{}, w.notStarted(ctx, live, err)
	}
	live.mu.Lock()
	live.process.Dispatch = p.Dispatch
	live.mu.Unlock()
	live.keep()
	if a != nil {
		if err := w.g.db.Update(ctx, func(tx *store.Tx) error { return consumeIn(ctx, tx, a.ID, nil) }); err != nil {
			w.g.slog.Error("start of a held command was not recorded", "process", p.ID, "approval", a.ID, "err", err)
			return p, ambiguous(*a, "process "+string(p.ID)+" was started, and that could not be recorded")
		}
	}
	return p, nil
}

// notStarted records that a process never was, and answers why.
func (w *Workspaces) notStarted(ctx context.Context, live *liveProcess, cause error) error {
	if writ.CodeOf(cause) == "" {
		cause = &writ.Error{Kind: cmp.Or(writ.KindOf(cause), writ.Unavailable), Code: codeSpawnFailed, Op: "start command", Msg: "nothing was started: " + cmp.Or(ended(cause), writ.Message(cause)), Err: cause}
	}
	s, now := live.known().ProcessStatus, writ.Now()
	s.State, s.Termination, s.Ended = writ.ProcessExited, writ.TerminationUnknown, &now
	s.Reason = "not started: " + writ.Message(cause)
	w.over(ctx, live, s, cause)
	return cause
}

// over gives up the root of a process that has ended, or was not started, and records
// that. What cannot be recorded stays in the table, and the next sweep tries again.
func (w *Workspaces) over(ctx context.Context, live *liveProcess, s writ.ProcessStatus, failed error) {
	ctx = context.WithoutCancel(ctx) // what happened is recorded
	// Before anybody can see the end, who then finds the workspace free; and also when it
	// cannot be recorded: nothing changes the workspace any more.
	live.release()
	p, failed := live.ended(s, failed)
	var kept *writ.StoredOutput
	if failed == nil {
		kept = w.lastOutput(ctx, p)
	}
	err := w.recordExit(ctx, p, kept, failed)
	if err == nil {
		w.procs.remove(p.ID)
	} else {
		live.unrecorded(p, failed)
		w.g.slog.Error("end of a process was not recorded", "process", p.ID, "err", err)
	}
}

// recordExit stores how a process ended, with the last of its output if there is some,
// for as long as the store may be restarting. failed is why it was not started, nil for
// one that ran; its approval, if it has one, is consumed with that.
func (w *Workspaces) recordExit(ctx context.Context, p writ.Process, out *writ.StoredOutput, failed error) error {
	return w.g.insist(func() error {
		return w.g.db.Update(ctx, func(tx *store.Tx) error {
			done, err := tx.UpdateProcess(ctx, p)
			if err != nil || !done {
				return err
			}
			if out != nil {
				if err := tx.PutProcessOutput(ctx, p.ID, *out); err != nil {
					return err
				}
			}
			if failed != nil && p.Approval != "" {
				if err := consumeIn(ctx, tx, p.Approval, failed); err != nil {
					return err
				}
			}
			return w.g.record(ctx, tx, processFinished(p))
		})
	})
}
