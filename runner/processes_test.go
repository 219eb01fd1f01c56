package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/sandbox"
)

// newFakeProcesses are processes whose programs are the fake's.
func newFakeProcesses(t *testing.T, opt ProcessesOptions) (*Processes, *fake) {
	t.Helper()
	p := &fake{t: t, program: printOrWait}
	m := NewProcesses(p, opt)
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if _, _, open := p.counts(); open != 0 {
			t.Errorf("%d boxes were left open", open)
		}
	})
	return m, p
}

func orderIn(root string, command ...string) writ.ProcessOrder {
	return writ.ProcessOrder{
		ID: writ.NewProcessID(), Command: command, Limits: writ.DefaultLimits,
		Workspace: writ.Workspace{
			ID: "w", Tenant: writ.DefaultTenant, Root: root, Profile: writ.WorkspaceWrite, Environment: "local",
			EnvironmentKind: writ.EnvironmentHost, Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
		},
	}
}

// ended waits for the end of a process.
func ended(t *testing.T, m *Processes, id writ.ProcessID) writ.ProcessStatus {
	t.Helper()
	for {
		out, err := m.Output(t.Context(), id, writ.OutputQuery{Cursor: 1 << 40, Wait: writ.MaxOutputWait})
		if err != nil {
			t.Fatal(err)
		}
		if out.State == writ.ProcessExited {
			s, err := m.Status(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
}

func TestProcessIsGivenToABox(t *testing.T) {
	m, p := newFakeProcesses(t, ProcessesOptions{Env: []string{"PATH=/opt/go/bin:/usr/bin", "EXTRA=1"}})
	root := t.TempDir()
	for _, tty := range []bool{false, true} {
		o := orderIn(root, "prog", "arg")
		o.TTY, o.Dir = tty, "sub/../other/"
		if err := m.Start(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		ended(t, m, o.ID)
	}
	limits := writ.DefaultLimits
	limits.OutputBytes = sandbox.Unlimited
	want := sandbox.Command{
		Argv: []string{"prog", "arg"}, Dir: root + "/other", Limits: limits, Input: true,
		Env: []string{
			"HOME=" + root, "TMPDIR=/tmp", "LANG=C.UTF-8", "PAGER=cat", "GIT_PAGER=cat", "GIT_EDITOR=false",
			"PATH=/opt/go/bin:/usr/bin", "EXTRA=1",
		},
	}
	terminal := want
	terminal.Input, terminal.Terminal = false, &sandbox.Size{Rows: 24, Cols: 80}
	terminal.Env = slices.Insert(slices.Clone(want.Env), 6, "TERM=xterm")
	got := slices.Clone(p.started)
	for i := range got {
		got[i].Stdout, got[i].Stderr = nil, nil
	}
	if d := cmp.Diff([]sandbox.Command{want, terminal}, got); d != "" {
		t.Errorf("commands (-want +got):\n%s", d)
	}
	box := sandbox.Template{Limits: limits, Workspace: &sandbox.Workspace{Root: root, Writable: true, Protected: guarded}}
	if d := cmp.Diff([]sandbox.Template{box, box}, p.made); d != "" {
		t.Errorf("boxes (-want +got):\n%s", d)
	}
}

// EX-01, EX-05, spec/02 §7.2: what a box saw is what is told, the first cause first.
func TestScenario98_EndingsRestOnEvidence(t *testing.T) {
	three := 3
	byKill := writ.Result{Outcome: writ.Killed, Signal: "SIGKILL", Reason: "cancelled"}
	for _, tt := range []struct {
		name   string
		res    writ.Result
		asked  bool
		killed error
		want   writ.ProcessStatus
	}{
		{"code", writ.Result{Outcome: writ.Failed, ExitCode: &three}, false, nil, writ.ProcessStatus{Termination: writ.TerminationExited, ExitCode: &three}},
		{"code just before the kill", writ.Result{Outcome: writ.Failed, ExitCode: &three}, false, errTerminated, writ.ProcessStatus{Termination: writ.TerminationExited, ExitCode: &three}},
		{"code after a signal of ours", writ.Result{Outcome: writ.Failed, ExitCode: &three}, true, nil, writ.ProcessStatus{Termination: writ.TerminationTerminated, Reason: errTerminated.Error()}},
		{"code, and a child ran out of memory", writ.Result{Outcome: writ.OutOfMemory, ExitCode: &three, Reason: "m"}, false, nil, writ.ProcessStatus{Termination: writ.TerminationExited, ExitCode: &three, Reason: "m"}},
		{"signal", writ.Result{Outcome: writ.Failed, Signal: "SIGSEGV", Reason: "s"}, false, nil, writ.ProcessStatus{Termination: writ.TerminationSignaled, Signal: &writ.Signal{Number: 11, Name: "SIGSEGV"}, Reason: "s"}},
		{"signal without a name", writ.Result{Outcome: writ.Failed, Signal: "SIG40"}, false, nil, writ.ProcessStatus{Termination: writ.TerminationSignaled, Signal: &writ.Signal{Number: 40}}},
		{"signal just before the kill", writ.Result{Outcome: writ.Failed, Signal: "SIGKILL"}, false, errTerminated, writ.ProcessStatus{Termination: writ.TerminationSignaled, Signal: &writ.Signal{Number: 9, Name: "SIGKILL"}}},
		{"signal of ours", writ.Result{Outcome: writ.Failed, Signal: "SIGTERM"}, true, nil, writ.ProcessStatus{Termination: writ.TerminationTerminated, Reason: errTerminated.Error()}},
		{"out of memory", writ.Result{Outcome: writ.OutOfMemory, Signal: "SIGKILL", Reason: "m"}, false, nil, writ.ProcessStatus{Termination: writ.TerminationSignaled, Signal: &writ.Signal{Number: 9, Name: "SIGKILL"}, Reason: "m"}},
		{"time", writ.Result{Outcome: writ.TimedOut, Signal: "SIGKILL", Reason: "t"}, false, nil, writ.ProcessStatus{Termination: writ.TerminationTimeout, Reason: "t"}},
		{"time, then the kill", writ.Result{Outcome: writ.TimedOut, Signal: "SIGKILL", Reason: "t"}, false, errTerminated, writ.ProcessStatus{Termination: writ.TerminationTimeout, Reason: "t"}},
		{"our signal, then time", writ.Result{Outcome: writ.TimedOut, Signal: "SIGKILL", Reason: "t"}, true, nil, writ.ProcessStatus{Termination: writ.TerminationTerminated, Reason: errTerminated.Error()}},
		{"the kill", byKill, false, errTerminated, writ.ProcessStatus{Termination: writ.TerminationTerminated, Reason: errTerminated.Error()}},
		{"shutdown", byKill, false, errClosed, writ.ProcessStatus{Termination: writ.TerminationTerminated, Reason: errClosed.Error()}},
		{"another limit", writ.Result{Outcome: writ.Killed, Signal: "SIGKILL", Reason: "l"}, false, nil, writ.ProcessStatus{Termination: writ.TerminationTerminated, Reason: "l"}},
		{"lost", writ.Result{Outcome: writ.Interrupted, Reason: "i"}, false, nil, writ.ProcessStatus{Termination: writ.TerminationUnknown, Reason: "i"}},
		{"lost after the kill", writ.Result{Outcome: writ.Interrupted, Reason: "i"}, false, errTerminated, writ.ProcessStatus{Termination: writ.TerminationTerminated, Reason: errTerminated.Error()}},
	} {
		if d := cmp.Diff(tt.want, ending(tt.res, tt.asked, tt.killed)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// Spec/02 §15 invariant 9: what is refused never has a box.
func TestScenario95_NoBoxBeyondTheCap(t *testing.T) {
	m, p := newFakeProcesses(t, ProcessesOptions{Live: 3})
	root := t.TempDir()
	for round := range 20 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var ids []writ.ProcessID
		for range 12 {
			wg.Go(func() {
				o := orderIn(root, "wait")
				switch err := m.Start(t.Context(), o); {
				case err == nil:
					mu.Lock()
					ids = append(ids, o.ID)
					mu.Unlock()
				case writ.CodeOf(err) != codeBusy || writ.KindOf(err) != writ.Exhausted:
					t.Errorf("refused with %v", err)
				}
			})
		}
		wg.Wait()
		if made, started, _ := p.counts(); len(ids) != 3 || made != 3*(round+1) || started != made {
			t.Fatalf("round %d: %d of 12 were started, with %d boxes", round, len(ids), made)
		}
		for _, id := range ids {
			if err := m.Terminate(t.Context(), id, writ.Kill{}); err != nil {
				t.Error(err)
			}
			ended(t, m, id)
		}
	}
}

func TestWhatIsNotStartedLeavesNothing(t *testing.T) {
	m, p := newFakeProcesses(t, ProcessesOptions{Live: 1})
	o := orderIn(t.TempDir(), "x")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.Start(over, o); !errors.Is(err, context.Canceled) {
		t.Errorf("over before it began: %v", err)
	}
	for _, tt := range []struct {
		prep, start error
		kind        writ.Kind
	}{
		{prep: &writ.Error{Kind: writ.Unavailable, Msg: "no bwrap"}, kind: writ.Unavailable},
		{prep: errors.New("detail"), kind: writ.Unavailable},
		{start: &writ.Error{Kind: writ.Invalid, Msg: "no program"}, kind: writ.Invalid},
		{start: &writ.Error{Kind: writ.Internal, Msg: "detail"}, kind: writ.Unavailable},
	} {
		p.fail(tt.prep, tt.start)
		err := m.Start(t.Context(), o)
		if writ.KindOf(err) != tt.kind || writ.CodeOf(err) != codeSpawnFailed || writ.Message(err) == "detail" {
			t.Errorf("%+v: %v", tt, err)
		}
		if _, err := m.Status(t.Context(), o.ID); writ.CodeOf(err) != codeNoProcess {
			t.Errorf("%+v: it is there: %v", tt, err)
		}
	}
	p.fail(nil, nil)
	if all, err := m.Processes(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("there are %+v, %v", all, err)
	}
	if err := m.Start(t.Context(), o); err != nil { // the slot and the id are free
		t.Error(err)
	}
}

// A call that comes while the process is being started waits for that, and tells what
// became of it.
func TestCallsWaitForTheStart(t *testing.T) {
	for _, fails := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			hold := make(chan struct{})
			p := &slowProvider{fake: fake{t: t, program: printOrWait}, hold: hold}
			if fails {
				p.startErr = &writ.Error{Kind: writ.Invalid, Msg: "no"}
			}
			m := NewProcesses(p, ProcessesOptions{})
			o := orderIn("/", "wait")
			o.Workspace.Root = t.TempDir()
			starts, status, lists := make(chan error, 2), make(chan error, 1), make(chan int, 1)
			for range 2 {
				go func() { starts <- m.Start(t.Context(), o) }()
			}
			synctest.Wait()
			go func() { _, err := m.Status(t.Context(), o.ID); status <- err }()
			go func() { all, _ := m.Processes(t.Context()); lists <- len(all) }()
			impatient, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := m.Status(impatient, o.ID); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it did not wait: %v", err)
			}
			if len(starts)+len(status)+len(lists) != 0 {
				t.Error("somebody did not wait")
			}
			close(hold)
			for range 2 {
				if err := <-starts; (err != nil) != fails {
					t.Errorf("start: %v", err)
				}
			}
			if err := <-status; (err != nil) != fails {
				t.Errorf("status: %v", err)
			}
			if n := <-lists; (n == 0) != fails {
				t.Errorf("%d in the list", n)
			}
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// slowProvider is a fake that makes a box when it is told to.
type slowProvider struct {
	fake
	hold <-chan struct{}
}

func (p *slowProvider) Prepare(ctx context.Context, t sandbox.Template) (sandbox.Box, error) {
	select {
	case <-p.hold:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return p.fake.Prepare(ctx, t)
}

// A start that Close, or the end of its caller, finds before the program is executed
// starts nothing.
func TestStartIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &slowProvider{fake: fake{t: t, program: printOrWait}, hold: make(chan struct{})}
		m := NewProcesses(p, ProcessesOptions{})
		root := t.TempDir()
		gone := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { gone <- m.Start(ctx, orderIn(root, "wait")) }()
		synctest.Wait()
		cancel()
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller is gone: %v", err)
		}
		go func() { gone <- m.Start(t.Context(), orderIn(root, "wait")) }()
		synctest.Wait()
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-gone; writ.KindOf(err) != writ.Unavailable || writ.CodeOf(err) != "" {
			t.Errorf("the runner is gone: %v", err)
		}
		if made, _, _ := p.counts(); made != 0 {
			t.Errorf("%d boxes were made", made)
		}
	})
}

// The call that started a process is not what keeps it alive.
func TestProcessOutlivesItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewProcesses(&fake{t: t, program: printOrWait}, ProcessesOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		o := orderIn(t.TempDir(), "wait")
		if err := m.Start(ctx, o); err != nil {
			t.Fatal(err)
		}
		cancel()
		synctest.Wait()
		if s, err := m.Status(t.Context(), o.ID); err != nil || s.State != writ.ProcessRunning {
			t.Errorf("%+v, %v", s, err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestScenario94_EvictionByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewProcesses(&fake{t: t, program: printOrWait}, ProcessesOptions{})
		root := t.TempDir()
		start := func(arg string) writ.ProcessID {
			o := orderIn(root, arg)
			if err := m.Start(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return o.ID
		}
		there := func(id writ.ProcessID) bool {
			_, err := m.Status(t.Context(), id)
			if err != nil && writ.CodeOf(err) != codeNoProcess {
				t.Error(err)
			}
			return err == nil
		}
		first, alive := start("a"), start("wait")
		time.Sleep(10 * time.Minute)
		second := start("b")
		time.Sleep(5 * time.Minute)
		if !there(first) {
			t.Error("forgotten too early")
		}
		time.Sleep(time.Second)
		if there(first) || !there(second) || !there(alive) {
			t.Error("not after fifteen minutes of each")
		}
		time.Sleep(24 * time.Hour)
		if all, err := m.Processes(t.Context()); err != nil || len(all) != 1 || all[0].ID != alive {
			t.Errorf("a day later: %+v, %v", all, err)
		}
		// By default 64 are remembered.
		var ids []writ.ProcessID
		for range 70 {
			ids = append(ids, start("c"))
		}
		for i, id := range ids {
			if there(id) != (i >= 6) {
				t.Errorf("process %d of 70 is there: %v", i, i < 6)
			}
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		// What is known can be asked for after that.
		if s, err := m.Status(t.Context(), alive); err != nil || s.Termination != writ.TerminationTerminated || s.Reason != errClosed.Error() {
			t.Errorf("the one that Close ended: %+v, %v", s, err)
		}
	})
}

// A path that the rules deny and that the box does not hold is looked for once more;
// then nothing is started.
func TestWhatIsDeniedIsHeldOrNothingStarts(t *testing.T) {
	for _, tt := range []struct {
		unheld  [][]string
		boxes   int
		started bool
	}{
		{nil, 1, true},
		{[][]string{{".git/hooks", ".envrc"}}, 1, true}, // are not there
		{[][]string{{"secret"}}, 2, true},
		{[][]string{{".idea", "fixed"}, {}}, 2, true},
		{[][]string{{"secret"}, {"fixed"}}, 2, false},
	} {
		m, p := newFakeProcesses(t, ProcessesOptions{})
		root := t.TempDir()
		for _, dir := range []string{"secret", "fixed"} {
			if err := syscall.Mkdir(root+"/"+dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		p.unheld = tt.unheld
		o := orderIn(root, "x")
		o.Workspace.Rules = writ.PathRules{DenyRead: []string{"secret"}, DenyWrite: []string{"fixed"}}
		err := m.Start(t.Context(), o)
		if (err == nil) != tt.started || err != nil && (writ.KindOf(err) != writ.Conflict || writ.CodeOf(err) != codeSpawnFailed) {
			t.Errorf("%v: %v", tt.unheld, err)
		}
		made, started, _ := p.counts()
		if made != tt.boxes || (started == 1) != tt.started {
			t.Errorf("%v: %d boxes, %d started", tt.unheld, made, started)
		}
		w := p.made[0].Workspace
		if !slices.Equal(w.Hidden, []string{"secret"}) || !slices.Contains(w.Protected, "fixed") || !slices.Contains(w.Protected, ".git/hooks") {
			t.Errorf("the box holds %+v", w)
		}
	}
}

func TestFoldersOfOrders(t *testing.T) {
	for dir, want := range map[string]bool{
		"": false, ".": false, "a": false, "a//b/./c/": false, "a/../b": false, "..a": false, "a/..": false,
		"..": true, "/": true, "/a": true, "a/../..": true, "../a": true, "a/../../a": true, "./..": true,
	} {
		if got := escapes(dir); got != want {
			t.Errorf("%q escapes: %v", dir, got)
		}
	}
}

// Nothing is lost or told twice to one that follows, however many come and go.
func TestExitsUnderLoad(t *testing.T) {
	m, _ := newFakeProcesses(t, ProcessesOptions{Live: 4, Kept: 1000})
	root := t.TempDir()
	const count = 200
	var wg sync.WaitGroup
	orders := make([][]writ.ProcessID, 5)
	for i := range orders {
		wg.Go(func() {
			enough := errors.New("enough")
			err := m.Exits(t.Context(), func(s writ.ProcessStatus) error {
				if orders[i] = append(orders[i], s.ID); len(orders[i]) == count {
					return enough
				}
				return nil
			})
			if err != enough {
				t.Error(err)
			}
		})
	}
	for i := range count {
		for {
			err := m.Start(t.Context(), orderIn(root, fmt.Sprint(i)))
			if err == nil {
				break
			}
			if writ.CodeOf(err) != codeBusy {
				t.Fatal(err)
			}
		}
	}
	wg.Wait()
	for i := range orders {
		if !slices.Equal(orders[i], orders[0]) {
			t.Errorf("follower %d was told in another order", i)
		}
	}
}
