package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// Scenarios 87 and 98, invariant 11: each end is recorded as what it was.
func TestScenario87_98_Ends(t *testing.T) {
	for name, tt := range map[string]struct {
		argv  []string
		want  writ.Termination
		trace string
	}{
		"exit":    {[]string{"sh", "-c", "exit 3"}, writ.TerminationExited, "end=exited exit=(3)"},
		"signal":  {[]string{"sh", "-c", "kill -9 $$"}, writ.TerminationSignaled, "end=signaled signal=SIGKILL"},
		"segment": {[]string{"sh", "-c", "kill -SEGV $$"}, writ.TerminationSignaled, "end=signaled signal=SIGSEGV"},
		"timeout": {[]string{"sleep", "60"}, writ.TerminationTimeout, "end=timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := bench(t, nil, func(g *testkit.GatewaySetup) {
				if name == "timeout" {
					g.Processes.WallMS = 200
				}
			})
			coder := s.Agent("coder")
			p := mustExec(t, s, coder, tt.argv...)
			ends(t, s, coder, p.ID, tt.want)
			events := s.Events("")
			if got := trace(events[len(events)-1]); got != "process.finished "+tt.trace {
				t.Errorf("recorded is %q", got)
			}
			wantFree(t, s)
		})
	}
}

// Its runner is gone: nobody knows how far it came, and what was kept of it is what was
// recorded, which is nothing.
func TestTheRunnerIsGone(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "echo out; sleep 25")
	printed(t, s, coder, p.ID, "out\n")
	s.Processes.Before("Exits", fails(unreachable)) // nor is the end told that its runner makes of it
	s.Processes.Before("Status", fails(unreachable))
	s.Restart()
	p = ends(t, s, coder, p.ID, writ.TerminationUnknown)
	if p.Reason == "" || p.ExitCode != nil || !p.EOF {
		t.Errorf("it ended as %+v", p.ProcessStatus)
	}
	out, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{})
	if err != nil || len(out.Chunk) != 0 || !out.EOF || out.State != writ.ProcessExited || out.Termination != writ.TerminationUnknown {
		t.Errorf("%+v, %v", out, err)
	}
	wantFree(t, s)
}

// Spec/02 §7.3: what ended is there after a restart, with the last of its output.
func TestOutputIsKept(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	const text = "one\ntwo é three\n"
	p := mustExec(t, s, coder, "printf", "one\\ntwo é three\\n")
	before := ends(t, s, coder, p.ID, writ.TerminationExited)
	for _, restarted := range []bool{false, true} {
		if restarted {
			s.Restart()
		}
		after, err := s.Tools.Process(t.Context(), coder, p.ID)
		if err != nil || after.Termination != writ.TerminationExited || *after.ExitCode != 0 || after.Total != before.Total || !after.Ended.Equal(*before.Ended) {
			t.Errorf("%+v, was %+v, %v", after.ProcessStatus, before.ProcessStatus, err)
		}
		for _, limit := range []int{0, 1, 3, 5, 100} {
			var all []byte
			q := writ.OutputQuery{Limit: limit}
			for range len(text) + 1 {
				out, err := s.Tools.Output(t.Context(), coder, p.ID, q)
				if err != nil || out.State != writ.ProcessExited || out.Total != int64(len(text)) || out.Lost {
					t.Fatalf("%+v, %v", out, err)
				}
				if limit > 0 && len(out.Chunk) > max(limit, 4) {
					t.Errorf("limit %d, and %d bytes", limit, len(out.Chunk))
				}
				all, q.Cursor = append(all, out.Chunk...), out.Cursor
				if out.EOF {
					break
				}
			}
			if string(all) != text {
				t.Errorf("limit %d, restarted %v: %q", limit, restarted, all)
			}
		}
		for _, q := range []writ.OutputQuery{{Cursor: -1}, {Limit: -1}, {Wait: -1}, {Stream: "both"}} {
			_, err := s.Tools.Output(t.Context(), coder, p.ID, q)
			wantCode(t, fmt.Sprintf("%+v", q), err, "OUTPUT_LIMIT")
		}
		if out, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{Cursor: 1000}); err != nil || len(out.Chunk) != 0 || !out.EOF {
			t.Errorf("behind the end: %+v, %v", out, err)
		}
		wantCode(t, "resize", s.Tools.Resize(t.Context(), coder, p.ID, writ.FirstTerminalSize), "PROCESS_NOT_RUNNING")
		wantCode(t, "resize to nothing", s.Tools.Resize(t.Context(), coder, p.ID, writ.TerminalSize{}), "INVALID_COMMAND")
		if err := s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{}); err != nil {
			t.Error(err)
		}
	}
	_, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{Stream: writ.Stdout})
	wantCode(t, "one stream of what was kept", err, "PROCESS_NOT_FOUND")
	// A runner that does not answer keeps nobody from what is in the store.
	s.Processes.Before("Output", fails(unreachable))
	if out, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{}); err != nil || string(out.Chunk) != text {
		t.Errorf("without a runner: %q, %v", out.Chunk, err)
	}
}

