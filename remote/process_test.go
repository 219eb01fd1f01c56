package remote

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
)

const self = "/proc/self/exe"

// logBuffer is a log that a test reads.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// startProcess starts this binary as a runner, which ends with t.
func startProcess(t *testing.T, args ...string) *Process {
	t.Helper()
	p, err := Start(t.Context(), self, socketDir(t), args, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) }) // a test may have killed it
	return p
}

// sleep begins a run in p and returns when it is under way.
func sleep(t *testing.T, p *Process, mark string) <-chan writ.Result {
	t.Helper()
	up := testkit.NewFlag("ready")
	spec := testkit.Sleeper(mark)
	done := make(chan writ.Result, 1)
	go func() { // ends with the run
		res, err := p.Client().Run(context.Background(), "run-"+mark, spec, spec.Digest(), &writ.Exchange{Emit: up.Emit})
		if err != nil {
			t.Errorf("run: %v", err)
		}
		done <- res
	}()
	up.Wait(t)
	if len(testkit.Alive(t, mark)) == 0 {
		t.Error("the run is not seen on this host, so no check of its end shows anything")
	}
	return done
}

// gone reports whether no process has pid, or only a dead one.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || bytes.Contains(b, []byte(") Z "))
}

// TestStartWaitsForNoSandbox: files can be read long before a box was made.
func TestStartWaitsForNoSandbox(t *testing.T) {
	p := startProcess(t, "--state", filepath.Join(t.TempDir(), "state"))
	if _, err := p.Client().Files().Recover(t.Context()); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := p.Client().Probe(ctx); err == nil {
		t.Error("this runner's Probe answers, so its start shows nothing")
	}
}

func TestProcessRunsAndEnds(t *testing.T) {
	needBubblewrap(t)
	dir := filepath.Join(socketDir(t), "private")
	var log logBuffer
	p, err := Start(t.Context(), self, dir, nil, &log)
	if err != nil {
		t.Fatal(err)
	}
	res := testkit.MustRun(t, p.Client(), testkit.Spec("sh", "echo hello"))
	if res.Outcome != writ.Succeeded || res.Stdout.Text != "hello\n" {
		t.Errorf("result %+v", res)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder %v, %v; want mode 0700", info, err)
	}
	if info, err := os.Stat(p.socket); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket %v, %v; want mode 0600", info, err)
	}
	for range 2 {
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	testkit.Receive(t, "the end of the child", errOnClose(p.Done()))
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	if !strings.Contains(log.String(), "runner is up") {
		t.Errorf("log %q", log.String())
	}
}

// TestEX28_ChildInheritsNothing: no variable and no descriptor of ours but its
// three standard ones and those it opened itself.
func TestEX28_ChildInheritsNothing(t *testing.T) {
	t.Setenv("WRIT_TEST_SECRET", "S3CR")
	// A descriptor that a careless library left open for children.
	leak, err := os.Create(filepath.Join(t.TempDir(), "leak"))
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	p := startProcess(t)
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	env, err := os.ReadFile(proc + "environ")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kv := range strings.Split(strings.TrimRight(string(env), "\x00"), "\x00") {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	if slices.Sort(names); !slices.Equal(names, []string{"LANG", "PATH"}) {
		t.Errorf("environment %q", env)
	}
	// By it the child finds bubblewrap: as writ doctor does, which runs with ours.
	if want := "PATH=" + os.Getenv("PATH") + "\x00"; !strings.Contains(string(env), want) {
		t.Errorf("environment %q, want %q in it", env, want)
	}
	fds, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if target, _ := os.Readlink(proc + "fd/" + fd.Name()); target == leak.Name() {
			t.Errorf("descriptor %s of the child is %s", fd.Name(), target)
		}
	}
}

func TestCloseEndsRunsAsKilled(t *testing.T) {
	needBubblewrap(t)
	p := startProcess(t)
	mark := writ.NewID("mark")
	done := sleep(t, p, mark)
	if err := p.Close(t.Context()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if res := testkit.Receive(t, "the result", done); res.Outcome != writ.Killed || !strings.Contains(res.Reason, "shut down") {
		t.Errorf("result %+v, want killed because the runner was shut down", res)
	}
	if pids := testkit.Alive(t, mark); pids != nil {
		t.Errorf("processes %v are alive", pids)
	}
}

// TestScenario13_RunnerKilled: a run in a runner that is killed is interrupted, and
// nothing of it is left.
func TestScenario13_RunnerKilled(t *testing.T) {
	needBubblewrap(t)
	p := startProcess(t)
	mark := writ.NewID("mark")
	done := sleep(t, p, mark)
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if res := testkit.Receive(t, "the result", done); res.Outcome != writ.Interrupted || !res.Started || res.Reason == "" {
		t.Errorf("result %+v, want interrupted", res)
	}
	testkit.NoneAlive(t, mark)
	testkit.Receive(t, "Done", errOnClose(p.Done()))
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err = %v", err)
	}
	spec, d := specOf("echo never")
	if _, err := p.Client().Run(t.Context(), "r2", spec, d, nil); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Run afterwards = %v, want unavailable", err)
	}
	if err := p.Close(t.Context()); err == nil {
		t.Error("Close does not say that the runner was killed")
	}
}

