package rest

import (
	"context"
	"io"
	"time"

	"writ"
)

// The interfaces below are what the API calls. Every method answers a *writ.Error
// for what the client can act on, decides itself what who may see or do, and is
// safe for concurrent use.

// Authenticator turns a key into who it belongs to.
type Authenticator interface {
	// Bearer answers the principal of the key token, or an error of kind
	// Unauthenticated that has one message for every cause.
	Bearer(ctx context.Context, token string, now time.Time) (writ.Principal, error)
}

// Tasks are the durable requests to run something.
type Tasks interface {
	// Submit takes a request. created is false when its key named an earlier task
	// of the same content, which is then the answer.
	Submit(ctx context.Context, who writ.Principal, req writ.TaskRequest) (t writ.Task, created bool, err error)
	// Refuse records a request to create a task that was too malformed to be one.
	Refuse(ctx context.Context, who writ.Principal, reason string) error
	Get(ctx context.Context, who writ.Principal, id writ.TaskID) (writ.Task, error)
	Spec(ctx context.Context, who writ.Principal, id writ.TaskID) (writ.RunSpec, error)
	// List answers one page and the cursor of the next, empty after the last.
	List(ctx context.Context, who writ.Principal, f writ.TaskFilter) ([]writ.Task, string, error)
	Cancel(ctx context.Context, who writ.Principal, id writ.TaskID, reason string) (writ.Task, error)
	// Wait answers the task once it is over, or as it stands after d.
	Wait(ctx context.Context, who writ.Principal, id writ.TaskID, d time.Duration) (writ.Task, error)
	Output(ctx context.Context, who writ.Principal, id writ.TaskID, s writ.Stream) ([]byte, error)
	// Watch calls emit with the task as it stands, then with each change and with
	// output as it comes, in order and from one goroutine at a time. It returns nil
	// after the terminal state was emitted, else an error; emit's own error ends it.
	// A task that the caller may not see is an error before the first emit.
	Watch(ctx context.Context, who writ.Principal, id writ.TaskID, emit func(writ.TaskEvent) error) error
	// DeleteBodies removes code, inputs and output; the record of them stays.
	DeleteBodies(ctx context.Context, who writ.Principal, id writ.TaskID) error
}

// Approvals are the held requests.
type Approvals interface {
	Approvals(ctx context.Context, who writ.Principal, f writ.ApprovalFilter) ([]writ.Approval, string, error)
	Approval(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.ApprovalView, error)
	Vote(ctx context.Context, who writ.Principal, id writ.ApprovalID, v writ.VoteRequest) (writ.Approval, error)
}

// Workspaces are the registered roots, and the ledger of what was done to them.
type Workspaces interface {
	// Workspaces are those that who may see, by id.
	Workspaces(who writ.Principal) []writ.Workspace
	// Operations answers one page, newest first, and the cursor of the next, empty
	// after the last.
	Operations(ctx context.Context, who writ.Principal, f writ.OperationFilter) ([]writ.Operation, string, error)
	// Operation is one row of the ledger, by id or, when that is empty, by key.
	Operation(ctx context.Context, who writ.Principal, id writ.OperationID, key string) (writ.Operation, error)
	// Undo takes back what an applied operation did, as an operation of its own, which
	// is the answer. A held request is an error with a *writ.Held in its chain; an error
	// after the new operation is in the ledger has a *writ.OperationError in its chain.
	Undo(ctx context.Context, who writ.Principal, id writ.OperationID, req writ.UndoRequest) (writ.Operation, error)
	// Resume carries out what a granted approval of a tool's call holds, at most once; it
	// answers again what it answered. Its errors are as those of Undo.
	Resume(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.Resumed, error)
}

