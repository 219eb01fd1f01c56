package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
)

// lostContact is the error of an order that was sent, and not answered.
func lostContact() error {
	return &writ.Error{Kind: writ.Unavailable, Code: "TIMEOUT", Op: "order", Msg: "the runner did not answer: whether it was done is not known", Err: fmt.Errorf("%w", writ.ErrDispatchUnknown)}
}

// unreachable is the error of a call that never left.
func unreachable() error {
	return &writ.Error{Kind: writ.Unavailable, Code: "TIMEOUT", Op: "order", Msg: "the runner cannot be reached: nothing was done"}
}

func fails(err func() error) func(context.Context) error {
	return func(context.Context) error { return err() }
}

// Scenario 102: the answer is lost, and the command runs: it holds the workspace until
// its end is seen.
func TestScenario102_TheAnswerIsLost(t *testing.T) {
	for name, held := range map[string]bool{"sent": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := bench(t, nil)
			coder := s.Agent("coder")
			s.Processes.After("Start", func(error) error { return lostContact() })
			var p writ.Process
			var err error
			if req := command("sleep", "25"); held {
				var a writ.Approval
				if a, err = s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req}); err != nil {
					t.Fatal(err)
				}
				s.MustResolve(coder, a.ID, true)
				p = mustStart(t, s, coder, a.ID)
			} else {
				p, err = s.Tools.Exec(t.Context(), coder, req)
			}
			if err != nil || p.Dispatch != writ.DispatchUnknown || p.ID == "" {
				t.Fatalf("%+v, %v", p, err)
			}
			s.Processes.Mend()
			wantBusy(t, s, p.ID)
			s.Settle()
			wantBusy(t, s, p.ID)
			if q, err := s.Tools.Process(t.Context(), coder, p.ID); err != nil || q.State != writ.ProcessRunning {
				t.Errorf("it is %+v, %v", q.ProcessStatus, err)
			}
			if n := s.Processes.Calls("Start"); n != 1 {
				t.Errorf("%d starts", n)
			}
			kill(t, s, coder, p.ID)
			wantFree(t, s)
		})
	}
}

// Scenario 102: the order never arrived, which only the runner can say. While it does not
// answer the workspace stays held.
func TestScenario102_TheOrderIsLost(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	for _, call := range []string{"Status", "Processes", "Output", "Terminate"} {
		s.Processes.Before(call, fails(unreachable))
	}
	s.Processes.Before("Start", fails(lostContact))
	p, err := s.Tools.Exec(t.Context(), coder, command("touch", "made"))
	if err != nil || p.Dispatch != writ.DispatchUnknown {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := s.Tools.Sweep(t.Context(), false); err == nil {
		t.Error("a sweep without a runner says that all is well")
	}
	_, err = s.Tools.Process(t.Context(), coder, p.ID)
	wantCode(t, "status", err, "TIMEOUT")
	_, err = s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{})
	wantCode(t, "output", err, "TIMEOUT")
	wantCode(t, "terminate", s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{}), "TIMEOUT")
	_, err = s.Tools.Processes(t.Context(), coder, "")
	wantCode(t, "list", err, "TIMEOUT")
	wantBusy(t, s, p.ID)
	s.Processes.Mend()
	s.Settle()
	ends(t, s, coder, p.ID, writ.TerminationUnknown)
	wantFree(t, s)
	if n := s.Processes.Calls("Start"); n != 1 {
		t.Errorf("%d starts", n)
	}
}

// Scenario 103: before it was dispatched nothing has happened.
func TestScenario103_BeforeDispatch(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	s.Processes.Before("Start", fails(unreachable))
	p, err := s.Tools.Exec(t.Context(), coder, command("touch", "made"))
	wantCode(t, "exec", err, "TIMEOUT")
	if p.ID != "" {
		t.Errorf("it has the handle %s", p.ID)
	}
	wantTrace(t, s, "process.started effect=allow action=exec program=touch args=1 by agent:coder", "process.finished end=unknown")
	s.Processes.Mend()
	wantFree(t, s)
	ends(t, s, coder, mustExec(t, s, coder, "true").ID, writ.TerminationExited)
}