// What was dropped before the end is said to be lost afterwards, too.
func TestScenario86_LostOutputIsKeptAsLost(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; echo end")
	ends(t, s, coder, p.ID, writ.TerminationExited)
	live, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{})
	if err != nil || !live.Lost || live.Total != 300004 || live.Retained != live.Total-int64(len(live.Chunk)) || !strings.HasSuffix(string(live.Chunk), "xend\n") {
		t.Fatalf("lost %v, %d of %d from %d, %v", live.Lost, len(live.Chunk), live.Total, live.Retained, err)
	}
	s.Restart()
	kept, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{})
	if err != nil || string(kept.Chunk) != string(live.Chunk) || !kept.Lost || kept.Retained != live.Retained || kept.Total != live.Total || kept.Cursor != live.Cursor {
		t.Errorf("lost %v, %d of %d from %d, %v", kept.Lost, len(kept.Chunk), kept.Total, kept.Retained, err)
	}
}

// Scenario 94: after its time, or behind so many others, it is as if it had never been.
func TestScenario94_Retention(t *testing.T) {
	s, ws := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "echo", "MARKER")
	ends(t, s, coder, p.ID, writ.TerminationExited)
	gone := func(id writ.ProcessID) {
		t.Helper()
		_, err := s.Tools.Process(t.Context(), coder, id)
		wantCode(t, "status", err, "PROCESS_NOT_FOUND")
		_, err = s.Tools.Output(t.Context(), coder, id, writ.OutputQuery{})
		wantCode(t, "output", err, "PROCESS_NOT_FOUND")
		wantCode(t, "terminate", s.Tools.Terminate(t.Context(), coder, id, writ.Kill{}), "PROCESS_NOT_FOUND")
		wantCode(t, "input", s.Tools.Input(t.Context(), coder, id, nil, true), "PROCESS_NOT_FOUND")
	}
	old := endedProcess(0, coder, ws)
	at := writ.Now().Add(-15*time.Minute - time.Second)
	old.Ended = &at
	record(t, s, old)
	s.Settle()
	gone(old.ID)
	if _, err := s.Tools.Process(t.Context(), coder, p.ID); err != nil {
		t.Errorf("of now: %v", err)
	}
	var more []writ.Process
	for i := range 64 {
		q := endedProcess(i+1, coder, ws)
		later := q.Ended.Add(time.Second)
		q.Ended = &later
		more = append(more, q)
	}
	record(t, s, more...)
	running := mustExec(t, s, coder, "sleep", "60")
	s.Settle()
	gone(p.ID)
	list, err := s.Tools.Processes(t.Context(), coder, "app")
	if err != nil || len(list) != 65 {
		t.Errorf("%d are listed, %v", len(list), err)
	}
	// The records stay, and say nothing of what it wrote.
	if q := s.StoredProcess(p.ID); q.Termination != writ.TerminationExited {
		t.Errorf("recorded is %+v", q.ProcessStatus)
	}
	kill(t, s, coder, running.ID)
}

// Scenario 97: a server that stops with its runner ends what runs, and records it.
func TestScenario97_ShutdownEndsProcesses(t *testing.T) {
	first, second := inside(t), inside(t, func(w *writ.Workspace) { w.ID = "second" })
	s := testkit.Workspaces(t, []writ.Workspace{first, second})
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "echo out; sleep 60")
	q, err := s.Tools.Exec(t.Context(), coder, writ.CommandRequest{Workspace: "second", Command: []string{"sleep", "60"}, TTY: true})
	if err != nil {
		t.Fatal(err)
	}
	printed(t, s, coder, p.ID, "out\n")
	s.Tools.Close(t.Context())
	_, err = s.Tools.Exec(t.Context(), coder, command("true"))
	wantKind(t, "exec in a server that stops", err, writ.Unavailable)
	s.Tools.EndProcesses(t.Context())
	for _, id := range []writ.ProcessID{p.ID, q.ID} {
		if got := s.StoredProcess(id); got.Termination != writ.TerminationTerminated {
			t.Errorf("recorded is %+v", got.ProcessStatus)
		}
	}
	s.Restart()
	ends(t, s, coder, p.ID, writ.TerminationTerminated)
	printed(t, s, coder, p.ID, "out\n")
	kills := 0
	for _, e := range s.Events("") {
		if e.Type == writ.EventProcessKilled && e.Actor.Kind == writ.KindLocal && e.Data.Reason == "the server stopped" {
			kills++
		}
	}
	if kills != 2 {
		t.Errorf("%d kills are recorded", kills)
	}
	wantFree(t, s)
}

