package mcp

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"writ"
)

func processID() property {
	return must("process_id", text("As exec_command answered it."))
}

// aboutProcesses are the faults of the tools that take a process.
var aboutProcesses = faults{invalid: codeInvalidCommand, notFound: codeProcessNotFound}

func processStatusTool() tool {
	return tool{
		name: "process_status", title: "Status of a process",
		description: "Whether a process runs, and how it ended. That its output ended says nothing about success: look at termination and exit_code.",
		hints:       hints{readOnly: true, idempotent: true},
		faults:      aboutProcesses,
		in:          object{processID()},
		out:         object(append(standing(), coordination())),
		run:         processStatus,
	}
}

// standing are the properties of where a process stands.
func standing() []property {
	return []property{
		must("process_id", text("")),
		must("state", oneOf("", string(writ.ProcessRunning), string(writ.ProcessExited))),
		may("exit_code", typed("integer", "Only with termination exited.")),
		may("termination", oneOf("Only when it has ended. exited: by itself. signaled: by a signal that this server did not send. timeout: its time was over. terminated: by terminate_process, or with its workspace, runner or server. unknown: nobody saw how.",
			string(writ.TerminationExited), string(writ.TerminationSignaled), string(writ.TerminationTimeout), string(writ.TerminationTerminated), string(writ.TerminationUnknown))),
		may("signal", object{
			must("number", count(1, 0, "")),
			may("name", text("SIGKILL and the like, where it has one.")),
		}.within("Only with termination signaled.")),
		may("reason", text("In words, where there is more to say.")),
		must("output_total", count(0, 0, "Bytes that it wrote.")),
		must("output_retained_from", count(0, 0, "What lies before this byte was dropped.")),
		must("eof", flag("True when it will write no more.")),
	}
}

// standingResult is where a process stands (spec/02 §5.9).
type standingResult struct {
	Process     writ.ProcessID    `json:"process_id"`
	State       writ.ProcessState `json:"state"`
	ExitCode    *int              `json:"exit_code,omitempty"`
	Termination writ.Termination  `json:"termination,omitempty"`
	Signal      *writ.Signal      `json:"signal,omitempty"`
	Reason      string            `json:"reason,omitempty"`
	Total       int64             `json:"output_total"`
	Retained    int64             `json:"output_retained_from"`
	EOF         bool              `json:"eof"`
}

// standingOf tells of s what may be told together (spec/02 §15, invariant 11).
func standingOf(s writ.ProcessStatus) standingResult {
	out := standingResult{
		Process: s.ID, State: writ.ProcessRunning, Reason: shorten(s.Reason),
		Total: s.Total, Retained: s.Retained, EOF: s.EOF,
	}
	if s.State != writ.ProcessExited {
		return out
	}
	out.State, out.Termination = writ.ProcessExited, s.Termination
	switch s.Termination {
	case writ.TerminationExited:
		out.ExitCode = s.ExitCode
	case writ.TerminationSignaled:
		if s.Signal != nil {
			out.Signal = namedSignal(*s.Signal)
		}
	case "":
		out.Termination = writ.TerminationUnknown
	}
	return out
}

// signalNames are those that clients are told (spec/02 §5.9). Any other is its number.
var signalNames = []string{
	"SIGHUP", "SIGINT", "SIGQUIT", "SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGUSR1", "SIGSEGV",
	"SIGUSR2", "SIGPIPE", "SIGALRM", "SIGTERM", "SIGXCPU", "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGSYS",
}

func namedSignal(s writ.Signal) *writ.Signal {
	if !slices.Contains(signalNames, s.Name) {
		s.Name = ""
	}
	return &s
}

func processStatus(ctx context.Context, c *call) (any, error) {
	id, err := processArg(c)
	if err != nil {
		return nil, err
	}
	p, err := c.processes.Process(ctx, c.who, id)
	if err != nil {
		return nil, err
	}
	c.homes.put(p.ID, p.Workspace)
	return struct {
		standingResult
		Coordination *writ.WorkHint `json:"coordination,omitempty"`
	}{standingOf(p.ProcessStatus), c.hint(ctx, p.Workspace, "")}, nil
}

