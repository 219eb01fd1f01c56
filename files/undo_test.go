package files

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/patch"
)

// carryOut applies a plan under an id, and forgets it.
func carryOut(t *testing.T, tree *Tree, j *Journals, id string, p Plan) {
	t.Helper()
	o, err := tree.Apply(t.Context(), p, j, id)
	must(t, err)
	wantApplied(t, o)
	must(t, j.Forget(id))
}

func wantNotKept(t *testing.T, what string, tree *Tree, j *Journals, id string) {
	t.Helper()
	_, err := tree.PlanUndo(t.Context(), j, id)
	wantCode(t, what, err, CodeNoOperation)
	if writ.KindOf(err) != writ.NotFound {
		t.Errorf("%s: kind %v", what, writ.KindOf(err))
	}
}

func newJournalsKeeping(t *testing.T, dir string, keep Keep) *Journals {
	t.Helper()
	j, err := OpenJournals(dir, keep)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

func TestNothingIsKeptOfARollback(t *testing.T) {
	tree, j := newTree(t, layout{"a.txt": "v1\n", "b.txt": "v1\n"}), newJournals(t)
	p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Update File: b.txt", "-v1", "+v2")
	for _, step := range []Step{StepSync, StepLook, StepRename} {
		// Somebody's edit: at first it is seen before anything has changed, which is an
		// error, then at the rename, which is rolled back.
		at(tree, step, 1, func() {
			must(t, os.WriteFile(filepath.Join(tree.Root(), "b.txt"), []byte("theirs\n"), 0o644))
		})
		o, err := tree.Apply(t.Context(), p, j, "op-1")
		tree.at = nil
		if (err != nil) != (step == StepSync) || o.Status == Applied {
			t.Errorf("edited at %s: %+v, %v", step, o, err)
		}
		wantNotKept(t, fmt.Sprintf("edited at %s, not forgotten yet", step), tree, j, "op-1")
		if names := inJournals(t, j.dir); slices.ContainsFunc(names, func(n string) bool { return !strings.HasSuffix(n, journalSuffix) }) {
			t.Errorf("edited at %s: %q are left, not forgotten yet", step, names)
		}
		must(t, j.Forget("op-1"))
		wantNotKept(t, fmt.Sprintf("edited at %s", step), tree, j, "op-1")
		if names := inJournals(t, j.dir); len(names) > 0 {
			t.Errorf("edited at %s: %q are left", step, names)
		}
		must(t, os.WriteFile(filepath.Join(tree.Root(), "b.txt"), []byte("v1\n"), 0o644))
	}
}

// The outcome cannot be written once all is done, so all is undone: what was kept by then
// goes, before the journal says so.
func TestNothingIsKeptWhenTheOutcomeCannotBeWritten(t *testing.T) {
	tree, j := newTree(t, layout{"a.txt": "v1\n"}), newJournals(t)
	p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2")
	name := filepath.Join(j.dir, "op-1.journal")
	kept, journal, writable := 0, -1, -1
	tree.at = func(s Step) {
		switch s {
		case StepKeep:
			kept++
		case StepSettle: // the journal becomes one that is open for reading alone
			journal = descriptorOf(t, name)
			var err error
			writable, err = unix.Dup(journal)
			must(t, err)
			readable, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			must(t, err)
			must(t, unix.Dup3(readable, journal, unix.O_CLOEXEC))
			closeAll(readable)
			if names := inJournals(t, j.dir); !slices.Equal(names, []string{"op-1.journal", "op-1.undo"}) {
				t.Errorf("before the outcome: %q", names)
			}
		case StepUndo:
			must(t, unix.Dup3(writable, journal, unix.O_CLOEXEC))
			closeAll(writable)
		}
	}
	o, err := tree.Apply(t.Context(), p, j, "op-1")
	must(t, err)
	if o.Status != RolledBack || kept != 2 {
		t.Fatalf("outcome %+v, %d times kept", o, kept)
	}
	if names := inJournals(t, j.dir); !slices.Equal(names, []string{"op-1.journal"}) {
		t.Errorf("afterwards: %q", names)
	}
	wantNotKept(t, "rolled back", tree, j, "op-1")
	wantFile(t, tree, "a.txt", "v1\n", 0o644)
}

// descriptorOf is the one under which this process has a file open.
func descriptorOf(t *testing.T, name string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && target == name {
			fd, err := strconv.Atoi(e.Name())
			must(t, err)
			return fd
		}
	}
	t.Fatalf("%s is not open", name)
	return -1
}

