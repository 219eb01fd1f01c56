package rest_test

import (
	"context"
	"io"
	"sync"
	"time"

	"writ"
)

// backend stands for everything behind the API: it keeps what it is called with,
// answers fixed values, and fails with err when that is set. Its decisions are
// none: the real ones are tested with the real parts.
type backend struct {
	mu    sync.Mutex
	calls []call // guarded by mu
	err   error  // guarded by mu
	watch func(ctx context.Context, emit func(writ.TaskEvent) error) error
	wait  func(ctx context.Context) error
	dup   bool   // Submit says that the task existed
	boom  bool   // Get panics
	hold  func() // Submit and Explain call it before they answer
	late  bool   // Export writes before it fails
}

// call is one call of a method: its name, who called, and the other arguments.
type call struct {
	Method string
	Who    writ.Ref
	Args   []any
}

func (b *backend) called(method string, who writ.Principal, args ...any) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, call{method, who.Ref(), args})
	return b.err
}

// fail makes every further call answer err.
func (b *backend) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

// take answers the calls so far and forgets them.
func (b *backend) take() []call {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.calls
	b.calls = nil
	return c
}

const (
	token      = "writ_k1_sesame"
	guestToken = "writ_k9_barley"
)

// agent is who has token, owner is who is at the other end of the unix socket.
func agent() writ.Principal {
	return writ.Principal{Kind: writ.KindAgent, ID: "coder", Tenant: "default"}
}

func owner() writ.Principal {
	return writ.Principal{Kind: writ.KindLocal, ID: "root", Tenant: "default"}
}

func (b *backend) Bearer(_ context.Context, tok string, _ time.Time) (writ.Principal, error) {
	switch tok {
	case token:
		return agent(), nil
	case guestToken:
		return writ.Principal{Kind: writ.KindAgent, ID: "guest", Tenant: "default"}, nil
	}
	return writ.Principal{}, &writ.Error{Kind: writ.Unauthenticated, Msg: "the key is not valid"}
}

func (b *backend) Submit(_ context.Context, who writ.Principal, req writ.TaskRequest) (writ.Task, bool, error) {
	err := b.called("Submit", who, req)
	if b.hold != nil {
		b.hold()
	}
	return someTask(), !b.dup, err
}

func (b *backend) Refuse(_ context.Context, who writ.Principal, reason string) error {
	return b.called("Refuse", who, reason)
}

func (b *backend) Get(_ context.Context, who writ.Principal, id writ.TaskID) (writ.Task, error) {
	if b.boom {
		panic("a fault of ours")
	}
	return someTask(), b.called("Get", who, id)
}

func (b *backend) Spec(_ context.Context, who writ.Principal, id writ.TaskID) (writ.RunSpec, error) {
	return someSpec(), b.called("Spec", who, id)
}

func (b *backend) List(_ context.Context, who writ.Principal, f writ.TaskFilter) ([]writ.Task, string, error) {
	return someTasks(), "more", b.called("List", who, f)
}

func (b *backend) Cancel(_ context.Context, who writ.Principal, id writ.TaskID, reason string) (writ.Task, error) {
	return someTask(), b.called("Cancel", who, id, reason)
}

func (b *backend) Wait(ctx context.Context, who writ.Principal, id writ.TaskID, d time.Duration) (writ.Task, error) {
	if b.wait != nil {
		return writ.Task{}, b.wait(ctx)
	}
	return someTask(), b.called("Wait", who, id, d)
}

func (b *backend) Output(_ context.Context, who writ.Principal, id writ.TaskID, s writ.Stream) ([]byte, error) {
	return []byte("<script>\x00\xff"), b.called("Output", who, id, s)
}

func (b *backend) Watch(ctx context.Context, who writ.Principal, id writ.TaskID, emit func(writ.TaskEvent) error) error {
	if err := b.called("Watch", who, id); err != nil {
		return err
	}
	return b.watch(ctx, emit)
}

