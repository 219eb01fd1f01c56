package writ

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// ProcessID names a process that was started in a workspace: "proc-" and a UUID. It is
// a handle, not a process number of the host.
type ProcessID string

// NewProcessID makes the id of a process, in the form of spec/02 §1.1.
func NewProcessID() ProcessID { return ProcessID("proc-" + uuid4()) }

// The actions of processes, in the words of policy, and the scope that an identity
// needs for both. The owner of the data folder needs none.
const (
	ActionExec  Action = "exec"  // start a command in a workspace
	ActionInput Action = "input" // write to a process that runs

	ScopeExec Scope = "exec"
)

// Bounds of a command.
const (
	MaxCommandArgs  = 4096
	MaxCommandBytes = 128 << 10 // of all arguments together
	MaxInputChunk   = 1 << 20   // of one write to a process
)

// CommandRequest asks for a command to be started in a workspace (spec/02 §5.6). It is
// an argv: no shell looks at it.
type CommandRequest struct {
	Workspace WorkspaceID `json:"workspace_id"`
	Command   []string    `json:"command"`
	TTY       bool        `json:"tty"`
	// Dir is the folder to start in, relative to the root. Empty means the root.
	Dir string `json:"cwd,omitempty"`
}

// Validate reports every fault of the request at once. It looks at no disk.
func (r CommandRequest) Validate() error {
	var errs []error
	if len(r.Command) == 0 || r.Command[0] == "" {
		errs = append(errs, errors.New("command: want a program and its arguments; the first element is empty"))
	}
	size := 0
	for i, arg := range r.Command {
		if size += len(arg) + 1; !utf8.ValidString(arg) || strings.IndexByte(arg, 0) >= 0 {
			errs = append(errs, fmt.Errorf("command: element %d is not UTF-8 text without NUL", i))
		}
	}
	if len(r.Command) > MaxCommandArgs || size > MaxCommandBytes {
		errs = append(errs, fmt.Errorf("command: %d elements of %d bytes, the most is %d of %d", len(r.Command), size, MaxCommandArgs, MaxCommandBytes))
	}
	if !utf8.ValidString(r.Dir) || strings.IndexByte(r.Dir, 0) >= 0 {
		errs = append(errs, errors.New("cwd is not UTF-8 text without NUL"))
	}
	return errors.Join(errs...)
}

// Fingerprint covers what the request does (spec/02 §9.1).
func (r CommandRequest) Fingerprint() Digest {
	b, err := json.Marshal(r)
	if err != nil {
		panic("writ: a CommandRequest always encodes: " + err.Error()) // strings and a bool
	}
	return DigestOf(append([]byte("writ command request v1\n"), b...))
}

// ProcessOrder is what a runner is told to start. The runner has no registry and no
// policy: the order says everything.
type ProcessOrder struct {
	ID        ProcessID `json:"id"`
	Workspace Workspace `json:"workspace"`
	Command   []string  `json:"command"`
	TTY       bool      `json:"tty"`
	Dir       string    `json:"dir,omitempty"` // relative to the root
	Limits    Limits    `json:"limits"`        // every field set; WallMS is the time limit
}

// DispatchStatus says whether a process was certainly started (spec/02 §5.6).
type DispatchStatus string

const (
	DispatchConfirmed DispatchStatus = "confirmed"
	DispatchUnknown   DispatchStatus = "unknown" // it may have been; it is not started again
)

// ErrDispatchUnknown is in the chain of an error that says: the order was sent to the
// runner, and contact was lost before it answered. What was ordered may have been done.
// Any other error of an order says that nothing was done.
var ErrDispatchUnknown = errors.New("the order was sent, and whether it was carried out is not known")

// ProcessState is where a process stands. It ends once.
type ProcessState string

const (
	ProcessRunning ProcessState = "running"
	ProcessExited  ProcessState = "exited"
)

// Termination is how a process ended: the first cause wins (spec/02 §7.2).
type Termination string

const (
	TerminationExited     Termination = "exited"
	TerminationSignaled   Termination = "signaled" // by a signal that was not ours
	TerminationTimeout    Termination = "timeout"
	TerminationTerminated Termination = "terminated" // by terminate_process, or as its workspace or runner was stopped
	TerminationUnknown    Termination = "unknown"    // lost sight of
)

// Signal is a signal's number and, where it is known, its name.
type Signal struct {
	Number int    `json:"number"`
	Name   string `json:"name,omitempty"` // SIGKILL
}

