package files

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/patch"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(crashEnv); spec != "" {
		os.Exit(crash(spec))
	}
	os.Exit(m.Run())
}

// layout is what a folder holds: for each path its content, or for a symlink "-> " and
// its target. A path that ends in a slash is a folder.
type layout map[string]string

// put makes files of mode 0644, and folders of mode 0755, beneath dir.
func put(t testing.TB, dir string, l layout) {
	t.Helper()
	for name, content := range l {
		full := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			must(t, os.Symlink(target, full))
			continue
		}
		must(t, os.WriteFile(full, []byte(content), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newTree is a tree over a new folder with these files.
func newTree(t testing.TB, l layout, rules ...Rules) *Tree {
	t.Helper()
	dir := t.TempDir()
	put(t, dir, l)
	return openTree(t, dir, rules...)
}

func openTree(t testing.TB, dir string, rules ...Rules) *Tree {
	t.Helper()
	tree, err := Open(dir, append(rules, Rules{})[0])
	must(t, err)
	t.Cleanup(func() { must(t, tree.Close()) })
	return tree
}

// keepSome is more than a test replaces.
var keepSome = Keep{Operations: 100, Bytes: 64 << 20}

// reversed is what undoes a plan that was applied, without what the journals keep.
func reversed(p Plan) Plan { return newPlan(p.root, patch.Reverse(p.computed)) }

func newJournals(t testing.TB) *Journals {
	t.Helper()
	j, err := OpenJournals(filepath.Join(t.TempDir(), "journals"), keepSome)
	must(t, err)
	t.Cleanup(func() { must(t, j.Close()) })
	return j
}

// disk is everything beneath dir: for each path its kind, permission bits, owner, and
// content or target.
func disk(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	must(t, filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
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
		out[rel] = fmt.Sprintf("%v %q", info.Mode(), what)
		return nil
	}))
	return out
}

func wantDisk(t testing.TB, what, dir string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, disk(t, dir)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// wantFile checks one file's content and permission bits.
func wantFile(t testing.TB, tree *Tree, name, content string, mode fs.FileMode) {
	t.Helper()
	full := filepath.Join(tree.Root(), name)
	got, err := os.ReadFile(full)
	if err != nil {
		t.Error(err)
		return
	}
	info, err := os.Lstat(full)
	must(t, err)
	if string(got) != content || info.Mode() != mode {
		t.Errorf("%s is %q of mode %v, want %q of mode %v", name, got, info.Mode(), content, mode)
	}
}

func wantCode(t testing.TB, what string, err error, code string) {
	t.Helper()
	if writ.CodeOf(err) != code {
		t.Errorf("%s: error %v with code %q, want %s", what, err, writ.CodeOf(err), code)
		return
	}
	if writ.Message(err) == "internal error" {
		t.Errorf("%s: error %v says nothing to a client", what, err)
	}
}

// patchText wraps the sections of a patch.
func patchText(lines ...string) string {
	return "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch\n"
}

func plan(t testing.TB, tree *Tree, lines ...string) Plan {
	t.Helper()
	p, err := tryPlan(tree, nil, lines...)
	must(t, err)
	return p
}

func tryPlan(tree *Tree, expected map[string]string, lines ...string) (Plan, error) {
	p, err := patch.Parse(patchText(lines...))
	if err != nil {
		return Plan{}, err
	}
	return tree.Plan(context.Background(), p, expected)
}

func apply(t testing.TB, tree *Tree, p Plan) Outcome {
	t.Helper()
	j := newJournals(t)
	o, err := tree.Apply(t.Context(), p, j, "op-1")
	must(t, err)
	return o
}

func wantApplied(t testing.TB, o Outcome) {
	t.Helper()
	if o.Status != Applied || o.Reason != "" || len(o.Left) > 0 {
		t.Fatalf("outcome %+v, want applied", o)
	}
}

// noneAside fails when something that a transaction set aside is still there.
func noneAside(t testing.TB, dir string) {
	t.Helper()
	for name := range disk(t, dir) {
		if strings.HasPrefix(filepath.Base(name), ".writ-") {
			t.Errorf("%s was left behind", name)
		}
	}
}
