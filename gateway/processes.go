package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"writ"
	"writ/store"
	"writ/workspace"
)

// Retention of ended processes and their output (spec/02 §3.3).
const (
	keepEnded     = 15 * time.Minute
	keepProcesses = 64
)

// lastWait bounds how long a runner is waited for that is asked for the last output.
const lastWait = 5 * time.Second

// processTable is the processes whose ends are not recorded.
type processTable struct {
	mu  sync.Mutex
	all map[writ.ProcessID]*liveProcess // guarded by mu
}

func (t *processTable) add(id writ.ProcessID, p *liveProcess) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all == nil {
		t.all = map[writ.ProcessID]*liveProcess{}
	}
	t.all[id] = p
}

func (t *processTable) remove(id writ.ProcessID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, id)
}

func (t *processTable) get(id writ.ProcessID) *liveProcess {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all[id]
}

func (t *processTable) ids() []writ.ProcessID {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.all))
}

// begun are those that their runner must know of, or has known.
func (t *processTable) begun() (list []*liveProcess) {
	for _, id := range t.ids() {
		if live := t.get(id); live != nil {
			select {
			case <-live.begun:
				list = append(list, live)
			default:
			}
		}
	}
	return list
}

// Process is where a process of who stands, or PROCESS_NOT_FOUND: one of somebody else,
// one that never was, and one that ended so long ago that nothing is kept (spec/02
// §3.3) are the same.
func (w *Workspaces) Process(ctx context.Context, who writ.Principal, id writ.ProcessID) (writ.Process, error) {
	p, err := w.processOf(ctx, who, id)
	if err != nil || p.State == writ.ProcessExited {
		return p, err
	}
	s, err := w.processes.Status(ctx, id)
	if writ.KindOf(err) == writ.NotFound {
		return w.lostProcess(ctx, who, p)
	}
	if err != nil {
		return p, err
	}
	if s.State == writ.ProcessExited {
		w.exited(ctx, s) // who sees the end finds the workspace free
	}
	p.ProcessStatus = asRecorded(p, s)
	return p, nil
}

// asRecorded is what a runner says of p as it is, or would be, recorded.
func asRecorded(p writ.Process, s writ.ProcessStatus) writ.ProcessStatus {
	s.Started, s.Reason = p.Started, cut(s.Reason, maxReason)
	if s.Ended != nil {
		at := s.Ended.UTC().Truncate(time.Millisecond)
		s.Ended = &at
	}
	return s
}

// processOf is the recorded process, which who may see and of which something is kept.
// One that is being started is waited for.
func (w *Workspaces) processOf(ctx context.Context, who writ.Principal, id writ.ProcessID) (p writ.Process, err error) {
	if live := w.procs.get(id); live != nil {
		if p = live.known(); seesOwn(who, p.Tenant, p.By) {
			if err := live.awaitStart(ctx); err != nil {
				return p, err
			}
		}
	}
	if live := w.procs.get(id); live != nil {
		p = live.known()
	} else {
		err = w.g.db.View(ctx, func(tx *store.Tx) error {
			if p, err = tx.Process(ctx, id); err == nil && p.Ended != nil {
				_, err = tx.ProcessOutput(ctx, id) // gone with its retention
			}
			return err
		})
	}
	if err == nil && p.State == writ.ProcessRunning && p.Owner != w.g.opt.Owner && seesOwn(who, p.Tenant, p.By) {
		return p, &writ.Error{Kind: writ.Unavailable, Code: codeInternal, Op: "find process", Msg: fmt.Sprintf("process %s is in the hands of server %s: ask there", id, p.Owner)}
	}
	if writ.KindOf(err) == writ.NotFound || err == nil && !seesOwn(who, p.Tenant, p.By) {
		return writ.Process{}, &writ.Error{Kind: writ.NotFound, Code: codeProcessNotFound, Op: "find process", Msg: fmt.Sprintf("there is no process %.80q", string(id))}
	}
	return p, err
}

// lostProcess records the end of a process that its runner does not know any more.
func (w *Workspaces) lostProcess(ctx context.Context, who writ.Principal, p writ.Process) (writ.Process, error) {
	w.exited(ctx, unknownEnd(p))
	return w.processOf(ctx, who, p.ID)
}

