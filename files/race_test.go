package files

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"writ/patch"
)

// memoryDir is a folder on a file system in memory where the host has one: ten
// thousand patches on a disk take minutes.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "writ-files-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// rounds of a race, fewer with -short.
func rounds(all int) int {
	if testing.Short() {
		return all / 20
	}
	return all
}

// swapping exchanges a and b, and c and d, as fast as it can until stop is called,
// which says how often.
func swapping(t *testing.T, dir string, pairs ...[2]string) (stop func() int64) {
	var swaps atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			for _, p := range pairs {
				if unix.Renameat2(unix.AT_FDCWD, filepath.Join(dir, p[0]), unix.AT_FDCWD, filepath.Join(dir, p[1]), unix.RENAME_EXCHANGE) == nil {
					swaps.Add(1)
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	return func() int64 {
		close(done)
		wg.Wait()
		return swaps.Load()
	}
}

// Scenario 76, FS-12: while a file and a link to a file outside, and a folder and a
// link to a folder outside, change places all the time, nothing outside is ever read,
// listed or written.
func TestScenario76_FS12_SwappingLeaksNothing(t *testing.T) {
	base := memoryDir(t)
	outside, ws := filepath.Join(base, "outside"), filepath.Join(base, "ws")
	put(t, outside, layout{"secret": "SECRET\n", "dir/in": "SECRET\n", "dir/only-outside": "SECRET\n"})
	tree := func() *Tree {
		put(t, ws, layout{"f": "inside 0\n", "d/in": "inside 0\n", "fl": "-> ../outside/secret", "dl": "-> ../outside/dir"})
		return openTree(t, ws)
	}()
	journals, err := OpenJournals(filepath.Join(base, "journals"), keepSome)
	must(t, err)
	defer func() { must(t, journals.Close()) }()
	before := disk(t, outside)
	stop := swapping(t, ws, [2]string{"f", "fl"}, [2]string{"d", "dl"})
	reads, lists, patches := 0, 0, 0
	for round := range rounds(10_000) {
		for _, name := range []string{"f", "d/in"} {
			w, err := tree.Read(t.Context(), name, 0, 100)
			if err == nil {
				reads++
			}
			if strings.Contains(string(w.Content), "SECRET") || err != nil && strings.Contains(err.Error(), "SECRET") || w.Version == patch.Version([]byte("SECRET\n")) {
				t.Fatalf("read %s gave %q, %v", name, w.Content, err)
			}
		}
		l, err := tree.Find(t.Context(), Query{Limit: 100, Content: "S"})
		must(t, err)
		lists += len(l.Paths)
		if l.Total > 0 {
			t.Fatalf("find lists %v", l.Paths)
		}
		l, err = tree.Find(t.Context(), Query{Limit: 100})
		must(t, err)
		lists += len(l.Paths)
		for _, p := range l.Paths {
			if strings.HasSuffix(p, "only-outside") {
				t.Fatalf("find lists %s", p)
			}
		}
		if round%4 == 0 { // of four patches
			patches += patchUnderRace(t, tree, journals)
		}
	}
	swaps := stop()
	t.Logf("%d swaps, %d reads, %d paths, %d patches applied", swaps, reads, lists, patches)
	if swaps < int64(rounds(10_000)) || reads == 0 || lists == 0 || patches == 0 {
		t.Errorf("%d swaps, %d reads, %d paths, %d patches: the race did not happen", swaps, reads, lists, patches)
	}
	wantDisk(t, "outside", outside, before)
}

// patchUnderRace tries to edit, add and delete through the names that change places. It
// says how many patches were applied, and repairs what they may have moved.
func patchUnderRace(t *testing.T, tree *Tree, j *Journals) (applied int) {
	t.Helper()
	for _, lines := range [][]string{
		{"*** Update File: f", "@@", "-inside 0", "+inside 1"},
		{"*** Update File: f", "@@", "-inside 1", "+inside 0"},
		{"*** Update File: d/in", "@@", "-inside 0", "+inside 1", "*** Add File: d/new/x", "+x"},
		{"*** Update File: d/in", "@@", "-inside 1", "+inside 0", "*** Delete File: d/new/x"},
	} {
		p, err := tryPlan(tree, nil, lines...)
		if err != nil {
			continue
		}
		o, err := tree.Apply(t.Context(), p, j, "op-race")
		if err == nil {
			must(t, j.Forget("op-race"))
		}
		if err == nil && o.Status == Applied {
			applied++
		}
	}
	for name, target := range map[string]string{"f": "", "fl": "../outside/secret"} {
		full := filepath.Join(tree.Root(), name)
		if _, err := os.Lstat(full); err == nil {
			continue
		}
		if target != "" {
			_ = os.Symlink(target, full)
		} else {
			_ = os.WriteFile(full, []byte("inside 0\n"), 0o644)
		}
	}
	return applied
}

// A file that is added while somebody makes one of the same name is never overwritten.
func TestRaceOfTwoWhoAdd(t *testing.T) {
	dir := memoryDir(t)
	tree := openTree(t, dir)
	j := newJournals(t)
	for range rounds(400) {
		p := plan(t, tree, "*** Add File: n", "+ours")
		var wg sync.WaitGroup
		theirs := false
		wg.Go(func() {
			f, err := os.OpenFile(filepath.Join(dir, "n"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if err != nil {
				return
			}
			theirs = true
			_, _ = f.WriteString("theirs\n")
			_ = f.Close()
		})
		o, err := tree.Apply(t.Context(), p, j, "op-1")
		wg.Wait()
		must(t, j.Forget("op-1"))
		want := "ours\n"
		if theirs {
			want = "theirs\n"
		}
		if ours := err == nil && o.Status == Applied; ours == theirs {
			t.Fatalf("theirs %v, and the outcome is %+v, %v", theirs, o, err)
		}
		wantFile(t, tree, "n", want, 0o644)
		must(t, os.Remove(filepath.Join(dir, "n")))
	}
	noneAside(t, dir)
}

// Of edits by rename that somebody makes while a patch runs none is lost: at the end
// the file, or what the outcome names, has it.
func TestRaceWithAnEditor(t *testing.T) {
	bothWays(t, func(t *testing.T, plain bool) {
		dir := memoryDir(t)
		put(t, dir, layout{"f": "v1\n"})
		tree := openTree(t, dir)
		tree.plain = plain
		j := newJournals(t)
		for i := range rounds(400) {
			must(t, os.WriteFile(filepath.Join(dir, "f"), []byte("v1\n"), 0o644))
			p := plan(t, tree, "*** Update File: f", "-v1", "+v2")
			must(t, os.WriteFile(filepath.Join(dir, "theirs"), []byte("theirs\n"), 0o644))
			edit := func() { must(t, os.Rename(filepath.Join(dir, "theirs"), filepath.Join(dir, "f"))) }
			tree.at = nil
			var wg sync.WaitGroup
			if i%2 == 0 || plain { // as late as it gets; without exchange an instant is left
				at(tree, StepLook, 1, edit)
			} else {
				wg.Go(edit)
			}
			_, err := tree.Apply(t.Context(), p, j, "op-1")
			wg.Wait()
			if err != nil {
				wantCode(t, "apply", err, CodeVersionConflict)
			}
			must(t, j.Forget("op-1"))
			wantFile(t, tree, "f", "theirs\n", 0o644)
		}
	})
}
