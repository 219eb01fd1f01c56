package files

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"writ"
)

// Both ways to replace a file: by exchange, and where a file system has none.
func bothWays(t *testing.T, test func(t *testing.T, plain bool)) {
	t.Run("exchange", func(t *testing.T) { test(t, false) })
	t.Run("plain", func(t *testing.T) { test(t, true) })
}

func TestApplyCarriesEverythingOut(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		tree := newTree(t, layout{"u.txt": "v1\n", "d.txt": "bye\n", "m.txt": "m1\nm2\n", "swap/a": "A\n", "swap/b": "B\n", "untouched": "x"})
		tree.plain = plain
		must(t, os.Chmod(filepath.Join(tree.Root(), "m.txt"), 0o751))
		must(t, os.Chmod(filepath.Join(tree.Root(), "u.txt"), 0o600))
		p := plan(t, tree, "*** Update File: u.txt", "-v1", "+v2", "*** Delete File: d.txt", "*** Add File: new/deep/n.txt", "+n",
			"*** Update File: m.txt", "*** Move to: moved/m.txt", "-m1", "+M1", " m2", "*** Add File: empty")
		o := apply(t, tree, p)
		wantApplied(t, o)
		wantFile(t, tree, "u.txt", "v2\n", 0o600)
		wantFile(t, tree, "new/deep/n.txt", "n\n", 0o644)
		wantFile(t, tree, "moved/m.txt", "M1\nm2\n", 0o751)
		wantFile(t, tree, "empty", "", 0o644)
		for _, gone := range []string{"d.txt", "m.txt"} {
			if _, err := os.Lstat(filepath.Join(tree.Root(), gone)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is still there", gone)
			}
		}
		noneAside(t, tree.Root())
		for _, c := range p.Changes {
			if v, err := tree.Version(t.Context(), c.Path); v != c.After || err != nil {
				t.Errorf("%s is %s, %v, claimed %s", c.Path, v, err, c.After)
			}
		}
	})
}

func TestAP33_ModeAndOwnerAreKept(t *testing.T) {
	for _, move := range []bool{false, true} {
		tree := newTree(t, layout{"r.sh": "#!/bin/sh\necho 1\n"})
		full := filepath.Join(tree.Root(), "r.sh")
		if os.Geteuid() == 0 {
			must(t, os.Chown(full, 1234, 2345))
			must(t, unix.Setxattr(full, "user.note", []byte("kept"), 0))
		}
		must(t, os.Chmod(full, 0o755))
		lines := []string{"*** Update File: r.sh", "-echo 1", "+echo 2"}
		name := "r.sh"
		if move {
			name = "bin/r.sh"
			lines = slices.Insert(lines, 1, "*** Move to: bin/r.sh")
		}
		wantApplied(t, apply(t, tree, plan(t, tree, lines...)))
		wantFile(t, tree, name, "#!/bin/sh\necho 2\n", 0o755)
		if os.Geteuid() == 0 {
			info, err := os.Stat(filepath.Join(tree.Root(), name))
			must(t, err)
			if st := info.Sys().(*syscall.Stat_t); st.Uid != 1234 || st.Gid != 2345 {
				t.Errorf("move %v: owner %d:%d", move, st.Uid, st.Gid)
			}
			var note [8]byte
			if n, err := unix.Getxattr(filepath.Join(tree.Root(), name), "user.note", note[:]); err != nil || string(note[:n]) != "kept" {
				t.Errorf("move %v: attribute %q, %v", move, note[:max(n, 0)], err)
			}
		}
	}
}

// What root makes in somebody's workspace is theirs.
func TestNewFilesBelongToTheWorkspace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	tree := newTree(t, nil)
	must(t, os.Chown(tree.Root(), 1234, 2345))
	wantApplied(t, apply(t, tree, plan(t, tree, "*** Add File: a/b/c", "+x")))
	for _, name := range []string{"a", "a/b", "a/b/c"} {
		info, err := os.Stat(filepath.Join(tree.Root(), name))
		must(t, err)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != 1234 || st.Gid != 2345 {
			t.Errorf("%s belongs to %d:%d", name, st.Uid, st.Gid)
		}
	}
}

func TestSetuidDoesNotOutliveAnEdit(t *testing.T) {
	tree := newTree(t, layout{"tool": "v1\n"})
	must(t, os.Chmod(filepath.Join(tree.Root(), "tool"), 0o755|fs.ModeSetuid))
	wantApplied(t, apply(t, tree, plan(t, tree, "*** Update File: tool", "-v1", "+v2")))
	wantFile(t, tree, "tool", "v2\n", 0o755)
}