func unknownEnd(p writ.Process) writ.ProcessStatus {
	now := writ.Now()
	s := p.ProcessStatus
	s.State, s.Termination, s.Ended, s.EOF = writ.ProcessExited, writ.TerminationUnknown, &now, true
	s.Reason = "its runner ended, and it with that: how far it came is not known"
	s.Retained = s.Total
	return s
}

// Output is what a process wrote, from a cursor on (spec/02 §5.8).
func (w *Workspaces) Output(ctx context.Context, who writ.Principal, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error) {
	p, err := w.processOf(ctx, who, id)
	if err != nil {
		return writ.ProcessOutput{}, err
	}
	out, err := w.processes.Output(ctx, id, q)
	if k := writ.KindOf(err); k != writ.NotFound && (k != writ.Unavailable || p.State == writ.ProcessRunning) {
		if err == nil && out.State == writ.ProcessExited && p.State == writ.ProcessRunning {
			if s, err := w.processes.Status(ctx, id); err == nil {
				w.exited(ctx, s)
			}
		}
		return out, err
	}
	if p.State == writ.ProcessRunning {
		if p, err = w.lostProcess(ctx, who, p); err != nil {
			return out, err
		}
	}
	return w.storedOutput(ctx, p, q)
}

// storedOutput answers q from what was kept at the end of a process that its runner
// does not know any more.
func (w *Workspaces) storedOutput(ctx context.Context, p writ.Process, q writ.OutputQuery) (out writ.ProcessOutput, err error) {
	if q.Stream != "" {
		return out, &writ.Error{Kind: writ.NotFound, Code: codeProcessNotFound, Op: "read process", Msg: fmt.Sprintf(
			"the runner of process %s is gone: what is kept of its output is both streams together, ask without stream", p.ID)}
	}
	var kept writ.StoredOutput
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		kept, err = tx.ProcessOutput(ctx, p.ID)
		return err
	})
	if err != nil {
		return out, err
	}
	total := kept.Retained + int64(len(kept.Data))
	start := min(max(q.Cursor, kept.Retained), total)
	chunk := kept.Data[start-kept.Retained:]
	if q.Limit > 0 && len(chunk) > q.Limit {
		chunk = writ.CutRune(chunk[:min(len(chunk), max(q.Limit, utf8.UTFMax))]) // as a runner does
	}
	next := start + int64(len(chunk))
	return writ.ProcessOutput{
		Chunk: chunk, Cursor: next, EOF: next >= total, Lost: kept.Retained > 0, Retained: kept.Retained,
		Total: total, State: p.State, Termination: p.Termination,
	}, nil
}

// Resize sets the size of a process's terminal (spec/02 §5.10).
func (w *Workspaces) Resize(ctx context.Context, who writ.Principal, id writ.ProcessID, size writ.TerminalSize) error {
	if size.Rows == 0 || size.Cols == 0 { // before anything else, also for an unknown id
		return &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "resize", Msg: "rows and cols must be at least 1"}
	}
	p, err := w.processOf(ctx, who, id)
	if err != nil {
		return err
	}
	if p.State == writ.ProcessExited {
		return &writ.Error{Kind: writ.Conflict, Code: "PROCESS_NOT_RUNNING", Op: "resize", Msg: fmt.Sprintf("process %s has ended", id)}
	}
	return w.processes.Resize(ctx, id, size)
}

// Terminate ends a process (spec/02 §5.11). One that has ended is no error. It returns
// before the process is gone.
func (w *Workspaces) Terminate(ctx context.Context, who writ.Principal, id writ.ProcessID, k writ.Kill) error {
	if err := k.Validate(); err != nil { // before it is recorded, too
		return &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "terminate process", Msg: err.Error()}
	}
	p, err := w.processOf(ctx, who, id)
	if err != nil || p.State == writ.ProcessExited {
		return err
	}
	if live := w.procs.get(id); live != nil { // else it has just ended
		return w.kill(ctx, who, live, k, "")
	}
	return nil
}

