package testkit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"writ"
	"writ/gateway"
	"writ/runner"
	"writ/sandbox"
	"writ/sandbox/jail"
	"writ/store"
	"writ/workspace"
)

// WorkspacePolicy lets identities and the owner of the data folder use the tools of
// workspaces, as the policy does that writ starts with.
const WorkspacePolicy = `@id("tools")
permit (principal, action in [Action::"read", Action::"patch", Action::"exec", Action::"input"], resource is Workspace)
when { principal is Identity || principal is Local };
`

// Workshop is a System with the tools of workspaces on real files.
type Workshop struct {
	*System
	Tools *gateway.Workspaces
	Files *FaultyFiles // what Tools calls
	// Processes are what Tools starts commands with: those of a runner, in real boxes.
	Processes *FaultyProcesses

	workspaces []writ.Workspace
	stopRunner func() // ends the processes; nil when there are none yet
	close      func() // of what openTools opened
}

// Workspaces starts a Workshop on a System that adjust has changed. Beside the
// identities of Gateway it knows mate (acme, read and patch), reader (acme, read) and,
// with the scopes read and patch too, coder of acme and guest of globex.
func Workspaces(t testing.TB, workspaces []writ.Workspace, adjust ...func(*GatewaySetup)) *Workshop {
	t.Helper()
	tools := func(g *GatewaySetup) {
		g.Policy = WorkspacePolicy
		for i, id := range g.Options.Identities {
			if len(id.Scopes) > 0 {
				g.Options.Identities[i].Scopes = append(slices.Clone(id.Scopes), writ.ScopeRead, writ.ScopePatch, writ.ScopeExec)
			}
		}
		g.Options.Identities = append(g.Options.Identities,
			writ.Identity{ID: "mate", Tenant: "acme", Scopes: []writ.Scope{writ.ScopeRead, writ.ScopePatch}},
			writ.Identity{ID: "reader", Tenant: "acme", Scopes: []writ.Scope{writ.ScopeRead}})
	}
	s := Gateway(t, append([]func(*GatewaySetup){tools}, adjust...)...)
	if s.Setup.State == "" {
		s.Setup.State = filepath.Join(t.TempDir(), "state")
	}
	w := &Workshop{System: s, Files: &FaultyFiles{}, Processes: &FaultyProcesses{}, workspaces: workspaces}
	w.openTools()
	return w
}

