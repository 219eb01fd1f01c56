package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"writ"
	"writ/mcp"
)

// desk is the service behind the tools, over a few files in memory: what the tools
// call, with the outcomes that the contract has. It applies no patch; it counts.
type desk struct {
	mu        sync.Mutex
	spaces    []writ.Workspace
	files     map[string]string // in every workspace
	paths     []string          // what find lists, beside the files
	approvals map[writ.ApprovalID]*hold
	ops       []writ.Operation
	applied   int
	processes []*process
	looks     int           // at single processes
	bare      bool          // there are no sandboxes
	reads     []string      // paths, as they came
	changes   int           // of an applied patch, made up
	stall     chan struct{} // when set, Read says on it that it began, and waits for its context
	crash     bool          // Read panics
}

type hold struct {
	writ.Approval
	request string // of two holds for the same, one is over
	do      func() (writ.Resumed, error)
	done    writ.Resumed
}

func newDesk(mode writ.ApprovalMode) *desk {
	return &desk{
		spaces: []writ.Workspace{
			{ID: "main", Root: "/srv/main", Profile: writ.WorkspaceWrite, EnvironmentKind: writ.EnvironmentHost, Network: writ.NetworkRestricted, Approvals: mode},
			{ID: "docs", Root: "/srv/docs", Profile: writ.ReadOnly, EnvironmentKind: writ.EnvironmentHost, Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff},
		},
		files:     map[string]string{"ok.txt": "hello\n"},
		approvals: map[writ.ApprovalID]*hold{},
		changes:   1,
	}
}

func fail(kind writ.Kind, code, format string, args ...any) error {
	return &writ.Error{Kind: kind, Code: code, Msg: fmt.Sprintf(format, args...)}
}

func (d *desk) Workspaces(writ.Principal) []writ.Workspace { return d.spaces }

func (d *desk) Workspace(_ writ.Principal, id writ.WorkspaceID) (writ.Workspace, error) {
	for _, w := range d.spaces {
		if w.ID == id {
			return w, nil
		}
	}
	return writ.Workspace{}, fail(writ.NotFound, "WORKSPACE_NOT_FOUND", "there is no workspace %q", id)
}