// AUD-04: no record, no run.
func TestAUD04_NoRecordNoProcess(t *testing.T) {
	for name, held := range map[string]bool{"sent": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			s, _ := bench(t, nil)
			coder := s.Agent("coder")
			marker := fmt.Sprint("25.", time.Now().UnixNano()) // seconds, as nobody else on this host has
			req := command("sleep", marker)
			start := func() error { _, err := s.Tools.Exec(t.Context(), coder, req); return err }
			if held {
				a, err := s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req})
				if err != nil {
					t.Fatal(err)
				}
				s.MustResolve(coder, a.ID, true)
				start = func() error {
					_, err := s.Tools.Resume(t.Context(), coder, a.ID)
					if err != nil {
						wantState(t, s, a.ID, writ.ApprovalQueued)
					}
					return err
				}
			}
			mend := failOn(t, s.System, writ.EventProcessStarted)
			if err := start(); err == nil || writ.KindOf(err) != writ.Internal {
				t.Errorf("exec: %v", err)
			}
			wantNothingStarted(t, s)
			if n := executing(marker); n != 0 {
				t.Errorf("%d processes run", n)
			}
			mend()
			wantFree(t, s)
			if err := start(); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "it runs", func() bool { return executing(marker) > 0 })
			kill(t, s, coder, s.StoredProcesses()[0].ID)
		})
	}
}

// An end that cannot be recorded frees the workspace and is recorded later, as it was.
func TestTheEndOfAProcessIsNotRecorded(t *testing.T) {
	s, _ := bench(t, nil, impatient)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "echo out; read x; exit 3")
	mend := failOn(t, s.System, writ.EventProcessFinished)
	mustType(t, s, p.ID, "go\n", false)
	testkit.Eventually(t, "nobody tries any more", func() bool { return strings.Contains(s.Slog.String(), "end of a process was not recorded") })
	wantFree(t, s)
	if got := s.StoredProcess(p.ID); got.State != writ.ProcessRunning {
		t.Errorf("recorded is %+v", got.ProcessStatus)
	}
	q, err := s.Tools.Process(t.Context(), coder, p.ID)
	if err != nil || q.State != writ.ProcessExited || q.ExitCode == nil || *q.ExitCode != 3 {
		t.Errorf("it is %+v, %v", q.ProcessStatus, err)
	}
	if err := s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{}); err != nil {
		t.Error(err)
	}
	mend()
	s.Settle()
	q = ends(t, s, coder, p.ID, writ.TerminationExited)
	if *q.ExitCode != 3 || q.Total != 4 {
		t.Errorf("it ended as %+v", q.ProcessStatus)
	}
	wantTrace(t, s,
		"process.started effect=allow action=exec program=sh args=2 by agent:coder",
		"process.input effect=allow action=input bytes=3 by agent:coder",
		"patch.started effect=allow action=patch by local:0", // that the workspace is free
		"patch.finished count=1",
		"process.finished end=exited exit=(3) count=4")
}

