package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/patch"
	"writ/workspace"
)

// change is a request to patch workspace app with these sections.
func change(lines ...string) writ.PatchRequest {
	return writ.PatchRequest{Workspace: "app", Patch: testkit.PatchText(lines...)}
}

// keyed is a request under a key.
func keyed(key string, lines ...string) writ.PatchRequest {
	req := change(lines...)
	req.Key = key
	return req
}

func add(name, text string) []string { return []string{"*** Add File: " + name, "+" + text} }

// edit changes a file of one line.
func edit(name, from, to string) []string {
	return []string{"*** Update File: " + name, "@@", "-" + from, "+" + to}
}

func version(text string) string { return patch.Version([]byte(text)) }

// confirm, review and readOnly adjust a workspace.
func confirm(w *writ.Workspace)  { w.Approvals = writ.ApprovalsConfirm }
func review(w *writ.Workspace)   { w.Approvals = writ.ApprovalsReview }
func readOnly(w *writ.Workspace) { w.Profile = writ.ReadOnly }

// app is a Workshop with one workspace of these files.
func app(t *testing.T, content map[string]string, adjust func(*writ.Workspace), on ...func(*testkit.GatewaySetup)) (*testkit.Workshop, writ.Workspace) {
	t.Helper()
	if adjust == nil {
		adjust = func(*writ.Workspace) {}
	}
	ws := testkit.Workspace(t, "app", content, adjust)
	return testkit.Workspaces(t, []writ.Workspace{ws}, on...), ws
}

func wantCode(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || writ.CodeOf(err) != want || writ.Message(err) == "internal error" {
		t.Errorf("%s: got error %v with code %q, want %s and words for a client", what, err, writ.CodeOf(err), want)
	}
}

func wantDisk(t *testing.T, ws writ.Workspace, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, testkit.FilesBeneath(t, ws.Root)); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

// operationOf is the operation that an error names, empty when it names none.
func operationOf(err error) writ.OperationID {
	if e, ok := errors.AsType[*writ.OperationError](err); ok {
		return e.Operation
	}
	return ""
}

// mustPatch is an operation that has come to this end.
func mustPatch(t *testing.T, s *testkit.Workshop, who writ.Principal, req writ.PatchRequest, want writ.PatchStatus) writ.Operation {
	t.Helper()
	op, replayed, err := s.Tools.Patch(context.Background(), who, req)
	if err != nil || replayed || op.Result.Status != want {
		t.Fatalf("patch is %q, replayed %v, %v; want %s", op.Result.Status, replayed, err, want)
	}
	wantLedger(t, s, op)
	return op
}

// wantLedger fails t if the ledger has op otherwise than it was answered.
func wantLedger(t *testing.T, s *testkit.Workshop, op writ.Operation) {
	t.Helper()
	if d := cmp.Diff(op, s.Ledger(op.ID)); d != "" || op.Finished == nil {
		t.Errorf("operation is not in the ledger as it was answered (-answered +stored):\n%s", d)
	}
}

// mustHold is the hold that answers a request.
func mustHold(t *testing.T, s *testkit.Workshop, who writ.Principal, req writ.PatchRequest) writ.Approval {
	t.Helper()
	op, replayed, err := s.Tools.Patch(context.Background(), who, req)
	h, ok := errors.AsType[*writ.Held](err)
	if !ok || replayed || op.ID != "" {
		t.Fatalf("operation %q, replayed %v, %v; want a hold", op.ID, replayed, err)
	}
	wantCode(t, "the hold", err, "APPROVAL_REQUIRED")
	return s.StoredApproval(h.Approval)
}

// mustResume carries a granted hold out.
func mustResume(t *testing.T, s *testkit.Workshop, who writ.Principal, id writ.ApprovalID, want writ.PatchStatus) writ.Operation {
	t.Helper()
	a, op, err := s.Resume(context.Background(), who, id)
	if err != nil || a.State != writ.ApprovalConsumed || op.Result.Status != want || op.Approval != id {
		t.Fatalf("resumed: approval %s, operation %s of %q, %v; want %s", a.State, op.Result.Status, op.Approval, err, want)
	}
	wantLedger(t, s, op)
	return op
}

// shape is an event in one line: its type and what it is about.
func shape(e writ.Event) string {
	s := string(e.Type)
	for _, f := range []struct {
		name  string
		value any
	}{
		{"effect", e.Data.Effect}, {"status", e.Data.Status}, {"patch", e.Data.Patch}, {"code", e.Data.ErrorCode},
		{"key", e.Data.Key}, {"paths", strings.Join(e.Data.Paths, ",")}, {"count", e.Data.Count},
	} {
		if v := fmt.Sprint(f.value); v != "" && v != "0" {
			s += " " + f.name + "=" + v
		}
	}
	if e.Actor.ID != "" {
		s += " by " + e.Actor.String()
	}
	return s
}

func wantShapes(t *testing.T, s *testkit.Workshop, want ...string) {
	t.Helper()
	var got []string
	for _, e := range s.Events("") {
		got = append(got, shape(e))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

// mountFull mounts a file system of a few pages at dir, which it makes.
func mountFull(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		testkit.Missing(t, "root", "a small file system cannot be mounted: "+err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// patched is how a call of Patch ended.
type patched struct {
	op       writ.Operation
	replayed bool
	err      error
}

// goPatchCtx calls Patch in the background; the channel gets its end.
func goPatchCtx(ctx context.Context, s *testkit.Workshop, who writ.Principal, req writ.PatchRequest) <-chan patched {
	done := make(chan patched, 1)
	go func() {
		op, replayed, err := s.Tools.Patch(ctx, who, req)
		done <- patched{op, replayed, err}
	}()
	return done
}

func goPatch(s *testkit.Workshop, who writ.Principal, req writ.PatchRequest) <-chan patched {
	return goPatchCtx(context.Background(), s, who, req)
}

// fillQueue has as many patches wait for the lease of app as may, while somebody holds
// it. stop ends them.
func fillQueue(t *testing.T, s *testkit.Workshop, who writ.Principal) (stop func()) {
	t.Helper()
	const over = 16
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan patched, workspace.MaxWaiters+over)
	for i := range cap(ended) {
		go func() { // ends with ctx
			op, replayed, err := s.Tools.Patch(ctx, who, change(add(fmt.Sprint("waits", i), "x")...))
			ended <- patched{op, replayed, err}
		}()
	}
	for range over {
		wantCode(t, "a waiter too many", testkit.Receive(t, "a waiter is refused", ended).err, "RESOURCE_QUEUE_FULL")
	}
	return func() {
		t.Helper()
		cancel()
		for range workspace.MaxWaiters {
			if p := testkit.Receive(t, "a waiter goes", ended); !errors.Is(p.err, context.Canceled) {
				t.Errorf("a waiter: %v", p.err)
			}
		}
	}
}

// waits waits until n calls wait for the lease of app, beside the one that has it. A
// call that waits has been decided and is in the ledger of nobody: what is to be seen of
// it is its goroutine.
func waits(t *testing.T, n int) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	testkit.Eventually(t, fmt.Sprintf("%d calls wait for the lease", n), func() bool {
		waiting := 0
		for _, g := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			// One that has called Acquire has its place in the order when it selects.
			state, calls, _ := strings.Cut(g, "\n")
			if strings.Contains(state, "[select") && strings.HasPrefix(calls, "writ/workspace.(*Leases).Acquire(") {
				waiting++
			}
		}
		return waiting == n
	})
}
