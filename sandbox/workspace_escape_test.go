package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// TestEscapeFromWorkspace makes every attempt of testdata/workspace (see attempt) in a
// box that works in a workspace, as whoever may own one here, and looks afterwards
// whether all that was held is as it was.
func TestEscapeFromWorkspace(t *testing.T) {
	files, err := filepath.Glob("testdata/workspace/*.txtar")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	b := newProvider(t, Options{})
	owners := map[string]int{"of the server's user": os.Geteuid()}
	if os.Geteuid() == 0 {
		owners = map[string]int{"of root": 0, "of a user": 12345}
	}
	for _, file := range files {
		a := readAttempt(t, file)
		for name, owner := range owners {
			t.Run(a.name+" "+name, func(t *testing.T) {
				w := heldWorkspace(t)
				canary := filepath.Join(filepath.Dir(w.Root), "canary")
				if err := os.WriteFile(canary, []byte("secret"), 0o644); err != nil {
					t.Fatal(err)
				}
				for name, target := range map[string]string{"escape": canary, "up": filepath.Dir(w.Root), "link": canary, "pinned": canary} {
					if err := os.Symlink(target, filepath.Join(w.Root, name)); err != nil {
						t.Fatal(err)
					}
				}
				give(t, w.Root, owner)
				before := held(t, w, canary)
				cmd := a.command(t, "/run/writ", escapeLimits(t, ""), []string{"ROOT=" + w.Root, "CANARY=" + canary})
				r := runInWorkspace(t, b, w, cmd)
				a.check(t, a.expectation(t, r.Sandbox.Active), r)
				absent(t, "made", filepath.Dir(w.Root))
				if diff := cmp.Diff(before, held(t, w, canary)); diff != "" {
					t.Errorf("on the host: %s", diff)
				}
			})
		}
	}
}

// heldWorkspace is a workspace in which paths of all kinds are held.
func heldWorkspace(t *testing.T) Workspace {
	t.Helper()
	w := newWorkspace(t, map[string]string{
		"a": "a", "free/": "", ".env": "TOKEN=s3cr3t", "conf/key": "s3cr3t", "conf/other": "o", "secrets/token": "s3cr3t", "secrets/deep/token": "s3cr3t",
		".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n", "locked/in/side": "x",
	})
	w.Hidden = []string{".env", "conf/key", "secrets", "link", "secrets/deep"}
	w.Protected = []string{".git/hooks", ".git/config", "locked", "locked/in", "pinned"}
	return w
}

// give makes owner the owner of everything beneath root.
func give(t testing.TB, root string, owner int) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	// The folders above are the test's own, which the owner must get through.
	for dir := filepath.Dir(root); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err := filepath.WalkDir(root, func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, owner, owner)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// held is what no attempt may change: content and mode of everything that is held in w
// and of what is outside.
func held(t *testing.T, w Workspace, outside string) map[string]string {
	t.Helper()
	state := map[string]string{}
	look := func(p string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(p)
		if err != nil {
			return err
		}
		state[p] = info.Mode().String() + info.ModTime().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(p)
			state[p] += string(writ.DigestOf(content))
			return err
		}
		return nil
	}
	for _, p := range append(append([]string{"../" + filepath.Base(outside)}, w.Hidden...), w.Protected...) {
		if err := filepath.WalkDir(filepath.Join(w.Root, p), look); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		state[p] = info.Mode().String()
	}
	return state
}
