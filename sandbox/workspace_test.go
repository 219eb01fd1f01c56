package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"writ"
)

// newWorkspace is a folder of the host for a box, with files in it by their names; a
// name that ends in a slash is a folder. The box's user owns it all.
func newWorkspace(t testing.TB, files map[string]string) Workspace {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		p := filepath.Join(root, name)
		if name[len(name)-1] == '/' {
			err = os.MkdirAll(p, 0o755)
		} else if err = os.MkdirAll(filepath.Dir(p), 0o755); err == nil {
			err = os.WriteFile(p, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return Workspace{Root: root, Writable: true}
}

// prepareIn is a box that works in w.
func prepareIn(t testing.TB, b *Bubblewrap, w Workspace, l writ.Limits) Box {
	t.Helper()
	box, err := b.Prepare(t.Context(), Template{Limits: l, Workspace: &w})
	if err != nil {
		t.Fatalf("prepare: %v", err)
	}
	t.Cleanup(func() {
		if err := box.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return box
}

// runInWorkspace runs cmd in a new box that works in w, to its end.
func runInWorkspace(t testing.TB, b *Bubblewrap, w Workspace, cmd Command) writ.Result {
	t.Helper()
	if cmd.Dir == "/workspace" {
		cmd.Dir = w.Root
	}
	box := prepareIn(t, b, w, cmd.Limits)
	run, err := box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatalf("start %q: %v", cmd.Argv, err)
	}
	r := run.Wait()
	if err := box.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return r
}

func TestWorkspaceIsBoundAtItsOwnPath(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{"in": "from the host\n"})
	r := runInWorkspace(t, b, w, shell("pwd; cat in; echo made > out; id -un; touch ~/x && echo home"))
	wantExit(t, r, 0)
	if want := w.Root + "\nfrom the host\nagent\nhome\n"; r.Stdout.Text != want {
		t.Errorf("got %s", show(r))
	}
	if got, err := os.ReadFile(filepath.Join(w.Root, "out")); err != nil || string(got) != "made\n" {
		t.Errorf("on the host: %q, %v", got, err)
	}
}
