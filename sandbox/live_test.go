package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/sandbox/jail"
)

// screen collects what a program writes.
type screen struct {
	mu  sync.Mutex
	got bytes.Buffer // guarded by mu
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// live is a program under way in a workspace.
type live struct {
	Run
	t   *testing.T
	box Box
	out *screen
}

// begin starts cmd in a new box that works in w, with all its output on a screen.
func begin(t *testing.T, b *Bubblewrap, w Workspace, cmd Command) *live {
	t.Helper()
	l := &live{t: t, out: &screen{}}
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.Root, l.out, l.out
	cmd.Limits.OutputBytes = Unlimited
	l.box = prepareIn(t, b, w, cmd.Limits)
	run, err := l.box.Start(t.Context(), cmd)
	if err != nil {
		t.Fatalf("start %q: %v", cmd.Argv, err)
	}
	l.Run = run
	return l
}

// sees waits until want is on the screen.
func (l *live) sees(want string) {
	l.t.Helper()
	l.shows("the program writes "+want, func(all string) bool { return strings.Contains(all, want) })
}

// prompts waits until prompt comes after the first of what. An end of input that is typed
// before is lost: it is a character of the lines that a terminal edits, and a program that
// edits them itself takes it for another when it begins to.
func (l *live) prompts(what, prompt string) {
	l.t.Helper()
	l.shows("the program asks for more after "+what, func(all string) bool {
		_, after, _ := strings.Cut(all, what)
		return strings.Contains(after, prompt)
	})
}

func (l *live) shows(what string, is func(all string) bool) {
	l.t.Helper()
	defer func() {
		if l.t.Failed() {
			l.t.Logf("on the screen: %q", l.out)
		}
	}()
	eventually(l.t, what, func() bool { return is(l.out.String()) })
}

// types gives text to the program.
func (l *live) types(text string) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), longEnough)
	defer cancel()
	if n, err := l.Input(ctx, []byte(text)); n != len(text) || err != nil {
		l.t.Fatalf("typing %q: %d, %v", text, n, err)
	}
}

