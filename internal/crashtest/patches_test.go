package crashtest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/client"
	"writ/internal/testkit"
)

// TestScenario60_124_CrashesWhilePatching kills a server, and its runner, under agents
// that change files in two workspaces, in one of which each change is held, and while
// some of it is taken back. What each is told in the end is what is on the disk, nothing
// is done twice, and nothing of a patch is left beside the files.
func TestScenario60_124_CrashesWhilePatching(t *testing.T) {
	d := testkit.NewDice(t)
	mark := fmt.Sprintf("patches-%x-", d.Next())
	roots := map[writ.WorkspaceID]string{"open": t.TempDir(), "asks": t.TempDir()}
	s := newServer(t, setup{slots: 1, queue: 4, workspaces: fmt.Sprintf(
		"{id: open, root: %q, profile: workspace-write}, {id: asks, root: %q, profile: workspace-write, approvals: confirm}", roots["open"], roots["asks"])})
	h := watch(t, s, mark)
	s.start()
	s.ready()
	owner := s.client()
	defer owner.Close()
	key, err := owner.CreateKey(t.Context(), writ.KeyRequest{Kind: writ.KindAgent, Subject: "bot"})
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	writing, rest := context.WithCancel(ctx)
	var authors []*author
	var work sync.WaitGroup
	defer work.Wait()
	defer stop()
	for i, ws := range []writ.WorkspaceID{"open", "open", "open", "asks", "asks"} {
		a := &author{
			tools: tools{s: s, key: writ.Secret(key.Token)}, owner: owner, d: d.Fork(), ends: map[string]int{},
			name: fmt.Sprint("a", i), workspace: ws, root: roots[ws],
		}
		a.putFiles()
		authors = append(authors, a)
		work.Go(func() { a.write(ctx, writing) })
	}

	n := max(count(t, "WRIT_CRASHES", 50)*3/5, 1)
	for i := range n {
		crash(t, s, h, d)
		if t.Failed() {
			t.Fatalf("after crash %d", i+1)
		}
		s.start()
		if !d.OneIn(6) { // else the next crash may fall into the start
			s.ready()
		}
	}
	s.ready()
	rest()
	work.Wait()

	ends := map[string]int{}
	for _, a := range authors {
		for end, n := range a.ends {
			ends[end] += n
		}
	}
	t.Logf("%d crashes; patches ended: %v", n, ends)
	for _, must := range []string{"applied", "undone"} {
		if ends[must] == 0 {
			t.Errorf("not one patch is %s: the load did not try what it is for", must)
		}
	}
	recorded(t, owner, ends)
	for _, dir := range []string{roots["open"], roots["asks"], s.data} {
		if left := leftovers(t, dir); len(left) > 0 {
			t.Errorf("patches have left %v", left)
		}
	}
	report, err := owner.Verify(t.Context(), nil)
	if err != nil || !report.OK {
		t.Errorf("the log does not verify: %+v, %v", report, err)
	}
	s.stop()
}

// author changes all its files with each patch, again and again. Only it and the server
// write them.
type author struct {
	tools
	owner     *client.Client // who takes patches back
	d         *testkit.Dice
	name      string
	workspace writ.WorkspaceID
	root      string

	version int            // that its files have
	ends    map[string]int // how its patches ended
}

// authorsFiles is how many files one patch changes.
const authorsFiles = 25

func (a *author) files() (names []string) {
	for i := range authorsFiles {
		names = append(names, fmt.Sprintf("%s/d%d/f%d", a.name, i%3, i))
	}
	return names
}

func version(n int) string { return fmt.Sprint("version ", n) }

func (a *author) putFiles() {
	content := map[string]string{}
	for _, name := range a.files() {
		content[name] = version(0) + "\n"
	}
	testkit.PutFiles(a.s.t, a.root, content)
}

