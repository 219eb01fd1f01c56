package gateway

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"writ"
	"writ/policy"
	"writ/workspace"
)

// Files read and change what is beneath the roots of workspaces. An error of Patch
// means that nothing was changed; else the result says how it ended.
type Files interface {
	Read(ctx context.Context, w writ.Workspace, path string, offset, limit int64) (writ.FileWindow, error)
	Find(ctx context.Context, w writ.Workspace, q writ.FileQuery) (writ.FileListing, error)
	// Plan is what a patch would do now. It changes nothing.
	Plan(ctx context.Context, w writ.Workspace, req writ.PatchRequest) (writ.PatchPlan, error)
	// Patch carries req out at most once under one id. When bound is not empty, only what
	// a plan of that digest says is done.
	Patch(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error)
	// Recover says how the patches ended that are not forgotten.
	Recover(ctx context.Context) ([]writ.Settlement, error)
	// Forget drops what is known of a patch whose outcome is recorded.
	Forget(ctx context.Context, id writ.OperationID) error
}

// Workspaces is the one path for the tools of workspaces: reading, and patches with
// their holds and their ledger (spec/02). It is safe for concurrent use. Close it
// before its gateway.
type Workspaces struct {
	*workbench
	registry *workspace.Registry
}

// workbench is what all views of the workspaces share.
type workbench struct {
	g         *Gateway
	files     Files
	processes Processes
	limits    writ.Limits // of each process; every field set
	leases    workspace.Leases
	procs     processTable
	reads     readLog

	mu     sync.Mutex
	closed bool            // guarded by mu; once true, work only falls
	work   sync.WaitGroup  // added to under mu while not closed
	live   map[string]bool // guarded by mu; operations and approvals that a call is carrying out
}

// Parts are what does the work that Workspaces decides about. All are required.
type Parts struct {
	Files     Files
	Processes Processes
	Limits    writ.Limits // of each process; every field set
}

// NewWorkspaces is the way to the workspaces of registry, decided and recorded by g.
// Call Sweep once before anything else, to settle what an earlier process left, and
// Watch to hear of the ends of processes.
func NewWorkspaces(g *Gateway, p Parts, registry *workspace.Registry) *Workspaces {
	return &Workspaces{registry: registry, workbench: &workbench{
		g: g, files: p.Files, processes: p.Processes, limits: p.Limits, live: map[string]bool{}, reads: readLog{g: g},
	}}
}

// With is the same with other workspaces: leases, ledger and holds are shared. A
// session that may work in a folder of its own gets one.
func (w *Workspaces) With(r *workspace.Registry) *Workspaces {
	return &Workspaces{workbench: w.workbench, registry: r}
}

// Registry is the workspaces that there are here.
func (w *Workspaces) Registry() *workspace.Registry { return w.registry }

// Close lets nothing new begin, waits for what is under way, and records what was
// read. When ctx ends first, what is under way is left to its own end: what it did is
// settled at the next start.
func (w *Workspaces) Close(ctx context.Context) {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	done := make(chan struct{})
	go func() { w.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
	}
	w.reads.close()
}

// enter counts a call; leave must follow.
func (b *workbench) enter() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return &writ.Error{Kind: writ.Unavailable, Op: "work on workspace", Msg: "the server is stopping: try again later"}
	}
	b.work.Add(1)
	return nil
}

func (b *workbench) leave() { b.work.Done() }

// take makes the caller the only one who carries the named thing out; drop ends that.
func (b *workbench) take(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.live[name] {
		return false
	}
	b.live[name] = true
	return true
}

func (b *workbench) drop(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, name)
}

func (b *workbench) carriesOut(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.live[name]
}

// Workspaces are those that who may see, by id.
func (w *Workspaces) Workspaces(who writ.Principal) []writ.Workspace { return w.registry.List(who) }

// Workspace is one of them, or WORKSPACE_NOT_FOUND.
func (w *Workspaces) Workspace(who writ.Principal, id writ.WorkspaceID) (writ.Workspace, error) {
	return w.registry.Get(who, id)
}

// The codes of spec/02 §5.14 that this package gives.
const (
	codeUnauthorized      = "UNAUTHORIZED"
	codeInvalidPatch      = "INVALID_PATCH"
	codeKeyConflict       = "OPERATION_KEY_CONFLICT"
	codeOperationNotFound = "OPERATION_NOT_FOUND"
	codeApprovalRequired  = "APPROVAL_REQUIRED"
	codeApprovalNotFound  = "APPROVAL_NOT_FOUND"
	codeApprovalConflict  = "APPROVAL_CONFLICT"
	codeApprovalAmbiguous = "APPROVAL_AMBIGUOUS"
	codeInternal          = "INTERNAL"
)

