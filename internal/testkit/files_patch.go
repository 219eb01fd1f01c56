package testkit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/patch"
	"writ/runner"
)

func filesOptions(t *testing.T, roots int) runner.FilesOptions {
	t.Helper()
	return runner.FilesOptions{State: filepath.Join(t.TempDir(), "state"), Roots: roots}
}

// request is a patch of these sections.
func request(w writ.Workspace, lines ...string) writ.PatchRequest {
	return writ.PatchRequest{Workspace: w.ID, Patch: PatchText(lines...)}
}

// PatchText wraps the sections of a patch.
func PatchText(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

func versionOf(text string) string { return patch.Version([]byte(text)) }

// eachKind changes a tree of the files "up", "del" and "from" in every way.
var eachKind = []string{
	"*** Add File: new/add", "+added",
	"*** Update File: up", "@@", "-old", "+new",
	"*** Delete File: del",
	"*** Update File: from", "*** Move to: to", "@@", " stays", "-x", "+y",
}

func kindsTree() map[string]string {
	return map[string]string{"up": "old\n", "del": "gone\n", "from": "stays\nx\n", "other": "same\n"}
}

func kindsAfter() map[string]string {
	return map[string]string{"new/add": "added\n", "up": "new\n", "to": "stays\ny\n", "other": "same\n"}
}

func kindsChanges() []writ.FileChange {
	return []writ.FileChange{
		{Path: "new/add", After: versionOf("added\n"), Kind: "add"},
		{Path: "up", Before: versionOf("old\n"), After: versionOf("new\n"), Kind: "update"},
		{Path: "del", Before: versionOf("gone\n"), Kind: "delete"},
		{Path: "from", Before: versionOf("stays\nx\n"), Kind: "delete"},
		{Path: "to", After: versionOf("stays\ny\n"), Kind: "move"},
	}
}

// sorted is changes by path: the order is package patch's to choose.
func sorted(changes []writ.FileChange) []writ.FileChange {
	return slices.SortedFunc(slices.Values(changes), func(a, b writ.FileChange) int { return strings.Compare(a.Path, b.Path) })
}

func wantFiles(t *testing.T, what string, w writ.Workspace, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, FilesBeneath(t, w.Root)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func (s filesSuite) plan(t *testing.T) {
	f, w := s.files(t), tree(t, kindsTree())
	plan, err := f.Plan(t.Context(), w, request(w, eachKind...))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sorted(kindsChanges()), sorted(plan.Changes)); d != "" || plan.Cut {
		t.Errorf("cut %v (-want +got):\n%s", plan.Cut, d)
	}
	for _, line := range []string{"-old\n", "+new\n", "rename to to\n", "+added\n"} {
		if !strings.Contains(plan.Diff, line) {
			t.Errorf("the diff lacks %q:\n%s", line, plan.Diff)
		}
	}
	wantFiles(t, "after a plan", w, kindsTree())
}

func (s filesSuite) longDiff(t *testing.T) {
	f, w := s.files(t), tree(t, nil)
	text := strings.Repeat("+"+strings.Repeat("é", 100)+"\n", 20_000)
	plan, err := f.Plan(t.Context(), w, request(w, "*** Add File: long", strings.TrimSuffix(text, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if !plan.Cut || len(plan.Diff) > 2<<20 || !utf8.ValidString(plan.Diff) {
		t.Errorf("a diff of %d bytes, cut %v", len(plan.Diff), plan.Cut)
	}
	if len(plan.Changes) != 1 {
		t.Errorf("changes %+v", plan.Changes)
	}
}

func (s filesSuite) checkOnly(t *testing.T) {
	f, w := s.files(t), tree(t, kindsTree())
	req := request(w, eachKind...)
	req.CheckOnly = true
	id := writ.NewOperationID()
	got, err := f.Patch(t.Context(), w, id, req, "")
	if err != nil {
		t.Fatal(err)
	}
	want := kindsChanges()
	for i := range want {
		want[i].After = ""
	}
	if d := cmp.Diff(sorted(want), sorted(got.Changes)); got.Status != writ.PatchChecked || d != "" {
		t.Errorf("status %s (-want +got):\n%s", got.Status, d)
	}
	wantFiles(t, "after a check", w, kindsTree())
	if all, err := f.Recover(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a check leaves %+v, %v", all, err)
	}
}

func (s filesSuite) patch(t *testing.T) {
	f, w := s.files(t), tree(t, kindsTree())
	got, err := f.Patch(t.Context(), w, writ.NewOperationID(), request(w, eachKind...), "")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(sorted(kindsChanges()), sorted(got.Changes)); got.Status != writ.PatchApplied || got.Reason != "" || d != "" {
		t.Errorf("status %s, reason %q (-want +got):\n%s", got.Status, got.Reason, d)
	}
	wantFiles(t, "after the patch", w, kindsAfter())
}

func (s filesSuite) versionConflict(t *testing.T) {
	f, w := s.files(t), tree(t, kindsTree())
	for _, expected := range []map[string]string{
		{"up": versionOf("other\n")}, {"other": "absent"}, {"none": versionOf("x")},
	} {
		req := request(w, eachKind...)
		req.Expected = expected
		_, err := f.Patch(t.Context(), w, writ.NewOperationID(), req, "")
		wantFault(t, fmt.Sprint(expected), err, writ.Conflict, "VERSION_CONFLICT")
	}
	wantFiles(t, "after conflicts", w, kindsTree())
	req := request(w, eachKind...)
	req.Expected = map[string]string{"up": versionOf("old\n"), "new/add": "absent"}
	if got, err := f.Patch(t.Context(), w, writ.NewOperationID(), req, ""); err != nil || got.Status != writ.PatchApplied {
		t.Errorf("expectations that hold: %+v, %v", got, err)
	}
}

func (s filesSuite) patchFaults(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "one\n", "dir/b": "two\n"})
	for _, c := range []struct {
		lines []string
		kind  writ.Kind
		code  string
	}{
		{[]string{"*** Frobnicate File: a"}, writ.Invalid, "INVALID_PATCH"},
		{[]string{"*** Update File: a", "@@", "-missing", "+x"}, writ.Invalid, "INVALID_PATCH"},
		{[]string{"*** Add File: a", "+x"}, writ.Conflict, "ADD_FILE_EXISTS"},
		{[]string{"*** Update File: a", "*** Move to: dir/b", "@@", " one"}, writ.Conflict, "MOVE_DESTINATION_EXISTS"},
		{[]string{"*** Delete File: none"}, writ.NotFound, "FILE_NOT_FOUND"},
		{[]string{"*** Add File: ../out", "+x"}, writ.Denied, "PATH_ESCAPE"},
		{[]string{"*** Add File: a/x", "+x"}, writ.Conflict, "PATH_NOT_DIRECTORY"},
		{[]string{"*** Update File: a", "@@", "-one", "+b\xffd"}, writ.Invalid, "INVALID_PATCH"},
	} {
		req := request(w, c.lines...)
		_, err := f.Patch(t.Context(), w, writ.NewOperationID(), req, "")
		wantFault(t, fmt.Sprintf("patch %q", c.lines), err, c.kind, c.code)
		_, err = f.Plan(t.Context(), w, req)
		wantFault(t, fmt.Sprintf("plan %q", c.lines), err, c.kind, c.code)
	}
	if _, err := f.Patch(t.Context(), w, "../op", request(w, "*** Delete File: a"), ""); writ.KindOf(err) != writ.Invalid {
		t.Errorf("an id that is none: %v", err)
	}
	wantFiles(t, "after refusals", w, map[string]string{"a": "one\n", "dir/b": "two\n"})
	if all, err := f.Recover(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("refusals leave %+v, %v", all, err)
	}
}

// An absolute path is refused, also one beneath the root; the error says which relative
// path is the same file.
func (s filesSuite) absolute(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "one\n", "dir/b": "two\n"})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(w.Root, link); err != nil {
		t.Fatal(err)
	}
	linked := WorkspaceAt(link)
	for _, c := range []struct {
		w     writ.Workspace
		lines []string
		tells string
	}{
		{w, []string{"*** Update File: " + w.Root + "/a", "@@", "-one", "+x"}, `as "a"`},
		{w, []string{"*** Delete File: a", "*** Delete File: " + w.Root + "/dir/../dir/b"}, `as "dir/b"`},
		{w, []string{"*** Update File: a", "*** Move to: " + w.Root + "/c", "@@", "-one", "+x"}, `as "c"`},
		{linked, []string{"*** Add File: " + link + "/c", "+x"}, `as "c"`},
		{linked, []string{"*** Add File: " + w.Root + "/c", "+x"}, `as "c"`},
		{w, []string{"*** Add File: /etc/cron.d/x", "+x"}, "relative"},
		{w, []string{"*** Add File: " + w.Root + "x/c", "+x"}, "relative"},
		{w, []string{"*** Delete File: " + w.Root}, "relative"},
		{w, []string{"*** Delete File: " + w.Root + "/a", "*** Add File: /etc/cron.d/x", "+x"}, "relative"},
	} {
		_, err := f.Patch(t.Context(), c.w, writ.NewOperationID(), request(c.w, c.lines...), "")
		wantFault(t, fmt.Sprintf("patch %q", c.lines), err, writ.Denied, "PATH_ESCAPE")
		if !strings.Contains(writ.Message(err), c.tells) {
			t.Errorf("patch %q: %v does not tell %q", c.lines, err, c.tells)
		}
	}
	for _, name := range []string{w.Root + "/a", "/etc/passwd"} {
		_, err := f.Read(t.Context(), w, name, 0, 1)
		wantFault(t, "read "+name, err, writ.Denied, "PATH_ESCAPE")
		req := request(w, "*** Delete File: a")
		req.Expected = map[string]string{name: versionOf("one\n")}
		_, err = f.Patch(t.Context(), w, writ.NewOperationID(), req, "")
		wantFault(t, "expected "+name, err, writ.Denied, "PATH_ESCAPE")
	}
	wantFiles(t, "after refusals", w, map[string]string{"a": "one\n", "dir/b": "two\n"})
}