// Scenario 125: the server stops between the intent and the answer: nobody knows, and it
// is not started again. That answer stays.
func TestScenario125_ACommandIsAmbiguousAfterACrash(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	a := mustHoldCommand(t, s, coder, "touch", "made")
	s.MustResolve(coder, a.ID, true)
	arrived, release := s.Processes.Hangs("Start")
	resumed := make(chan error, 1)
	go func() { _, err := s.Tools.Resume(context.Background(), coder, a.ID); resumed <- err }()
	testkit.Receive(t, "the start is on its way", arrived)
	wantState(t, s, a.ID, writ.ApprovalResuming)
	next := s.Crashed()
	wantState(t, next, a.ID, writ.ApprovalResuming)
	if again := mustHoldCommand(t, next, coder, "touch", "made"); again.ID != a.ID {
		t.Error("it is asked for again while nobody knows")
	}
	var first error
	for range 3 {
		err := resumeFails(t, next, coder, a.ID, "APPROVAL_AMBIGUOUS")
		if first != nil && writ.Message(err) != writ.Message(first) {
			t.Errorf("%v, was %v", err, first)
		}
		first = err
		wantState(t, next, a.ID, writ.ApprovalConsumed)
	}
	p := next.StoredApproval(a.ID).Call.Process
	if p == "" || !strings.Contains(writ.Message(first), string(p)) {
		t.Errorf("%q does not name %q", writ.Message(first), p)
	}
	if n := next.Processes.Calls("Start"); n != 0 {
		t.Errorf("%d starts", n)
	}
	// Its row was settled: the runner knows nothing of it.
	if q, err := next.Tools.Process(t.Context(), coder, p); err != nil || q.Termination != writ.TerminationUnknown {
		t.Errorf("%+v, %v", q.ProcessStatus, err)
	}
	release()
	if err := testkit.Receive(t, "the first resume", resumed); err != nil {
		t.Error(err)
	}
}

// What is being started is neither lost nor forgotten, whoever asks for it meanwhile.
func TestAskedForWhileItStarts(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	arrived, release := s.Processes.Hangs("Start")
	started := make(chan error, 1)
	go func() {
		_, err := s.Tools.Exec(context.Background(), coder, command("sleep", "25"))
		started <- err
	}()
	testkit.Receive(t, "it is being started", arrived)
	id := s.StoredProcesses()[0].ID
	s.Settle()
	short, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Tools.Process(short, coder, id); err == nil {
		t.Error("it is known where it stands before it was started")
	}
	type answer struct {
		p   writ.Process
		err error
	}
	asked := make(chan answer, 1)
	go func() { p, err := s.Tools.Process(context.Background(), coder, id); asked <- answer{p, err} }()
	stopped := make(chan error, 1)
	go func() {
		_, err := s.Tools.StopWorkspace(context.Background(), testkit.Local(), "app", s.StoredProcess(id).Root)
		stopped <- err
	}()
	release()
	if err := testkit.Receive(t, "it was started", started); err != nil {
		t.Fatal(err)
	}
	if a := testkit.Receive(t, "the status", asked); a.err != nil {
		t.Errorf("%+v, %v", a.p.ProcessStatus, a.err)
	}
	if err := testkit.Receive(t, "the stop", stopped); err != nil {
		t.Error(err)
	}
	ends(t, s, coder, id, writ.TerminationTerminated)
	wantFree(t, s)
}

// One that is asked for while it starts, and does not, never was.
func TestAskedForWhileItDoesNotStart(t *testing.T) {
	s, ws := bench(t, nil)
	coder := s.Agent("coder")
	arrived, release := s.Processes.Hangs("Start")
	started := make(chan error, 1)
	go func() {
		_, err := s.Tools.Exec(context.Background(), coder, command("no-such-program"))
		started <- err
	}()
	testkit.Receive(t, "it is being started", arrived)
	id := s.StoredProcesses()[0].ID
	asked, stopped := make(chan error, 1), make(chan error, 1)
	go func() { _, err := s.Tools.Process(context.Background(), coder, id); asked <- err }()
	go func() {
		_, err := s.Tools.StopWorkspace(context.Background(), testkit.Local(), "app", ws.Root)
		stopped <- err
	}()
	release()
	wantCode(t, "exec", testkit.Receive(t, "it was not started", started), "PROCESS_SPAWN_FAILED")
	wantCode(t, "status", testkit.Receive(t, "the status", asked), "PROCESS_NOT_FOUND")
	if err := testkit.Receive(t, "the stop", stopped); err != nil {
		t.Error(err)
	}
	for _, e := range s.Events("") {
		if e.Type == writ.EventProcessKilled {
			t.Error("it is recorded that what never was was ended")
		}
	}
}
