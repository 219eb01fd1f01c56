package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func TestTrueInABox(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), program("/bin/true"))
	wantExit(t, r, 0)
	if r.Signal != "" || r.Reason != "" || r.Stdout.Bytes != 0 || r.PeakBytes <= 0 {
		t.Errorf("unexpected result: %s", show(r))
	}
}

// spec/01 §2 rule 9: Python and shell both run, the workspace is writable, the
// network is private, a file of the host cannot be read.
func TestRule9_PythonAndShellRunIsolated(t *testing.T) {
	b := newProvider(t, Options{})
	secret := filepath.Join(t.TempDir(), "sibling")
	if err := os.WriteFile(secret, []byte("S3CR"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := runIn(t, b, python(t, `
import os, socket, sys
open("made", "w").write("x")
try:
    print(open(sys.argv[1]).read())
except OSError as e:
    print("read:", e.errno)
s = socket.socket()
s.settimeout(2)
try:
    s.connect(("192.0.2.1", 80))
except OSError as e:
    print("connect:", e.errno)
print(sorted(os.listdir("/sys/class/net") if os.path.exists("/sys") else []), os.listdir("."))
`, secret))
	wantExit(t, r, 0)
	if want := "read: 2\nconnect: 101\n[] ['made']\n"; r.Stdout.Text != want {
		t.Error(cmp.Diff(want, r.Stdout.Text))
	}
	r = runIn(t, b, shell("echo out; echo err >&2; exit 3"))
	wantExit(t, r, 3)
	if r.Stdout.Text != "out\n" || r.Stderr.Text != "err\n" {
		t.Errorf("outputs: %s", show(r))
	}
}

func TestNodeRuns(t *testing.T) {
	need(t, "node", "/usr/bin/node")
	r := runIn(t, newProvider(t, Options{}), program("/usr/bin/node", "-e", "console.log(1 + 1, process.version.length > 0)"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "2 true\n" || r.Stderr.Text != "" {
		t.Errorf("outputs: %s", show(r))
	}
}

func TestEX01_BackgroundChildKeepsThePipe(t *testing.T) {
	b := newProvider(t, Options{})
	began := time.Now()
	r := runIn(t, b, program("/bin/sh", "-c", "sleep "+asleep(4701)+" & echo started"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "started\n" {
		t.Errorf("output: %s", show(r))
	}
	if d := time.Since(began); d > longEnough { // the child sleeps for more than an hour
		t.Errorf("took %v", d)
	}
	if left := sleeping(t, asleep(4701)); left != nil {
		t.Errorf("still alive: %v", left)
	}
}

func TestEX03_TimeoutEndsTheWholeTree(t *testing.T) {
	cmd := shell(`echo partial; trap "" TERM; (trap "" TERM; exec sleep ` + asleep(4711) + `) & wait`)
	r := intoTimeout(t, newProvider(t, Options{}), cmd, 500, "partial\n")
	if r.ExitCode != nil || r.Signal != "SIGKILL" {
		t.Errorf("result: %s", show(r))
	}
	if left := sleeping(t, asleep(4711)); left != nil {
		t.Errorf("still alive: %v", left)
	}
}

func TestScenario16_LoopThatForksAwayIsGone(t *testing.T) {
	cmd := python(t, `
import os, signal, time
for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGXCPU):
    signal.signal(s, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/bin/sleep", ["sleep", "`+asleep(4716)+`"])
    os._exit(0)
print("forked", flush=True)
while True: pass
`)
	intoTimeout(t, newProvider(t, Options{}), cmd, 1000, "forked\n")
	if left := sleeping(t, asleep(4716)); left != nil {
		t.Errorf("still alive: %v", left)
	}
}

func TestEX05_SignalDeathIsNotSuccess(t *testing.T) {
	b := newProvider(t, Options{})
	for _, c := range []struct {
		script, signal string
		code           int
	}{
		{"kill -SEGV $$", "SIGSEGV", 0},
		{"kill -KILL $$", "SIGKILL", 0},
		{"exit 137", "", 137},
		{"exit 139", "", 139},
	} {
		t.Run(c.script, func(t *testing.T) {
			r := runIn(t, b, shell(c.script))
			wantOutcome(t, r, writ.Failed)
			if r.Signal != c.signal || (r.ExitCode != nil) != (c.signal == "") || r.ExitCode != nil && *r.ExitCode != c.code {
				t.Errorf("result: %s", show(r))
			}
		})
	}
	r := runIn(t, b, python(t, "import os; os.kill(os.getpid(), 9)"))
	if r.Outcome != writ.Failed || r.Signal != "SIGKILL" || r.Reason == "" {
		t.Errorf("result: %s", show(r))
	}
}

func TestEX11_StdinIsWhatWasGivenAndThenAtItsEnd(t *testing.T) {
	b := newProvider(t, Options{})
	r := runIn(t, b, shell("cat; echo after"))
	wantExit(t, r, 0)
	if r.Stdout.Text != "after\n" {
		t.Errorf("result: %s", show(r))
	}
	cmd := shell("cat; echo after; echo x >&0; true")
	cmd.Stdin = []byte("line one\nline two")
	r = runIn(t, b, cmd)
	wantExit(t, r, 0)
	if r.Stdout.Text != "line one\nline twoafter\n" || !strings.Contains(r.Stderr.Text, "Bad file descriptor") {
		t.Errorf("result: %s", show(r))
	}
}

func TestRS10_StdinThatIsNeverRead(t *testing.T) {
	cmd := shell("echo done")
	cmd.Stdin = bytes.Repeat([]byte("x"), writ.MaxStdinBytes)
	r := runIn(t, newProvider(t, Options{}), cmd)
	wantExit(t, r, 0)
	if r.Stdout.Text != "done\n" {
		t.Errorf("result: %s", show(r))
	}
}

func TestEX13_NoTerminalToOpen(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), shell("head -n1 </dev/tty; echo rc=$?"))
	wantExit(t, r, 0)
	if !strings.Contains(r.Stderr.Text, "No such device or address") || r.Stdout.Text == "rc=0\n" {
		t.Errorf("result: %s", show(r))
	}
}

func TestEX18_WorkingDirectoryMustExist(t *testing.T) {
	b := newProvider(t, Options{})
	for dir, want := range map[string]string{
		"/workspace/no/such": `cannot work in "/workspace/no/such": there is no such directory; nothing was executed`,
		"/etc/passwd":        `cannot work in "/etc/passwd": it is not a directory; nothing was executed`,
	} {
		box := prepareBox(t, b, writ.DefaultLimits)
		cmd := shell("touch made; echo ran")
		cmd.Limits = writ.DefaultLimits
		cmd.Dir = dir
		_, err := box.Start(t.Context(), cmd)
		if writ.KindOf(err) != writ.Invalid || writ.Message(err) != want {
			t.Errorf("%s: got %v, want %s", dir, err, want)
		}
		if _, err := box.Start(t.Context(), cmd); err == nil {
			t.Error("a box started twice")
		}
	}
}

func TestProgramThatIsMissing(t *testing.T) {
	b := newProvider(t, Options{})
	for argv0, want := range map[string]string{
		"/usr/bin/no-such": `cannot execute "/usr/bin/no-such": no such file or directory`,
		"/etc/passwd":      `cannot execute "/etc/passwd": permission denied`,
	} {
		_, err := prepareBox(t, b, writ.DefaultLimits).Start(t.Context(), program(argv0))
		if writ.KindOf(err) != writ.Invalid || writ.Message(err) != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestEX20_HomeAndCachesAreWritable(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), shell("touch ~/x && mkdir -p ~/.cache/y ~/.config && echo $HOME && ls -A /workspace | wc -l"))
	wantExit(t, r, 0)
	if r.Stdout.Text != boxHome+"\n0\n" || r.Stderr.Text != "" {
		t.Errorf("result: %s", show(r))
	}
}

func TestEX21_TempDirectoryAllowsExecution(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), shell(`cp /bin/true "$TMPDIR/t" && "$TMPDIR/t" && echo ok`))
	wantExit(t, r, 0)
	if r.Stdout.Text != "ok\n" {
		t.Errorf("result: %s", show(r))
	}
}

func TestEX22_UTF8(t *testing.T) {
	b := newProvider(t, Options{})
	r := runIn(t, b, python(t, `print("\u2192 \u00fc \u6f22")`))
	if r.Stdout.Text != "\u2192 \u00fc \u6f22\n" || r.Stderr.Text != "" {
		t.Errorf("python: %s", show(r))
	}
	r = runIn(t, b, shell(`printf '\u00e9\n'; printf 'ü\na\n' | sort`))
	if r.Stdout.Text != "\u00e9\na\nü\n" || r.Stderr.Text != "" {
		t.Errorf("bash: %s", show(r))
	}
}

func TestEX23_TheUserHasAPasswdEntry(t *testing.T) {
	b := newProvider(t, Options{})
	r := runIn(t, b, shell("whoami && id && env -u HOME /usr/bin/python3 -c 'import site, os; print(os.path.expanduser(\"~\"))'"))
	wantExit(t, r, 0)
	if want := "agent\nuid=1000(agent) gid=1000(agent) groups=1000(agent)"; !strings.HasPrefix(r.Stdout.Text, want) || !strings.HasSuffix(r.Stdout.Text, boxHome+"\n") {
		t.Errorf("result: %s", show(r))
	}
	r = runIn(t, b, python(t, "import getpass, os; print(getpass.getuser(), os.path.expanduser('~'))"))
	if r.Stdout.Text != "agent "+boxHome+"\n" {
		t.Errorf("result: %s", show(r))
	}
}

func TestEX28_ServerSecretsAreNotInTheBox(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "S3CR")
	r := runIn(t, newProvider(t, Options{}), shell(`env; tr '\0' '\n' < /proc/1/environ; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\0' '\n'; echo end`))
	wantExit(t, r, 0)
	if strings.Contains(r.Stdout.Text+r.Stderr.Text, "S3CR") {
		t.Errorf("a secret of the server is in the box: %s", show(r))
	}
	cmd := program("/usr/bin/env")
	cmd.Env = []string{"ONLY=this"}
	if r := runIn(t, newProvider(t, Options{}), cmd); r.Stdout.Text != "ONLY=this\n" {
		t.Errorf("the environment is not the given one: %s", show(r))
	}
}

func TestBW15_ResolvConfIsOurs(t *testing.T) {
	before, errBefore := os.ReadFile("/etc/resolv.conf")
	r := runIn(t, newProvider(t, Options{}), shell("cat /etc/resolv.conf; getent hosts localhost; echo x > /etc/resolv.conf"))
	if !strings.HasPrefix(r.Stdout.Text, "# no name server") || !strings.Contains(r.Stdout.Text, "localhost") {
		t.Errorf("result: %s", show(r))
	}
	if after, err := os.ReadFile("/etc/resolv.conf"); !bytes.Equal(before, after) || (err == nil) != (errBefore == nil) {
		t.Error("the host's resolv.conf changed")
	}
}

func TestBW18_NothingReachesATerminal(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), python(t, `
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
for request in (0x5412, 0x541C):
    for fd in (0, 1, 2):
        try:
            fcntl.ioctl(fd, request, b"x")
            print("went through", hex(request))
        except OSError:
            pass
for request in (0x5412, 0x100005412, 0x541C, 0x10000541C):
    if libc.syscall(16, 0, ctypes.c_ulong(request), b"x") == 0:
        print("went through", hex(request))
print("end")
`))
	if r.Stdout.Text != "end\n" {
		t.Errorf("result: %s", show(r))
	}
}