func (d *desk) Read(ctx context.Context, who writ.Principal, id writ.WorkspaceID, path string, offset, limit int64) (writ.FileWindow, error) {
	if _, err := d.Workspace(who, id); err != nil {
		return writ.FileWindow{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads = append(d.reads, path)
	if d.crash {
		panic("the desk broke")
	}
	if d.stall != nil {
		d.stall <- struct{}{}
		<-ctx.Done()
		return writ.FileWindow{}, ctx.Err()
	}
	if limit < 1 || limit > 1<<20 {
		return writ.FileWindow{}, fail(writ.Invalid, "OUTPUT_LIMIT", "limit %d", limit)
	}
	text, ok := d.files[path]
	if !ok {
		return writ.FileWindow{}, fail(writ.NotFound, "FILE_NOT_FOUND", "read %q: there is no such file", path)
	}
	w := writ.FileWindow{Path: path, Version: "sha256:" + string(writ.DigestOf([]byte(text))), Offset: offset}
	if offset < int64(len(text)) {
		end := min(offset+limit, int64(len(text)))
		w.Content = []byte(text[offset:end])
		if end < int64(len(text)) {
			w.Next = end
		}
	}
	return w, nil
}

func (d *desk) Find(_ context.Context, who writ.Principal, id writ.WorkspaceID, q writ.FileQuery) (writ.FileListing, error) {
	if _, err := d.Workspace(who, id); err != nil {
		return writ.FileListing{}, err
	}
	if q.Limit < 1 || q.Limit > 10_000 {
		return writ.FileListing{}, fail(writ.Invalid, "OUTPUT_LIMIT", "limit %d", q.Limit)
	}
	l := writ.FileListing{Total: len(d.paths), Version: "list-1"}
	if q.Offset < len(d.paths) {
		end := min(q.Offset+q.Limit, len(d.paths))
		l.Paths = d.paths[q.Offset:end]
		if end < len(d.paths) {
			l.Next = end
		}
	}
	if q.Content != "" {
		for _, p := range l.Paths {
			l.Matches = append(l.Matches, writ.FileMatch{Path: p, Line: 1, Text: "has " + q.Content})
		}
	}
	return l, nil
}

func (d *desk) Patch(_ context.Context, who writ.Principal, req writ.PatchRequest) (writ.Operation, bool, error) {
	w, err := d.Workspace(who, req.Workspace)
	if err != nil {
		return writ.Operation{}, false, err
	}
	if w.Profile == writ.ReadOnly {
		return writ.Operation{}, false, fail(writ.Denied, "UNAUTHORIZED", "workspace %s is read-only", w.ID)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range d.ops {
		if req.Key != "" && op.Key == req.Key {
			if op.Fingerprint != req.Fingerprint() {
				return op, false, fail(writ.Conflict, "OPERATION_KEY_CONFLICT", "the key names another request")
			}
			return op, true, nil
		}
	}
	if w.Approvals != writ.ApprovalsOff {
		return writ.Operation{}, false, heldBy(w, d.holdPatch(req))
	}
	op, err := d.apply(req)
	return op, false, err
}

// apply pretends. d.mu is held.
func (d *desk) apply(req writ.PatchRequest) (writ.Operation, error) {
	now := time.Unix(1_800_000_000, 0)
	op := writ.Operation{
		ID: writ.OperationID(fmt.Sprintf("op-%d", len(d.ops)+1)), Key: req.Key, Workspace: req.Workspace,
		Fingerprint: req.Fingerprint(), Created: now, Finished: &now,
	}
	if strings.Contains(req.Patch, "conflict") {
		op.Result.Status, op.Code = writ.PatchRejected, "VERSION_CONFLICT"
		d.ops = append(d.ops, op)
		return op, &writ.OperationError{Operation: op.ID, Err: fail(writ.Conflict, "VERSION_CONFLICT", "ok.txt moved on")}
	}
	op.Result.Status = writ.PatchApplied
	if req.CheckOnly {
		op.Result.Status = writ.PatchChecked
	} else {
		d.applied++
	}
	for i := range d.changes {
		op.Result.Changes = append(op.Result.Changes, writ.FileChange{Path: fmt.Sprintf("%04d%s", i, strings.Repeat("x", d.changes)), Before: "absent", After: "sha256:b", Kind: "add"})
	}
	d.ops = append(d.ops, op)
	return op, nil
}

// hold opens a hold or finds the open one. d.mu is held, also when do is called.
func (d *desk) hold(action writ.Action, request string, do func() (writ.Resumed, error)) *hold {
	for _, h := range d.approvals {
		if h.request == request && !h.State.Terminal() {
			return h
		}
	}
	h := &hold{Approval: writ.Approval{ID: writ.ApprovalID(fmt.Sprintf("appr-%d", len(d.approvals)+1)), Action: action, State: writ.ApprovalPending}, request: request, do: do}
	d.approvals[h.ID] = h
	return h
}

func (d *desk) holdPatch(req writ.PatchRequest) *hold {
	return d.hold(writ.ActionPatch, string(req.Fingerprint()), func() (writ.Resumed, error) {
		op, err := d.apply(req)
		return writ.Resumed{Operation: &op}, err
	})
}

// heldBy is the error of a call in w that waits for h.
func heldBy(w writ.Workspace, h *hold) error {
	return &writ.Held{
		Approval: h.ID, Self: w.Approvals == writ.ApprovalsConfirm,
		Err: fail(writ.Conflict, "APPROVAL_REQUIRED", "workspace %s wants approval %s", w.ID, h.ID),
	}
}

func (d *desk) Operation(_ context.Context, _ writ.Principal, id writ.OperationID, key string) (writ.Operation, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, op := range d.ops {
		if id != "" && op.ID == id || id == "" && op.Key == key {
			return op, nil
		}
	}
	return writ.Operation{}, fail(writ.NotFound, "OPERATION_NOT_FOUND", "there is no such operation")
}

func (d *desk) CreateApproval(_ context.Context, who writ.Principal, call writ.ToolCall) (writ.Approval, error) {
	if (call.Patch == nil) == (call.Command == nil) {
		return writ.Approval{}, fmt.Errorf("a call of one tool: %+v", call)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if call.Command != nil {
		if _, err := d.mayExec(who, *call.Command); err != nil {
			return writ.Approval{}, err
		}
		return d.holdCommand(*call.Command).Approval, nil
	}
	if _, err := d.Workspace(who, call.Patch.Workspace); err != nil {
		return writ.Approval{}, err
	}
	return d.holdPatch(*call.Patch).Approval, nil
}

func (d *desk) ResolveApproval(_ context.Context, who writ.Principal, id writ.ApprovalID, grant bool) (writ.Approval, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.approvals[id]
	switch {
	case h == nil:
		return writ.Approval{}, fail(writ.NotFound, "APPROVAL_NOT_FOUND", "there is no approval %q", id)
	case d.spaces[0].Approvals == writ.ApprovalsReview && who.Kind != writ.KindOperator:
		return writ.Approval{}, fail(writ.Denied, "UNAUTHORIZED", "an operator decides this")
	case h.State != writ.ApprovalPending:
		return writ.Approval{}, fail(writ.Conflict, "APPROVAL_CONFLICT", "approval %s is %s", id, h.State)
	}
	h.State = writ.ApprovalDenied
	if grant {
		h.State = writ.ApprovalGranted
	}
	return h.Approval, nil
}

func (d *desk) Resume(_ context.Context, _ writ.Principal, id writ.ApprovalID) (writ.Resumed, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.approvals[id]
	switch {
	case h == nil:
		return writ.Resumed{}, fail(writ.NotFound, "APPROVAL_NOT_FOUND", "there is no approval %q", id)
	case h.State == writ.ApprovalConsumed:
		return h.done, nil
	case h.State != writ.ApprovalGranted:
		return writ.Resumed{}, fail(writ.Conflict, "APPROVAL_CONFLICT", "approval %s is %s", id, h.State)
	}
	h.State = writ.ApprovalConsumed
	var err error
	h.done, err = h.do()
	h.done.Approval = h.Approval
	return h.done, err
}

// state is that of an approval, and how many patches were applied.
func (d *desk) state(id writ.ApprovalID) (writ.ApprovalState, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := d.approvals[id]
	if h == nil {
		return "", d.applied
	}
	return h.State, d.applied
}

// keys are bearer keys and whose they are.
type keys map[string]writ.Principal

func (k keys) Bearer(_ context.Context, token string, _ time.Time) (writ.Principal, error) {
	if token == "broken" {
		return writ.Principal{}, fmt.Errorf("the database is away")
	}
	if who, ok := k[token]; ok {
		return who, nil
	}
	return writ.Principal{}, &writ.Error{Kind: writ.Unauthenticated, Msg: "unknown key"}
}

var someKeys = keys{"alice-key": agent("alice"), "bob-key": agent("bob")}

func agent(id string) writ.Principal {
	return writ.Principal{Kind: writ.KindAgent, ID: id, Tenant: writ.DefaultTenant}
}

var (
	_ mcp.Workspaces    = (*desk)(nil)
	_ mcp.Processes     = (*desk)(nil)
	_ mcp.Authenticator = keys(nil)
)

// noWorks is the works of workspaces in which nobody opened one.
type noWorks struct{}

func (noWorks) none() error { return fail(writ.NotFound, "WORK_NOT_FOUND", "there is no such work") }

func (noWorks) Open(context.Context, writ.Principal, writ.WorkspaceID, string) (writ.Work, error) {
	return writ.Work{}, fail(writ.NotFound, "WORKSPACE_NOT_FOUND", "there is no such workspace")
}

func (n noWorks) Status(context.Context, writ.Principal, writ.WorkID) (writ.WorkStatus, []writ.Intent, error) {
	return writ.WorkStatus{}, nil, n.none()
}

func (n noWorks) ClaimNext(context.Context, writ.Principal, writ.WorkID) (*writ.Intent, error) {
	return nil, n.none()
}

func (n noWorks) Complete(context.Context, writ.Principal, writ.WorkID, writ.IntentID, writ.IntentState) (writ.Intent, error) {
	return writ.Intent{}, n.none()
}

func (n noWorks) Finish(context.Context, writ.Principal, writ.WorkID) (writ.Finish, error) {
	return writ.Finish{}, n.none()
}

func (noWorks) Hint(context.Context, writ.Principal, writ.WorkspaceID, writ.WorkID) (writ.WorkHint, bool, error) {
	return writ.WorkHint{}, false, nil
}