// TestScenario13_GatewayKilled: when the gateway is killed, its runner and all that
// runs in it end.
func TestScenario13_GatewayKilled(t *testing.T) {
	needBubblewrap(t)
	mark := writ.NewID("mark")
	// The mark is an argument of the gateway too: it goes with it.
	cmd := exec.Command(self, "gateway", socketDir(t), mark)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || gone(pid) {
		t.Fatalf("runner %q: %v", line, err)
	}
	if n := len(testkit.Alive(t, mark)); n < 2 {
		t.Errorf("%d processes have the mark, so their end shows nothing", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	testkit.NoneAlive(t, mark)
	testkit.Eventually(t, "the runner is gone", func() bool { return gone(pid) })
}

// TestScenario15_RunnerWithoutBubblewrapStarts: it answers, and says why it cannot
// run anything.
func TestScenario15_RunnerWithoutBubblewrapStarts(t *testing.T) {
	p := startProcess(t, "--bwrap", "/nonexistent/bwrap")
	if _, err := p.Client().Probe(t.Context()); writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "/nonexistent/bwrap") {
		t.Errorf("Probe = %v, want unavailable, naming the path", err)
	}
	spec := testkit.Spec("sh", "echo ran")
	res, err := p.Client().Run(t.Context(), "r", spec, spec.Digest(), &writ.Exchange{Emit: func(writ.Chunk) { t.Error("there was output") }})
	if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "/nonexistent/bwrap") {
		t.Errorf("Run = %+v, %v; want unavailable, naming the path", res, err)
	}
}

func TestStartSaysWhyItFailed(t *testing.T) {
	long := filepath.Join(socketDir(t), strings.Repeat("x", 120))
	open := socketDir(t)
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(socketDir(t), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(socketDir(t), "link")
	if err := os.Symlink(socketDir(t), link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, exe, dir string
		args           []string
		want           string
	}{
		{"no such program", "/nonexistent/writ", socketDir(t), nil, "no such file"},
		{"it fails", self, socketDir(t), []string{"--mode", "fail"}, "no good"},
		{"it ends", "/bin/true", socketDir(t), nil, "exit status 0"},
		{"socket path too long", self, long, nil, "shorter folder"},
		{"folder open to others", self, open, nil, "chmod 700"},
		{"folder is a file", self, file, nil, "not a directory"},
		{"folder is a link", self, link, nil, "not a folder"},
	} {
		p, err := Start(t.Context(), tt.exe, tt.dir, tt.args, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Start = %v, want an error with %q", tt.name, err, tt.want)
		}
		if err == nil {
			_ = p.Close(t.Context())
		}
	}
}

func TestStartIsBounded(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	dir := socketDir(t)
	if _, err := Start(ctx, self, dir, []string{"--mode", "silent"}, nil); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Start of a runner that never answers = %v, want unavailable", err)
	}
	socket := filepath.Join(dir, "runner.sock")
	testkit.NoneAlive(t, socket) // an argument of the child
}

func TestStuckRunnerIsKilled(t *testing.T) {
	p := startProcess(t)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "each of its threads has stopped", func() bool { return testkit.Stopped(p.cmd.Process.Pid) })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Close of a stopped runner = %v", err)
	}
	testkit.Receive(t, "the end of the child", errOnClose(p.Done()))
}

func TestTailKeepsTheLastLine(t *testing.T) {
	for _, tt := range []struct {
		in   []string
		want string
	}{
		{nil, ""},
		{[]string{"one\n", "two\n"}, "two"},
		{[]string{"one\ntwo\nthr", "ee"}, "three"},
		{[]string{"one\n", "\xff\n"}, "?"},
		{[]string{strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20)}, strings.Repeat("x", maxTail)},
		{[]string{strings.Repeat("x", 1<<20), "\n", "end\n"}, "end"},
	} {
		var all logBuffer
		tl := tail{to: &all}
		for _, s := range tt.in {
			if n, err := tl.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("Write = %d, %v", n, err)
			}
		}
		if got := tl.last(); got != tt.want {
			t.Errorf("after %.20q the last line is %.50q, want %.50q", tt.in, got, tt.want)
		}
		if all.String() != strings.Join(tt.in, "") {
			t.Error("the log is not what was written")
		}
	}
}