// Processes are the processes of who in a workspace, or in all when it is empty,
// of which something is kept, newest first, at most writ.MaxPage. One of another server
// is as it was recorded last. An id that is no workspace of who is WORKSPACE_NOT_FOUND.
func (w *Workspaces) Processes(ctx context.Context, who writ.Principal, id writ.WorkspaceID) (list []writ.Process, err error) {
	f := writ.ProcessFilter{Workspace: id, Kept: true, Page: writ.Page{Limit: writ.MaxPage}}
	f.Tenant, _ = who.Narrow("", "")
	if !who.Administers() {
		f.By = who.Ref()
	}
	var ws writ.Workspace
	if id != "" {
		if ws, err = w.registry.Get(who, id); err != nil {
			return nil, err
		}
	}
	var stored []writ.Process
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		stored, _, err = tx.Processes(ctx, f)
		return err
	})
	for _, p := range stored {
		if id != "" && p.Root != ws.Root {
			continue // in another folder of that name
		}
		if p.State == writ.ProcessExited || p.Owner != w.g.opt.Owner {
			list = append(list, p)
			continue
		}
		q, err := w.Process(ctx, who, p.ID)
		switch {
		case writ.KindOf(err) == writ.NotFound:
		case err != nil:
			return nil, err
		default:
			list = append(list, q)
		}
	}
	return list, err
}

// StopWorkspace ends every process that runs in the workspace id at root, and answers how
// many. That who may do that is the caller's to know.
func (w *Workspaces) StopWorkspace(ctx context.Context, who writ.Principal, id writ.WorkspaceID, root string) (killed int, err error) {
	var errs []error
	for _, proc := range w.procs.ids() {
		live := w.procs.get(proc)
		if live == nil {
			continue
		}
		if p := live.known(); p.Workspace != id || p.Root != root || p.State == writ.ProcessExited {
			continue
		}
		if err := w.kill(ctx, who, live, writ.Kill{}, "the workspace was stopped"); err != nil {
			errs = append(errs, err)
			continue
		}
		killed++
	}
	return killed, errors.Join(errs...)
}

