package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"writ"
)

func pidText(pid int) string { return strconv.Itoa(pid) }

// inherit makes f one that every child gets.
func inherit(t *testing.T, f *os.File) {
	t.Helper()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
}

func (s processSuite) environment(t *testing.T) {
	m := s.processes(t)
	w := tree(t, nil)
	root := w.Root
	writes(t, m, script(w, "pwd; echo $HOME; echo $TMPDIR; echo $PATH; id -un; umask"),
		root+"\n"+root+"\n/tmp\n/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin\nagent\n0022\n")
	writes(t, m, script(w, `touch ~/x && cp /bin/true $TMPDIR/t && $TMPDIR/t && echo ok; printf '\u00e9\n'`), "ok\né\n")
	writes(t, m, Order(w, "python3", "-c", `import getpass, os; print(getpass.getuser(), os.path.expanduser("~"), "\u2192")`), "agent "+root+" \u2192\n")
	writes(t, m, Order(w, "env", "-u", "HOME", "python3", "-c", "import site; print('fine')"), "fine\n")
	// What one leaves in /tmp is not there for the next, what it leaves in the workspace is.
	writes(t, m, script(w, "ls /tmp/t 2>/dev/null; ls"), "x\n")
}

func (s processSuite) nothingForeign(t *testing.T) {
	t.Setenv("WRIT_TEST_SECRET", "S3CR")
	// A descriptor that a careless library left open for children.
	leak, err := os.Create(filepath.Join(t.TempDir(), "leak"))
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	inherit(t, leak)
	m := s.processes(t)
	w := tree(t, nil)
	for _, tty := range []bool{false, true} {
		o := script(w, `ls /proc/self/fd | tr '\n' ' '; echo; for p in /proc/[0-9]*; do tr '\0' '\n' < $p/environ; done 2>/dev/null; env; ls -l /proc/[0-9]*/fd 2>/dev/null; exit 0`)
		o.TTY = tty
		got := Begin(t, m, o).ExitsWith(0)
		// 3 is the folder that ls reads.
		if !strings.HasPrefix(got, "0 1 2 3 ") || strings.HasPrefix(got, "0 1 2 3 4") || strings.Contains(got, "S3CR") || strings.Contains(got, "leak") {
			t.Errorf("it sees %q", got)
		}
	}
}

func (s processSuite) rules(t *testing.T) {
	m := s.processes(t)
	w := tree(t, map[string]string{
		".env": "TOKEN=s3cr3t", "deep/er/.env": "TOKEN=s3cr3t", "secrets/a/key": "s3cr3t", "locked/file": "fixed", "free/file": "f",
	})
	for _, link := range [][2]string{{"secrets/a/key", "free/link"}} {
		if err := os.Link(filepath.Join(w.Root, link[0]), filepath.Join(w.Root, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	w.Rules = writ.PathRules{DenyRead: []string{".env", "secrets"}, DenyWrite: []string{"locked"}}
	got := Begin(t, m, script(w, `
		cat .env deep/er/.env secrets/a/key free/link; ls secrets
		echo x > .env; echo x > locked/file; echo x > locked/new; rm -rf locked secrets .env; mv deep/er elsewhere; mv locked unlocked; ln -f .env got
		cat locked/file; echo changed > free/file; echo done`)).ExitsWith(0)
	if strings.Contains(got, "s3cr3t") || !strings.Contains(got, "fixed") || !strings.HasSuffix(got, "done\n") {
		t.Errorf("it wrote %q", got)
	}
	left := FilesBeneath(t, w.Root)
	for name, want := range map[string]string{".env": "TOKEN=s3cr3t", "deep/er/.env": "TOKEN=s3cr3t", "secrets/a/key": "s3cr3t", "locked/file": "fixed", "free/file": "changed\n"} {
		if left[name] != want {
			t.Errorf("%s is %q, want %q", name, left[name], want)
		}
		delete(left, name)
	}
	delete(left, "free/link")
	if len(left) != 0 {
		t.Errorf("there is more: %v", left)
	}
	// Only some may be read.
	w.Rules = writ.PathRules{Read: []string{"free/**"}, DenyRead: []string{"free/link"}}
	got = Begin(t, m, script(w, "cat .env locked/file secrets/a/key free/link 2>/dev/null; cat free/file; echo new > made; cat made")).ExitsWith(0)
	if got != "changed\nnew\n" {
		t.Errorf("it wrote %q", got)
	}
	// Rules that are none start nothing.
	w.Rules = writ.PathRules{DenyRead: []string{strings.Repeat("x", 5000)}}
	wantFault(t, "a faulty rule", m.Start(t.Context(), Order(w, "touch", "marker")), writ.Invalid, "PROCESS_SPAWN_FAILED")
}

func (s processSuite) guarded(t *testing.T) {
	m := s.processes(t)
	w := tree(t, map[string]string{
		".git/hooks/pre-commit": "#!/bin/sh\n", ".git/config": "[core]\n", ".git/HEAD": "ref: refs/heads/main\n",
		".vscode/tasks.json": "{}", ".envrc": "true\n", ".gitmodules": "", ".mcp.json": "{}",
	})
	before := FilesBeneath(t, w.Root)
	Begin(t, m, script(w, `
		for f in .git/hooks/pre-commit .git/hooks/post-commit .git/config .vscode/tasks.json .vscode/settings.json .envrc .gitmodules .mcp.json; do
			echo evil > $f; rm -f $f; done
		rm -rf .git .vscode; mv .git other; mv .git/hooks .git/other; mkdir .git/x && rmdir .git/x && echo work > .git/COMMIT_EDITMSG; exit 0`)).ExitsWith(0)
	after := FilesBeneath(t, w.Root)
	if after[".git/COMMIT_EDITMSG"] != "work\n" {
		t.Error("what git must write in .git could not be")
	}
	delete(before, ".git/HEAD") // that is git's to lose
	for name, want := range before {
		if after[name] != want {
			t.Errorf("%s is %q, want %q", name, after[name], want)
		}
	}
}

func (s processSuite) folder(t *testing.T) {
	m := s.processes(t)
	w := tree(t, map[string]string{"a/b/file": ""})
	for dir, want := range map[string]string{"": "", ".": "", "a": "/a", "a/b/": "/a/b", "a/../a/./b": "/a/b"} {
		o := Order(w, "pwd")
		o.Dir = dir
		writes(t, m, o, w.Root+want+"\n")
	}
	for _, dir := range []string{"/", "..", "a/../..", w.Root, "a/../../" + filepath.Base(w.Root)} {
		o := Order(w, "touch", "made")
		o.Dir = dir
		wantFault(t, dir, m.Start(t.Context(), o), writ.Denied, "PATH_ESCAPE")
	}
	// The root may be a symlink of the operator's; the command sees the folder itself.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(w.Root, link); err != nil {
		t.Fatal(err)
	}
	writes(t, m, Order(WorkspaceAt(link), "pwd"), w.Root+"\n")
}