// A runner that does not answer holds up no shutdown: its processes end with it, and
// that is recorded at the next start.
func TestShutdownWithoutARunner(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "60")
	s.Processes.Before("Terminate", fails(unreachable))
	s.Tools.EndProcesses(t.Context()) // returns
	s.Restart()
	over(t, s, coder, p.ID)
	wantFree(t, s)
}

// A runner that is a service of its own keeps what runs over a restart of the server:
// the handle stays, the root is held, and its end is seen.
func TestARunnerApart(t *testing.T) {
	s, ws := bench(t, nil, func(g *testkit.GatewaySetup) { g.Apart = true })
	coder := s.Agent("coder")
	short := mustExec(t, s, coder, "true")
	ends(t, s, coder, short.ID, writ.TerminationExited)
	p := mustExec(t, s, coder, "sh", "-c", "echo before; read x; echo $x > seen; exit 4")
	printed(t, s, coder, p.ID, "before\n")
	for range 2 {
		s.Restart()
		wantBusy(t, s, p.ID)
		q, err := s.Tools.Process(t.Context(), coder, p.ID)
		if err != nil || q.State != writ.ProcessRunning || q.Dispatch != writ.DispatchConfirmed || q.By != coder.Ref() {
			t.Errorf("%+v, %v", q, err)
		}
		printed(t, s, coder, p.ID, "before\n")
	}
	mustType(t, s, p.ID, "after\n", false)
	q := ends(t, s, coder, p.ID, writ.TerminationExited)
	if *q.ExitCode != 4 || !q.Started.Equal(p.Started) {
		t.Errorf("it ended as %+v", q.ProcessStatus)
	}
	wantDisk(t, ws, map[string]string{"seen": "after\n"})
	wantFree(t, s)
}

// What ends while the server is away ends as it did.
func TestARunnerApartWhileTheServerIsAway(t *testing.T) {
	s, _ := bench(t, nil, func(g *testkit.GatewaySetup) { g.Apart = true })
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "echo out; read x; exit 4")
	printed(t, s, coder, p.ID, "out\n")
	runner := s.Processes.Real()
	s.End()
	if err := runner.CloseInput(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "it ends", func() bool {
		st, err := runner.Status(t.Context(), p.ID)
		return err == nil && st.State == writ.ProcessExited
	})
	next := s.Crashed() // on the same disk
	q := ends(t, next, coder, p.ID, writ.TerminationExited)
	if *q.ExitCode != 4 {
		t.Errorf("it ended as %+v", q.ProcessStatus)
	}
	printed(t, next, coder, p.ID, "out\n")
	wantFree(t, next)
}

// Contact with the runner is lost for a while: what ended meanwhile is seen afterwards.
func TestContactIsLostForAWhile(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "read x; exit 4")
	for _, call := range []string{"Status", "Processes", "Exits", "Terminate"} {
		s.Processes.Before(call, fails(unreachable))
	}
	if err := s.Processes.Real().CloseInput(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	s.Processes.Mend()
	ends(t, s, coder, p.ID, writ.TerminationExited)
	wantFree(t, s)
}

// Scenario 138: a person's stop ends the processes of the workspace, all of them and no
// others.
func TestScenario138_StopWorkspace(t *testing.T) {
	first := inside(t)
	second := inside(t, func(w *writ.Workspace) { w.ID = "second" })
	s := testkit.Workspaces(t, []writ.Workspace{first, second})
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "60")
	q, err := s.Tools.Exec(t.Context(), coder, writ.CommandRequest{Workspace: "second", Command: []string{"sleep", "60"}})
	if err != nil {
		t.Fatal(err)
	}
	ann := s.Operator("ann")
	for _, none := range []struct {
		id   writ.WorkspaceID
		root string
	}{{"third", first.Root}, {"app", second.Root}, {"app", ""}} {
		if n, err := s.Tools.StopWorkspace(t.Context(), ann, none.id, none.root); n != 0 || err != nil {
			t.Errorf("%s at %s: %d, %v", none.id, none.root, n, err)
		}
	}
	if n, err := s.Tools.StopWorkspace(t.Context(), ann, "app", first.Root); n != 1 || err != nil {
		t.Errorf("stopped %d, %v", n, err)
	}
	ends(t, s, coder, p.ID, writ.TerminationTerminated)
	if n, err := s.Tools.StopWorkspace(t.Context(), ann, "app", first.Root); n != 0 || err != nil {
		t.Errorf("stopped again %d, %v", n, err)
	}
	if got, err := s.Tools.Process(t.Context(), coder, q.ID); err != nil || got.State != writ.ProcessRunning {
		t.Errorf("the other: %+v, %v", got.ProcessStatus, err)
	}
	for _, e := range s.Events("") {
		if e.Type == writ.EventProcessKilled && (e.Data.Process != p.ID || e.Actor != ann.Ref() || e.Data.Reason == "") {
			t.Errorf("recorded is %+v", e)
		}
	}
	kill(t, s, coder, q.ID)
}