func TestScenario65_EditBetweenPlanAndApply(t *testing.T) {
	for what, edit := range map[string]func(dir string) error{
		"content": func(dir string) error { return os.WriteFile(filepath.Join(dir, "b.txt"), []byte("v9\n"), 0o644) },
		"mode":    func(dir string) error { return os.Chmod(filepath.Join(dir, "b.txt"), 0o600) },
		"gone":    func(dir string) error { return os.Remove(filepath.Join(dir, "b.txt")) },
		"there":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o644) },
		"link": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, "b.txt")), os.Symlink("a.txt", filepath.Join(dir, "b.txt")))
		},
	} {
		t.Run(what, func(t *testing.T) {
			tree := newTree(t, layout{"a.txt": "v1\n", "b.txt": "v1\n"})
			p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Update File: b.txt", "-v1", "+v2", "*** Add File: new", "+x", "*** Add File: folder/x", "+x")
			must(t, edit(tree.Root()))
			before := disk(t, tree.Root())
			j := newJournals(t)
			_, err := tree.Apply(t.Context(), p, j, "op-1")
			wantCode(t, "apply", err, CodeVersionConflict)
			wantDisk(t, "after a conflict", tree.Root(), before)
			if all, err := j.Recover(t.Context()); len(all) > 0 || err != nil {
				t.Errorf("a journal is left: %+v, %v", all, err)
			}
		})
	}
}

// at calls do at the nth time that a step of this name is reached.
func at(tree *Tree, step Step, nth int, do func()) {
	tree.at = func(s Step) {
		if s == step {
			if nth--; nth == 0 {
				do()
			}
		}
	}
}

func TestScenario61_FailureInTheMiddleRestores(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		for _, step := range []Step{StepLook, StepRename} {
			tree := newTree(t, layout{"keep.txt": "keep\n", "a.txt": "v1\n", "b.txt": "v1\n", "z.txt": "v1\n"})
			tree.plain = plain
			must(t, os.Chmod(filepath.Join(tree.Root(), "a.txt"), 0o700))
			p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Add File: new/x", "+x", "*** Update File: b.txt", "-v1", "+v2", "*** Delete File: z.txt")
			before := disk(t, tree.Root())
			at(tree, step, 1, func() { // somebody edits b at the very moment
				must(t, os.WriteFile(filepath.Join(tree.Root(), "b.txt"), []byte("theirs\n"), 0o644))
			})
			o := apply(t, tree, p)
			if o.Status != RolledBack || !strings.Contains(o.Reason, "b.txt") || len(o.Left) > 0 {
				t.Errorf("at %s: %+v", step, o)
			}
			want := maps.Clone(before)
			want["b.txt"] = `-rw-r--r-- "theirs\n"`
			wantDisk(t, "after rolling back", tree.Root(), want)
		}
	})
}

func TestRestoreOfADeletedFile(t *testing.T) {
	tree := newTree(t, layout{"d.txt": "bye\n", "e.txt": "e\n"})
	must(t, os.Chmod(filepath.Join(tree.Root(), "d.txt"), 0o640))
	before := disk(t, tree.Root())
	p := plan(t, tree, "*** Delete File: d.txt", "*** Delete File: e.txt")
	at(tree, StepRename, 1, func() { must(t, os.WriteFile(filepath.Join(tree.Root(), "e.txt"), []byte("edited\n"), 0o644)) })
	if o := apply(t, tree, p); o.Status != RolledBack {
		t.Errorf("%+v", o)
	}
	before["e.txt"] = `-rw-r--r-- "edited\n"`
	wantDisk(t, "after rolling back", tree.Root(), before)
}

