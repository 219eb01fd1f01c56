package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
)

func TestScenario49_50_PathsThatLeadOut(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	outside := filepath.Join(filepath.Dir(ws.Root), "escape.txt")
	for _, name := range []string{"../escape.txt", "a/../../escape.txt", outside, filepath.Join(ws.Root, "new"), "/etc/writ-test"} {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(add(name, "x")...))
		wantCode(t, name, err, "PATH_ESCAPE")
		op := s.Ledger(operationOf(err))
		if op.Result.Status != writ.PatchRejected || op.Code != "PATH_ESCAPE" || op.Finished == nil {
			t.Errorf("%s: the ledger has %s with %q", name, op.Result.Status, op.Code)
		}
	}
	if _, err := os.Stat(outside); err == nil {
		t.Error("a file outside was made")
	}
	wantDisk(t, ws, map[string]string{"a": "1\n"})
}

func TestScenario51_FS09_ThroughLinks(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	target := t.TempDir()
	testkit.PutFiles(t, target, map[string]string{"secret": "old\n"})
	for name, to := range map[string]string{"file": filepath.Join(target, "secret"), "dir": target, "chain": "dir"} {
		if err := os.Symlink(to, filepath.Join(ws.Root, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, lines := range map[string][]string{
		"edit a link":           edit("file", "old", "new"),
		"add beneath a link":    add("dir/new", "x"),
		"edit beneath a link":   edit("dir/secret", "old", "new"),
		"through two links":     add("chain/new", "x"),
		"delete a link":         {"*** Delete File: file"},
		"move beneath a link":   {"*** Update File: a", "*** Move to: dir/a", "@@", "-1", "+2"},
		"move out of the link":  {"*** Update File: dir/secret", "*** Move to: b", "@@", "-old", "+new"},
		"delete beneath a link": {"*** Delete File: dir/secret"},
	} {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(lines...))
		wantCode(t, name, err, "SYMLINK_REJECTED")
	}
	for _, name := range []string{"file", "dir/secret", "chain/secret"} {
		_, err := s.Tools.Read(t.Context(), s.Agent("coder"), "app", name, 0, 10)
		wantCode(t, "read "+name, err, "SYMLINK_REJECTED")
	}
	if d := cmp.Diff(map[string]string{"secret": "old\n"}, testkit.FilesBeneath(t, target)); d != "" {
		t.Errorf("the target (-want +got):\n%s", d)
	}
	wantDisk(t, ws, map[string]string{"a": "1\n"})
}

// A path is compared name by name, and taken literally.
func TestFS10_FS11_SpellingsOfPaths(t *testing.T) {
	s, ws := app(t, nil, nil)
	evil := ws.Root + "-evil"
	if err := os.Mkdir(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(evil)
	_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(add("../"+filepath.Base(evil)+"/x", "x")...))
	wantCode(t, "a folder whose name begins as the root's", err, "PATH_ESCAPE")
	for _, name := range []string{"nul\x00", `back\slash`} {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(add(name, "x")...))
		wantCode(t, fmt.Sprintf("%q", name), err, "PATH_ESCAPE")
	}
	want := map[string]string{}
	for _, name := range []string{"%2e%2e/x", "..%2fx", "~", "C:", "a／b", "．．"} {
		mustPatch(t, s, s.Agent("coder"), change(add(name, "x")...), writ.PatchApplied)
		want[name] = "x\n"
	}
	mustPatch(t, s, s.Agent("coder"), change(add("./d//e/../f", "x")...), writ.PatchApplied)
	want["d/f"] = "x\n"
	wantDisk(t, ws, want)
	if left := testkit.FilesBeneath(t, evil); len(left) > 0 {
		t.Errorf("beside the root: %v", left)
	}
}

func TestScenario52_CheckOnlyChangesNothing(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n", "b": "x\n"}, nil)
	before, err := os.Stat(filepath.Join(ws.Root, "a"))
	if err != nil {
		t.Fatal(err)
	}
	req := change(slices.Concat(edit("a", "1", "2"), add("new/c", "c"), []string{"*** Delete File: b"})...)
	req.CheckOnly = true
	op := mustPatch(t, s, s.Agent("coder"), req, writ.PatchChecked)
	wantDisk(t, ws, map[string]string{"a": "1\n", "b": "x\n"})
	after, err := os.Stat(filepath.Join(ws.Root, "a"))
	if err != nil || !after.ModTime().Equal(before.ModTime()) || !os.SameFile(before, after) {
		t.Errorf("the file was touched: %v", err)
	}
	if !op.CheckOnly || len(op.Result.Changes) != 3 {
		t.Errorf("%+v", op)
	}
	for _, c := range op.Result.Changes {
		if c.After != "" {
			t.Errorf("a check says what %s is after it", c.Path)
		}
	}
	if s.Journals() != nil {
		t.Errorf("a check has a journal")
	}
	// The same as a patch is another request.
	req.CheckOnly = false
	mustPatch(t, s, s.Agent("coder"), req, writ.PatchApplied)
}

func TestScenario53_AP25_SecondFileDoesNotFit(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n", "b": "other\n"}, nil)
	_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(slices.Concat(edit("a", "1", "2"), edit("b", "1", "2"))...))
	wantCode(t, "the patch", err, "INVALID_PATCH")
	if op := s.Ledger(operationOf(err)); op.Result.Status != writ.PatchRejected || op.Finished == nil {
		t.Errorf("the ledger has %+v", op)
	}
	wantDisk(t, ws, map[string]string{"a": "1\n", "b": "other\n"})
}

