package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHoldsOfPaths(t *testing.T) {
	for name, c := range map[string]struct {
		w    Workspace
		want string
	}{
		"nothing":                   {Workspace{Writable: true}, ""},
		"pins what is above":        {Workspace{Writable: true, Protected: []string{"a/b/c"}, Hidden: []string{"a/x/y"}}, "1 a|1 a/b|2 a/b/c|1 a/x|3 a/x/y"},
		"hidden wins":               {Workspace{Writable: true, Protected: []string{"a"}, Hidden: []string{"a"}}, "3 a"},
		"hidden in protected":       {Workspace{Writable: true, Protected: []string{"a"}, Hidden: []string{"a/b/c"}}, "2 a|3 a/b/c"},
		"protected in hidden":       {Workspace{Writable: true, Protected: []string{"a/b"}, Hidden: []string{"a"}}, "3 a"},
		"protected in protected":    {Workspace{Writable: true, Protected: []string{"a/b/c", "a"}}, "2 a"},
		"names that sort otherwise": {Workspace{Writable: true, Protected: []string{"a/b", "a-b", "a.b"}}, "1 a|2 a-b|2 a.b|2 a/b"},
		"read-only":                 {Workspace{Protected: []string{"a"}, Hidden: []string{"b/c"}}, "3 b/c"},
	} {
		var got []string
		for _, h := range c.w.holds() {
			got = append(got, fmt.Sprint(uint32(h.Kind), " ", h.Path))
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%s: got %s, want %s", name, s, c.want)
		}
	}
}

// BW-10: what is protected in a writable folder is, in whatever order it is named, and
// also a writable folder in one that the box has read-only is writable.
func TestBW10_OrderDoesNotMatter(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{".git/hooks/h": "", "sub/deep/x": "", "sub/deep/y": ""})
	paths := []string{".git", "sub/deep/x", ".git/hooks"}
	for i := range paths {
		w.Protected = append(slices.Clone(paths[i:]), paths[:i]...)
		r := runInWorkspace(t, b, w, shell("touch a; for p in .git/y .git/hooks/y sub/deep/x /usr/x; do echo x 2> /dev/null >> $p && echo $p; done; echo y >> sub/deep/y"))
		wantExit(t, r, 0)
		if r.Stdout.Text != "" {
			t.Errorf("%v: %s", w.Protected, show(r))
		}
	}
}

// BW-13: thousands of held paths hold, and cost a command no error.
func TestBW13_ThousandsOfHeldPaths(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{"data/": "", "free": "f"})
	for i := range 6000 {
		p := fmt.Sprintf("data/%d.parquet", i)
		writeFile(t, filepath.Join(w.Root, p), "secret")
		if i%2 == 0 {
			w.Hidden = append(w.Hidden, p)
		} else {
			w.Protected = append(w.Protected, p)
		}
	}
	give(t, w.Root, os.Geteuid())
	cmd := shell(`echo hi; cd data
		for i in 0 2998 5998; do cat $i.parquet; done 2> /dev/null
		for i in 1 2999 5999; do cat $i.parquet; echo x >> $i.parquet; done 2> /dev/null
		grep -l secret *.parquet 2> /dev/null | wc -l; touch new && echo free`)
	box := prepareIn(t, b, w, cmd.Limits)
	if left := box.Unheld(); len(left) > 0 {
		t.Errorf("%d paths are not held, %q ...", len(left), left[0])
	}
	cmd.Dir = w.Root
	run, err := box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	r := run.Wait()
	wantExit(t, r, 0)
	if r.Stdout.Text != "hi\nsecretsecretsecret3000\nfree\n" {
		t.Errorf("got %s", show(r))
	}
}