func TestScenario66_MismatchIsNeverApplied(t *testing.T) {
	for what, c := range map[string]struct {
		edit func(tree *Tree)
		left int
	}{
		// Somebody edits a file after it was replaced: their edit stays.
		"edit": {func(tree *Tree) { must(t, os.WriteFile(filepath.Join(tree.Root(), "a.txt"), []byte("later\n"), 0o644)) }, 1},
		// Somebody makes the deleted file again.
		"again": {func(tree *Tree) { must(t, os.WriteFile(filepath.Join(tree.Root(), "d.txt"), []byte("again\n"), 0o644)) }, 1},
		// Somebody edits the added file.
		"added": {func(tree *Tree) { must(t, os.WriteFile(filepath.Join(tree.Root(), "n.txt"), []byte("more\n"), 0o644)) }, 1},
		// Somebody removes a file that was added: nothing of it remains.
		"removed": {func(tree *Tree) { must(t, os.Remove(filepath.Join(tree.Root(), "n.txt"))) }, 0},
		// Somebody replaces it by another one.
		"replaced": {func(tree *Tree) {
			must(t, os.Remove(filepath.Join(tree.Root(), "n.txt")))
			must(t, os.WriteFile(filepath.Join(tree.Root(), "n.txt"), []byte("other\n"), 0o644))
		}, 0},
		"mode": {func(tree *Tree) { must(t, os.Chmod(filepath.Join(tree.Root(), "a.txt"), 0o777)) }, 1},
	} {
		t.Run(what, func(t *testing.T) {
			bothWays(t, func(t *testing.T, plain bool) {
				tree := newTree(t, layout{"a.txt": "v1\n", "d.txt": "bye\n", "u.txt": "u1\n"})
				tree.plain = plain
				p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Update File: u.txt", "-u1", "+u2", "*** Add File: n.txt", "+n", "*** Delete File: d.txt")
				at(tree, StepRename, 4, func() { c.edit(tree) })
				j := newJournals(t)
				o, err := tree.Apply(t.Context(), p, j, "op-1")
				must(t, err)
				want := RolledBack
				if c.left > 0 {
					want = Partial
				}
				if o.Status != want || len(o.Left) != c.left || o.Reason == "" {
					t.Errorf("%+v, want %s with %d left", o, want, c.left)
				}
				wantFile(t, tree, "u.txt", "u1\n", 0o644) // everything else is as it was
				all, err := j.Recover(t.Context())
				if len(all) != 1 || err != nil || !cmp.Equal(all[0].Outcome, o) {
					t.Errorf("recover says %+v, %v", all, err)
				}
			})
		})
	}
}

func TestWhatWasSetAsideIsGone(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		tree := newTree(t, layout{"a.txt": "v1\n", "d.txt": "bye\n", "n.txt": "x\n"})
		tree.plain = plain
		must(t, os.Chmod(filepath.Join(tree.Root(), "a.txt"), 0o710))
		before := disk(t, tree.Root())
		p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Add File: new.txt", "+n", "*** Delete File: d.txt", "*** Delete File: n.txt")
		at(tree, StepRename, 3, func() {
			must(t, os.Rename(filepath.Join(tree.Root(), "n.txt"), filepath.Join(tree.Root(), "n2.txt"))) // so that the last rename fails
			aside, err := filepath.Glob(filepath.Join(tree.Root(), ".writ-*"))
			must(t, err)
			for _, name := range aside {
				must(t, os.Remove(name))
			}
		})
		if o := apply(t, tree, p); o.Status != RolledBack {
			t.Errorf("%+v", o)
		}
		before["n2.txt"] = before["n.txt"]
		delete(before, "n.txt")
		wantDisk(t, "after rolling back from memory", tree.Root(), before)
	})
}

func TestApplyRefuses(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "v1\n"})
	other := newTree(t, layout{"a.txt": "v1\n"})
	p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2")
	j := newJournals(t)
	if _, err := other.Apply(t.Context(), p, j, "op-1"); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a plan of another workspace: %v", err)
	}
	if _, err := tree.Apply(t.Context(), Plan{}, j, "op-1"); writ.KindOf(err) != writ.Invalid {
		t.Errorf("an empty plan: %v", err)
	}
	for _, id := range []string{"", "../x", "a/b"} {
		if _, err := tree.Apply(t.Context(), p, j, id); writ.KindOf(err) != writ.Invalid {
			t.Errorf("id %q: %v", id, err)
		}
	}
	inside, err := OpenJournals(filepath.Join(tree.Root(), "state"), keepSome)
	must(t, err)
	if _, err := tree.Apply(t.Context(), p, inside, "op-1"); err == nil {
		t.Error("journals beneath the workspace were taken")
	}
	must(t, inside.Close())
	must(t, os.RemoveAll(filepath.Join(tree.Root(), "state")))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Apply(ctx, p, j, "op-1"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	strict := openTree(t, tree.Root(), Rules{DenyWrite: []string{"a.txt"}})
	_, err = strict.Apply(t.Context(), p, j, "op-1")
	wantCode(t, "under other rules", err, CodeUnauthorized)
	wantFile(t, tree, "a.txt", "v1\n", 0o644)

	o, err := tree.Apply(t.Context(), p, j, "op-1")
	must(t, err)
	wantApplied(t, o)
	back := reversed(p)
	if _, err := tree.Apply(t.Context(), back, j, "op-1"); writ.KindOf(err) != writ.Conflict {
		t.Errorf("an id with a journal: %v", err)
	}
	wantFile(t, tree, "a.txt", "v2\n", 0o644)
	must(t, j.Forget("op-1"))
	must(t, j.Forget("op-1"))
	o, err = tree.Apply(t.Context(), back, j, "op-1")
	must(t, err)
	wantApplied(t, o)
	wantFile(t, tree, "a.txt", "v1\n", 0o644)
}

