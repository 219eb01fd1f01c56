package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

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
	for _, above := range []string{"", "/dev/shm", "/var/tmp"} {
		w := newWorkspace(t, map[string]string{"in": "from the host\n"})
		if above != "" {
			dir, err := os.MkdirTemp(above, "writ-workspace-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			w.Root = dir
			writeFile(t, dir+"/in", "from the host\n")
		}
		r := runInWorkspace(t, b, w, shell("pwd; cat in; echo made > out; id -un; touch ~/x && echo home; ls -A "+filepath.Dir(w.Root)+"; touch /var/tmp/x /dev/shm/x && echo tmp"))
		wantExit(t, r, 0)
		if want := w.Root + "\nfrom the host\nagent\nhome\n" + filepath.Base(w.Root) + "\ntmp\n"; r.Stdout.Text != want {
			t.Errorf("got %s", show(r))
		}
		if got := readFile(t, w.Root+"/out"); got != "made\n" {
			t.Errorf("on the host: %q", got)
		}
	}
}

func TestReadOnlyWorkspace(t *testing.T) {
	w := newWorkspace(t, map[string]string{"a": "a", ".env": "s3cr3t", "sub/": ""})
	w.Writable, w.Hidden, w.Protected = false, []string{".env"}, []string{"sub", "missing"}
	r := runInWorkspace(t, newProvider(t, Options{}), w, shell("cat a; for c in 'touch a' 'touch new' 'touch sub/new' 'mv a b' 'rm a' 'cat .env' 'mkdir d'; do $c 2> /dev/null && echo $c; done; true"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "a" {
		t.Errorf("got %s", show(r))
	}
}

// What no box can have is refused with words, and nothing is left.
func TestWorkspacesThatCannotBe(t *testing.T) {
	b := newProvider(t, Options{})
	good := newWorkspace(t, map[string]string{"file": ""})
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(good.Root, link); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		w    Workspace
		kind writ.Kind
		says string
	}{
		"relative":        {Workspace{Root: "x"}, writ.Invalid, "absolute"},
		"not clean":       {Workspace{Root: good.Root + "/."}, writ.Invalid, "clean"},
		"everything":      {Workspace{Root: "/"}, writ.Invalid, "its own files"},
		"usr":             {Workspace{Root: "/usr"}, writ.Invalid, "its own files"},
		"tmp":             {Workspace{Root: "/tmp"}, writ.Invalid, "its own files"},
		"over a home":     {Workspace{Root: "/home"}, writ.Invalid, "its own files"},
		"proc":            {Workspace{Root: "/proc/1"}, writ.Invalid, "system"},
		"etc":             {Workspace{Root: "/etc/ssl"}, writ.Invalid, "system"},
		"a device":        {Workspace{Root: "/dev/pts"}, writ.Invalid, "system"},
		"missing":         {Workspace{Root: good.Root + "/none"}, writ.NotFound, "no folder"},
		"a file":          {Workspace{Root: good.Root + "/file"}, writ.Invalid, "not a folder"},
		"a symlink":       {Workspace{Root: link}, writ.Invalid, "symlink"},
		"BW-11 a parent":  {Workspace{Root: good.Root, Hidden: []string{".."}}, writ.Invalid, `".."`},
		"a way out":       {Workspace{Root: good.Root, Hidden: []string{"a/../../b"}}, writ.Invalid, "beneath"},
		"absolute path":   {Workspace{Root: good.Root, Protected: []string{"/etc/passwd"}}, writ.Invalid, "beneath"},
		"the root itself": {Workspace{Root: good.Root, Hidden: []string{"."}}, writ.Invalid, "beneath"},
		"too many":        {Workspace{Root: good.Root, Hidden: make([]string, maxHeld+1)}, writ.Invalid, "whole folders"},
	} {
		box, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits, Workspace: &c.w})
		if err == nil {
			t.Errorf("%s: a box was made", name)
			_ = box.Close()
			continue
		}
		wantKind(t, err, c.kind)
		if !strings.Contains(writ.Message(err), c.says) {
			t.Errorf("%s: %q is not in %q", name, c.says, writ.Message(err))
		}
	}
}