// openTools opens the files as a runner does that starts, and settles what is left.
func (w *Workshop) openTools() {
	w.t.Helper()
	ctx := context.Background()
	files, err := runner.OpenFiles(ctx, runner.FilesOptions{State: w.Setup.State})
	if err != nil {
		w.t.Fatal(err)
	}
	registry, err := workspace.NewRegistry(w.workspaces, w.Setup.State)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Files.put(files)
	if w.stopRunner == nil {
		w.startRunner()
	}
	limits, _ := w.Setup.Processes.Within(writ.DefaultLimits, writ.MaxLimits)
	tools := gateway.NewWorkspaces(w.Gateway, gateway.Parts{Files: w.Files, Processes: w.Processes, Limits: limits}, registry)
	w.Tools = tools
	watching, endWatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	stopWatch := func() { endWatch(); watch.Wait() }
	closed := false
	w.close = func() {
		if closed {
			return
		}
		closed = true
		stopWatch()
		tools.Close(ctx)
		if !w.Setup.Apart {
			w.StopRunner()
		}
		if err := files.Close(); err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(w.close)
	if err := tools.Sweep(ctx, true); err != nil {
		w.t.Fatal(err)
	}
	watch.Go(func() { tools.Watch(watching) })
}

// startRunner makes a manager of processes over the real sandbox. The test's binary
// must begin with Jail.
func (w *Workshop) startRunner() {
	w.t.Helper()
	boxes, err := sandbox.New(sandbox.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	processes := runner.NewProcesses(boxes, runner.ProcessesOptions{Live: w.Setup.Live})
	w.Processes.put(processes)
	w.stopRunner = func() {
		if err := errors.Join(processes.Close(context.Background()), boxes.Close()); err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(w.StopRunner)
}

// StopRunner ends the processes as their runner does that stops: the next that the tools
// are opened with know nothing of them.
func (w *Workshop) StopRunner() {
	if w.stopRunner != nil {
		w.stopRunner()
	}
	w.stopRunner = nil
}

// NextRunner is StopRunner, and another in its place.
func (w *Workshop) NextRunner() {
	w.t.Helper()
	w.StopRunner()
	w.startRunner()
}

// Jail is what a test's binary must call first that starts boxes: inside one it is only
// the init of the box.
func Jail() {
	if len(os.Args) > 1 && os.Args[1] == jail.Arg {
		jail.Main()
	}
}

// End stops the tools and then the System, as the end of the test does otherwise.
func (w *Workshop) End() {
	w.t.Helper()
	w.close()
	w.System.End()
}

// Restart stops everything in good order and starts it again, with other workspaces
// when there are any. What files and processes were told to do wrong they do no more.
func (w *Workshop) Restart(workspaces ...writ.Workspace) {
	w.t.Helper()
	w.close()
	if len(workspaces) > 0 {
		w.workspaces = workspaces
	}
	w.Files.Mend()
	w.Processes.Mend()
	w.System.Restart()
	w.openTools()
}

// Crashed is a Workshop on a copy of what is on the disk now, as after a crash of the
// whole server, with workspaces as they are. w must do nothing more with its files: what
// it is in the middle of must hang.
func (w *Workshop) Crashed() *Workshop {
	w.t.Helper()
	next := &Workshop{System: w.System.Crashed(), Files: &FaultyFiles{}, Processes: &FaultyProcesses{}, workspaces: w.workspaces}
	if w.Setup.Apart {
		next.Processes.put(w.Processes.Real())
		next.stopRunner = func() {} // they are w's
	}
	next.openTools()
	return next
}

// Settle sweeps as a running server does from time to time.
func (w *Workshop) Settle() {
	w.t.Helper()
	if err := w.Tools.Sweep(context.Background(), false); err != nil {
		w.t.Fatal(err)
	}
}

// Ledger is the operation as it is stored.
func (w *Workshop) Ledger(id writ.OperationID) writ.Operation {
	w.t.Helper()
	return view(w.t, w.DB, func(ctx context.Context, tx *store.Tx) (writ.Operation, error) { return tx.Operation(ctx, id) })
}

// Operations are all that the ledger has, newest first.
func (w *Workshop) Operations() []writ.Operation {
	w.t.Helper()
	return view(w.t, w.DB, func(ctx context.Context, tx *store.Tx) ([]writ.Operation, error) {
		var all []writ.Operation
		f := writ.OperationFilter{Page: writ.Page{Limit: writ.MaxPage}}
		for {
			page, next, err := tx.Operations(ctx, f)
			if all = append(all, page...); err != nil || next == "" {
				return all, err
			}
			f.Page.Cursor = next
		}
	})
}

// Verdict is who's on a held patch, given what who is shown.
func (w *Workshop) Verdict(who writ.Principal, id writ.ApprovalID, v writ.Verdict, reason string) (writ.Approval, error) {
	seen, err := w.Approval(context.Background(), who, id)
	if err != nil {
		return writ.Approval{}, err
	}
	return w.Vote(context.Background(), who, id, writ.VoteRequest{Verdict: v, Reason: reason, Shown: seen.Shown})
}

// MustResolve has who grant a held patch, or deny it.
func (w *Workshop) MustResolve(who writ.Principal, id writ.ApprovalID, grant bool) writ.Approval {
	w.t.Helper()
	verdict := writ.Grant
	if !grant {
		verdict = writ.Refuse
	}
	a, err := w.Verdict(who, id, verdict, "")
	if err != nil {
		w.t.Fatalf("%s by %s: %v", verdict, who.Ref(), err)
	}
	return a
}

// Journals are the patches of which the files still have a journal.
func (w *Workshop) Journals() []string {
	w.t.Helper()
	list, err := os.ReadDir(filepath.Join(w.Setup.State, "journals"))
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []string
	for _, e := range list {
		if id, ok := strings.CutSuffix(e.Name(), ".journal"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// Workspace is a workspace of tenant acme in a new folder with these files, changed by
// adjust.
func Workspace(t testing.TB, id writ.WorkspaceID, content map[string]string, adjust ...func(*writ.Workspace)) writ.Workspace {
	t.Helper()
	ws := WorkspaceAt(t.TempDir())
	ws.ID, ws.Tenant = id, "acme"
	PutFiles(t, ws.Root, content)
	for _, a := range adjust {
		a(&ws)
	}
	return ws
}

// Sibling is another gateway on the same store, with files of its own beneath the same
// roots, as a second server would have them. It is closed before w.
func (w *Workshop) Sibling(owner string) *Workshop {
	w.t.Helper()
	next := &Workshop{System: w.System.Sibling(owner), Files: &FaultyFiles{}, Processes: &FaultyProcesses{}, workspaces: w.workspaces}
	next.Setup.State = filepath.Join(w.t.TempDir(), "state")
	next.openTools()
	return next
}

// Resume carries out a held patch.
func (w *Workshop) Resume(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.Approval, writ.Operation, error) {
	r, err := w.Tools.Resume(ctx, who, id)
	if r.Operation == nil {
		return r.Approval, writ.Operation{}, err
	}
	return r.Approval, *r.Operation, err
}

// CreateApproval holds a patch before it is sent.
func (w *Workshop) CreateApproval(ctx context.Context, who writ.Principal, req writ.PatchRequest) (writ.Approval, error) {
	return w.Tools.CreateApproval(ctx, who, writ.ToolCall{Patch: &req})
}

// StoredProcess is the process as it is stored.
func (w *Workshop) StoredProcess(id writ.ProcessID) writ.Process {
	w.t.Helper()
	return view(w.t, w.DB, func(ctx context.Context, tx *store.Tx) (writ.Process, error) { return tx.Process(ctx, id) })
}

// StoredProcesses are all that are stored, newest first.
func (w *Workshop) StoredProcesses() []writ.Process {
	w.t.Helper()
	return view(w.t, w.DB, func(ctx context.Context, tx *store.Tx) ([]writ.Process, error) {
		list, _, err := tx.Processes(ctx, writ.ProcessFilter{Page: writ.Page{Limit: writ.MaxPage}})
		return list, err
	})
}
