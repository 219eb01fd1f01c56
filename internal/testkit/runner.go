package testkit

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"writ"
	"writ/lang"
	"writ/runner"
)

// AnyRunner is what the suite calls: a runner of this process, or one behind a
// wire.
type AnyRunner interface {
	Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error)
	Probe(ctx context.Context) (writ.Enforcement, error)
	Languages(ctx context.Context) ([]writ.LanguageStatus, error)
}

// Runner is the conformance suite of runners over a real sandbox. start makes a
// runner with opt and ends it with t's cleanup.
func Runner(t *testing.T, start func(t *testing.T, opt runner.Options) AnyRunner) {
	s := suite{start}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Probe", s.probe},
		{"Languages", s.languages},
		{"HelloInEachLanguage", s.hello},
		{"AFifthLanguageIsOneRow", s.fifthLanguage},
		{"Scenario02_ExitCodeAndStderr", s.exitCode},
		{"EX05_SignalDeath", s.signalDeath},
		{"EX11_StdinEnds", s.stdin},
		{"Arguments", s.arguments},
		{"Inputs", s.inputs},
		{"EX20_HomeAndCachesAreWritable", s.writableHome},
		{"EX22_LocaleIsUTF8", s.locale},
		{"EX23_UserHasAName", s.user},
		{"EX28_NoServerSecrets", s.noSecrets},
		{"NothingStaysForTheNext", s.freshBox},
		{"ChunksAreTheOutput", s.chunks},
		{"Scenario17_OutputIsCut", s.outputCut},
		{"Scenario16_TimeLimit", s.timeLimit},
		{"CancelWhileRunning", s.cancelRunning},
		{"CancelWhileQueued", s.cancelQueued},
		{"OverTheBoundIsExhausted", s.exhausted},
		{"ManyAtOnce", s.manyAtOnce},
		{"SameIDTwice", s.sameID},
		{"OtherDigest", s.otherDigest},
		{"Scenario20_FaultySpecs", s.faulty},
		{"InterpreterMissing", s.interpreterMissing},
	} {
		t.Run(c.name, c.run)
	}
}

type suite struct {
	start func(t *testing.T, opt runner.Options) AnyRunner
}

// Spec is a normalised spec that runs code.
func Spec(l writ.Language, code string, args ...string) writ.RunSpec {
	return writ.RunSpec{Language: l, Code: code, Args: args, Limits: writ.DefaultLimits}
}

// MustRun runs spec under a new id and fails t when that is refused.
func MustRun(t *testing.T, r AnyRunner, spec writ.RunSpec) writ.Result {
	t.Helper()
	res, err := r.Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), nil)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return res
}

// wantOutput runs spec, which must succeed with exactly stdout and an empty stderr.
func wantOutput(t *testing.T, r AnyRunner, spec writ.RunSpec, stdout string) {
	t.Helper()
	res := MustRun(t, r, spec)
	if res.Outcome != writ.Succeeded || res.Stdout.Text != stdout || res.Stderr.Text != "" {
		t.Errorf("%s %q ended %s (%s)\nstdout %q\nwant   %q\nstderr %q", spec.Language, spec.Code, res.Outcome, res.Reason, res.Stdout.Text, stdout, res.Stderr.Text)
	}
}

// NeedLanguage ends t when this host cannot run tasks in l.
func NeedLanguage(t *testing.T, r AnyRunner, l writ.Language) {
	t.Helper()
	needLanguage(t, r, writ.RunTask, l, string(l))
}

// NeedInterpreter ends t when this host cannot run l for the code interpreter.
func NeedInterpreter(t *testing.T, r AnyRunner, l writ.Language) {
	t.Helper()
	tool := string(l)
	if l == "javascript" || l == "typescript" {
		tool = "bun"
	}
	needLanguage(t, r, writ.RunInterpreter, l, tool)
}

func needLanguage(t *testing.T, r AnyRunner, k writ.RunKind, l writ.Language, tool string) {
	t.Helper()
	all, err := r.Languages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(all, func(s writ.LanguageStatus) bool { return s.Name == l && s.Kind == k }); i < 0 || all[i].Interpreter == "" {
		Missing(t, tool, "no "+tool+" is installed")
	}
}

// Flag runs something in the background and tells when its output has a mark.
type Flag struct {
	mark string
	c    chan struct{}

	mu   sync.Mutex
	seen strings.Builder // guarded by mu
	once sync.Once
}

// NewFlag is a Flag for mark in stdout.
func NewFlag(mark string) *Flag { return &Flag{mark: mark, c: make(chan struct{})} }

// Emit is for Run.
func (f *Flag) Emit(c writ.Chunk) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.Stream == writ.Stdout {
		f.seen.Write(c.Data)
	}
	if strings.Contains(f.seen.String(), f.mark) {
		f.once.Do(func() { close(f.c) })
	}
}

// Wait returns when the mark was seen, and fails t when it is not.
func (f *Flag) Wait(t testing.TB) {
	t.Helper()
	Eventually(t, "the program prints "+f.mark, func() bool {
		select {
		case <-f.c:
			return true
		default:
			return false
		}
	})
}

// Alive is the processes of this host that have mark among their arguments.
func Alive(t testing.TB, mark string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err == nil && slices.Contains(strings.Split(string(line), "\x00"), mark) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// NoneAlive waits until no process of this host has mark among its arguments.
func NoneAlive(t testing.TB, mark string) {
	t.Helper()
	Eventually(t, "every process of the run is gone", func() bool { return len(Alive(t, mark)) == 0 })
}

// Sleeper is a spec that says "ready" and then sleeps, with processes beside it
// that left its session. mark is among the arguments of all of them.
func Sleeper(mark string) writ.RunSpec {
	return Spec("bash", `
setsid bash -c 'sleep 600; :' "$1" & # its own session
( ( bash -c 'trap "" TERM HUP; sleep 600; :' "$1" & ) & ) # forked twice
echo ready
sleep 600; :
`, mark)
}

func (s suite) probe(t *testing.T) {
	e, err := s.start(t, runner.Options{}).Probe(t.Context())
	if err != nil || e.Provider == "" || len(e.Active) == 0 {
		t.Errorf("Probe = %+v, %v", e, err)
	}
}

func (s suite) languages(t *testing.T) {
	got, err := s.start(t, runner.Options{}).Languages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := append(lang.All(), lang.For(writ.RunInterpreter)...)
	if len(got) != len(want) {
		t.Fatalf("%d languages, want %d", len(got), len(want))
	}
	for i, l := range want {
		if got[i].Name != l.Name || got[i].Kind != l.Kind || got[i].Install != l.Install() || got[i].Scope != l.Scope || got[i].Package != l.Package || !slices.Equal(got[i].Aliases, l.Aliases) {
			t.Errorf("language %d is %+v, want %+v", i, got[i], l)
		}
		if got[i].Interpreter != "" && !slices.Contains(l.Candidates, got[i].Interpreter) {
			t.Errorf("%s is said to be at %q", l.Name, got[i].Interpreter)
		}
	}
}
