package testkit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/runner"
)

// AnyProcesses is what the suite calls: the processes of this process, or behind a wire.
type AnyProcesses interface {
	Start(ctx context.Context, o writ.ProcessOrder) error
	Input(ctx context.Context, id writ.ProcessID, data []byte) (int, error)
	CloseInput(ctx context.Context, id writ.ProcessID) error
	Output(ctx context.Context, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error)
	Status(ctx context.Context, id writ.ProcessID) (writ.ProcessStatus, error)
	Resize(ctx context.Context, id writ.ProcessID, size writ.TerminalSize) error
	Terminate(ctx context.Context, id writ.ProcessID, k writ.Kill) error
	Processes(ctx context.Context) ([]writ.ProcessStatus, error)
	Exits(ctx context.Context, fn func(writ.ProcessStatus) error) error
}

// Processes is the conformance suite of processes in workspaces, over a real sandbox.
// start begins to serve them with opt; stop ends that in good order, as t's cleanup does
// otherwise.
func Processes(t *testing.T, start func(t *testing.T, opt runner.ProcessesOptions) (m AnyProcesses, stop func())) {
	s := processSuite{start}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Scenario81_Echo", s.echo},
		{"Scenario82_BothStreams", s.bothStreams},
		{"Scenario85_LinesInAndOut", s.lines},
		{"Scenario86_EX07_TheLastIsKept", s.ring},
		{"Scenario87_TimeLimit", s.timeLimit},
		{"Scenario88_ReadOnly", s.readOnly},
		{"Scenario89_FaultyOrders", s.faulty},
		{"Scenario90_EX18_MissingProgramOrFolder", s.missing},
		{"Scenario91_IsATerminal", s.isTerminal},
		{"Scenario92_EX16_SizeAndResize", s.resize},
		{"Scenario93_ResizeErrors", s.resizeErrors},
		{"Scenario94_EvictionByCount", s.evicted},
		{"Scenario95_Ninth", s.ninth},
		{"Scenario95_ManyAtOnce", s.manyAtOnce},
		{"Scenario97_ShutdownEndsAll", s.shutdown},
		{"Scenario98_EX05_ForeignSignal", s.foreignSignal},
		{"Scenario99_TerminateTwice", s.terminateTwice},
		{"Scenario100_InventedHandle", s.invented},
		{"Scenario104_EX28_NothingForeignInside", s.nothingForeign},
		{"SameIDTwice", s.sameID},
		{"EX01_BackgroundChild", s.backgroundChild},
		{"EX03_WholeTree", s.wholeTree},
		{"EX09_AnyBytes", s.anyBytes},
		{"EX10_StderrFlood", s.stderrFlood},
		{"EX11_InputCanBeClosed", s.closedInput},
		{"EX13_NoTerminalUnlessAskedFor", s.noTerminal},
		{"EX14_LastOutputOfATerminal", s.lastOutput},
		{"EX17_NothingWaitsForKeys", s.noPagers},
		{"EX20_EX21_EX22_EX23_Environment", s.environment},
		{"EX26_ProcessLimit", s.forkBomb},
		{"TerminalIsReal", s.terminal},
		{"JobControl", s.jobControl},
		{"ProgramsForTerminals", s.terminalPrograms},
		{"ProgressBar", s.progressBar},
		{"TerminateThenKill", s.termThenKill},
		{"FullPipe", s.fullPipe},
		{"LongPoll", s.longPoll},
		{"StreamsApart", s.streamsApart},
		{"CharactersAreWhole", s.characters},
		{"ExitsAreTold", s.exits},
		{"RulesHold", s.rules},
		{"GuardedPaths", s.guarded},
		{"Folder", s.folder},
	} {
		t.Run(c.name, c.run)
	}
}

type processSuite struct {
	start func(t *testing.T, opt runner.ProcessesOptions) (m AnyProcesses, stop func())
}

// processes are served with default options.
func (s processSuite) processes(t *testing.T) AnyProcesses {
	t.Helper()
	m, _ := s.start(t, runner.ProcessesOptions{})
	return m
}

// Order is one to start a command in w.
func Order(w writ.Workspace, command ...string) writ.ProcessOrder {
	return writ.ProcessOrder{ID: writ.NewProcessID(), Workspace: w, Command: command, Limits: writ.DefaultLimits}
}

// script is an order of a script for bash.
func script(w writ.Workspace, text string) writ.ProcessOrder { return Order(w, "bash", "-c", text) }

// inTerminal is o with a terminal.
func inTerminal(o writ.ProcessOrder) writ.ProcessOrder {
	o.TTY = true
	return o
}

