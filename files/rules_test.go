package files

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"writ"
)

// protected is what a careful operator denies.
var protected = Rules{
	DenyRead:  []string{".env", "*.pem", "secrets/"},
	DenyWrite: []string{".git/hooks/**", ".git/config", "**/ci/*.yml"},
}

func TestPOL15_ProtectedPathsInAllSpellings(t *testing.T) {
	content := layout{
		".env": "KEY", "sub/.env": "KEY", "key.pem": "KEY", "secrets/deep/x": "KEY", ".git/hooks/pre-commit": "x\n", ".git/config": "x\n",
		"a/ci/run.yml": "x\n", "plain.txt": "x\n", ".ENV": "KEY", "envy": "x\n", ".git/HEAD": "x\n",
	}
	tree := newTree(t, content, protected)
	for _, name := range []string{
		".env", "./.env", "sub/../.env", "sub/.env", "sub//.env", "key.pem", "KEY.PEM", "secrets/deep/x", "secrets", ".ENV", ".Env",
		".e\u200bnv", ".env.", ".env ", "\u017fecrets/deep/x", ".env/x",
	} {
		_, err := tree.Read(t.Context(), name, 0, 10)
		wantCode(t, "read "+quoted(name), err, CodeUnauthorized)
		_, err = tree.Version(t.Context(), name)
		wantCode(t, "version "+quoted(name), err, CodeUnauthorized)
		_, err = tryPlan(tree, map[string]string{name: "absent"}, "*** Update File: plain.txt", "-x", "+y")
		wantCode(t, "expect "+quoted(name), err, CodeUnauthorized)
	}
	for _, name := range []string{".git/hooks/pre-commit", ".GIT/hooks/new", ".git/Hooks/x", ".git/hooks", ".git", ".git/config", "a/ci/run.yml", "a/CI/run.yml", ".git./hooks/x"} {
		_, err := tryPlan(tree, nil, "*** Add File: "+name, "+x")
		wantCode(t, "add "+quoted(name), err, CodeUnauthorized)
		_, err = tryPlan(tree, nil, "*** Update File: plain.txt", "*** Move to: "+name, "-x", "+y")
		wantCode(t, "move to "+quoted(name), err, CodeUnauthorized)
		_, err = tryPlan(tree, nil, "*** Update File: "+name, "*** Move to: free", "-x", "+y")
		wantCode(t, "move from "+quoted(name), err, CodeUnauthorized)
		_, err = tryPlan(tree, nil, "*** Delete File: "+name)
		wantCode(t, "delete "+quoted(name), err, CodeUnauthorized)
	}
	for _, name := range []string{"plain.txt", "envy", ".git/HEAD", ".git/hooks/pre-commit"} {
		if _, err := tree.Read(t.Context(), name, 0, 10); err != nil {
			t.Errorf("read %s: %v", name, err)
		}
	}
	plan(t, tree, "*** Update File: .git/HEAD", "-x", "+y", "*** Add File: a/ci2/run.yml", "+x")
	got := find(t, tree, Query{}).Paths
	want := []string{".git/HEAD", ".git/config", ".git/hooks/pre-commit", "a/ci/run.yml", "envy", "plain.txt"}
	if !slices.Equal(got, want) {
		t.Errorf("find lists %v, want %v", got, want)
	}
	if l := find(t, tree, Query{Content: "KEY"}); l.Total != 0 {
		t.Errorf("the content of denied files is found: %v", l.Matches)
	}
}

func TestPOL15_HardLinksToProtectedFiles(t *testing.T) {
	tree := newTree(t, layout{"sub/.env": "KEY\n", "plain": "x\n"}, protected)
	dir := tree.Root()
	must(t, os.Link(filepath.Join(dir, "sub/.env"), filepath.Join(dir, "alias")))
	must(t, os.Link(filepath.Join(dir, "plain"), filepath.Join(dir, "other")))
	_, err := tree.Read(t.Context(), "alias", 0, 10)
	wantCode(t, "read", err, CodeUnauthorized)
	_, err = tryPlan(tree, nil, "*** Update File: alias", "-KEY", "+x")
	wantCode(t, "patch", err, CodeUnauthorized)
	if l := find(t, tree, Query{Content: "KEY"}); l.Total != 0 {
		t.Errorf("found by content: %v", l.Matches)
	}
	// A patch of a file with two names changes the name it was given alone.
	wantApplied(t, apply(t, tree, plan(t, tree, "*** Update File: other", "-x", "+y")))
	wantFile(t, tree, "plain", "x\n", 0o644)
	wantFile(t, tree, "other", "y\n", 0o644)
	// Without rules every name is as good as another.
	free := openTree(t, dir)
	if w := read(t, free, "alias", 0, 10); string(w.Content) != "KEY\n" {
		t.Errorf("read %q", w.Content)
	}
}

func TestPOL15_LinksToProtectedFiles(t *testing.T) {
	tree := newTree(t, layout{".env": "KEY", "soft": "-> .env", "dir": "-> ."}, protected)
	for _, name := range []string{"soft", "dir/.env"} {
		if _, err := tree.Read(t.Context(), name, 0, 10); err == nil {
			t.Errorf("read %s: allowed", name)
		}
	}
}

func TestAllowRules(t *testing.T) {
	tree := newTree(t, layout{"src/a": "x\n", "docs/b": "x\n", "SRC/c": "x\n", "d": "x\n"}, Rules{Read: []string{"src/**", "docs/"}, Write: []string{"src"}, DenyWrite: []string{"*.lock"}})
	for name, want := range map[string][2]bool{
		"src/a": {true, true}, "docs/b": {true, false}, "SRC/c": {false, false}, "d": {false, false}, "src/x.lock": {true, false}, "src": {true, true},
	} {
		if got := [2]bool{tree.rules.mayRead(name), tree.rules.mayWrite(name)}; got != want {
			t.Errorf("%s: read, write %v, want %v", name, got, want)
		}
	}
	if got := find(t, tree, Query{}).Paths; !slices.Equal(got, []string{"docs/b", "src/a"}) {
		t.Errorf("find lists %v", got)
	}
	// What is outside of the allowed is denied by every name that it has.
	must(t, os.Link(filepath.Join(tree.Root(), "d"), filepath.Join(tree.Root(), "src/alias")))
	_, err := tree.Read(t.Context(), "src/alias", 0, 10)
	wantCode(t, "read", err, CodeUnauthorized)
}

func TestRulesThatAreNone(t *testing.T) {
	for _, r := range []Rules{{DenyRead: []string{""}}, {Read: []string{"/"}}, {DenyWrite: []string{"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"}}} {
		if err := r.Validate(); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%+v: %v, want it refused", r, err)
		}
		if _, err := Open(t.TempDir(), r); writ.KindOf(err) != writ.Invalid {
			t.Errorf("open with %+v: %v, want it refused", r, err)
		}
	}
	must(t, protected.Validate())
}

// The names that transactions set aside are not an agent's to write, nor to see.
func TestReservedNames(t *testing.T) {
	tree := newTree(t, nil)
	for _, kind := range []string{"new", "old", "part"} {
		name := "x/" + asideName(newTX(), 3, kind)
		_, err := tryPlan(tree, nil, "*** Add File: "+name, "+x")
		wantCode(t, "add "+name, err, CodeUnauthorized)
	}
}