// A process of another server on the same store is that server's: here it is listed, and
// it is said where to ask.
func TestProcessesOfAnotherServer(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, _ := bench(t, nil, on)
		other := s.Sibling("gw_other")
		coder := s.Agent("coder")
		p := mustExec(t, other, coder, "sh", "-c", "echo out; sleep 60")
		printed(t, other, coder, p.ID, "out\n")
		for name, call := range map[string]func() error{
			"status":    func() error { _, err := s.Tools.Process(t.Context(), coder, p.ID); return err },
			"output":    func() error { _, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{}); return err },
			"input":     func() error { return s.Tools.Input(t.Context(), coder, p.ID, []byte("x"), false) },
			"terminate": func() error { return s.Tools.Terminate(t.Context(), coder, p.ID, writ.Kill{}) },
		} {
			err := call()
			wantKind(t, name, err, writ.Unavailable)
			if !strings.Contains(writ.Message(err), "gw_other") {
				t.Errorf("%s: %q does not say where to ask", name, writ.Message(err))
			}
		}
		_, err := s.Tools.Process(t.Context(), s.Agent("guest"), p.ID)
		wantCode(t, "another tenant's", err, "PROCESS_NOT_FOUND")
		s.Settle()
		list, err := s.Tools.Processes(t.Context(), coder, "app")
		if err != nil || len(list) != 1 || list[0].ID != p.ID || list[0].State != writ.ProcessRunning {
			t.Errorf("listed are %+v, %v", list, err)
		}
		kill(t, other, coder, p.ID)
		// What has ended is in the store, for all.
		ends(t, s, coder, p.ID, writ.TerminationTerminated)
		printed(t, s, coder, p.ID, "out\n")
	})
}

// Invariant 10: the end of a request, and of its context, is not the end of the process.
func TestScenario96_TheProcessOutlivesTheRequest(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	ctx, cancel := context.WithCancel(t.Context())
	p, err := s.Tools.Exec(ctx, coder, command("sh", "-c", "read x; echo $x"))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	session := s.Tools.With(s.Tools.Registry()) // another
	if err := session.Input(t.Context(), coder, p.ID, []byte("still here\n"), false); err != nil {
		t.Fatal(err)
	}
	ends(t, s, coder, p.ID, writ.TerminationExited)
	printed(t, s, coder, p.ID, "still here\n")
}

// A record that was made although its transaction ended with an error is of a process that
// was never sent: a sweep ends it, and leaves alone what runs and what is being started.
func TestWhatWasRecordedAndNotSent(t *testing.T) {
	s, ws := bench(t, nil)
	coder := s.Agent("coder")
	req := command("true")
	a, err := s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req})
	if err != nil {
		t.Fatal(err)
	}
	lost := endedProcess(0, coder, ws)
	lost.State, lost.Termination, lost.ExitCode, lost.Ended, lost.EOF = writ.ProcessRunning, "", nil, nil, false
	lost.Approval = a.ID
	a.State, a.Call.Process = writ.ApprovalResuming, lost.ID
	if err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.UpdateApproval(t.Context(), a, writ.ApprovalPending); err != nil {
			return err
		}
		return tx.InsertProcess(t.Context(), lost)
	}); err != nil {
		t.Fatal(err)
	}
	runs := mustExec(t, s, coder, "sleep", "60")
	s.Settle()
	if got := s.StoredProcess(lost.ID); got.State != writ.ProcessExited || got.Reason == "" {
		t.Errorf("it is recorded as %+v", got.ProcessStatus)
	}
	if got := s.StoredProcess(runs.ID); got.State != writ.ProcessRunning {
		t.Errorf("the one that runs is recorded as %+v", got.ProcessStatus)
	}
	_, err = s.Tools.Process(t.Context(), coder, lost.ID)
	wantCode(t, "its status", err, "PROCESS_NOT_FOUND")
	resumeFails(t, s, coder, a.ID, "PROCESS_SPAWN_FAILED") // nothing of it happened, which is known
	list, err := s.Tools.Processes(t.Context(), coder, "app")
	if err != nil || len(list) != 1 || list[0].ID != runs.ID {
		t.Errorf("listed are %+v, %v", list, err)
	}
	kill(t, s, coder, runs.ID)
	wantFree(t, s)
}