// EndProcesses ends every process, as a server does that takes its runner with it, and
// waits until their ends are recorded or ctx ends. Watch must run. One whose runner does
// not answer is left to the next start.
func (w *Workspaces) EndProcesses(ctx context.Context) {
	server := writ.Principal{Kind: writ.KindLocal, ID: "stop"}
	var ending []writ.ProcessID
	for _, id := range w.procs.ids() {
		live := w.procs.get(id)
		if live == nil {
			continue
		}
		if err := w.kill(ctx, server, live, writ.Kill{}, "the server stopped"); err != nil {
			w.g.slog.Warn("a process was not ended", "process", id, "err", err)
			continue
		}
		ending = append(ending, id)
	}
	for slices.ContainsFunc(ending, func(id writ.ProcessID) bool { return w.procs.get(id) != nil }) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// kill records who ends a process and ends it. One that is being started is waited for.
// One that its runner does not know any more has ended.
func (w *Workspaces) kill(ctx context.Context, who writ.Principal, live *liveProcess, k writ.Kill, reason string) error {
	if err := live.awaitStart(ctx); err != nil {
		return err
	}
	p := live.known()
	if p.State == writ.ProcessExited || w.procs.get(p.ID) != live { // it was not started, even
		return nil
	}
	e := ofProcess(p, writ.EventProcessKilled, writ.EventData{Signal: k.Signal, Reason: reason})
	e.Actor = who.Ref()
	if err := w.g.recordAlone(ctx, e); err != nil {
		return err
	}
	err := w.processes.Terminate(ctx, p.ID, k)
	if writ.KindOf(err) == writ.NotFound {
		w.exited(ctx, unknownEnd(p))
		return nil
	}
	return err
}

// seesOwn reports whether a thing of tenant t that by asked for is who's own, or its
// tenant's when it administers.
func seesOwn(who writ.Principal, t writ.Tenant, by writ.Ref) bool {
	if who.Administers() {
		return who.Sees(t, "")
	}
	return who.Tenant == t && who.Ref() == by
}

// exited records the end of a process and gives its root up. It may be called again, and
// by several at once.
func (w *Workspaces) exited(ctx context.Context, s writ.ProcessStatus) {
	if live := w.procs.get(s.ID); live != nil { // else recorded, or another gateway's
		w.over(ctx, live, s, nil)
	}
}

// lastOutput is what is to be kept of the output of a process that has ended.
func (w *Workspaces) lastOutput(ctx context.Context, p writ.Process) *writ.StoredOutput {
	ctx, cancel := context.WithTimeout(ctx, lastWait)
	defer cancel()
	if out, err := w.processes.Output(ctx, p.ID, writ.OutputQuery{}); err == nil {
		return &writ.StoredOutput{Retained: out.Retained, Data: out.Chunk}
	}
	return &writ.StoredOutput{Retained: p.Total}
}

// dropOutputs deletes what is kept of the output of processes that ended long ago, which
// then are as if they had never been.
func (w *Workspaces) dropOutputs(ctx context.Context) error {
	return w.g.db.Update(ctx, func(tx *store.Tx) error {
		_, err := tx.DeleteProcessOutputs(ctx, writ.Now().Add(-keepEnded), keepProcesses)
		return err
	})
}

// follow hears of the ends of processes until ctx ends.
func (w *Workspaces) follow(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.processes.Exits(ctx, func(s writ.ProcessStatus) error {
			w.exited(ctx, s)
			return nil
		})
		if ctx.Err() != nil {
			return
		}
		w.g.slog.Warn("contact with the processes was lost", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		if err := w.settleProcesses(ctx, false); err != nil {
			w.g.slog.Warn("settle processes", "err", err)
		}
	}
}

// settleProcesses brings what is recorded as running and what the runner knows
// together: a process that it does not know has ended, nobody knows how. first is true
// at the start, when the roots of processes that run on must be held again.
func (w *Workspaces) settleProcesses(ctx context.Context, first bool) error {
	begun := w.procs.begun() // before the runner is asked, who knows no others for certain
	if len(begun) == 0 && !first {
		return nil
	}
	known, err := w.processes.Processes(ctx)
	if err != nil {
		return fmt.Errorf("settle processes: %w", err)
	}
	status := map[writ.ProcessID]writ.ProcessStatus{}
	for _, s := range known {
		status[s.ID] = s
	}
	if first {
		if err := w.holdAgainProcesses(ctx, status); err != nil {
			return err
		}
		begun = w.procs.begun()
	}
	for _, live := range begun {
		p := live.known()
		switch s, ok := status[p.ID]; {
		case p.State == writ.ProcessExited: // it could not be recorded
			w.exited(ctx, p.ProcessStatus)
		case !ok:
			w.exited(ctx, unknownEnd(p))
		case s.State == writ.ProcessExited:
			w.exited(ctx, s)
		}
	}
	return nil
}

// holdAgainProcesses takes what an earlier process of this gateway started into the
// table, with its root held.
func (w *Workspaces) holdAgainProcesses(ctx context.Context, status map[writ.ProcessID]writ.ProcessStatus) error {
	var running []writ.Process
	err := w.g.db.View(ctx, func(tx *store.Tx) (err error) {
		running, err = tx.RunningProcesses(ctx, w.g.opt.Owner)
		return err
	})
	if err != nil {
		return err
	}
	for _, p := range running {
		s, told := status[p.ID]
		p.Dispatch = writ.DispatchUnknown
		if told {
			p.Dispatch = writ.DispatchConfirmed
		}
		live := newLive(p, nil)
		close(live.begun)
		if told && s.State == writ.ProcessRunning {
			lease, err := w.leases.Acquire(ctx, p.Root)
			switch {
			case err == nil:
				live.lease = lease
				live.keep()
			case writ.CodeOf(err) == workspace.CodeBusy: // it is held all the same
				w.g.slog.Error("two processes run beneath one root", "process", p.ID, "root", p.Root, "err", err)
			default:
				return fmt.Errorf("hold the root of process %s: %w", p.ID, err)
			}
		}
		w.procs.add(p.ID, live)
	}
	return nil
}