func TestBW20_WritesOutsideReallyFail(t *testing.T) {
	const probe = ".writ-probe-4720"
	r := runIn(t, newProvider(t, Options{}), shell(`for p in / /etc /usr /usr/local /home /opt /var/tmp /root /run /dev /proc; do touch $p/`+probe+` 2>/dev/null && echo WROTE $p; done; true`))
	wantExit(t, r, 0)
	for _, p := range []string{"/", "/etc", "/usr", "/usr/local", "/home", "/opt", "/var/tmp", "/root", "/run", "/dev", "/tmp"} {
		if _, err := os.Lstat(filepath.Join(p, probe)); !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
			t.Errorf("%s on the host: %v", filepath.Join(p, probe), err)
		}
	}
	if r.Stdout.Text != "WROTE /var/tmp\n" { // a link to the private /tmp
		t.Errorf("result: %s", show(r))
	}
}

func TestFilesArePlaced(t *testing.T) {
	b := newProvider(t, Options{})
	big := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	cmd := shell("sha256sum big/a/b.bin && ./tool && cat /run/writ/code && stat -c '%a %U' tool big big/a/b.bin && test ! -e empty.missing && wc -c < empty")
	cmd.Files = []File{
		{Path: "/workspace/big/a/b.bin", Content: big, Mode: 0o640},
		{Path: "/workspace/tool", Content: []byte("#!/bin/sh\necho tool ran\n"), Mode: 0o755},
		{Path: "/workspace/empty", Mode: 0o644},
		{Path: "/run/writ/code", Content: []byte("code\n"), Mode: 0o644},
	}
	r := runIn(t, b, cmd)
	wantExit(t, r, 0)
	if want := string(writ.DigestOf(big)) + "  big/a/b.bin\ntool ran\ncode\n755 agent\n755 agent\n640 agent\n0\n"; r.Stdout.Text != want {
		t.Error(cmp.Diff(want, r.Stdout.Text))
	}
	cmd.Limits.WorkspaceBytes = 64 << 10
	_, err := prepareBox(t, b, cmd.Limits).Start(t.Context(), cmd)
	if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), "/workspace/big/a/b.bin") {
		t.Errorf("a file larger than the workspace: %v", err)
	}
}