// processArg is the argument of the tools that take a process alone.
func processArg(c *call) (writ.ProcessID, error) {
	in, err := decode[struct {
		Process writ.ProcessID `json:"process_id"`
	}](c)
	return in.Process, err
}

func processListTool() tool {
	return tool{
		name: "process_list", title: "List processes",
		description: "The processes of a workspace, the latest first: all that run, and the last of those that ended. It finds a process_id again whose answer was lost.",
		hints:       hints{readOnly: true, idempotent: true},
		faults:      faults{invalid: codeInvalidCommand},
		in:          object{workspaceID(), workID()},
		out: object{
			must("processes", listOf(object(append(standing(),
				must("program", text("The first element of its command, without its folder.")),
				must("tty", flag("True when it has a terminal.")),
				may("dispatch_status", oneOf("", string(writ.DispatchConfirmed), string(writ.DispatchUnknown))),
				may("approval_id", text("That it was started with.")),
				must("started_at", count(0, 0, "Unix seconds.")),
				may("ended_at", count(0, 0, "Unix seconds.")),
			)).schema(), "")),
			may("truncated", flag("True when the oldest were left out.")),
			coordination(),
		},
		run: processList,
	}
}

type listedProcess struct {
	standingResult
	Program  string              `json:"program"`
	TTY      bool                `json:"tty"`
	Dispatch writ.DispatchStatus `json:"dispatch_status,omitempty"`
	Approval writ.ApprovalID     `json:"approval_id,omitempty"`
	Started  int64               `json:"started_at"`
	Ended    int64               `json:"ended_at,omitzero"`
}

func processList(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Workspace writ.WorkspaceID `json:"workspace_id"`
		Work      writ.WorkID      `json:"work_id"`
	}](c)
	if err != nil {
		return nil, err
	}
	all, err := c.processes.Processes(ctx, c.who, in.Workspace)
	if err != nil {
		return nil, err
	}
	out := struct {
		Processes    []listedProcess `json:"processes"`
		Truncated    bool            `json:"truncated,omitzero"`
		Coordination *writ.WorkHint  `json:"coordination,omitempty"`
	}{Processes: []listedProcess{}, Coordination: c.hint(ctx, in.Workspace, in.Work)}
	room := MaxResultBytes - envelopeBytes
	for _, p := range all {
		l := listedProcess{
			standingResult: standingOf(p.ProcessStatus), Program: valid([]byte(p.Program)), TTY: p.TTY,
			Dispatch: p.Dispatch, Approval: p.Approval, Started: p.Started.Unix(),
		}
		if p.Ended != nil {
			l.Ended = p.Ended.Unix()
		}
		if room -= textCost(l.Program) + textCost(l.Reason) + 8*elementBytes; room < 0 {
			out.Truncated = true
			break
		}
		out.Processes = append(out.Processes, l)
	}
	return out, nil
}

// homes remembers in which workspace processes are, which never changes: the hints of
// tools that take a process need it.
type homes struct {
	mu sync.Mutex
	of map[writ.ProcessID]writ.WorkspaceID // guarded by mu; at most maxHomes
}

// maxHomes bounds the processes that are remembered. When it is reached they are looked up
// again.
const maxHomes = 1024

func (h *homes) put(id writ.ProcessID, w writ.WorkspaceID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of == nil || len(h.of) >= maxHomes {
		h.of = map[writ.ProcessID]writ.WorkspaceID{}
	}
	h.of[id] = w
}

func (h *homes) get(id writ.ProcessID) (writ.WorkspaceID, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w, ok := h.of[id]
	return w, ok
}

// hintAt is hint for the workspace of a process that the caller has just used.
func (c *call) hintAt(ctx context.Context, id writ.ProcessID) *writ.WorkHint {
	w, known := c.homes.get(id)
	if !known {
		p, err := c.processes.Process(ctx, c.who, id)
		if err != nil {
			c.noHint(ctx, err)
			return nil
		}
		w = p.Workspace
		c.homes.put(id, w)
	}
	return c.hint(ctx, w, "")
}

func (c *call) noHint(ctx context.Context, err error) {
	c.log.LogAttrs(ctx, slog.LevelWarn, "no coordination hint", slog.String("tool", c.tool.name), slog.String("error", writ.Reveal(err)))
}
