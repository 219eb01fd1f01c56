package testkit

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/runner"
)

// oddTree is what the text of a patch cannot say: endings, bytes that are not UTF-8,
// modes.
func oddTree(t *testing.T) writ.Workspace {
	t.Helper()
	w := tree(t, map[string]string{
		"crlf": "a\r\nb\r\nlast", "bom": "\ufeffa\n", "latin": "caf\xe9\nx", "open": "a\nb", "mixed": "a\nb\r\nc\n",
		"dir/binary": "\x00\x01\xff\xfe", "dir/moves": "m\r\nn", "secret": "s", "bytes": "\xff\xfe\x00", "other": "same",
	})
	for name, mode := range map[string]fs.FileMode{"crlf": 0o755, "dir/binary": 0o400, "dir/moves": 0o751, "secret": 0o600, "bytes": 0o640} {
		if err := os.Chmod(filepath.Join(w.Root, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

var oddPatch = []string{
	"*** Update File: crlf", "@@", " a", "-b", "+B",
	"*** Update File: bom", "@@", "-a", "+A",
	"*** Update File: latin", "@@", "-x", "+y",
	"*** Update File: open", "@@", "-b", "+c",
	"*** Update File: mixed", "@@", " b", "-c", "+d",
	"*** Delete File: dir/binary",
	"*** Update File: dir/moves", "*** Move to: new/deep/moved", "@@", " m", "-n", "+N",
	"*** Delete File: secret", "*** Add File: secret", "+another",
	"*** Update File: bytes", "*** Move to: new/bytes",
	"*** Add File: new/deep/added", "+x",
}

// everything is each path beneath dir with its mode, and its content or target.
func everything(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := ""
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			what = string(b)
		case info.Mode()&fs.ModeSymlink != 0:
			what, _ = os.Readlink(name)
		}
		rel, err := filepath.Rel(dir, name)
		out[rel] = fmt.Sprintf("%v %q", info.Mode(), what)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantEverything(t *testing.T, what string, w writ.Workspace, want map[string]string) {
	t.Helper()
	if d := cmp.Diff(want, everything(t, w.Root)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// applied carries a request out and forgets it, as a gateway does.
func applied(t *testing.T, f AnyFiles, w writ.Workspace, req writ.PatchRequest) (writ.OperationID, writ.PatchResult) {
	t.Helper()
	id := writ.NewOperationID()
	got, err := f.Patch(t.Context(), w, id, req, "")
	if err != nil || got.Status != writ.PatchApplied || got.Reason != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := f.Forget(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	return id, got
}

func undoOf(w writ.Workspace, id writ.OperationID) writ.PatchRequest {
	return writ.PatchRequest{Workspace: w.ID, Undo: id}
}

// Bytes and modes come back exactly, also in another process; and again, and again.
func (s filesSuite) undo(t *testing.T) {
	opt := filesOptions(t, 0)
	f, stop := s.start(t, opt)
	w := oddTree(t)
	before := everything(t, w.Root)
	id, first := applied(t, f, w, request(w, oddPatch...))
	after := everything(t, w.Root)
	stop()
	f, _ = s.start(t, opt)
	for range 2 {
		undo, got := applied(t, f, w, undoOf(w, id))
		wantEverything(t, "undone", w, before)
		versions := map[string][2]string{}
		for _, c := range first.Changes {
			versions[c.Path] = [2]string{c.After, c.Before}
		}
		for _, c := range got.Changes {
			if versions[c.Path] != [2]string{c.Before, c.After} {
				t.Errorf("undoing %s went from %s to %s, the patch %q", c.Path, c.Before, c.After, versions[c.Path])
			}
		}
		if len(got.Changes) != len(first.Changes) {
			t.Errorf("%d changes undo %d", len(got.Changes), len(first.Changes))
		}
		id, _ = applied(t, f, w, undoOf(w, undo))
		wantEverything(t, "the undoing undone", w, after)
	}
	// Also before its outcome is recorded.
	id = writ.NewOperationID()
	if got, err := f.Patch(t.Context(), w, id, request(w, "*** Delete File: other"), ""); err != nil || got.Status != writ.PatchApplied {
		t.Fatalf("%+v, %v", got, err)
	}
	applied(t, f, w, undoOf(w, id))
	wantEverything(t, "undone at once", w, after)
}

func (s filesSuite) undoMovedOn(t *testing.T) {
	f := s.files(t)
	w := tree(t, map[string]string{"up": "old\n", "mode": "old\n", "gone": "old\n", "link": "old\n", "back": "old\n", "large": "old\n", "stays": "old\n", "folder": "old\n"})
	req := request(w,
		"*** Update File: up", "@@", "-old", "+new", "*** Update File: mode", "@@", "-old", "+new", "*** Update File: gone", "@@", "-old", "+new",
		"*** Update File: link", "@@", "-old", "+new", "*** Delete File: back", "*** Update File: large", "@@", "-old", "+new",
		"*** Update File: stays", "@@", "-old", "+new", "*** Delete File: folder", "*** Add File: sub/new", "+x")
	id, _ := applied(t, f, w, req)
	at := func(name string) string { return filepath.Join(w.Root, name) }
	for _, err := range []error{
		os.WriteFile(at("up"), []byte("theirs\n"), 0o644), os.Chmod(at("mode"), 0o600), os.Remove(at("gone")),
		os.Remove(at("link")), os.Symlink("/etc/passwd", at("link")), os.WriteFile(at("back"), nil, 0o644), os.Truncate(at("large"), 257<<20),
		os.Mkdir(at("folder"), 0o755), os.RemoveAll(at("sub")), os.WriteFile(at("sub"), nil, 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	plan := func() error { _, err := f.Plan(t.Context(), w, undoOf(w, id)); return err }
	patch := func() error {
		_, err := f.Patch(t.Context(), w, writ.NewOperationID(), undoOf(w, id), "")
		return err
	}
	info := func() (out string) {
		for _, name := range []string{"up", "mode", "gone", "link", "back", "large", "stays", "folder", "sub"} {
			if i, err := os.Lstat(at(name)); err == nil {
				out += fmt.Sprintln(name, i.Mode(), i.Size(), i.ModTime())
			}
		}
		return out
	}
	before := info()
	for what, err := range map[string]error{"plan": plan(), "patch": patch()} {
		wantFault(t, what, err, writ.Conflict, "VERSION_CONFLICT")
		for _, name := range []string{`"up"`, `"mode"`, `"gone"`, `"link"`, `"back"`, `"large"`, `"folder"`, `"sub/new"`} {
			if !strings.Contains(writ.Message(err), name) {
				t.Errorf("%s does not name %s: %v", what, name, err)
			}
		}
		if strings.Contains(writ.Message(err), "stays") {
			t.Errorf("%s names a file that is as it was left: %v", what, err)
		}
	}
	if d := cmp.Diff(before, info()); d != "" {
		t.Errorf("a refused undoing changed something (-want +got):\n%s", d)
	}
}

func (s filesSuite) undoChecked(t *testing.T) {
	f, w := s.files(t), oddTree(t)
	before := everything(t, w.Root)
	id, _ := applied(t, f, w, request(w, oddPatch...))
	after := everything(t, w.Root)

	plan, err := f.Plan(t.Context(), w, undoOf(w, id))
	if err != nil || len(plan.Changes) == 0 || !strings.Contains(plan.Diff, "rename to dir/moves\n") {
		t.Fatalf("%+v, %v", plan, err)
	}
	check := undoOf(w, id)
	check.CheckOnly = true
	got, err := f.Patch(t.Context(), w, writ.NewOperationID(), check, plan.Digest())
	if err != nil || got.Status != writ.PatchChecked || len(got.Changes) != len(plan.Changes) {
		t.Errorf("check only: %+v, %v", got, err)
	}
	wantEverything(t, "after a plan and a check", w, after)

	_, err = f.Patch(t.Context(), w, writ.NewOperationID(), undoOf(w, id), writ.DigestOf([]byte("another plan")))
	wantFault(t, "bound to another plan", err, writ.Conflict, "VERSION_CONFLICT")
	both, expected, readOnly := undoOf(w, id), undoOf(w, id), w
	both.Patch = PatchText("*** Delete File: other")
	expected.Expected = map[string]string{"other": "absent"}
	for what, req := range map[string]writ.PatchRequest{"and a patch": both, "and versions": expected} {
		_, err = f.Patch(t.Context(), w, writ.NewOperationID(), req, "")
		wantFault(t, what, err, writ.Invalid, "INVALID_PATCH")
		_, err = f.Plan(t.Context(), w, req)
		wantFault(t, what, err, writ.Invalid, "INVALID_PATCH")
	}
	readOnly.Profile = writ.ReadOnly
	_, err = f.Patch(t.Context(), readOnly, writ.NewOperationID(), undoOf(w, id), "")
	wantFault(t, "read-only", err, writ.Denied, "UNAUTHORIZED")
	denied := w
	denied.Rules.DenyWrite = []string{"secret"}
	_, err = f.Patch(t.Context(), denied, writ.NewOperationID(), undoOf(w, id), "")
	wantFault(t, "denied by now", err, writ.Denied, "UNAUTHORIZED")
	wantEverything(t, "after refusals", w, after)

	once := writ.NewOperationID()
	for range 2 { // the second call answers the first one's outcome
		got, err := f.Patch(t.Context(), w, once, undoOf(w, id), plan.Digest())
		if err != nil || got.Status != writ.PatchApplied {
			t.Fatalf("bound to its plan: %+v, %v", got, err)
		}
		wantEverything(t, "undone", w, before)
	}
	_, err = f.Patch(t.Context(), w, writ.NewOperationID(), undoOf(w, id), "")
	wantFault(t, "undone already", err, writ.Conflict, "VERSION_CONFLICT")
}

func (s filesSuite) undoNotKept(t *testing.T) {
	f, w, other := s.files(t), tree(t, kindsTree()), tree(t, kindsTree())
	checked := request(w, eachKind...)
	checked.CheckOnly = true
	check := writ.NewOperationID()
	if _, err := f.Patch(t.Context(), w, check, checked, ""); err != nil {
		t.Fatal(err)
	}
	refused := writ.NewOperationID()
	if _, err := f.Patch(t.Context(), w, refused, request(w, "*** Delete File: none"), ""); err == nil {
		t.Fatal("a file that is not there was deleted")
	}
	elsewhere, _ := applied(t, f, other, request(other, eachKind...))
	for what, id := range map[string]writ.OperationID{
		"unknown": writ.NewOperationID(), "checked only": check, "refused": refused, "of another root": elsewhere,
		"no name": "../journals/x", "not UTF-8": "op-\xff", "long": writ.OperationID(strings.Repeat("x", 1<<16)),
	} {
		_, err := f.Plan(t.Context(), w, undoOf(w, id))
		wantFault(t, "plan, "+what, err, writ.NotFound, "OPERATION_NOT_FOUND")
		_, err = f.Patch(t.Context(), w, writ.NewOperationID(), undoOf(w, id), "")
		wantFault(t, "patch, "+what, err, writ.NotFound, "OPERATION_NOT_FOUND")
	}
	wantFiles(t, "after refusals", w, kindsTree())
	// The same root by another name is the same root.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(other.Root, link); err != nil {
		t.Fatal(err)
	}
	linked := WorkspaceAt(link)
	linked.ID = "linked"
	applied(t, f, linked, undoOf(linked, elsewhere))
	wantFiles(t, "undone through a link", other, kindsTree())
}

func (s filesSuite) undoBounds(t *testing.T) {
	for name, opt := range map[string]runner.FilesOptions{
		"operations": {Undos: 2}, "bytes": {UndoBytes: 150_000}, "nothing": {Undos: -1},
	} {
		t.Run(name, func(t *testing.T) {
			opt.State = filepath.Join(t.TempDir(), "state")
			f, stop := s.start(t, opt)
			// Nobody else may read what is kept, and what is kept no more is not there.
			secret := "-----SECRET-" + name + "-"
			w := tree(t, map[string]string{"f": secret + "0\n" + strings.Repeat("x", 60_000)})
			var ids []writ.OperationID
			for i := range 4 {
				id, _ := applied(t, f, w, request(w, "*** Update File: f", "@@", fmt.Sprint("-", secret, i), fmt.Sprint("+", secret, i+1)))
				ids = append(ids, id)
			}
			kept := 2
			if opt.Undos < 0 {
				kept = 0
			}
			texts := ""
			err := filepath.WalkDir(opt.State, func(name string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if info, err := d.Info(); err != nil || name != opt.State && info.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s: %v, %v", name, info.Mode(), err)
				}
				if d.Type().IsRegular() {
					b, err := os.ReadFile(name)
					texts += string(b)
					return err
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				if got, want := strings.Contains(texts, fmt.Sprint(secret, i)), i >= 4-kept; got != want {
					t.Errorf("content %d is in the state folder: %v, want %v", i, got, want)
				}
			}
			for _, id := range ids[:4-kept] {
				_, err := f.Patch(t.Context(), w, writ.NewOperationID(), undoOf(w, id), "")
				wantFault(t, "an old one", err, writ.NotFound, "OPERATION_NOT_FOUND")
			}
			if kept == 0 {
				return
			}
			// An undoing is kept like any other and takes the place of the oldest, in the
			// same order also in another process.
			stop()
			f, _ = s.start(t, opt)
			undo, _ := applied(t, f, w, undoOf(w, ids[3]))
			wantFiles(t, "undone", w, map[string]string{"f": secret + "3\n" + strings.Repeat("x", 60_000) + "\n"})
			_, err = f.Patch(t.Context(), w, writ.NewOperationID(), undoOf(w, ids[2]), "")
			wantFault(t, "one that went meanwhile", err, writ.NotFound, "OPERATION_NOT_FOUND")
			applied(t, f, w, undoOf(w, undo))
			wantFiles(t, "the undoing undone", w, map[string]string{"f": secret + "4\n" + strings.Repeat("x", 60_000) + "\n"})
		})
	}
}