// Begun is a process that was started.
type Begun struct {
	T  testing.TB
	M  AnyProcesses
	ID writ.ProcessID
}

// Begin starts a process, which ends with t.
func Begin(t testing.TB, m AnyProcesses, o writ.ProcessOrder) Begun {
	t.Helper()
	if err := m.Start(t.Context(), o); err != nil {
		t.Fatalf("start %q: %v", o.Command, err)
	}
	t.Cleanup(func() { _ = m.Terminate(context.Background(), o.ID, writ.Kill{}) }) // the server may be gone
	return Begun{t, m, o.ID}
}

// Text is everything that is kept of the process's output.
func (b Begun) Text() string {
	b.T.Helper()
	out, err := b.M.Output(b.T.Context(), b.ID, writ.OutputQuery{})
	if err != nil {
		b.T.Fatalf("read: %v", err)
	}
	return string(out.Chunk)
}

// Sees waits until want is in the output.
func (b Begun) Sees(want string) {
	b.T.Helper()
	Eventually(b.T, fmt.Sprintf("the process writes %q", want), func() bool { return strings.Contains(b.Text(), want) },
		func() string { return fmt.Sprintf("it wrote %q", b.Text()) })
}

// Prompts waits until prompt comes after the first of what. An end of input that is typed
// before is lost: it is a character of the lines that a terminal edits, and a program that
// edits them itself takes it for another when it begins to.
func (b Begun) Prompts(what, prompt string) {
	b.T.Helper()
	Eventually(b.T, fmt.Sprintf("the process asks for more after %q", what), func() bool {
		_, after, _ := strings.Cut(b.Text(), what)
		return strings.Contains(after, prompt)
	}, func() string { return fmt.Sprintf("it wrote %q", b.Text()) })
}

// Types gives text to the process.
func (b Begun) Types(text string) {
	b.T.Helper()
	if n, err := b.M.Input(b.T.Context(), b.ID, []byte(text)); n != len(text) || err != nil {
		b.T.Fatalf("typing %q: %d, %v", text, n, err)
	}
}

// Status is where the process stands.
func (b Begun) Status() writ.ProcessStatus {
	b.T.Helper()
	s, err := b.M.Status(b.T.Context(), b.ID)
	if err != nil {
		b.T.Fatalf("status: %v", err)
	}
	return s
}

// Ends waits until the process has ended.
func (b Begun) Ends() writ.ProcessStatus {
	b.T.Helper()
	var s writ.ProcessStatus
	Eventually(b.T, "the process ends", func() bool { s = b.Status(); return s.State == writ.ProcessExited },
		func() string { return fmt.Sprintf("it is %+v, and wrote %q", s, b.Text()) })
	checkStatus(b.T, s)
	return s
}

// checkStatus holds invariant 11 of spec/02 §15.
func checkStatus(t testing.TB, s writ.ProcessStatus) {
	t.Helper()
	over := s.State == writ.ProcessExited
	if over != (s.Termination != "") || over != (s.Ended != nil) || over != s.EOF || s.Started.IsZero() ||
		(s.ExitCode != nil) != (s.Termination == writ.TerminationExited) || (s.Signal != nil) != (s.Termination == writ.TerminationSignaled) {
		t.Errorf("the status contradicts itself: %+v", s)
	}
}

// ExitsWith waits until the process has ended with a code, and gives what it wrote.
func (b Begun) ExitsWith(code int) string {
	b.T.Helper()
	s := b.Ends()
	if s.ExitCode == nil || *s.ExitCode != code {
		b.T.Errorf("it ended as %+v, want exit code %d; it wrote %q", s, code, b.Text())
	}
	return b.Text()
}

// writes starts o, waits for its end with code 0 and compares what it wrote.
func writes(t *testing.T, m AnyProcesses, o writ.ProcessOrder, want string) {
	t.Helper()
	if got := Begin(t, m, o).ExitsWith(0); got != want {
		t.Errorf("%q wrote %q, want %q", o.Command, got, want)
	}
}

// freeSlot fails unless one more process than live can be started: what was refused or
// has ended must not keep a slot.
func freeSlot(t *testing.T, m AnyProcesses, w writ.Workspace) {
	t.Helper()
	writes(t, m, Order(w, "echo", "free"), "free\n")
}

// needTool ends t unless the tool can be had in a box.
func needTool(t testing.TB, tool string) {
	t.Helper()
	path, err := exec.LookPath(tool)
	if _, inUsr := os.Stat("/usr/bin/" + tool); err != nil || inUsr != nil {
		Missing(t, tool, fmt.Sprintf("%s is not in /usr/bin (%s)", tool, path))
	}
}

// within is a context that ends soon.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