func TestScenario54_55_ExpectedVersions(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n", "guard": "g\n"}, nil)
	for name, tt := range map[string]struct {
		lines    []string
		expected map[string]string
		want     string
	}{
		"wrong hash":            {edit("a", "1", "2"), map[string]string{"a": version("0\n")}, "VERSION_CONFLICT"},
		"of a file not patched": {edit("a", "1", "2"), map[string]string{"guard": version("0\n")}, "VERSION_CONFLICT"},
		"absent and there":      {edit("a", "1", "2"), map[string]string{"guard": "absent"}, "VERSION_CONFLICT"},
		"there and absent":      {add("b", "2"), map[string]string{"b": version("2\n")}, "VERSION_CONFLICT"},
		"a path that leads out": {edit("a", "1", "2"), map[string]string{"../x": "absent"}, "PATH_ESCAPE"},
	} {
		req := change(tt.lines...)
		req.Expected = tt.expected
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req)
		wantCode(t, name, err, tt.want)
		if operationOf(err) == "" {
			t.Errorf("%s: the error names no operation: %v", name, err)
		}
	}
	wantDisk(t, ws, map[string]string{"a": "1\n", "guard": "g\n"})
	req := change(slices.Concat(edit("a", "1", "2"), add("b", "new"))...)
	req.Expected = map[string]string{"a": version("1\n"), "b": "absent", "guard": version("g\n")}
	mustPatch(t, s, s.Agent("coder"), req, writ.PatchApplied)
	wantDisk(t, ws, map[string]string{"a": "2\n", "b": "new\n", "guard": "g\n"})
}

func TestScenario56_57_58_Keys(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, ws := app(t, map[string]string{"a": "1\n"}, nil, on)
		ctx, coder := t.Context(), s.Agent("coder")
		req := keyed("k", edit("a", "1", "2")...)
		first := mustPatch(t, s, coder, req, writ.PatchApplied)

		op, replayed, err := s.Tools.Patch(ctx, coder, req)
		if d := cmp.Diff(first, op); d != "" || !replayed || err != nil || s.Files.Calls("Patch") != 1 {
			t.Errorf("replayed %v, %v, %d calls\n%s", replayed, err, s.Files.Calls("Patch"), d)
		}
		// 57, 58: other content, a check of the same, another's.
		other := keyed("k", edit("a", "2", "3")...)
		check := req
		check.CheckOnly = true
		for name, tt := range map[string]struct {
			who writ.Principal
			req writ.PatchRequest
		}{"other content": {coder, other}, "a check": {coder, check}, "somebody else's": {s.Agent("mate"), req}} {
			op, _, err := s.Tools.Patch(ctx, tt.who, tt.req)
			wantCode(t, name, err, "OPERATION_KEY_CONFLICT")
			if operationOf(err) != "" || op.ID != "" {
				t.Errorf("%s: the error names operation %s", name, operationOf(err))
			}
		}
		// A preview and the patch need different keys.
		preview := keyed("preview", edit("a", "2", "3")...)
		preview.CheckOnly = true
		mustPatch(t, s, coder, preview, writ.PatchChecked)
		preview.CheckOnly = false
		_, _, err = s.Tools.Patch(ctx, coder, preview)
		wantCode(t, "the patch under the key of its preview", err, "OPERATION_KEY_CONFLICT")
		if n := len(s.Operations()); n != 2 {
			t.Errorf("%d operations", n)
		}
		wantDisk(t, ws, map[string]string{"a": "2\n"})
	})
}

