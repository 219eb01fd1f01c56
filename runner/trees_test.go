package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"writ"
	"writ/files"
)

func hostWorkspace(root string) writ.Workspace {
	return writ.Workspace{ID: "w", Root: root, Profile: writ.WorkspaceWrite, EnvironmentKind: writ.EnvironmentHost}
}

// held is how many descriptors of this process name something beneath dir.
func held(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(target, dir+"/") {
			n++
		}
	}
	return n
}

func makeRoots(t *testing.T, dir string, n int) (all []writ.Workspace) {
	t.Helper()
	for i := range n {
		root := filepath.Join(dir, fmt.Sprint(i))
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		all = append(all, hostWorkspace(root))
	}
	return all
}

func lendTree(t *testing.T, trees *trees, w writ.Workspace) *openTree {
	t.Helper()
	tree, err := trees.get(w)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTreesKeepTheLastUsed(t *testing.T) {
	dir := t.TempDir()
	all := makeRoots(t, dir, 4)
	trees := newTrees(2)
	for _, i := range []int{0, 1, 0, 2} { // 1 is the least recently used
		trees.put(lendTree(t, trees, all[i]))
	}
	var kept []string
	for key := range trees.open {
		kept = append(kept, filepath.Base(key.root))
	}
	slices.Sort(kept)
	if !slices.Equal(kept, []string{"0", "2"}) || held(t, dir) != 2 {
		t.Errorf("kept %v, %d descriptors", kept, held(t, dir))
	}
	// Lent ones are not closed, however many there are.
	var lent []*openTree
	for _, w := range all {
		lent = append(lent, lendTree(t, trees, w))
	}
	for i, tree := range lent {
		if tree.Stale() {
			t.Errorf("tree %d was closed while it was lent", i)
		}
	}
	for _, tree := range lent {
		trees.put(tree)
	}
	if held(t, dir) != 2 {
		t.Errorf("%d descriptors after all are given back, want 2", held(t, dir))
	}
	// Other rules are another tree.
	ruled := all[0]
	ruled.Rules.DenyRead = []string{".env"}
	one, two := lendTree(t, trees, all[0]), lendTree(t, trees, ruled)
	if one.Tree == two.Tree {
		t.Error("one tree for two sets of rules")
	}
	trees.put(one)
	trees.put(two)
	trees.close()
	if n := held(t, dir); n != 0 {
		t.Errorf("%d descriptors after close", n)
	}
}

func TestAReplacedRootIsOpenedAnew(t *testing.T) {
	dir := t.TempDir()
	w := makeRoots(t, dir, 1)[0]
	trees := newTrees(2)
	before := lendTree(t, trees, w)
	if err := os.Rename(w.Root, w.Root+".old"); err != nil {
		t.Fatal(err)
	}
	makeRoots(t, dir, 1)
	after := lendTree(t, trees, w)
	if before.Tree == after.Tree || after.Stale() {
		t.Error("the folder that was moved away is still used")
	}
	trees.put(before)
	trees.put(after)
	if n := held(t, dir); n != 1 {
		t.Errorf("%d descriptors, want that of the new folder alone", n)
	}
	trees.close()
}

func TestTreesManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	all := makeRoots(t, dir, 5)
	trees := newTrees(2)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				tree, err := trees.get(all[(g+i)%len(all)])
				if err != nil {
					t.Error(err)
					return
				}
				if tree.Stale() {
					t.Error("a lent tree is closed")
				}
				trees.put(tree)
			}
		})
	}
	wg.Wait()
	trees.close()
	if n := held(t, dir); n != 0 {
		t.Errorf("%d descriptors after close", n)
	}
}

func TestAPageIsBoundedInBytes(t *testing.T) {
	var l files.Listing
	for i := range 1000 {
		path := fmt.Sprintf("%05d%s", i, strings.Repeat("x", 10_000))
		l.Paths = append(l.Paths, path)
		l.Matches = append(l.Matches, files.Match{Path: path, Line: 1}, files.Match{Path: path, Line: 2})
	}
	l.Total, l.Next = 5000, 1700
	got := page(700, l)
	size := 0
	for _, p := range got.Paths {
		size += 3 * len(p)
	}
	if len(got.Paths) == 0 || size > maxPageBytes || got.Next != 700+len(got.Paths) || got.Total != 5000 || len(got.Matches) != 2*len(got.Paths) {
		t.Errorf("%d paths of %d bytes with %d matches, next %d", len(got.Paths), size, len(got.Matches), got.Next)
	}
	// One path is always there, and a page that fits is whole.
	l.Paths = []string{strings.Repeat("x", 2*maxPageBytes), "y"}
	l.Matches = nil
	if got := page(0, l); len(got.Paths) != 1 || got.Next != 1 {
		t.Errorf("%d paths, next %d", len(got.Paths), got.Next)
	}
	l.Paths = []string{"x", "y"}
	if got := page(0, l); len(got.Paths) != 2 || got.Next != 1700 {
		t.Errorf("%d paths, next %d", len(got.Paths), got.Next)
	}
}