// What was agreed to is what is carried out, or nothing is.
func (s filesSuite) bound(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "one\nlast\n"})
	req := request(w, "*** Update File: a", "@@", "-one", "+two")
	plan, err := f.Plan(t.Context(), w, req)
	if err != nil {
		t.Fatal(err)
	}
	drifted := map[string]string{"a": "one\nLAST\n"}
	PutFiles(t, w.Root, drifted) // the patch still fits, and gives another file
	_, err = f.Patch(t.Context(), w, writ.NewOperationID(), req, plan.Digest())
	wantFault(t, "a file that moved on", err, writ.Conflict, "VERSION_CONFLICT")
	wantFiles(t, "after the refusal", w, drifted)

	PutFiles(t, w.Root, map[string]string{"a": "one\nlast\n"})
	got, err := f.Patch(t.Context(), w, writ.NewOperationID(), req, plan.Digest())
	if err != nil || got.Status != writ.PatchApplied {
		t.Errorf("files as they were: %+v, %v", got, err)
	}
}

func (s filesSuite) twice(t *testing.T) {
	f, w := s.files(t), tree(t, kindsTree())
	id := writ.NewOperationID()
	first, err := f.Patch(t.Context(), w, id, request(w, eachKind...), "")
	if err != nil {
		t.Fatal(err)
	}
	// Also when it could not be carried out now, or asks for another thing.
	readOnly, gone := w, w
	readOnly.Profile, gone.Root = writ.ReadOnly, filepath.Join(w.Root, "none")
	for what, again := range map[string]writ.Workspace{"same": w, "read-only by now": readOnly, "root is gone": gone} {
		second, err := f.Patch(t.Context(), again, id, request(w, "*** Delete File: other"), "")
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if d := cmp.Diff(first, second); d != "" {
			t.Errorf("%s (-first +second):\n%s", what, d)
		}
	}
	wantFiles(t, "after two calls", w, kindsAfter())
}