// Files that moved on take no room from those that did not.
func TestRoomIsForFilesAsTheyWereLeft(t *testing.T) {
	tree := newTree(t, layout{"moved": "theirs\n", "large": "0123456789", "left": "is left"})
	src := tree.source(t.Context(), tree.fd)
	src.room = 8
	for name, want := range map[string]string{"moved": "is sha256:", "large": "is much larger"} {
		if _, is, err := src.left(Change{Path: name, After: patch.Version([]byte("was left")), AfterMode: 0o644}); err != nil || !strings.HasPrefix(is, want) {
			t.Errorf("%s %q, %v", name, is, err)
		}
	}
	if now, is, err := src.left(Change{Path: "left", After: patch.Version([]byte("is left")), AfterMode: 0o644}); err != nil || is != "" || now == nil || src.room != 1 {
		t.Errorf("%+v %q, %v, room %d", now, is, err, src.room)
	}
}

// Nobody can tell yet what would have to be undone.
func TestATransactionUnderWayIsNotUndone(t *testing.T) {
	tree, j := newTree(t, layout{"a.txt": "v1\n"}), newJournals(t)
	p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2")
	asked := 0
	tree.at = func(s Step) {
		if s == StepClean { // it is settled by now
			return
		}
		asked++
		if _, err := tree.PlanUndo(t.Context(), j, "op-1"); writ.KindOf(err) != writ.Conflict || writ.Message(err) == "" {
			t.Errorf("at %s: %v", s, err)
		}
	}
	o, err := tree.Apply(t.Context(), p, j, "op-1")
	must(t, err)
	wantApplied(t, o)
	if tree.at = nil; asked < 8 {
		t.Errorf("asked %d times", asked)
	}
	undo, err := tree.PlanUndo(t.Context(), j, "op-1")
	must(t, err)
	carryOut(t, tree, j, "op-2", undo)
	wantFile(t, tree, "a.txt", "v1\n", 0o644)
}

// What was planned from files that move on before it is carried out changes nothing.
func TestUndoMeetsAnEditAtTheLastMoment(t *testing.T) {
	tree, j := newTree(t, layout{"a.txt": "v1\n", "b.txt": "v1\n"}), newJournals(t)
	carryOut(t, tree, j, "op-1", plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Delete File: b.txt"))
	undo, err := tree.PlanUndo(t.Context(), j, "op-1")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(tree.Root(), "b.txt"), []byte("theirs\n"), 0o644))
	_, err = tree.Apply(t.Context(), undo, j, "op-2")
	wantCode(t, "apply", err, CodeVersionConflict)
	wantFile(t, tree, "a.txt", "v2\n", 0o644)
	wantFile(t, tree, "b.txt", "theirs\n", 0o644)
	noneAside(t, tree.Root())
}

// Folders that a patch made go with its files, but not with somebody else's.
func TestUndoRemovesFoldersThatAreEmpty(t *testing.T) {
	tree, j := newTree(t, layout{"has/f": "x"}), newJournals(t)
	carryOut(t, tree, j, "op-1", plan(t, tree, "*** Add File: has/new/deep/f", "+1", "*** Add File: used/f", "+1"))
	put(t, tree.Root(), layout{"used/theirs": "x"})
	undo, err := tree.PlanUndo(t.Context(), j, "op-1")
	must(t, err)
	carryOut(t, tree, j, "op-2", undo)
	want := t.TempDir()
	put(t, want, layout{"has/f": "x", "used/theirs": "x"})
	wantDisk(t, "undone", tree.Root(), disk(t, want))
}

func TestOldestRecordsGoFirstWhateverTheClockDoes(t *testing.T) {
	tree, dir := newTree(t, layout{"f": "0\n"}), filepath.Join(t.TempDir(), "j")
	j := newJournalsKeeping(t, dir, Keep{Operations: 3, Bytes: 1 << 20})
	for i := range 5 {
		carryOut(t, tree, j, fmt.Sprint("op-", 9-i), plan(t, tree, "*** Update File: f", fmt.Sprint("-", i), fmt.Sprint("+", i+1)))
		if i == 2 { // the clock was ahead, and is set back
			future := time.Now().Add(time.Hour)
			must(t, os.Chtimes(filepath.Join(dir, "op-7.undo"), future, future))
			j = newJournalsKeeping(t, dir, j.max)
		}
	}
	if got, want := inJournals(t, dir), []string{"op-5.undo", "op-6.undo", "op-7.undo"}; !slices.Equal(got, want) {
		t.Errorf("kept are %q, want %q", got, want)
	}
	less := newJournalsKeeping(t, dir, Keep{Operations: 1, Bytes: 1 << 20})
	_, err := less.Recover(t.Context())
	must(t, err)
	if got, want := inJournals(t, dir), []string{"op-5.undo"}; !slices.Equal(got, want) {
		t.Errorf("with a lower bound: %q, want %q", got, want)
	}
}