// within50ms is a context that is soon done.
func within50ms(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// wantKind fails the test unless err is a *writ.Error of that kind with a message.
func wantKind(t *testing.T, err error, kind writ.Kind) {
	t.Helper()
	if e, ok := errors.AsType[*writ.Error](err); !ok || e.Kind != kind || e.Msg == "" {
		t.Errorf("got %#v, want an error of kind %v", err, kind)
	}
}

func TestScenario85_InputStaysOpenUntilItIsClosed(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := program("cat") // EX: a bare name, looked for in PATH
	cmd.Input = true
	l := begin(t, b, newWorkspace(t, nil), cmd)
	l.types("one\n")
	l.sees("one\n")
	l.types("two\n")
	l.sees("two\n")
	wantKind(t, l.Resize(Size{10, 10}), writ.Conflict)
	for range 2 {
		if err := l.CloseInput(); err != nil {
			t.Error(err)
		}
	}
	r := l.Wait()
	wantExit(t, r, 0)
	if r.Stdout.Bytes != 8 || r.Stdout.Kept != 0 {
		t.Errorf("counts: %s", show(r))
	}
	_, err := l.Input(t.Context(), []byte("x"))
	wantKind(t, err, writ.Conflict)
	wantKind(t, l.Signal(SIGTERM), writ.Conflict)
}

// RS-10: a program that never reads blocks nobody, and what went in is told.
func TestRS10_FullPipeIsReported(t *testing.T) {
	cmd := shell("echo up; read -n 1 x < /dev/zero & sleep 4801")
	cmd.Input = true
	l := begin(t, newProvider(t, Options{}), newWorkspace(t, nil), cmd)
	l.sees("up\n")
	for total, full := 0, false; !full; { // until nothing more goes in, though there was time
		n, err := l.Input(within50ms(t), make([]byte, 1<<20))
		wantKind(t, err, writ.Exhausted)
		if total += n; n < 0 || total >= 1<<20 || t.Failed() {
			t.Fatalf("%d bytes went into a pipe", total)
		}
		full = n == 0 && total >= 4096
	}
	// Another that waits is freed by the end of the program, and one whose context is
	// done takes no turn.
	freed := make(chan error)
	go func() {
		_, err := l.Input(context.Background(), []byte("y"))
		freed <- err
	}()
	wantKind(t, l.Signal(Signal(65)), writ.Invalid)
	if err := l.Signal(SIGKILL); err != nil {
		t.Error(err)
	}
	wantKind(t, <-freed, writ.Conflict)
	if r := l.Wait(); r.Outcome != writ.Failed || r.Signal != "SIGKILL" || r.ExitCode != nil {
		t.Errorf("got %s", show(r))
	}
}

func TestEX11_WithoutOpenInputThereIsNone(t *testing.T) {
	l := begin(t, newProvider(t, Options{}), newWorkspace(t, nil), shell("cat; echo after"))
	_, err := l.Input(t.Context(), []byte("x"))
	wantKind(t, err, writ.Conflict)
	wantExit(t, l.Wait(), 0)
	l.sees("after\n")
}

// Every way to end, told apart (spec/02 §7.2).
func TestScenario98_HowAProgramEndedIsTold(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, nil)
	for _, terminal := range []*Size{nil, {24, 80}} {
		for name, c := range map[string]struct {
			script string
			end    func(l *live, cancel func())
			want   writ.Outcome
			code   int // -1 for none
			signal string
		}{
			"exit 0":              {"exit 0", nil, writ.Succeeded, 0, ""},
			"exit 130":            {"exit 130", nil, writ.Failed, 130, ""},
			"EX-05 segv":          {"kill -SEGV $$", nil, writ.Failed, -1, "SIGSEGV"},
			"real-time signal":    {"kill -40 $$", nil, writ.Failed, -1, "SIG40"},
			"term":                {"echo up; exec sleep " + asleep(4802), func(l *live, _ func()) { _ = l.Signal(SIGTERM) }, writ.Failed, -1, "SIGTERM"},
			"kill":                {"echo up; exec sleep " + asleep(4802), func(l *live, _ func()) { _ = l.Signal(SIGKILL) }, writ.Failed, -1, "SIGKILL"},
			"term of its group":   {"trap 'echo caught; exit 7' TERM; echo up; sleep " + asleep(4802) + " & wait", func(l *live, _ func()) { _ = l.Signal(SIGTERM) }, writ.Failed, 7, ""},
			"cancelled":           {"echo up; exec sleep " + asleep(4802), func(_ *live, cancel func()) { cancel() }, writ.Killed, -1, "SIGKILL"},
			"EX-03 time":          {"trap '' TERM HUP; echo up; (trap '' TERM HUP; exec sleep " + asleep(4802) + ") & wait", nil, writ.TimedOut, -1, "SIGKILL"},
			"the end was earlier": {"echo up; exit 3", func(l *live, cancel func()) { l.Wait(); cancel() }, writ.Failed, 3, ""},
		} {
			if terminal != nil {
				name += " in a terminal"
			}
			t.Run(name, func(t *testing.T) {
				cmd := shell(c.script)
				cmd.Dir, cmd.Terminal = w.Root, terminal
				if c.want == writ.TimedOut {
					cmd.Limits.WallMS = 1000
				}
				out := &screen{}
				cmd.Stdout = out
				l := &live{t: t, box: prepareIn(t, b, w, cmd.Limits), out: out}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var err error
				if l.Run, err = l.box.Start(ctx, cmd); err != nil {
					t.Fatal(err)
				}
				if c.end != nil {
					l.sees("up")
					c.end(l, cancel)
				}
				r := l.Wait()
				code := -1
				if r.ExitCode != nil {
					code = *r.ExitCode
				}
				if r.Outcome != c.want || code != c.code || r.Signal != c.signal {
					t.Errorf("got %s", show(r))
				}
				if err := l.box.Close(); err != nil {
					t.Error(err)
				}
				if left := sleeping(t, asleep(4802)); left != nil {
					t.Errorf("still alive: %v", left)
				}
			})
		}
	}
}

// A report of the jail that is there wins over an end of ours that comes at the same
// moment: whom we kill cannot report.
func TestOwnEndWinsInAWorkspace(t *testing.T) {
	exited := &jail.Record{Kind: jail.Exited, Status: 3 << 8}
	for _, own := range []bool{false, true} {
		e := evidence{end: end{cause: causeCancelled, reason: "cancelled"}, exited: exited, limits: writ.DefaultLimits, ownEnd: own}
		var r writ.Result
		e.judge(&r)
		if (r.Outcome == writ.Failed) != own || r.ExitCode == nil || *r.ExitCode != 3 {
			t.Errorf("own end %v: got %s", own, show(r))
		}
	}
}