// Inbox is what people want of the agents that work in workspaces (spec/02 §10). The
// requests that it is given are valid.
type Inbox interface {
	// Works answers one page, newest first, and the cursor of the next, empty after the
	// last.
	Works(ctx context.Context, who writ.Principal, f writ.WorkFilter) ([]writ.Work, string, error)
	Work(ctx context.Context, who writ.Principal, id writ.WorkID) (writ.Work, error)
	// Intents are those of a work, and those of its workspace that have no work.
	Intents(ctx context.Context, who writ.Principal, id writ.WorkID) ([]writ.Intent, error)
	AddIntent(ctx context.Context, who writ.Principal, id writ.WorkID, req writ.IntentRequest) (writ.Intent, error)
	EditIntent(ctx context.Context, who writ.Principal, id writ.IntentID, req writ.IntentEdit) (writ.Intent, error)
	QueueIntent(ctx context.Context, who writ.Principal, id writ.IntentID, revision int64) (writ.Intent, error)
	CancelIntent(ctx context.Context, who writ.Principal, id writ.IntentID) (writ.Intent, error)
	ReorderIntents(ctx context.Context, who writ.Principal, id writ.WorkID, req writ.ReorderRequest) ([]writ.Intent, error)
	// StopWork ends the processes of the work's workspace and leaves the notice of it.
	StopWork(ctx context.Context, who writ.Principal, id writ.WorkID, req writ.StopRequest) (writ.Stop, error)
}

// Files is what the code interpreter keeps for its users. What concerns all tenants is
// Denied to all but the owner of the data folder, the rest to all but operators and that.
type Files interface {
	// Usage is of all tenants.
	Usage(ctx context.Context, who writ.Principal) (writ.FileUsage, error)
	// Remove makes one pass over what is kept, of all tenants. After an error some of it may
	// be removed.
	Remove(ctx context.Context, who writ.Principal, req writ.FileRemovalRequest) (writ.FileRemoval, error)
	// Sessions answers one page, newest first, and the cursor of the next, empty after the
	// last.
	Sessions(ctx context.Context, who writ.Principal, f writ.SessionFilter) ([]writ.Session, string, error)
	Contents(ctx context.Context, who writ.Principal, id writ.SessionID) (writ.SessionContents, error)
	// RemoveSession removes a session and what is in it, and answers what is gone. After an
	// error bytes of it may be left, which a pass removes.
	RemoveSession(ctx context.Context, who writ.Principal, id writ.SessionID) (writ.FileRemoval, error)
}

// Audit is the log of what happened.
type Audit interface {
	// Events answers one page in the order of the log, and whether there are more
	// after it that f selects. It is Denied to ask for what who may not read.
	Events(ctx context.Context, who writ.Principal, f writ.EventFilter) (events []writ.Event, more bool, err error)
	Checkpoint(ctx context.Context, who writ.Principal) (writ.Checkpoint, error)
	Prove(ctx context.Context, who writ.Principal, seq int64) (writ.AuditProof, error)
	Verify(ctx context.Context, who writ.Principal, anchors []string) (writ.AuditReport, error)
	// Export writes the events to w as lines of JSON: format is "jsonl" (the
	// records as they are in the log) or "cloudevents". What it refuses, it refuses
	// before it writes.
	Export(ctx context.Context, who writ.Principal, w io.Writer, format string, f writ.EventFilter) error
	// Verifier is the public key of the checkpoints, as golang.org/x/mod/sumdb/note
	// writes it.
	Verifier() string
}

// Access is who may ask at all.
type Access interface {
	CreateKey(ctx context.Context, who writ.Principal, r writ.KeyRequest) (writ.NewKey, error)
	Keys(ctx context.Context, who writ.Principal) ([]writ.Key, error)
	RevokeKey(ctx context.Context, who writ.Principal, id writ.KeyID) error
	// AddOperator adds o and answers its first key. Only ID, Tenant and Roles of o
	// are given; an empty tenant means that of who.
	AddOperator(ctx context.Context, who writ.Principal, o writ.Operator) (writ.NewKey, error)
	Operators(ctx context.Context, who writ.Principal) ([]writ.Operator, error)
	DisableOperator(ctx context.Context, who writ.Principal, id string) error
}

// Policy answers for the rules and the host.
type Policy interface {
	// Explain says what policy would decide about req and why, as a value that
	// encodes to a JSON object, as far as who may know. Nothing is stored.
	Explain(ctx context.Context, who writ.Principal, req writ.TaskRequest) (any, error)
	// Status says what the sandbox enforces on this host.
	Status(ctx context.Context) (writ.Enforcement, error)
}
