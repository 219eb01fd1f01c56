package mcp_test

import (
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"writ"
)

// process is a process of the desk. It is one of few programs: cat writes what it reads,
// and ends at the end of its input; lost is one that was started, or not; all others run
// until they are ended.
type process struct {
	writ.Process
	request        writ.CommandRequest
	stdout, stderr []byte
	from           int64 // of stdout: what lies before it is dropped
	closed         bool
	input          string
	size           writ.TerminalSize
	kills          []writ.Kill
	query          writ.OutputQuery // the last
}

func (d *desk) mayExec(who writ.Principal, req writ.CommandRequest) (writ.Workspace, error) {
	w, err := d.Workspace(who, req.Workspace)
	switch {
	case err != nil:
		return w, err
	case w.Profile == writ.ReadOnly:
		return w, fail(writ.Denied, "UNAUTHORIZED", "workspace %s is read-only", w.ID)
	}
	if err := req.Validate(); err != nil {
		return w, fail(writ.Invalid, "INVALID_COMMAND", "%v", err)
	}
	return w, nil
}

func (d *desk) Exec(_ context.Context, who writ.Principal, req writ.CommandRequest) (writ.Process, error) {
	w, err := d.mayExec(who, req)
	if err != nil {
		return writ.Process{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.Approvals != writ.ApprovalsOff {
		return writ.Process{}, heldBy(w, d.holdCommand(req))
	}
	p, err := d.start(req)
	return p, err
}

// holdCommand is hold for a command. d.mu is held.
func (d *desk) holdCommand(req writ.CommandRequest) *hold {
	return d.hold(writ.ActionExec, string(req.Fingerprint()), func() (writ.Resumed, error) {
		p, err := d.start(req)
		return writ.Resumed{Process: &p}, err
	})
}

// start pretends. d.mu is held.
func (d *desk) start(req writ.CommandRequest) (writ.Process, error) {
	if req.Command[0] == "missing" {
		return writ.Process{}, fail(writ.Invalid, "PROCESS_SPAWN_FAILED", "missing: there is no such program: nothing was started")
	}
	p := &process{Process: writ.Process{
		Workspace: req.Workspace, Program: path.Base(req.Command[0]), TTY: req.TTY, Dispatch: writ.DispatchConfirmed,
		ProcessStatus: writ.ProcessStatus{
			ID: writ.ProcessID(fmt.Sprintf("proc-%d", len(d.processes)+1)), State: writ.ProcessRunning, Started: time.Unix(1_800_000_000, 0),
		},
	}, request: req}
	if req.Command[0] == "lost" {
		p.Dispatch = writ.DispatchUnknown
	}
	d.processes = append(d.processes, p)
	return p.Process, nil
}

// Probe is that of a host with sandboxes, unless it is bare.
func (d *desk) Probe(context.Context) (writ.Enforcement, error) {
	if d.bare {
		return writ.Enforcement{}, fail(writ.Unavailable, "", "bwrap is not installed")
	}
	return writ.Enforcement{Provider: "bubblewrap"}, nil
}

// end ends a process. d.mu is held.
func (p *process) end(how writ.Termination) {
	if p.State == writ.ProcessExited {
		return
	}
	now := time.Unix(1_800_000_060, 0)
	p.State, p.Termination, p.EOF, p.Ended = writ.ProcessExited, how, true, &now
	if how == writ.TerminationExited {
		p.ExitCode = new(int)
	}
}

// find is a process. d.mu is held.
func (d *desk) find(id writ.ProcessID) (*process, error) {
	for _, p := range d.processes {
		if p.ID == id {
			return p, nil
		}
	}
	return nil, fail(writ.NotFound, "PROCESS_NOT_FOUND", "there is no process %q", id)
}

func (d *desk) Input(_ context.Context, who writ.Principal, id writ.ProcessID, data []byte, end bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(id)
	if err != nil {
		return err
	}
	w, err := d.Workspace(who, p.Workspace)
	if err != nil {
		return err
	}
	if w.Approvals != writ.ApprovalsOff {
		return heldBy(w, d.hold(writ.ActionInput, fmt.Sprintf("%s %t %s", id, end, data), func() (writ.Resumed, error) {
			err := p.write(data, end)
			return writ.Resumed{Process: &p.Process}, err
		}))
	}
	return p.write(data, end)
}

func (p *process) write(data []byte, end bool) error {
	if p.closed || p.State == writ.ProcessExited {
		return fail(writ.Conflict, "PROCESS_NOT_FOUND", "the input of process %s is closed, or it has ended", p.ID)
	}
	p.input += string(data)
	p.closed = end
	if p.Program == "cat" {
		p.stdout = append(p.stdout, data...)
		if p.TTY {
			p.stdout = []byte(strings.ReplaceAll(string(p.stdout), "\r", "\r\n"))
		}
		if end {
			p.end(writ.TerminationExited)
		}
	}
	return nil
}

func (d *desk) Output(_ context.Context, _ writ.Principal, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(id)
	if err != nil {
		return writ.ProcessOutput{}, err
	}
	p.query = q
	b, from := p.stdout, p.from
	if q.Stream == writ.Stderr {
		b, from = p.stderr, 0
	}
	out := writ.ProcessOutput{
		Retained: from, Lost: from > 0, Total: from + int64(len(b)), State: p.State, Termination: p.Termination, Cursor: max(q.Cursor, from),
	}
	if out.Cursor < out.Total {
		out.Chunk = b[out.Cursor-from:]
		if q.Limit > 0 {
			out.Chunk = out.Chunk[:min(q.Limit, len(out.Chunk))]
		}
		out.Cursor += int64(len(out.Chunk))
	}
	out.EOF = p.EOF && out.Cursor >= out.Total
	return out, nil
}

func (d *desk) Process(_ context.Context, _ writ.Principal, id writ.ProcessID) (writ.Process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(id)
	if err != nil {
		return writ.Process{}, err
	}
	d.looks++
	return p.now(), nil
}

// now is p as it stands. d.mu is held.
func (p *process) now() writ.Process {
	q := p.Process
	q.Total, q.Retained = p.from+int64(len(p.stdout)), p.from
	return q
}

func (d *desk) Resize(_ context.Context, _ writ.Principal, id writ.ProcessID, size writ.TerminalSize) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(id)
	switch {
	case err != nil:
		return err
	case p.State != writ.ProcessRunning:
		return fail(writ.Conflict, "PROCESS_NOT_RUNNING", "process %s has ended", id)
	case !p.TTY:
		return fail(writ.Conflict, "PROCESS_NOT_TTY", "process %s has no terminal", id)
	}
	p.size = size
	return nil
}

func (d *desk) Terminate(_ context.Context, _ writ.Principal, id writ.ProcessID, k writ.Kill) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(id)
	if err != nil {
		return err
	}
	if k.Signal == "STOP" || k.Grace > writ.MaxGrace {
		return fail(writ.Invalid, "INVALID_COMMAND", "signal %q, grace %v", k.Signal, k.Grace)
	}
	p.kills = append(p.kills, k)
	p.end(writ.TerminationTerminated)
	return nil
}

func (d *desk) Processes(_ context.Context, who writ.Principal, id writ.WorkspaceID) ([]writ.Process, error) {
	if _, err := d.Workspace(who, id); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []writ.Process
	for i := len(d.processes) - 1; i >= 0; i-- {
		if p := d.processes[i]; p.Workspace == id {
			list = append(list, p.now())
		}
	}
	return list, nil
}