// A key is of one workspace: spec/02 §16 item 18 has it over all of them.
func TestKeysAreOfAWorkspace(t *testing.T) {
	one, two := testkit.Workspace(t, "one", nil), testkit.Workspace(t, "two", nil)
	s := testkit.Workspaces(t, []writ.Workspace{one, two})
	for _, id := range []writ.WorkspaceID{"one", "two"} {
		req := keyed("k", add("a", string(id))...)
		req.Workspace = id
		mustPatch(t, s, s.Agent("coder"), req, writ.PatchApplied)
	}
	_, err := s.Tools.Operation(t.Context(), s.Agent("coder"), "", "k")
	wantCode(t, "a key of two operations", err, "OPERATION_KEY_CONFLICT")
	for _, op := range s.Operations() {
		if !strings.Contains(writ.Message(err), string(op.ID)) {
			t.Errorf("%q does not name %s", writ.Message(err), op.ID)
		}
	}
}

func TestScenario56_TheSameKeyAtOneMoment(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, ws := app(t, map[string]string{"n": "0\n"}, nil, on)
		for round := range 10 {
			req := keyed(fmt.Sprint("k", round), edit("n", fmt.Sprint(round), fmt.Sprint(round+1))...)
			var ops [8]writ.Operation
			var again [8]bool
			together(8, func(i int) {
				var err error
				if ops[i], again[i], err = s.Tools.Patch(context.Background(), s.Agent("coder"), req); err != nil {
					t.Error(err)
				}
			})
			fresh := 0
			for i := range ops {
				if !again[i] {
					fresh++
				}
				if ops[i].ID != ops[0].ID || ops[i].Result.Status != writ.PatchApplied {
					t.Errorf("round %d: %s is %s", round, ops[i].ID, ops[i].Result.Status)
				}
			}
			if fresh != 1 {
				t.Errorf("round %d: %d were carried out", round, fresh)
			}
		}
		wantDisk(t, ws, map[string]string{"n": "10\n"})
	})
}

func TestScenario59_OperationsThatAreNotThere(t *testing.T) {
	s, _ := app(t, nil, nil)
	op := mustPatch(t, s, s.Agent("coder"), keyed("k", add("a", "1")...), writ.PatchApplied)
	for name, ask := range map[string]struct {
		id  writ.OperationID
		key string
	}{"unknown id": {"op-none", ""}, "unknown key": {"", "none"}, "neither": {"", ""}, "hostile": {"' OR 1=1 --", ""}} {
		got, err := s.Tools.Operation(t.Context(), s.Agent("coder"), ask.id, ask.key)
		wantCode(t, name, err, "OPERATION_NOT_FOUND")
		if got.ID != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for name, ask := range map[string]struct {
		id  writ.OperationID
		key string
	}{"by id": {op.ID, ""}, "by key": {"", "k"}} {
		got, err := s.Tools.Operation(t.Context(), s.Agent("coder"), ask.id, ask.key)
		if d := cmp.Diff(op, got); d != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, d)
		}
	}
}

// Weaknesses 14 and 16 of spec/02: a store that does not answer is not an operation that
// is not there.
func TestOperationOfABrokenStore(t *testing.T) {
	s, _ := app(t, nil, nil)
	op := mustPatch(t, s, s.Agent("coder"), keyed("k", add("a", "1")...), writ.PatchApplied)
	direct(t, s.System, `ALTER TABLE operations RENAME TO gone`)
	defer direct(t, s.System, `ALTER TABLE gone RENAME TO operations`)
	for _, ask := range []struct {
		id  writ.OperationID
		key string
	}{{op.ID, ""}, {"", "k"}} {
		if _, err := s.Tools.Operation(t.Context(), s.Agent("coder"), ask.id, ask.key); writ.KindOf(err) != writ.Internal {
			t.Errorf("%v of kind %v", err, writ.KindOf(err))
		}
	}
}