func (b *backend) DeleteBodies(_ context.Context, who writ.Principal, id writ.TaskID) error {
	return b.called("DeleteBodies", who, id)
}

func (b *backend) Approvals(_ context.Context, who writ.Principal, f writ.ApprovalFilter) ([]writ.Approval, string, error) {
	return []writ.Approval{someApproval(), someHeldPatch()}, "", b.called("Approvals", who, f)
}

func (b *backend) Approval(_ context.Context, who writ.Principal, id writ.ApprovalID) (writ.ApprovalView, error) {
	return writ.ApprovalView{Approval: someApproval(), Text: "print(1)", Shown: digest("text")}, b.called("Approval", who, id)
}

func (b *backend) Vote(_ context.Context, who writ.Principal, id writ.ApprovalID, v writ.VoteRequest) (writ.Approval, error) {
	return someApproval(), b.called("Vote", who, id, v)
}

func (b *backend) Works(_ context.Context, who writ.Principal, f writ.WorkFilter) ([]writ.Work, string, error) {
	return someWorks(), "more", b.called("Works", who, f)
}

func (b *backend) Work(_ context.Context, who writ.Principal, id writ.WorkID) (writ.Work, error) {
	return someWorks()[0], b.called("Work", who, id)
}

func (b *backend) Intents(_ context.Context, who writ.Principal, id writ.WorkID) ([]writ.Intent, error) {
	return someIntents(), b.called("Intents", who, id)
}

func (b *backend) AddIntent(_ context.Context, who writ.Principal, id writ.WorkID, req writ.IntentRequest) (writ.Intent, error) {
	return someIntent(), b.called("AddIntent", who, id, req)
}

func (b *backend) EditIntent(_ context.Context, who writ.Principal, id writ.IntentID, req writ.IntentEdit) (writ.Intent, error) {
	return someIntent(), b.called("EditIntent", who, id, req)
}

func (b *backend) QueueIntent(_ context.Context, who writ.Principal, id writ.IntentID, revision int64) (writ.Intent, error) {
	return someIntent(), b.called("QueueIntent", who, id, revision)
}

func (b *backend) CancelIntent(_ context.Context, who writ.Principal, id writ.IntentID) (writ.Intent, error) {
	return someIntent(), b.called("CancelIntent", who, id)
}

func (b *backend) ReorderIntents(_ context.Context, who writ.Principal, id writ.WorkID, req writ.ReorderRequest) ([]writ.Intent, error) {
	return someIntents(), b.called("ReorderIntents", who, id, req)
}

func (b *backend) StopWork(_ context.Context, who writ.Principal, id writ.WorkID, req writ.StopRequest) (writ.Stop, error) {
	return someStop(), b.called("StopWork", who, id, req)
}

func (b *backend) Workspaces(who writ.Principal) []writ.Workspace {
	_ = b.called("Workspaces", who)
	return someWorkspaces()
}

func (b *backend) Operations(_ context.Context, who writ.Principal, f writ.OperationFilter) ([]writ.Operation, string, error) {
	return someOperations(), "more", b.called("Operations", who, f)
}

func (b *backend) Operation(_ context.Context, who writ.Principal, id writ.OperationID, key string) (writ.Operation, error) {
	return someOperation(), b.called("Operation", who, id, key)
}

func (b *backend) Undo(_ context.Context, who writ.Principal, id writ.OperationID, req writ.UndoRequest) (writ.Operation, error) {
	return someOperation(), b.called("Undo", who, id, req)
}

func (b *backend) Resume(_ context.Context, who writ.Principal, id writ.ApprovalID) (writ.Resumed, error) {
	return someResumed(id), b.called("Resume", who, id)
}

func (b *backend) Events(_ context.Context, who writ.Principal, f writ.EventFilter) ([]writ.Event, bool, error) {
	return someEvents(), true, b.called("Events", who, f)
}