func (s filesSuite) sameOperation(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"count": "1\n"})
	req := request(w, "*** Update File: count", "@@", "-1", "+1", "+1")
	id := writ.NewOperationID()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			got, err := f.Patch(t.Context(), w, id, req, "")
			if err != nil || got.Status != writ.PatchApplied {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	wantFiles(t, "after eight calls", w, map[string]string{"count": "1\n1\n"})
}

func (s filesSuite) forget(t *testing.T) {
	f, w := s.files(t), tree(t, map[string]string{"a": "1\n", "b": "1\n"})
	want := map[writ.OperationID]writ.PatchResult{}
	for _, name := range []string{"a", "b"} {
		id := writ.NewOperationID()
		got, err := f.Patch(t.Context(), w, id, request(w, "*** Update File: "+name, "@@", "-1", "+2"), "")
		if err != nil {
			t.Fatal(err)
		}
		want[id] = got
	}
	for left := len(want); ; left-- {
		all, err := f.Recover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := map[writ.OperationID]writ.PatchResult{}
		for _, s := range all {
			got[s.Operation] = s.Result
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("with %d to forget (-want +got):\n%s", left, d)
		}
		if left == 0 {
			break
		}
		id := slices.Sorted(maps.Keys(want))[0]
		delete(want, id)
		for range 2 { // a second time is no error
			if err := f.Forget(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Forget(t.Context(), "../x"); writ.KindOf(err) != writ.Invalid {
		t.Errorf("an id that is none: %v", err)
	}
}

func (s filesSuite) restart(t *testing.T) {
	opt := filesOptions(t, 0)
	f, stop := s.start(t, opt)
	w := tree(t, kindsTree())
	id := writ.NewOperationID()
	first, err := f.Patch(t.Context(), w, id, request(w, eachKind...), "")
	if err != nil {
		t.Fatal(err)
	}
	stop()

	f, _ = s.start(t, opt)
	want := []writ.Settlement{{Operation: id, Result: first}}
	all, err := f.Recover(t.Context())
	if d := cmp.Diff(want, all); err != nil || d != "" {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
	second, err := f.Patch(t.Context(), w, id, request(w, "*** Delete File: other"), "")
	if d := cmp.Diff(first, second); err != nil || d != "" {
		t.Errorf("error %v (-first +second):\n%s", err, d)
	}
	wantFiles(t, "after a restart", w, kindsAfter())
	if err := f.Forget(t.Context(), id); err != nil {
		t.Error(err)
	}
}

func (s filesSuite) readOnly(t *testing.T) {
	f, w := s.files(t), tree(t, kindsTree())
	w.Profile = writ.ReadOnly
	req := request(w, eachKind...)
	for _, req.CheckOnly = range []bool{false, true} {
		_, err := f.Patch(t.Context(), w, writ.NewOperationID(), req, "")
		wantFault(t, fmt.Sprint("check only ", req.CheckOnly), err, writ.Denied, "UNAUTHORIZED")
	}
	wantFiles(t, "after refusals", w, kindsTree())
	if _, err := f.Read(t.Context(), w, "up", 0, 1); err != nil {
		t.Errorf("read: %v", err)
	}
}

func (s filesSuite) cancelled(t *testing.T) {
	f, w := s.files(t), tree(t, kindsTree())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Read(ctx, w, "up", 0, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := f.Find(ctx, w, writ.FileQuery{Limit: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("find: %v", err)
	}
	if _, err := f.Patch(ctx, w, writ.NewOperationID(), request(w, eachKind...), ""); !errors.Is(err, context.Canceled) {
		t.Errorf("patch: %v", err)
	}
	wantFiles(t, "after cancelled calls", w, kindsTree())
}