// A patch that cannot be carried to its end is never applied, and the files are as
// before.
func TestScenario61_RolledBack(t *testing.T) {
	s, ws := app(t, map[string]string{"keep.txt": "keep\n", "sub/a": "1\n"}, nil)
	// The second file cannot be made: its folder may not be written, also by root.
	dir := filepath.Join(ws.Root, "full")
	mountFull(t, dir)
	text := strings.Repeat("+"+strings.Repeat("x", 1000)+"\n", 200)
	req := keyed("k", slices.Concat(edit("sub/a", "1", "2"), []string{"*** Add File: full/big", strings.TrimSuffix(text, "\n")})...)
	op, replayed, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req)
	if err != nil || replayed || op.Result.Status != writ.PatchRolledBack || op.Result.Reason == "" {
		t.Fatalf("%s (%s), %v", op.Result.Status, op.Result.Reason, err)
	}
	wantLedger(t, s, op)
	wantDisk(t, ws, map[string]string{"keep.txt": "keep\n", "sub/a": "1\n"})
	if got, again, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req); err != nil || !again || got.ID != op.ID {
		t.Errorf("sent again: %s, replayed %v, %v", got.ID, again, err)
	}
	if left := s.Journals(); left != nil {
		t.Errorf("journals are left: %v", left)
	}
}

func TestScenario62_TheAnswerIsLost(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	s.Files.Answer(func(writ.PatchResult, error) (writ.PatchResult, error) {
		return writ.PatchResult{Status: writ.PatchUnknown, Reason: "contact with the runner was lost"}, nil
	})
	req := keyed("k", edit("a", "1", "2")...)
	op := mustPatch(t, s, s.Agent("coder"), req, writ.PatchUnknown)
	if op.Result.Reason == "" || op.Finished == nil {
		t.Errorf("%+v", op)
	}
	s.Files.Mend()
	got, replayed, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req)
	if err != nil || !replayed || got.ID != op.ID || got.Result.Status != writ.PatchUnknown || s.Files.Calls("Patch") != 1 {
		t.Errorf("sent again: %s of %s, replayed %v, %v", got.Result.Status, got.ID, replayed, err)
	}
	wantDisk(t, ws, map[string]string{"a": "2\n"}) // which is why it is unknown
	// What the ledger has stays, and the runner need not keep it for ever.
	s.Restart()
	if got := s.Ledger(op.ID); got.Result.Status != writ.PatchUnknown {
		t.Errorf("after a restart it is %s", got.Result.Status)
	}
	if left := s.Journals(); left != nil {
		t.Errorf("journals are left: %v", left)
	}
}

// Weakness 15 of spec/02: what never reached the runner is certain not to have happened.
func TestRunnerThatCannotBeReached(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	s.Files.Before("Patch", func(context.Context) error {
		return &writ.Error{Kind: writ.Unavailable, Code: "TIMEOUT", Op: "apply patch", Msg: "the runner cannot be reached, so nothing was done; try again later"}
	})
	op := mustPatch(t, s, s.Agent("coder"), keyed("k", edit("a", "1", "2")...), writ.PatchRolledBack)
	if len(op.Result.Changes) != 0 || !strings.Contains(op.Result.Reason, "nothing was changed") || op.Code != "" {
		t.Errorf("%+v", op)
	}
	wantDisk(t, ws, map[string]string{"a": "1\n"})
	s.Files.Mend()
	mustPatch(t, s, s.Agent("coder"), keyed("k2", edit("a", "1", "2")...), writ.PatchApplied)
}

func TestScenario63_POL14_ReadOnly(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, readOnly)
	for _, req := range []writ.PatchRequest{change(edit("a", "1", "2")...), {Workspace: "app", Patch: "no patch", CheckOnly: true}} {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req)
		wantCode(t, "patch", err, "UNAUTHORIZED")
		_, err = s.CreateApproval(t.Context(), s.Agent("coder"), req)
		wantCode(t, "create an approval", err, "UNAUTHORIZED")
	}
	if n := len(s.Operations()); n != 0 || s.Files.Calls("Patch")+s.Files.Calls("Plan") != 0 {
		t.Errorf("%d operations, %d calls", n, s.Files.Calls("Patch")+s.Files.Calls("Plan"))
	}
	if win, err := s.Tools.Read(t.Context(), s.Agent("coder"), "app", "a", 0, 10); err != nil || string(win.Content) != "1\n" {
		t.Errorf("read: %q, %v", win.Content, err)
	}
	wantDisk(t, ws, map[string]string{"a": "1\n"})
}

func TestScenario64_ContainerEnvironment(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, func(w *writ.Workspace) { w.EnvironmentKind = writ.EnvironmentContainer })
	_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(edit("a", "1", "2")...))
	wantCode(t, "patch", err, "UNAUTHORIZED")
	_, err2 := s.Tools.Read(t.Context(), s.Agent("coder"), "app", "a", 0, 10)
	wantCode(t, "read", err2, "UNAUTHORIZED")
	_, err3 := s.Tools.Find(t.Context(), s.Agent("coder"), "app", writ.FileQuery{Limit: 10})
	wantCode(t, "find", err3, "UNAUTHORIZED")
	if operationOf(err) != "" || len(s.Operations()) != 0 {
		t.Error("there is an operation")
	}
}