func (b *backend) Checkpoint(_ context.Context, who writ.Principal) (writ.Checkpoint, error) {
	return someCheckpoint(), b.called("Checkpoint", who)
}

func (b *backend) Prove(_ context.Context, who writ.Principal, seq int64) (writ.AuditProof, error) {
	return writ.AuditProof{Seq: seq, Record: `{"seq":7}`, Checkpoint: someCheckpoint(), Hashes: []writ.Digest{digest("h")}}, b.called("Prove", who, seq)
}

func (b *backend) Verify(_ context.Context, who writ.Principal, anchors []string) (writ.AuditReport, error) {
	return writ.AuditReport{Events: 3, Head: someCheckpoint(), Faults: []writ.AuditFault{{Seq: 2, Fault: "changed"}}}, b.called("Verify", who, anchors)
}

func (b *backend) Export(_ context.Context, who writ.Principal, w io.Writer, format string, f writ.EventFilter) error {
	err := b.called("Export", who, format, f)
	if err != nil && !b.late {
		return err
	}
	if _, werr := io.WriteString(w, "{\"seq\":0}\n"); werr != nil {
		return werr
	}
	return err
}

func (b *backend) Usage(_ context.Context, who writ.Principal) (writ.FileUsage, error) {
	return someUsage(), b.called("Usage", who)
}

func (b *backend) Remove(_ context.Context, who writ.Principal, req writ.FileRemovalRequest) (writ.FileRemoval, error) {
	return someRemoval(), b.called("Remove", who, req)
}

func (b *backend) Sessions(_ context.Context, who writ.Principal, f writ.SessionFilter) ([]writ.Session, string, error) {
	return []writ.Session{someContents().Session}, "c&2", b.called("Sessions", who, f)
}

func (b *backend) Contents(_ context.Context, who writ.Principal, id writ.SessionID) (writ.SessionContents, error) {
	return someContents(), b.called("Contents", who, id)
}

func (b *backend) RemoveSession(_ context.Context, who writ.Principal, id writ.SessionID) (writ.FileRemoval, error) {
	return someRemoval(), b.called("RemoveSession", who, id)
}

func (b *backend) Verifier() string { return "writ+0123abcd+key" }

func (b *backend) CreateKey(_ context.Context, who writ.Principal, r writ.KeyRequest) (writ.NewKey, error) {
	return writ.NewKey{Key: someKey(), Token: "writ_k2_shown-once"}, b.called("CreateKey", who, r)
}

func (b *backend) Keys(_ context.Context, who writ.Principal) ([]writ.Key, error) {
	return []writ.Key{someKey()}, b.called("Keys", who)
}

func (b *backend) RevokeKey(_ context.Context, who writ.Principal, id writ.KeyID) error {
	return b.called("RevokeKey", who, id)
}

func (b *backend) AddOperator(_ context.Context, who writ.Principal, o writ.Operator) (writ.NewKey, error) {
	return writ.NewKey{Key: someKey(), Token: "writ_k2_shown-once"}, b.called("AddOperator", who, o)
}

func (b *backend) Operators(_ context.Context, who writ.Principal) ([]writ.Operator, error) {
	return []writ.Operator{{ID: "ada", Tenant: "default", Roles: []string{"lead"}, Created: noon()}}, b.called("Operators", who)
}

func (b *backend) DisableOperator(_ context.Context, who writ.Principal, id string) error {
	return b.called("DisableOperator", who, id)
}

func (b *backend) Explain(_ context.Context, who writ.Principal, req writ.TaskRequest) (any, error) {
	err := b.called("Explain", who, req)
	if b.hold != nil {
		b.hold()
	}
	return map[string]any{"effect": "hold"}, err
}

func (b *backend) Status(context.Context) (writ.Enforcement, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return writ.Enforcement{Provider: "bubblewrap 0.8.0", Active: []string{"seccomp"}, Missing: []string{"memory-cgroup"}}, b.err
}