func TestNoSignalFromInsideEndsTheBox(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), python(t, `
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
class Info(ctypes.Structure):
    _fields_ = [("signo", ctypes.c_int), ("errno", ctypes.c_int), ("code", ctypes.c_int), ("pad", ctypes.c_int), ("pid", ctypes.c_int), ("uid", ctypes.c_int), ("rest", ctypes.c_char * 104)]
for s in range(1, 65):
    for code in (0, -1):
        info = Info(s, 0, code, 0, 0, 0)
        libc.syscall(129, 1, s, ctypes.byref(info)) # rt_sigqueueinfo
    try:
        os.kill(1, s)
    except OSError as e:
        print("kill", s, e.errno)
print("alive")
`))
	wantExit(t, r, 0)
	if r.Stdout.Text != "alive\n" {
		t.Errorf("result: %s", show(r))
	}
}

func TestCancelEndsTheRunAsKilled(t *testing.T) {
	b := newProvider(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := make(chan struct{})
	cmd := shell("echo up; sleep " + asleep(4717) + " & sleep " + asleep(4717))
	cmd.Stdout = writerFunc(func(p []byte) (int, error) { close(seen); return len(p), nil })
	run, _ := start(t, b, ctx, cmd)
	<-seen
	cancel()
	r := run.Wait()
	if r.Outcome != writ.Killed || r.Reason != "cancelled" || r.Stdout.Text != "up\n" || !r.Started {
		t.Errorf("result: %s", show(r))
	}
	if left := sleeping(t, asleep(4717)); left != nil {
		t.Errorf("still alive: %v", left)
	}
}

func TestCloseEndsARunUnderWay(t *testing.T) {
	b := newProvider(t, Options{})
	run, box := start(t, b, t.Context(), shell("sleep 4718"))
	if err := box.Close(); err != nil {
		t.Fatal(err)
	}
	if r := run.Wait(); r.Outcome != writ.Killed || r.Reason != "the box was closed" {
		t.Errorf("result: %s", show(r))
	}
	if err := box.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := box.Start(t.Context(), shell("true")); err == nil {
		t.Error("a closed box started")
	}
}

// FS-04: whatever descriptors the server has, three reach the program.
func TestFS04_OnlyThreeDescriptors(t *testing.T) {
	b := newProvider(t, Options{})
	// One that a careless library left open over exec.
	fd, err := syscall.Open("/etc/hostname", syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	r := runIn(t, b, shell("ls /proc/self/fd; ls -l /proc/1/fd 2>&1 | tail -1"))
	if lines := strings.Split(r.Stdout.Text, "\n"); len(lines) < 5 || strings.Join(lines[:4], " ") != "0 1 2 3" { // 3 is ls's own
		t.Errorf("result: %s", show(r))
	}
	if !strings.Contains(r.Stdout.Text, "Permission denied") {
		t.Errorf("the jail's descriptors can be listed: %s", show(r))
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestBwrapGetsItsArgumentsByDescriptor(t *testing.T) {
	b := newProvider(t, Options{})
	box := prepareBox(t, b, writ.DefaultLimits)
	p := box.(*bubblewrapBox).process
	line, err := os.ReadFile("/proc/" + strconv.Itoa(p.cmd.Process.Pid) + "/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " "); got != mustLook(t, "bwrap")+" --args 5 -- /proc/self/fd/4 jail" {
		t.Errorf("arguments of bwrap: %s", got)
	}
}

func mustLook(t *testing.T, name string) string {
	p, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