// Cancelled at any step, a patch is nothing or all.
func TestCancelledAtEachStep(t *testing.T) {
	for _, step := range []Step{StepBegin, StepFolder, StepStage, StepSync, StepLook, StepRename, StepVerify, StepSettle} {
		tree := newTree(t, layout{"a.txt": "v1\n", "d.txt": "bye\n"})
		before := disk(t, tree.Root())
		p := plan(t, tree, "*** Update File: a.txt", "-v1", "+v2", "*** Delete File: d.txt", "*** Add File: new/x", "+x")
		ctx, cancel := context.WithCancel(t.Context())
		at(tree, step, 1, cancel)
		o, err := tree.Apply(ctx, p, newJournals(t), "op-1")
		switch step {
		case StepRename, StepVerify, StepSettle:
			if err != nil || o.Status != Applied {
				t.Errorf("cancelled at %s: %+v, %v", step, o, err)
			}
		default:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled at %s: %+v, %v", step, o, err)
			}
			wantDisk(t, "cancelled at "+string(step), tree.Root(), before)
		}
	}
}

// A full disk is an outcome, and leaves nothing behind.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	put(t, dir, layout{"a.txt": "v1\n"})
	tree := openTree(t, dir)
	before := disk(t, dir)
	lines := []string{"*** Update File: a.txt", "-v1", "+v2", "*** Add File: new/big"}
	for range 2000 {
		lines = append(lines, "+"+strings.Repeat("x", 63))
	}
	p := plan(t, tree, lines...)
	held := descriptorsBeneath(t, dir)
	o := apply(t, tree, p)
	if o.Status != RolledBack || !strings.Contains(o.Reason, "no space") {
		t.Errorf("%+v", o)
	}
	wantDisk(t, "after it", dir, before)
	if now := descriptorsBeneath(t, dir); !slices.Equal(now, held) {
		t.Errorf("open afterwards: %q, before: %q", now, held)
	}
}

// descriptorsBeneath are the files beneath dir that this process has open.
func descriptorsBeneath(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	for _, e := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, dir) {
			names = append(names, target)
		}
	}
	slices.Sort(names)
	return names
}

func TestOpenJournalsRefuses(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	must(t, os.Mkdir(open, 0o755))
	if _, err := OpenJournals(open, keepSome); writ.KindOf(err) != writ.Denied {
		t.Errorf("a folder that others can read: %v", err)
	}
	if _, err := OpenJournals("relative", keepSome); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a relative folder: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if _, err := OpenJournals(file, keepSome); err == nil {
		t.Error("a file was taken")
	}
}

// An access list is part of who may read a file: it is kept with its mode.
func TestAccessListIsKept(t *testing.T) {
	tree := newTree(t, layout{"f": "v1\n"})
	full := filepath.Join(tree.Root(), "f")
	entry := func(tag, perm byte, id uint32) []byte {
		return []byte{tag, 0, perm, 0, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
	}
	const nobody = 0xffffffff
	list := slices.Concat([]byte{2, 0, 0, 0}, entry(1, 6, nobody), entry(2, 4, 1000), entry(4, 0, nobody), entry(0x10, 4, nobody), entry(0x20, 0, nobody))
	if err := unix.Setxattr(full, aclAttribute, list, 0); err != nil {
		t.Skipf("no access lists here: %v", err)
	}
	wantApplied(t, apply(t, tree, plan(t, tree, "*** Update File: f", "-v1", "+v2")))
	wantFile(t, tree, "f", "v2\n", 0o640)
	got := make([]byte, 100)
	n, err := unix.Getxattr(full, aclAttribute, got)
	must(t, err)
	if diff := cmp.Diff(list, got[:n]); diff != "" {
		t.Error(diff)
	}
}