// scopes are what a registered identity needs for an action.
var scopes = map[writ.Action]writ.Scope{
	writ.ActionRead: writ.ScopeRead, writ.ActionPatch: writ.ScopePatch,
	writ.ActionExec: writ.ScopeExec, writ.ActionInput: writ.ScopeExec,
}

// decide answers whether who may do action in ws, with the files that it names.
func (w *Workspaces) decide(who writ.Principal, ws writ.Workspace, action writ.Action, paths []string) writ.Decision {
	return w.ask(who, ws, action, func(rules *policy.Set, r policy.Request) writ.Decision {
		r.Workspace.Paths = paths
		return rules.Decide(r)
	})
}

// ask decides in the order of spec/01 §2 rule 5: what the workspace allows at all,
// identity, scope, policy. Nothing that a client claims counts (spec/02 §4).
func (w *Workspaces) ask(who writ.Principal, ws writ.Workspace, action writ.Action, rule func(*policy.Set, policy.Request) writ.Decision) writ.Decision {
	rules := w.g.rules.Load()
	deny := func(format string, args ...any) writ.Decision {
		return writ.Decision{Effect: writ.Deny, Reason: fmt.Sprintf(format, args...), Policy: rules.Version()}
	}
	if ws.EnvironmentKind != writ.EnvironmentHost {
		return deny("workspace %s is in an environment of kind %q, in which nothing can be done yet", ws.ID, ws.EnvironmentKind)
	}
	if action != writ.ActionRead && ws.Profile != writ.WorkspaceWrite {
		return deny("workspace %s is read-only: an operator's configuration says so, and no approval changes that", ws.ID)
	}
	as, scope := who, scopes[action]
	if who.Kind == writ.KindAgent {
		id, known := w.g.identities[writ.IdentityID(who.ID)]
		switch {
		case !known || id.Tenant != who.Tenant:
			return deny("identity %q is not registered", who.ID)
		case !slices.Contains(id.Scopes, scope):
			return deny("identity %q has no scope %q, which this needs", who.ID, scope)
		}
		as = id.Principal()
	}
	return rule(rules, policy.Request{
		Principal: as, Requester: who, Action: action, Scope: scope,
		Workspace: policy.WorkspaceFacts{Workspace: ws}, Now: writ.Now(),
	})
}

// refuse records that who was turned down, and answers why.
func (w *Workspaces) refuse(ctx context.Context, who writ.Principal, ws writ.Workspace, action writ.Action, paths []string, d writ.Decision) error {
	cause := &writ.Error{Kind: writ.Denied, Code: codeUnauthorized, Op: string(action), Msg: d.Reason}
	return w.recordRefusal(ctx, who, ws, writ.EventData{
		Action: action, Paths: bounded(paths), ErrorCode: cause.Code,
		Effect: d.Effect, Rules: d.Rules, Policy: d.Policy, Reason: cut(d.Reason, maxReason),
	}, cause)
}

// recordRefusal records d unless its caller had enough recorded in this minute, and
// answers cause, or why it could not be recorded.
func (w *Workspaces) recordRefusal(ctx context.Context, who writ.Principal, ws writ.Workspace, d writ.EventData, cause error) error {
	dropped, due := w.g.refusals.Due(who.Ref().String(), writ.Now())
	if !due {
		return cause
	}
	d.Workspace, d.Count = ws.ID, dropped
	err := w.g.recordAlone(ctx, writ.Event{Type: writ.EventWorkspaceRefused, Tenant: ws.Tenant, Actor: who.Ref(), Data: d})
	if err != nil {
		return err
	}
	return cause
}

// Bounds of the paths and the changes that one record names.
const (
	maxPaths   = 100
	maxPath    = 512
	maxChanges = 500
)

func bounded(paths []string) []string {
	out := make([]string, 0, min(len(paths), maxPaths))
	for _, p := range paths[:min(len(paths), maxPaths)] {
		out = append(out, cut(p, maxPath))
	}
	return out
}

// identityOf is whose a thing is that who asks for. What the owner of the data folder
// asks for belongs to no identity.
func identityOf(who writ.Principal) writ.IdentityID {
	if who.Kind == writ.KindAgent {
		return writ.IdentityID(who.ID)
	}
	return ""
}
