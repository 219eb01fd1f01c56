package sandbox

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/sandbox/jail"
)

// ordinaryEnv tells a test binary that it is the second run, as an ordinary user.
const ordinaryEnv = "WRIT_TEST_ORDINARY"

// coresAllowed is whether this process may have core dumps of a byte at all: as it was
// started, and before any provider changed it.
var coresAllowed bool

// TestMain makes the test binary what the product is: a program that is also the
// jail of its boxes. As root it runs every test twice, the second time as an
// ordinary user.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == jail.Arg {
		jail.Main()
	}
	if name := os.Getenv(helperEnv); name != "" {
		os.Exit(helper(name))
	}
	var cores syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &cores); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	coresAllowed = cores.Max > 0
	code := m.Run()
	bench := flag.Lookup("test.bench")
	if code == 0 && os.Geteuid() == 0 && bench.Value.String() == "" {
		code = asOrdinaryUser()
	}
	os.Exit(code)
}

// ordinaryUID is outside the range of the boxes.
const ordinaryUID = defaultUIDBase - 1

func asOrdinaryUser() int {
	args := slices.DeleteFunc(slices.Clone(os.Args[1:]), func(a string) bool {
		for _, only := range []string{"-test.testlogfile", "-test.coverprofile", "-test.gocoverdir", "-test.outputdir"} {
			if strings.HasPrefix(a, only) {
				return true // writes where this user may not, or says nothing new
			}
		}
		return false
	})
	tmp, err := os.MkdirTemp("", "writ-ordinary-")
	if err == nil {
		defer os.RemoveAll(tmp)
		err = os.Chown(tmp, ordinaryUID, ordinaryUID)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), ordinaryEnv+"=1", "TMPDIR="+tmp, "HOME="+tmp)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: ordinaryUID, Gid: ordinaryUID, Groups: []uint32{}},
		Pdeathsig:  syscall.SIGKILL,
	}
	fmt.Println("--- again, as an ordinary user")
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "as an ordinary user:", err)
		return 1
	}
	return 0
}

// required reports whether WRIT_REQUIRE names the tool: its absence is then a
// failure and not a reason to skip.
func required(name string) bool {
	return slices.Contains(strings.Split(os.Getenv("WRIT_REQUIRE"), ","), name)
}

// missing skips the test for want of a tool, or fails it where the tool is required.
func missing(t testing.TB, name string, why ...any) {
	t.Helper()
	if required(name) {
		t.Fatalf("%s is required (WRIT_REQUIRE) and missing: %v", name, fmt.Sprintln(why...))
	}
	t.Skipf("%s is missing: %v", name, fmt.Sprintln(why...))
}

// need skips, or fails, when a program is not installed on the host.
func need(t testing.TB, name, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		missing(t, name, err)
	}
}

// newProvider is a provider that can make boxes, or else the test ends here.
func newProvider(t testing.TB, opt Options) *Bubblewrap {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		missing(t, "bwrap", err)
	}
	b, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.Probe(t.Context()); err != nil {
		missing(t, "userns", err)
	}
	return b
}

// boxEnv is an environment as the product gives it.
func boxEnv() []string {
	return []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + boxHome, "TMPDIR=/tmp", "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "USER=" + boxUser}
}

// shell is a command that runs a script with bash, in the workspace.
func shell(script string) Command { return program("/bin/bash", "-c", script) }

// python is a command that runs a script with Python, in the workspace.
func python(t testing.TB, script string, args ...string) Command {
	need(t, "python", "/usr/bin/python3")
	cmd := program(append([]string{"/usr/bin/python3", "/run/writ/main.py"}, args...)...)
	cmd.Files = []File{{Path: "/run/writ/main.py", Content: []byte(script), Mode: 0o644}}
	return cmd
}

func program(argv ...string) Command {
	l := writ.DefaultLimits
	l.WallMS = 30_000
	return Command{Argv: argv, Env: boxEnv(), Dir: "/workspace", Limits: l}
}

// start starts cmd in a new box of b, with a deadline for the whole.
func start(t testing.TB, b *Bubblewrap, ctx context.Context, cmd Command) (Run, Box) {
	t.Helper()
	box := prepareBox(t, b, cmd.Limits)
	run, err := box.Start(ctx, cmd)
	if err != nil {
		t.Fatalf("start %q: %v", cmd.Argv, err)
	}
	return run, box
}