func TestEX01_EX03_NothingOutlivesTheProgram(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, nil)
	for _, terminal := range []*Size{nil, {24, 80}} {
		cmd := shell("(trap '' HUP TERM; setsid sleep " + asleep(4803) + " & sleep " + asleep(4803) + " & exec sleep " + asleep(4803) + ") & echo started")
		cmd.Terminal = terminal
		l := begin(t, b, w, cmd)
		wantExit(t, l.Wait(), 0)
		l.sees("started")
		if left := sleeping(t, asleep(4803)); left != nil {
			t.Errorf("still alive: %v", left)
		}
	}
}

// RS-08: output without a limit goes through, and none of it is kept.
func TestRS08_UnlimitedOutputStreams(t *testing.T) {
	w := newWorkspace(t, nil)
	cmd := shell("head -c 50000000 /dev/zero")
	cmd.Dir, cmd.Limits.OutputBytes = w.Root, Unlimited
	var got counting
	cmd.Stdout = &got
	r := runInWorkspace(t, newProvider(t, Options{}), w, cmd)
	wantExit(t, r, 0)
	if got != 50_000_000 || r.Stdout.Bytes != 50_000_000 || r.Stdout.Kept != 0 {
		t.Errorf("%d bytes came: %s", got, show(r))
	}
}

type counting int64

func (c *counting) Write(p []byte) (int, error) {
	*c += counting(len(p))
	return len(p), nil
}

func TestUnlimitedLimits(t *testing.T) {
	w := newWorkspace(t, nil)
	cmd := shell("ulimit -t; ulimit -f; echo ok")
	l := &cmd.Limits
	l.WallMS, l.CPUMS, l.MemoryBytes, l.FileBytes = Unlimited, Unlimited, Unlimited, Unlimited
	r := runInWorkspace(t, newProvider(t, Options{}), w, cmd)
	wantExit(t, r, 0)
	if !strings.HasSuffix(r.Stdout.Text, "ok\n") {
		t.Errorf("got %s", show(r))
	}
}