// What is bound is the folder that was opened, whatever has its name when bwrap looks.
func TestFolderIsBoundAsItWasOpened(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{"which": "opened"})
	plan := boxPlan{limits: writ.DefaultLimits}
	if err := plan.openWorkspace(w, b.diskFilter); err != nil {
		t.Fatal(err)
	}
	defer plan.root.Close()
	if err := os.Rename(w.Root, w.Root+"-moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(w.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, w.Root+"/which", "another")
	path, err := b.bwrap()
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.launch(path, nil, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer p.end()
	if _, err := p.awaitReady(t.Context(), time.Now().Add(readyTimeout)); err != nil {
		t.Fatalf("%v: %s", err, p.stderr.String())
	}
	fd, err := unix.Openat(int(p.dirs[len(p.dirs)-1].Fd()), "which", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "which")
	defer f.Close()
	if got, err := io.ReadAll(f); err != nil || string(got) != "opened" {
		t.Errorf("bound was the folder %q, %v", got, err)
	}
}

// Programs are whoever owns the folder, and so is what they make; in the box they are
// one user with a name and a home (EX-23), and git trusts the folder (EX-24).
func TestEX23_EX24_ProgramsAreTheOwner(t *testing.T) {
	need(t, "git", "/usr/bin/git")
	b := newProvider(t, Options{})
	owners := []int{os.Geteuid()}
	if os.Geteuid() == 0 {
		owners = []int{0, 12345}
	}
	for _, owner := range owners {
		w := newWorkspace(t, map[string]string{"repo/sub/f": "x"})
		give(t, w.Root, owner)
		r := runInWorkspace(t, b, w, shell(`set -e
			id -u; id -g; id -G; whoami; touch made; mkdir -p dir
			git init -q .; git -c user.name=a -c user.email=a@b add . ; git -c user.name=a -c user.email=a@b commit -qm x; git -C repo/sub log -1 --format=%s`))
		wantExit(t, r, 0)
		if r.Stdout.Text != "1000\n1000\n1000\nagent\nx\n" || r.Stderr.Text != "" {
			t.Errorf("got %s", show(r))
		}
		for _, name := range []string{"made", "dir", ".git/HEAD"} {
			info, err := os.Stat(filepath.Join(w.Root, name))
			if err != nil {
				t.Fatal(err)
			}
			if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != owner || int(st.Gid) != owner && os.Geteuid() == 0 {
				t.Errorf("%s belongs to %d:%d, want %d", name, st.Uid, st.Gid, owner)
			}
		}
		if os.Geteuid() != 0 {
			continue
		}
		// A repository of somebody else's in the workspace is the workspace's business,
		// one elsewhere is not.
		give(t, filepath.Join(w.Root, ".git"), 4711)
		give(t, filepath.Join(w.Root, "repo"), 4711)
		r = runInWorkspace(t, b, w, shell("git log -1 --format=%s; git -C repo/sub log -1 --format=%s"))
		wantExit(t, r, 0)
	}
}

// The strict setting is about what the host lacks; that programs are the owner of their
// folder is meant.
func TestStrictAndWhatAWorkspaceClaims(t *testing.T) {
	host, err := newProvider(t, Options{}).Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(host.Missing) > 0 { // as for an ordinary user: strict refuses all boxes
		w := newWorkspace(t, nil)
		strict, err := New(Options{Strict: true})
		if err == nil {
			defer strict.Close()
			_, err = strict.Prepare(t.Context(), Template{Limits: writ.DefaultLimits, Workspace: &w})
		}
		wantKind(t, err, writ.Unavailable)
		return
	}
	b := newProvider(t, Options{Strict: true})
	r := runInWorkspace(t, b, newWorkspace(t, nil), shell("true"))
	wantExit(t, r, 0)
	want := slices.DeleteFunc(slices.Clone(host.Active), func(l string) bool { return l == LayerSeparateUID })
	if diff := cmp.Diff(want, r.Sandbox.Active); diff != "" || !slices.Equal(r.Sandbox.Missing, []string{LayerSeparateUID}) {
		t.Errorf("missing %v, active: %s", r.Sandbox.Missing, diff)
	}
}

// The owner must be able to get to the folder; if not, that is said.
func TestOwnerWhoCannotGetToTheFolder(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives a folder to another")
	}
	b := newProvider(t, Options{})
	w := newWorkspace(t, nil)
	give(t, w.Root, 12345)
	if err := os.Chmod(filepath.Dir(w.Root), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits, Workspace: &w})
	wantKind(t, err, writ.Unavailable)
	if !strings.Contains(writ.Message(err), "owner of the workspace cannot get to it") {
		t.Errorf("got %v", err)
	}
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func readFile(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
