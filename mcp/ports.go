package mcp

import (
	"context"
	"time"

	"writ"
)

// The interfaces below are what the tools call. Every method answers a *writ.Error
// with a Code of spec/02 §5.14 for what the client can act on, decides itself what who
// may see or do, and is safe for concurrent use.

// Authenticator turns a key into who it belongs to.
type Authenticator interface {
	// Bearer answers the principal of the key token, or an error of kind
	// Unauthenticated that has one message for every cause.
	Bearer(ctx context.Context, token string, now time.Time) (writ.Principal, error)
}

// Workspaces are the registered roots and what may be done in them.
type Workspaces interface {
	// Workspaces are those that who may see, by id.
	Workspaces(who writ.Principal) []writ.Workspace
	// Workspace is one of them, or WORKSPACE_NOT_FOUND.
	Workspace(who writ.Principal, id writ.WorkspaceID) (writ.Workspace, error)
	// Read answers a window of a file (spec/02 §5.2). A limit or offset out of bounds
	// is OUTPUT_LIMIT.
	Read(ctx context.Context, who writ.Principal, id writ.WorkspaceID, path string, offset, limit int64) (writ.FileWindow, error)
	// Find answers one page of a listing (spec/02 §5.3), with the bounds of Read.
	Find(ctx context.Context, who writ.Principal, id writ.WorkspaceID, q writ.FileQuery) (writ.FileListing, error)
	// Patch carries out req (spec/02 §6). replayed says that its key named an operation
	// of the same content, which is then the answer. A held request is an error with a
	// *writ.Held in its chain; an error after the operation is in the ledger has a
	// *writ.OperationError in its chain.
	Patch(ctx context.Context, who writ.Principal, req writ.PatchRequest) (op writ.Operation, replayed bool, err error)
	// Operation is one row of the ledger, by id or, when that is empty, by key; or
	// OPERATION_NOT_FOUND.
	Operation(ctx context.Context, who writ.Principal, id writ.OperationID, key string) (writ.Operation, error)
	// CreateApproval opens a hold for call, or answers the one that is open for the same.
	CreateApproval(ctx context.Context, who writ.Principal, call writ.ToolCall) (writ.Approval, error)
	// ResolveApproval grants or denies a pending hold; APPROVAL_CONFLICT when it is not
	// pending.
	ResolveApproval(ctx context.Context, who writ.Principal, id writ.ApprovalID, grant bool) (writ.Approval, error)
	// Resume carries out what a granted hold waits with, at most once; it answers again
	// what it answered: the operation of a patch, the process of a command or an input.
	// Errors are those of what is held and APPROVAL_CONFLICT, APPROVAL_AMBIGUOUS.
	Resume(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.Resumed, error)
}

// Processes are the commands that were started in workspaces. A process outlives the call
// that started it. An id that never was, was forgotten, or is of somebody whose processes
// who may not see, is PROCESS_NOT_FOUND.
type Processes interface {
	// Exec starts a command (spec/02 §5.6). A faulty request is INVALID_COMMAND; with any
	// error nothing was started. A process with DispatchUnknown may have been. A held
	// request is an error with a *writ.Held in its chain.
	Exec(ctx context.Context, who writ.Principal, req writ.CommandRequest) (writ.Process, error)
	// Input writes all of data to the process and, with end, closes its input behind it.
	// PROCESS_NOT_FOUND also says that the input is closed. Held as Exec is.
	Input(ctx context.Context, who writ.Principal, id writ.ProcessID, data []byte, end bool) error
	// Output answers what the process wrote, from a cursor on. It may end in the middle of
	// a character. A query out of bounds is OUTPUT_LIMIT.
	Output(ctx context.Context, who writ.Principal, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error)
	// Process says what a process is and where it stands.
	Process(ctx context.Context, who writ.Principal, id writ.ProcessID) (writ.Process, error)
	// Resize sets the size of its terminal: PROCESS_NOT_RUNNING, then PROCESS_NOT_TTY
	// (spec/02 §5.10).
	Resize(ctx context.Context, who writ.Principal, id writ.ProcessID, size writ.TerminalSize) error
	// Terminate has the process ended, and does not wait for that. One that has ended is no
	// error; a k that is none is INVALID_COMMAND.
	Terminate(ctx context.Context, who writ.Principal, id writ.ProcessID, k writ.Kill) error
	// Processes are those of a workspace that who may see, the latest first: all that run,
	// and the last of those that ended. WORKSPACE_NOT_FOUND: there is no such workspace.
	Processes(ctx context.Context, who writ.Principal, workspace writ.WorkspaceID) ([]writ.Process, error)
}

// Prober looks at the host that commands run on.
type Prober interface {
	// Probe says what a sandbox there enforces. With an error none can be made, and so no
	// command runs. It may be called often.
	Probe(ctx context.Context) (writ.Enforcement, error)
}

// Works are the pieces of work that agents open in workspaces, and the instructions of
// users that wait in them (spec/02 §10).
type Works interface {
	// Open starts a work in a workspace.
	Open(ctx context.Context, who writ.Principal, workspace writ.WorkspaceID, title string) (writ.Work, error)
	// Status is a work, what waits in it as counts, and the intents that were claimed and
	// are not completed.
	Status(ctx context.Context, who writ.Principal, id writ.WorkID) (writ.WorkStatus, []writ.Intent, error)
	// ClaimNext takes the next intent; nil when there is none.
	ClaimNext(ctx context.Context, who writ.Principal, id writ.WorkID) (*writ.Intent, error)
	// Complete ends a claimed intent as done or blocked.
	Complete(ctx context.Context, who writ.Principal, work writ.WorkID, id writ.IntentID, outcome writ.IntentState) (writ.Intent, error)
	// Finish closes a work, unless instructions are pending.
	Finish(ctx context.Context, who writ.Principal, id writ.WorkID) (writ.Finish, error)
	// Hint says what waits in the open work id of a workspace or, when id is empty, in its
	// only open one, if there is such a work.
	Hint(ctx context.Context, who writ.Principal, workspace writ.WorkspaceID, id writ.WorkID) (hint writ.WorkHint, found bool, err error)
}
