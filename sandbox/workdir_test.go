package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"writ"
)

// A box works where it is told: in memory of its own, of the size of the workspace, and
// beside it nothing can be made.
func TestBoxWorksWhereItIsTold(t *testing.T) {
	b := newProvider(t, Options{})
	_, r := leave(t, b, shell(`pwd; echo $HOME; stat -c '%A %U' . /mnt; ls -a /mnt; ls -d /workspace 2>&1; touch /mnt/x /mnt/data/../y 2>&1
		printf '#!/bin/sh\necho executed\n' > x; chmod 4755 x; ./x; stat -f -c '%b %S' .
		grep ' /mnt' /proc/self/mounts | cut -d' ' -f2,3,4 | cut -d, -f1-3`))
	wantExit(t, r, 0)
	got := strings.Split(r.Stdout.Text, "\n")
	want := []string{"/mnt/data", "/mnt/data", "drwx------ agent", "drwx------ agent", ".", "..", "data", "ls: cannot access '/workspace': No such file or directory",
		"touch: cannot touch '/mnt/x': Read-only file system", "touch: cannot touch '/mnt/data/../y': Read-only file system", "executed",
		fmt.Sprint(writ.DefaultLimits.WorkspaceBytes/4096, " 4096"), "/mnt/data tmpfs rw,nosuid,nodev", ""}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", r.Stdout.Text, strings.Join(want, "\n"))
	}
	_, r = leave(t, b, shell("for i in 1 2 3; do head -c 50000000 /dev/zero > f$i; done"))
	if wantOutcome(t, r, writ.Failed); !strings.Contains(r.Stderr.Text, "No space left on device") {
		t.Errorf("result: %s", show(r))
	}
}

// Where it works is one of a list.
func TestBoxWorksNowhereElse(t *testing.T) {
	b := newProvider(t, Options{})
	for _, dir := range []string{"/", "/mnt", "/mnt/data/", "/mnt/data/x", "/mnt/../mnt/data", "mnt/data", "/usr", "/tmp", "/etc", "/home/agent", "/run/writ", "/proc", "/srv", "\x00"} {
		box, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits, Dir: dir})
		if box != nil || writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), "/mnt/data") {
			t.Errorf("%q: %v", dir, err)
		}
	}
	w := newWorkspace(t, nil)
	if box, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits, Dir: workDir, Workspace: &w}); box != nil || writ.KindOf(err) != writ.Invalid {
		t.Errorf("in memory and in a workspace: %v", err)
	}
	for _, dir := range []string{"", "/workspace"} {
		box, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		run, err := box.Start(t.Context(), shell("pwd; echo -n x > f; ls /mnt 2>&1"))
		if err != nil {
			t.Fatal(err)
		}
		if r := run.Wait(); r.Stdout.Text != "/workspace\nls: cannot access '/mnt': No such file or directory\n" {
			t.Errorf("%q: %s", dir, show(r))
		}
		wantLines(t, box, "/workspace", `"f" -rw-r--r-- x`)
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Symlinks of a box lead where they say, and cannot be changed.
func TestLinksOfABox(t *testing.T) {
	b := newProvider(t, Options{})
	prepare := func(links ...Link) (Box, error) {
		return b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits, Dir: workDir, Links: links})
	}
	box, err := prepare(Link{"/lib-of-all", "/usr/lib"}, Link{"/mnt/gone", "/usr/no-such-folder"})
	if err != nil {
		t.Fatal(err)
	}
	cmd := shell(`readlink /lib-of-all /mnt/gone; ls /lib-of-all/os-release; ls /mnt; rm /lib-of-all 2>/dev/null || ln -sfn /tmp /mnt/gone 2>/dev/null || echo held`)
	cmd.Dir = workDir
	run, err := box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	if r := run.Wait(); r.Stdout.Text != "/usr/lib\n/usr/no-such-folder\n/lib-of-all/os-release\ndata\ngone\nheld\n" {
		t.Error(show(r))
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	for _, l := range []Link{{"", "/usr"}, {"/x", ""}, {"/x", "usr"}, {"/../x", "/usr"}, {"/usr/x", "/usr"}, {"/mnt", "/usr"}, {"/mnt/data/x", "/usr"}, {"/", "/usr"}, {"/etc/passwd", "/x"}, {"/x\x00", "/usr"}} {
		if box, err := prepare(l); box != nil || writ.KindOf(err) != writ.Invalid {
			t.Errorf("%q: %v", l, err)
		}
	}
}

// What is in the memory of the work folder counts as memory and as files, under its name.
func TestRS02_WorkFolderIsCounted(t *testing.T) {
	cmd := python(t, `
import time
for d in "/mnt/data", "/dev/shm":
    open(d + "/f", "wb").write(bytes(50 << 20))
time.sleep(20)`)
	cmd.Limits.MemoryBytes = 64 << 20
	box, r := leave(t, uncounted(t), cmd)
	wantOutcome(t, r, writ.OutOfMemory)
	found := 0
	if err := box.Files(t.Context(), workDir, func(e Entry) error { found++; return nil }); err != nil || found != 1 {
		t.Errorf("%d files: %v", found, err)
	}
}

// SEC-01: the server's environment is no box's.
func TestSEC01_NothingOfTheServersEnvironment(t *testing.T) {
	t.Setenv("WRIT_TEST_SECRET", "sesame-4711")
	b := newProvider(t, Options{})
	_, r := leave(t, b, shell("env; cat /proc/self/environ /proc/1/cmdline /proc/*/environ 2>/dev/null | tr '\\0' '\\n'; set"))
	wantExit(t, r, 0)
	if strings.Contains(r.Stdout.Text, "sesame-4711") || !strings.Contains(r.Stdout.Text, "HOME=/mnt/data") {
		t.Errorf("result: %s", show(r))
	}
}

// What the languages of the code interpreter need of a box, within its default limits.
func TestToolchainsWorkInABox(t *testing.T) {
	b := newProvider(t, Options{})
	for _, c := range []struct{ name, program, script string }{
		{"python", "/usr/bin/python3", `python3 -c 'import multiprocessing; print(multiprocessing.Pool(2).map(abs, [-1, -2]))' | grep -x '\[1, 2\]'`},
		{"php", "/usr/bin/php", `php -r 'echo ctype_alpha("a") ? "extensions" : "", "\n";' | grep -x extensions`},
		{"bun", "/usr/local/bin/bun", `bun -e 'console.log(await Bun.file("/etc/hostname").text(), Bun.spawnSync(["echo", "spawned"]).stdout.toString())' | grep spawned`},
		{"R", "/usr/bin/Rscript", `Rscript -e 'library(parallel); cat(sd(unlist(mclapply(1:3, function(x) x, mc.cores = 2))), "\n")' 2>&1 | grep -x '1 '`},
		{"java", "/usr/bin/keytool", `keytool -help 2>&1 | grep -o -- -genkeypair`}, // a program in Java that needs its settings
	} {
		t.Run(c.name, func(t *testing.T) {
			need(t, c.name, c.program)
			_, r := leave(t, b, shell("set -o pipefail; "+c.script))
			wantExit(t, r, 0)
			if r.Stderr.Text != "" {
				t.Errorf("it complains: %s", show(r))
			}
		})
	}
}