// write sends patches, one after the other, until writing ends and it has done what the
// load is for; the last one it brings to its end, unless ctx does.
func (a *author) write(ctx, writing context.Context) {
	defer a.close()
	for n := 0; writing.Err() == nil || a.lacks("applied") || a.workspace == "open" && a.lacks("undone"); n++ {
		key := fmt.Sprintf("%s-%d", a.name, n)
		req := a.next(key)
		op, ok := a.patch(ctx, req)
		if !ok || !a.learn(ctx, op, a.version+1, "applied") {
			return
		}
		if op.Result.Status == writ.PatchApplied && a.workspace == "open" && a.d.OneIn(3) {
			undone, ok := a.undo(ctx, op.ID, key+"-undo")
			if !ok || !a.learn(ctx, undone, a.version-1, "undone") {
				return
			}
		}
		if a.d.OneIn(3) { // as if the answer had been lost: it is the same again
			if again, ok := a.patch(ctx, req); ok && again.ID != op.ID {
				a.s.t.Errorf("key %s named operation %s, and now %s", key, op.ID, again.ID)
			}
		}
		pause(writing, a.d.UpTo(100*time.Millisecond))
	}
}

func (a *author) lacks(end string) bool { return a.ends[end] == 0 }

// next is the patch to the next version.
func (a *author) next(key string) map[string]any {
	lines := []string{"*** Begin Patch"}
	for _, name := range a.files() {
		lines = append(lines, "*** Update File: "+name, "@@", "-"+version(a.version), "+"+version(a.version+1))
	}
	return map[string]any{"workspace_id": string(a.workspace), "operation_key": key, "patch": strings.Join(append(lines, "*** End Patch", ""), "\n")}
}

// patch sends a patch until it is known how that ended. ok is false when ctx ended first,
// or the answer made no sense.
func (a *author) patch(ctx context.Context, req map[string]any) (op writ.Operation, ok bool) {
	got, ok := a.call(ctx, "apply_patch", req)
	for ok && got.Code == "APPROVAL_REQUIRED" {
		got, ok = a.approve(ctx, got.Approval)
	}
	if !ok {
		return op, false
	}
	if got.Operation == "" {
		a.s.t.Errorf("patch %s is answered with %q: %s", req["operation_key"], got.Code, got.Message)
		return op, false
	}
	return a.ended(ctx, got.Operation)
}

// approve grants what is held, and carries it out.
func (a *author) approve(ctx context.Context, id writ.ApprovalID) (got answer, ok bool) {
	got, ok = a.call(ctx, "approval_resolve", map[string]any{"approval_id": string(id), "decision": "grant"})
	if ok && got.Code != "" && got.Code != "APPROVAL_CONFLICT" { // that is a grant whose answer was lost
		a.s.t.Errorf("grant of %s: %s: %s", id, got.Code, got.Message)
	}
	for deadline := time.Now().Add(patience); ok; {
		got, ok = a.call(ctx, "operation_resume", map[string]any{"approval_id": string(id)})
		if got.Code != "APPROVAL_CONFLICT" && got.Code != "APPROVAL_AMBIGUOUS" || time.Now().After(deadline) {
			break
		}
		ok = pause(ctx, patchRetry)
	}
	if got.Code == "" {
		got.Operation = got.Resumed.Operation
	}
	return got, ok
}

// undo takes an operation back.
func (a *author) undo(ctx context.Context, id writ.OperationID, key string) (op writ.Operation, ok bool) {
	for {
		op, err := a.owner.Undo(ctx, id, writ.UndoRequest{Key: key})
		switch {
		case err == nil:
			return a.ended(ctx, op.ID)
		case ctx.Err() == nil && writ.KindOf(err) != writ.Unavailable:
			a.s.t.Errorf("undo of %s: %v (%v)", id, err, writ.KindOf(err))
			return op, false
		}
		if !pause(ctx, patchRetry) {
			return op, false
		}
	}
}

// ended is the operation once it is finished.
func (a *author) ended(ctx context.Context, id writ.OperationID) (op writ.Operation, ok bool) {
	for deadline := time.Now().Add(patience); ; {
		op, err := a.owner.Operation(ctx, id)
		switch {
		case err == nil && op.Finished != nil:
			return op, true
		case err != nil && ctx.Err() == nil && writ.KindOf(err) != writ.Unavailable || time.Now().After(deadline):
			a.s.t.Errorf("operation %s is %s and not finished, %v", id, op.Result.Status, err)
			return op, false
		}
		if !pause(ctx, patchRetry) {
			return op, false
		}
	}
}