// Nothing watches the files: the version that was read is the guard.
func TestScenario65_EditBetweenReadAndPatch(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\nx\n"}, nil)
	win, err := s.Tools.Read(t.Context(), s.Agent("coder"), "app", "a", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	testkit.PutFiles(t, ws.Root, map[string]string{"a": "1\ny\n"})
	req := change(edit("a", "1", "2")...)
	req.Expected = map[string]string{"a": win.Version}
	_, _, err = s.Tools.Patch(t.Context(), s.Agent("coder"), req)
	wantCode(t, "the patch", err, "VERSION_CONFLICT")
	wantDisk(t, ws, map[string]string{"a": "1\ny\n"})
}

// What the runner says is believed only as far as it makes sense. That hashes are what
// is on the disk is the runner's own check: TestScenario66 of package files.
func TestScenario66_ReportThatMakesNoSense(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, nil)
	for i, status := range []writ.PatchStatus{"", "done", "APPLIED"} {
		s.Files.Answer(func(r writ.PatchResult, err error) (writ.PatchResult, error) {
			r.Status = status
			return r, err
		})
		mustPatch(t, s, s.Agent("coder"), change(edit("a", fmt.Sprint(i+1), fmt.Sprint(i+2))...), writ.PatchUnknown)
	}
}

func TestFormOfAPatchRequest(t *testing.T) {
	s, _ := app(t, nil, nil)
	for name, tt := range map[string]struct {
		req  writ.PatchRequest
		want string
	}{
		"unknown workspace": {writ.PatchRequest{Workspace: "none"}, "WORKSPACE_NOT_FOUND"},
		"no workspace":      {writ.PatchRequest{}, "WORKSPACE_NOT_FOUND"},
		"long key":          {keyed(strings.Repeat("k", 10_000), add("a", "1")...), "INVALID_PATCH"},
		"key not UTF-8":     {keyed("\xff", add("a", "1")...), "INVALID_PATCH"},
	} {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), tt.req)
		wantCode(t, name, err, tt.want)
		if operationOf(err) != "" {
			t.Errorf("%s: there is an operation", name)
		}
	}
	for name, text := range map[string]string{"empty": "", "no frame": "bad", "no section": testkit.PatchText(), "not UTF-8": "*** Begin Patch\n\xff\n*** End Patch"} {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), writ.PatchRequest{Workspace: "app", Patch: text})
		wantCode(t, name, err, "INVALID_PATCH")
		if op := s.Ledger(operationOf(err)); op.Result.Status != writ.PatchRejected {
			t.Errorf("%s is %s", name, op.Result.Status)
		}
	}
}

// POL-12: a request that is cancelled has not happened, or is carried to its end.
func TestPOL12_CancelledPatch(t *testing.T) {
	t.Run("before the runner is called", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, nil)
		arrived, release := s.Files.Hangs("Patch")
		defer release()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan writ.Operation, 1)
		go func() {
			op, _, err := s.Tools.Patch(ctx, s.Agent("coder"), keyed("k", edit("a", "1", "2")...))
			if err != nil {
				t.Error(err)
			}
			ended <- op
		}()
		testkit.Receive(t, "the runner is called", arrived)
		cancel()
		op := testkit.Receive(t, "the call ends", ended)
		if op.Result.Status != writ.PatchRolledBack || !strings.Contains(op.Result.Reason, "cancelled") {
			t.Errorf("%+v", op.Result)
		}
		wantLedger(t, s, op)
		wantDisk(t, ws, map[string]string{"a": "1\n"})
	})
	t.Run("before it began", func(t *testing.T) {
		s, _ := app(t, nil, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := s.Tools.Patch(ctx, s.Agent("coder"), change(add("a", "1")...))
		if !errors.Is(err, context.Canceled) || len(s.Operations()) != 0 {
			t.Errorf("%v, %d operations", err, len(s.Operations()))
		}
	})
	t.Run("after the files changed", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		s.Files.Answer(func(r writ.PatchResult, err error) (writ.PatchResult, error) { cancel(); return r, err })
		op, _, err := s.Tools.Patch(ctx, s.Agent("coder"), change(edit("a", "1", "2")...))
		if err != nil || op.Result.Status != writ.PatchApplied {
			t.Errorf("%s, %v", op.Result.Status, err)
		}
		wantLedger(t, s, op)
		wantDisk(t, ws, map[string]string{"a": "2\n"})
	})
}