// What alone is beyond the bound is not kept, and drives nothing out.
func TestTooLargeToKeep(t *testing.T) {
	tree := newTree(t, layout{"small": "v1\n", "large": "v1\n" + strings.Repeat("x", 5000)})
	j := newJournalsKeeping(t, filepath.Join(t.TempDir(), "j"), Keep{Operations: 9, Bytes: 4000})
	carryOut(t, tree, j, "op-1", plan(t, tree, "*** Update File: small", "-v1", "+v2"))
	carryOut(t, tree, j, "op-2", plan(t, tree, "*** Update File: large", "-v1", "+v2"))
	wantNotKept(t, "the large one", tree, j, "op-2")
	undo, err := tree.PlanUndo(t.Context(), j, "op-1")
	must(t, err)
	carryOut(t, tree, j, "op-3", undo)
	wantFile(t, tree, "small", "v1\n", 0o644)
}

// A record that a disk has damaged undoes nothing.
func TestDamagedRecords(t *testing.T) {
	tree, j := newTree(t, layout{"a": "v1\n", "b": "v1\n"}), newJournals(t)
	carryOut(t, tree, j, "op-1", plan(t, tree, "*** Update File: a", "-v1", "+v2", "*** Delete File: b"))
	name := filepath.Join(j.dir, "op-1.undo")
	text, err := os.ReadFile(name)
	must(t, err)
	before := disk(t, tree.Root())
	for what, damaged := range map[string]string{
		"empty": "", "cut off": string(text[:len(text)-1]), "no line": strings.ReplaceAll(string(text), "\n", " "),
		"a byte": string(text[:len(text)-1]) + "X", "of another": strings.Replace(string(text), `"op-1"`, `"op-9"`, 1),
		"sizes": strings.Replace(string(text), `"sizes":[3,3]`, `"sizes":[3]`, 1), "negative": strings.Replace(string(text), `"sizes":[3,3]`, `"sizes":[3,-3]`, 1),
		"a path": strings.Replace(string(text), `"path":"a"`, `"path":"../a"`, 1),
	} {
		must(t, os.WriteFile(name, []byte(damaged), 0o600))
		if _, err := tree.PlanUndo(t.Context(), j, "op-1"); err == nil || writ.KindOf(err) != writ.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
	wantDisk(t, "after damaged records", tree.Root(), before)
	must(t, os.WriteFile(name, text, 0o600))
	undo, err := tree.PlanUndo(t.Context(), j, "op-1")
	must(t, err)
	carryOut(t, tree, j, "op-2", undo)
}

// FuzzRecord: no text of a record leads out of the root, or gives a file that is not of
// the version that it says.
func FuzzRecord(f *testing.F) {
	r := record{beginning: beginning{V: journalVersion, ID: "op-1", Root: "/srv", TX: newTX(), Folders: []string{"d"}, Changes: []Change{
		{Path: "d/a", Kind: patch.Add, Before: patch.Absent, After: patch.Version(nil), AfterMode: 0o644},
		{Path: "b", Kind: patch.Delete, Before: patch.Version([]byte("x\n")), After: patch.Absent, BeforeMode: 0o600},
	}}, Sizes: []int64{0, 2}}
	head, err := json.Marshal(r)
	must(f, err)
	f.Add(append(head, "\nx\n"...))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, changes, err := readRecord("op-1", text)
		if err != nil {
			return
		}
		for n, c := range changes {
			if !filepath.IsLocal(c.Path) || c.Before.Version() != r.Changes[n].Before {
				t.Fatalf("change %+v", c)
			}
		}
		for _, name := range r.Folders {
			if !filepath.IsLocal(name) {
				t.Fatalf("folder %q", name)
			}
		}
	})
}