func TestBareNamesAreLookedForInTheBox(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{"bin/tool": "#!/bin/sh\necho $0\n", "bin/plain": "no program", "tool": ""})
	if err := os.Chmod(filepath.Join(w.Root, "bin/tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	try := func(name, path string) (writ.Result, error) {
		box := prepareIn(t, b, w, writ.DefaultLimits)
		run, err := box.Start(t.Context(), Command{Argv: []string{name}, Env: []string{"PATH=" + path}, Dir: w.Root, Limits: writ.DefaultLimits})
		if err != nil {
			return writ.Result{}, err
		}
		return run.Wait(), nil
	}
	if r, err := try("tool", "::.:bin:/nowhere:"+w.Root+"/bin:/bin"); err != nil || r.Stdout.Text != w.Root+"/bin/tool\n" {
		t.Errorf("%v, %s", err, show(r))
	}
	for name, want := range map[string]string{"nothing": "there is no program", "plain": "permission denied", "": "there is no program"} {
		_, err := try(name, w.Root+"/bin:"+w.Root)
		wantKind(t, err, writ.Invalid)
		if err == nil || !strings.Contains(writ.Message(err), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A command that no box can run is refused before anything happens, and the box is
// still good for another.
func TestCommandsThatContradictThemselves(t *testing.T) {
	w := newWorkspace(t, map[string]string{"a": ""})
	box := prepareIn(t, newProvider(t, Options{}), w, writ.DefaultLimits)
	for name, change := range map[string]func(*Command){
		"two inputs":              func(c *Command) { c.Input, c.Stdin = true, []byte("x") },
		"stdin and terminal":      func(c *Command) { c.Terminal, c.Stdin = &Size{24, 80}, []byte("x") },
		"terminal without size":   func(c *Command) { c.Terminal = &Size{0, 80} },
		"a file in the workspace": func(c *Command) { c.Files = []File{{Path: w.Root + "/x/../a"}} },
	} {
		cmd := program("/bin/true")
		cmd.Dir = w.Root
		change(&cmd)
		_, err := box.Start(t.Context(), cmd)
		if err == nil {
			t.Fatalf("%s was taken", name)
		}
		wantKind(t, err, writ.Invalid)
	}
	run, err := box.Start(t.Context(), Command{Argv: []string{"true"}, Env: boxEnv(), Dir: w.Root, Limits: writ.DefaultLimits})
	if err != nil {
		t.Fatal(err)
	}
	wantExit(t, run.Wait(), 0)
}

func TestSignalNames(t *testing.T) {
	for name, want := range map[string]Signal{"TERM": SIGTERM, "sigint": SIGINT, "SIGKILL": SIGKILL, "hup": SIGHUP, "USR1": Signal(syscall.SIGUSR1), "SIG40": 40} {
		if got, err := ParseSignal(name); got != want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "9", "TERMS", "SIG", "SIG0", "SIG65", "SIG9", "SIG040", "KILL "} {
		_, err := ParseSignal(name)
		wantKind(t, err, writ.Invalid)
	}
	if SIGTERM.String() != "SIGTERM" || Signal(40).String() != "SIG40" || SignalNumber("SIG40") != 40 || SignalNumber("x") != 0 {
		t.Error("names of signals")
	}
}

// Limits hold in a workspace as elsewhere; that of the workspace's size is about memory
// file systems alone.
func TestLimitsInAWorkspace(t *testing.T) {
	b := newProvider(t, Options{})
	host, err := b.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorkspace(t, nil)
	limits := writ.DefaultLimits
	limits.WorkspaceBytes, limits.Files, limits.FileBytes, limits.TmpBytes = 64<<10, 64, 1<<20, 128<<10
	limits.Processes, limits.MemoryBytes, limits.WallMS = 16, 64<<20, 20_000
	try := func(script string) writ.Result {
		cmd := shell(script)
		cmd.Limits = limits
		return runInWorkspace(t, b, w, cmd)
	}
	r := try("for i in $(seq 100); do echo x > f$i; done; head -c 900000 /dev/zero > big; echo ok; head -c 2000000 /dev/zero > bigger; head -c 1000000 /dev/zero > /tmp/big || echo full")
	wantExit(t, r, 0)
	if r.Stdout.Text != "ok\nfull\n" {
		t.Errorf("got %s", show(r))
	}
	if info, err := os.Stat(filepath.Join(w.Root, "bigger")); err != nil || info.Size() != 1<<20 {
		t.Errorf("a file beyond its limit: %v, %v", info, err)
	}
	// Root is not bound by the limit of a user's processes, and needs the group's.
	if os.Geteuid() != 0 || slices.Contains(host.Active, LayerPidsCgroup) {
		cmd := python(t, `
import os, time
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            time.sleep(20)
        n += 1
except BlockingIOError:
    print("refused")
`)
		cmd.Limits = limits
		if r := runInWorkspace(t, b, w, cmd); r.Stdout.Text != "refused\n" {
			t.Errorf("processes: %s", show(r))
		}
	}
	if slices.Contains(host.Active, LayerMemoryCgroup) && !raceEnabled {
		wantOutcome(t, try("x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}"), writ.OutOfMemory)
	}
	limits.CPUMS = 500
	wantOutcome(t, try("while :; do :; done"), writ.TimedOut)
}

// Scenario 104: a program has its own three descriptors, and none of the server's, the
// workspace's, or another program's.
func TestScenario104_NoForeignDescriptors(t *testing.T) {
	b := newProvider(t, Options{})
	w := newWorkspace(t, map[string]string{"a": ""})
	w.Hidden = []string{"a"}
	other := shell("echo up; read x")
	other.Input = true
	begin(t, b, w, other).sees("up")
	for _, terminal := range []*Size{nil, {24, 80}} {
		cmd := shell("cd /proc/self/fd; echo [0-9]*") // the shell's own, as echo is built in
		cmd.Input, cmd.Terminal = terminal == nil, terminal
		l := begin(t, b, w, cmd)
		wantExit(t, l.Wait(), 0)
		// 3 is the folder that the shell has open to list it, 255 its own terminal.
		got := strings.Join(slices.DeleteFunc(strings.Fields(l.out.String()), func(fd string) bool { return fd == "3" || fd == "255" }), " ")
		if got != "0 1 2" {
			t.Errorf("descriptors %q", l.out)
		}
	}
}