// ProcessStatus is where a process stands, and how much it wrote.
type ProcessStatus struct {
	ID    ProcessID    `json:"id"`
	State ProcessState `json:"state"`
	// Termination is set when State is ProcessExited, ExitCode only with
	// TerminationExited, Signal only with TerminationSignaled.
	Termination Termination `json:"termination,omitempty"`
	ExitCode    *int        `json:"exit_code,omitempty"`
	Signal      *Signal     `json:"signal,omitempty"`
	Reason      string      `json:"reason,omitempty"` // in words, where there is more to say
	// Total is how many bytes it wrote, stdout and stderr together; what lies before
	// Retained is not kept any more. EOF says that there will be no more.
	Total    int64      `json:"output_total"`
	Retained int64      `json:"output_retained_from"`
	EOF      bool       `json:"eof"`
	Started  time.Time  `json:"started"`
	Ended    *time.Time `json:"ended,omitempty"`
}

// OutputQuery asks for output of a process.
type OutputQuery struct {
	// Cursor is where to begin, in bytes of the stream from its start.
	Cursor int64 `json:"cursor"`
	Limit  int   `json:"limit,omitempty"` // of the bytes in the answer; 0 means all that is kept
	// Wait is how long to wait for something to be there, or for the end; 0 means not.
	Wait time.Duration `json:"wait,omitempty"`
	// Stream is one of the two alone, with cursors of its own. Empty means both, as
	// they came.
	Stream Stream `json:"stream,omitempty"`
}

// ProcessOutput is what a process wrote, from a cursor on.
type ProcessOutput struct {
	Chunk    []byte `json:"chunk"`  // base64 in JSON
	Cursor   int64  `json:"cursor"` // where to go on
	EOF      bool   `json:"eof"`    // the chunk ends where the output does
	Lost     bool   `json:"lost"`   // what lies before Retained was dropped
	Retained int64  `json:"retained_from"`
	// Total and State are those of the moment, for who must tell the end of the output
	// from the end of what is there.
	Total       int64        `json:"total"`
	State       ProcessState `json:"state"`
	Termination Termination  `json:"termination,omitempty"`
}

// TerminalSize is the size of a terminal in characters; neither is 0.
type TerminalSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// FirstTerminalSize is that of every new terminal (spec/02 §3.3).
var FirstTerminalSize = TerminalSize{Rows: 24, Cols: 80}

// Kill says how to end a process: with a signal, and with SIGKILL when it still runs
// after Grace. The zero Kill is SIGKILL at once (spec/02 §5.11).
type Kill struct {
	Signal string        `json:"signal,omitempty"` // TERM, INT, HUP, QUIT or KILL; empty means KILL
	Grace  time.Duration `json:"grace,omitempty"`  // at most MaxGrace; 0 means DefaultGrace
}

// Validate says why k ends no process. It is the same for every one.
func (k Kill) Validate() error {
	switch strings.TrimPrefix(k.Signal, "SIG") {
	case "TERM", "INT", "HUP", "QUIT", "KILL":
	default:
		if k.Signal != "" {
			return fmt.Errorf("signal %.40q: want one of TERM, INT, HUP, QUIT, KILL", k.Signal)
		}
	}
	if k.Grace < 0 || k.Grace > MaxGrace {
		return fmt.Errorf("a grace of %v: want one from 0 to %v", k.Grace, MaxGrace)
	}
	return nil
}

// The grace of a Kill that does not begin with SIGKILL.
const (
	DefaultGrace = 5 * time.Second
	MaxGrace     = time.Minute
)

// MaxOutputWait is the most that an OutputQuery waits.
const MaxOutputWait = time.Minute

// Process is a process as it is recorded: it stays when the runner forgets it.
type Process struct {
	Workspace   WorkspaceID    `json:"workspace"`
	Root        string         `json:"root"` // that the workspace had
	Tenant      Tenant         `json:"tenant"`
	By          Ref            `json:"by"`
	Fingerprint Digest         `json:"fingerprint"`
	Program     string         `json:"program"`            // the first element of the command, without its folder
	Programs    []string       `json:"programs,omitempty"` // that the command would run, as far as reading it tells
	TTY         bool           `json:"tty,omitempty"`
	Approval    ApprovalID     `json:"approval,omitempty"`
	Dispatch    DispatchStatus `json:"dispatch_status,omitempty"` // empty before the runner answered
	ProcessStatus

	// Owner is the gateway that started it. It is nobody else's business.
	Owner string `json:"-"`
}

// ProcessFilter narrows a list of processes. Zero fields do not narrow.
type ProcessFilter struct {
	Tenant    Tenant
	By        Ref // who asked for them
	Workspace WorkspaceID
	States    []ProcessState
	// Kept leaves out those that ended and of whose output nothing is stored.
	Kept bool
	Page Page
}

// StoredOutput is the last that a process wrote, kept when its runner is gone. It is
// the merged stream: Data ends where the output does, as far as it is known, and
// begins at Retained. It may hold secrets.
type StoredOutput struct {
	Data     []byte
	Retained int64
}