// learn holds how an operation ended against the files, which it would have brought to
// version next.
func (a *author) learn(ctx context.Context, op writ.Operation, next int, done string) bool {
	var want []int
	switch op.Result.Status {
	case writ.PatchApplied:
		want = []int{next}
		a.ends[done]++
	case writ.PatchRolledBack:
		want = []int{a.version}
		a.ends["rolled back"]++
	case writ.PatchUnknown: // the next runner brings it to one of the two
		want = []int{a.version, next}
		a.ends["unknown"]++
	default:
		a.s.t.Errorf("operation %s is %s: %s %s", op.ID, op.Result.Status, op.Message, op.Result.Reason)
		return false
	}
	for deadline := time.Now().Add(patience); ; {
		for _, v := range want {
			if a.has(v) {
				a.version = v
				return true
			}
		}
		if len(want) == 1 || time.Now().After(deadline) {
			a.s.t.Errorf("operation %s is %s, and the files are not of version %v: %v", op.ID, op.Result.Status, want, testkit.FilesBeneath(a.s.t, filepath.Join(a.root, a.name)))
			return false
		}
		if !pause(ctx, patchRetry) {
			return false
		}
	}
}

// has reports whether all files are of version v.
func (a *author) has(v int) bool {
	for _, name := range a.files() {
		b, err := os.ReadFile(filepath.Join(a.root, name))
		if err != nil || string(b) != version(v)+"\n" {
			return false
		}
	}
	return true
}

// recorded holds the ledger, the approvals and the log against what the authors learnt.
func recorded(t *testing.T, c *client.Client, ends map[string]int) {
	t.Helper()
	ctx := t.Context()
	ops := map[writ.OperationID]writ.Operation{}
	for f := (writ.OperationFilter{Page: writ.Page{Limit: writ.MaxPage}}); ; {
		page, next, err := c.Operations(ctx, f)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range page {
			ops[op.ID] = op
		}
		if f.Page.Cursor = next; next == "" {
			break
		}
	}
	learnt := 0
	for _, n := range ends {
		learnt += n
	}
	if len(ops) != learnt {
		t.Errorf("the ledger has %d operations, the authors know of %d", len(ops), learnt)
	}
	begun, over := map[writ.OperationID]int{}, map[writ.OperationID]int{}
	for _, e := range eventsByTask(t, ctx, newLoad(t, c, ""))[""] {
		switch e.Type {
		case writ.EventPatchStarted:
			begun[e.Data.Operation]++
		case writ.EventPatchFinished:
			over[e.Data.Operation]++
			if op := ops[e.Data.Operation]; op.Result.Status != e.Data.Patch {
				t.Errorf("operation %q is %s, and %s in the log", op.ID, op.Result.Status, e.Data.Patch)
			}
		}
	}
	for id, op := range ops {
		if begun[id] != 1 || over[id] != 1 || op.Finished == nil {
			t.Errorf("operation %s has %d beginnings and %d ends in the log, finished %v", id, begun[id], over[id], op.Finished)
		}
	}
	if len(begun) != len(ops) {
		t.Errorf("the log knows %d operations, the ledger %d", len(begun), len(ops))
	}
	for _, a := range newLoad(t, c, "").approvals(ctx)[""] {
		if op := ops[a.Call.Operation]; a.State != writ.ApprovalConsumed || op.Approval != a.ID {
			t.Errorf("approval %s is %s with operation %q", a.ID, a.State, a.Call.Operation)
		}
	}
}

// leftovers are what a patch sets aside in its workspace, and its journals.
func leftovers(t *testing.T, dir string) (left []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (strings.HasPrefix(d.Name(), ".writ-") || strings.HasSuffix(d.Name(), ".journal")) {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}