// BW-08: what is not there cannot be held: that is said, the box works, and nothing is
// made on the host. It is held in the next box, when it is there.
func TestBW08_MissingPathsAreToldAndLeaveNothing(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{".git/config": "", "a": "", "real/x": "x", "locked/x": "x"})
	if err := os.Symlink("real", filepath.Join(w.Root, "alias")); err != nil {
		t.Fatal(err)
	}
	w.Protected = []string{".git/config", ".git/hooks", ".env", "a/b", "no/such/folder", "alias", "alias/x"}
	w.Hidden = []string{".aws", "nope/x", "alias/y"}
	before := list(t, w.Root)
	box := prepareIn(t, b, w, program().Limits)
	want := []string{".aws", ".env", ".git/hooks", "a/b", "alias", "alias/x", "alias/y", "no/such/folder", "nope/x"}
	if diff := cmp.Diff(want, box.Unheld()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, list(t, w.Root)); diff != "" {
		t.Errorf("while the box lives: %s", diff)
	}
	cmd := shell("echo ok; mkdir .git/hooks; echo new > .aws; cat .aws")
	cmd.Dir = w.Root
	run, err := box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	r := run.Wait()
	wantExit(t, r, 0)
	if r.Stdout.Text != "ok\nnew\n" {
		t.Errorf("got %s", show(r))
	}
	if diff := cmp.Diff(append([]string{".aws", ".git/hooks"}, before...), list(t, w.Root), cmp.Transformer("sort", func(l []string) []string { return slices.Sorted(slices.Values(l)) })); diff != "" {
		t.Errorf("afterwards: %s", diff)
	}
	r = runInWorkspace(t, b, w, shell("cat .aws; touch .git/hooks/x; true"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "" || strings.Count(r.Stderr.Text, "\n") != 2 {
		t.Errorf("the next box: %s", show(r))
	}
}

// What is beneath a held folder stays held whatever the host does there; a held file
// that the host replaces is told.
func TestHeldPathsThatTheHostReplaces(t *testing.T) {
	w := newWorkspace(t, map[string]string{"secrets/a": "s3cr3t", ".env": "s3cr3t"})
	w.Hidden = []string{"secrets", ".env"}
	cmd := shell("read x; cat secrets/* .env 2> /dev/null; ls secrets; true")
	cmd.Input = true
	l := begin(t, newProvider(t, Options{}), w, cmd)
	if left := l.box.Unheld(); len(left) > 0 {
		t.Errorf("not held: %q", left)
	}
	for _, name := range []string{"secrets/a", "secrets/b"} {
		if err := os.Rename(writeFile(t, w.Root+"/new", "newer s3cr3t"), filepath.Join(w.Root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if left := l.box.Unheld(); len(left) > 0 {
		t.Errorf("not held: %q", left)
	}
	l.types("\n")
	wantExit(t, l.Wait(), 0)
	if got := l.out.String(); strings.Contains(got, "s3cr3t") {
		t.Errorf("got %q", got)
	}
	if err := os.Rename(writeFile(t, w.Root+"/new", "newer"), filepath.Join(w.Root, ".env")); err != nil {
		t.Fatal(err)
	}
	if err := l.box.Close(); err != nil {
		t.Error(err)
	}
	if left := l.box.Unheld(); len(left) > 0 {
		t.Errorf("of a closed box: %q", left)
	}

	box := prepareIn(t, newProvider(t, Options{}), w, cmd.Limits)
	if err := os.Rename(writeFile(t, w.Root+"/new", "newer"), filepath.Join(w.Root, ".env")); err != nil {
		t.Fatal(err)
	}
	if left := box.Unheld(); !slices.Equal(left, []string{".env"}) {
		t.Errorf("not held: %q", left)
	}
}

// Folders that the box may not enter do not keep it from being made, nor are they a way
// around what is held in them.
func TestHeldPathsInClosedFolders(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{"closed/key": "s3cr3t", "others/key": ""})
	if os.Geteuid() == 0 {
		writeFile(t, filepath.Join(w.Root, "others/key"), "s3cr3t")
		give(t, w.Root, 12345)
	}
	if err := os.Chmod(filepath.Join(w.Root, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(w.Root, "closed"), 0o700) })
	w.Hidden = []string{"closed/key"}
	if os.Geteuid() == 0 {
		give(t, filepath.Join(w.Root, "others"), 4711)
		if err := os.Chmod(filepath.Join(w.Root, "others"), 0o700); err != nil {
			t.Fatal(err)
		}
		w.Hidden = append(w.Hidden, "others/key")
	}
	r := runInWorkspace(t, b, w, shell("chmod 700 closed others 2> /dev/null; cat */key; true"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "" {
		t.Errorf("got %s", show(r))
	}
}

// BW-16: the metadata of a git worktree lies elsewhere: the box starts, and git says
// what it cannot have.
func TestBW16_WorktreeWhoseMetadataIsElsewhere(t *testing.T) {
	need(t, "git", "/usr/bin/git")
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{".git": "gitdir: /nowhere/meta.git\n", "f": ""})
	w.Protected = []string{".git"}
	other := newWorkspace(t, map[string]string{"f": ""})
	other.Protected = []string{".git/hooks", ".git"}
	if err := os.Symlink("/nowhere/meta.git", filepath.Join(other.Root, ".git")); err != nil {
		t.Fatal(err)
	}
	for _, w := range []Workspace{w, other} {
		r := runInWorkspace(t, b, w, shell("touch made && echo starts; git status"))
		wantExit(t, r, 128)
		if r.Stdout.Text != "starts\n" || !strings.Contains(r.Stderr.Text, "not a git repository") {
			t.Errorf("got %s", show(r))
		}
	}
}

// A socket of the host's that lies in the workspace is as reachable as a file there;
// one that is hidden is not, and none elsewhere is.
func TestPR12_SocketsOfTheHostInAWorkspace(t *testing.T) {
	need(t, "python", "/usr/bin/python3")
	b := newProvider(t, Options{})
	dir, err := os.MkdirTemp("", "s") // t.TempDir is too long for a socket's name
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	w := Workspace{Root: filepath.Join(dir, "w"), Writable: true, Hidden: []string{"hidden"}}
	if err := os.Mkdir(w.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	var counts []func() int
	for _, p := range []string{"w/open", "w/hidden", "outside"} {
		counts = append(counts, listen(t, filepath.Join(dir, p)))
	}
	r := runInWorkspace(t, b, w, python(t, `
import socket
for p in ("open", "hidden", "../outside"):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(p)
        print(p, s.recv(5).decode())
    except OSError as e:
        print(p, "refused")
`))
	wantExit(t, r, 0)
	if r.Stdout.Text != "open hello\nhidden refused\n../outside refused\n" {
		t.Errorf("got %s", show(r))
	}
	for i, want := range []int{1, 0, 0} {
		if got := counts[i](); got != want {
			t.Errorf("socket %d was reached %d times", i, got)
		}
	}
}

// list is every name beneath root.
func list(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		if p != root {
			names = append(names, strings.TrimPrefix(p, root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