func prepareBox(t testing.TB, b *Bubblewrap, l writ.Limits) Box {
	t.Helper()
	if raceEnabled && l.MemoryBytes < 256<<20 && (b.groups == nil || b.groups.tree == nil || !b.groups.tree.has(LayerMemoryCgroup)) {
		t.Skip("the race detector in the jail needs more memory than this, and without control groups the limit holds it too")
	}
	box, err := b.Prepare(t.Context(), Template{Limits: l})
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

// runIn runs cmd in a new box of b to its end.
func runIn(t testing.TB, b *Bubblewrap, cmd Command) writ.Result {
	t.Helper()
	run, box := start(t, b, t.Context(), cmd)
	r := run.Wait()
	if err := box.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	return r
}

// intoTimeout runs cmd into its limit of time. That is ms, or twice that as long as the
// program does not come to write want, or its end takes more than the second that it may
// (spec/01 §5 scenario 16): a machine that is busy can stand still for as long, but not
// each time.
func intoTimeout(t testing.TB, b *Bubblewrap, cmd Command, ms int64, want string) writ.Result {
	t.Helper()
	for {
		cmd.Limits.WallMS = ms
		r := runIn(t, b, cmd)
		wantOutcome(t, r, writ.TimedOut)
		reason := fmt.Sprintf("wall time limit of %v reached", span(ms))
		if r.Stdout.Text == want && r.WallMS >= ms && r.WallMS <= ms+1000 && r.Reason == reason {
			return r
		}
		if ms *= 2; ms > longEnough.Milliseconds() {
			t.Fatalf("result: %s", show(r))
		}
	}
}

// show is a result for people.
func show(r writ.Result) string {
	code := "none"
	if r.ExitCode != nil {
		code = fmt.Sprint(*r.ExitCode)
	}
	return fmt.Sprintf("%s (exit code %s, signal %q, reason %q, %d ms, cpu %d ms, peak %d)\nstdout %d of %d bytes: %.2000s\nstderr %d of %d bytes: %.2000s",
		r.Outcome, code, r.Signal, r.Reason, r.WallMS, r.CPUMS, r.PeakBytes, r.Stdout.Kept, r.Stdout.Bytes, r.Stdout.Text, r.Stderr.Kept, r.Stderr.Bytes, r.Stderr.Text)
}

// wantExit fails the test unless the program itself ended with code.
func wantExit(t testing.TB, r writ.Result, code int) {
	t.Helper()
	want := writ.Succeeded
	if code != 0 {
		want = writ.Failed
	}
	if r.Outcome != want || r.ExitCode == nil || *r.ExitCode != code || !r.Started {
		t.Fatalf("want %s with exit code %d, got %s", want, code, show(r))
	}
}

func wantOutcome(t testing.TB, r writ.Result, want writ.Outcome) {
	t.Helper()
	if r.Outcome != want {
		t.Fatalf("want %s, got %s", want, show(r))
	}
}

// longEnough bounds every wait for something that should happen soon. Nothing waits it out
// but a failure.
const longEnough = 2 * time.Minute

// eventually waits until condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(longEnough); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("still not so after %v: %s", longEnough, what)
		}
		select {
		case <-t.Context().Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// asleep is a time of more than an hour, as sleep takes it, that no other run of these
// tests on this host has, so that sleeping finds the processes of this one alone.
func asleep(seconds int) string { return asleepFor(seconds, os.Getpid()) }

// asleepFor is asleep as the tests with this pid know it.
func asleepFor(seconds, pid int) string { return fmt.Sprintf("%d.%d", seconds, pid) }

// sleeping lists the host's processes that sleep for that time.
func sleeping(t testing.TB, seconds string) []string {
	t.Helper()
	return processesWith(t, "sleep\x00"+seconds+"\x00")
}

// processesWith lists the host's processes that have marker in their arguments.
func processesWith(t testing.TB, marker string) []string {
	t.Helper()
	var found []string
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) || err != nil {
			continue // it ended meanwhile
		}
		if bytes.Contains(b, []byte(marker)) && f != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			found = append(found, f+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}
