package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"writ"
	"writ/internal/testkit"
)

func TestCancelInEachState(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 1 })
	ctx, coder := t.Context(), s.Agent("coder")
	started, release := s.Runner.Blocks()
	defer release()

	running := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	queued := s.MustSubmit(testkit.Run("python", "2"))
	granted := s.MustSubmit(testkit.Run("bash", "3"))
	s.MustGrant(granted)
	held := s.MustSubmit(testkit.Run("bash", "4"))

	t.Run("held", func(t *testing.T) {
		got, err := s.Cancel(ctx, coder, held.ID, "changed my mind")
		if err != nil || got.State != writ.TaskCancelled || got.Reason != "cancelled by agent:coder: changed my mind" {
			t.Errorf("%s %q, %v", got.State, got.Reason, err)
		}
		if a := s.StoredApproval(held.Approval); a.State != writ.ApprovalCancelled {
			t.Errorf("approval is %s", a.State)
		}
		_, err = s.Decide(s.Operator("ann"), held, writ.Grant, "")
		wantKind(t, "grant after the cancel", err, writ.Conflict)
		types := s.Types(held.ID)
		if got := types[3:5]; got[0] != writ.EventTaskCancelled || got[1] != writ.EventApprovalDecided {
			t.Errorf("events %v", types)
		}
	})
	t.Run("granted and queued", func(t *testing.T) {
		got, err := s.Cancel(ctx, s.Operator("bob"), granted.ID, "")
		if err != nil || got.State != writ.TaskCancelled || got.Reason != "cancelled by operator:bob" {
			t.Errorf("%s %q, %v", got.State, got.Reason, err)
		}
		if a := s.StoredApproval(granted.Approval); a.State != writ.ApprovalCancelled {
			t.Errorf("approval is %s", a.State)
		}
	})
	t.Run("queued", func(t *testing.T) {
		got, err := s.Cancel(ctx, coder, queued.ID, "")
		if err != nil || got.State != writ.TaskCancelled {
			t.Errorf("%s, %v", got.State, err)
		}
		wantTypes(t, s, queued.ID, writ.EventTaskReceived, writ.EventTaskDecided, writ.EventTaskCancelled)
	})
	t.Run("running", func(t *testing.T) {
		if _, err := s.Cancel(ctx, coder, running.ID, "too slow"); err != nil {
			t.Fatal(err)
		}
		got := s.Until(running.ID, writ.TaskKilled)
		if got.Reason != "cancelled by agent:coder: too slow" || !got.Executed() || got.Result.Reason != got.Reason {
			t.Errorf("%q, result %+v", got.Reason, got.Result)
		}
		wantTypes(t, s, running.ID, writ.EventTaskReceived, writ.EventTaskDecided, writ.EventAgentStarted, writ.EventToolInvoked,
			writ.EventTaskCancelled, writ.EventToolResult, writ.EventAgentFinished)
		if e := s.Events(running.ID)[4]; e.Actor != coder.Ref() || e.Data.Reason != "too slow" || e.Data.State != writ.TaskRunning {
			t.Errorf("%+v", e)
		}
	})
	t.Run("over", func(t *testing.T) {
		for _, task := range []writ.Task{running, queued, granted, held} {
			before := len(s.Events(task.ID))
			_, err := s.Cancel(ctx, coder, task.ID, "again")
			wantKind(t, "cancel of what is over", err, writ.Conflict)
			if n := len(s.Events(task.ID)); n != before {
				t.Errorf("%d events more", n-before)
			}
		}
	})
	t.Run("another's", func(t *testing.T) {
		for _, who := range []writ.Principal{s.Agent("guest"), s.Agent("idle"), s.Operator("eve")} {
			_, err := s.Cancel(ctx, who, running.ID, "")
			wantKind(t, who.ID, err, writ.NotFound)
		}
		_, err := s.Cancel(ctx, coder, "task_none", "")
		wantKind(t, "of none", err, writ.NotFound)
	})
	s.MustSubmit(testkit.Run("python", "the slot is free"))
	testkit.Receive(t, "another run begins", started)
	if n := s.Runner.CallsOf(queued.ID) + s.Runner.CallsOf(granted.ID) + s.Runner.CallsOf(held.ID); n != 0 {
		t.Errorf("%d runs of what was cancelled before its start", n)
	}
}

// A run that cannot be stopped before its start says that it was cancelled, not
// that something failed.
func TestCancelBeforeTheRunnerStarted(t *testing.T) {
	s := testkit.Gateway(t)
	began := make(chan struct{}, 1)
	s.Runner.Does(func(ctx context.Context, _ writ.RunSpec, _ func(writ.Chunk)) (writ.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return writ.Result{}, fmt.Errorf("prepare: %w", ctx.Err())
	})
	task := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the runner is called", began)
	if _, err := s.Cancel(t.Context(), s.Agent("coder"), task.ID, ""); err != nil {
		t.Fatal(err)
	}
	if got := s.Until(task.ID, writ.TaskKilled); got.Executed() || got.Reason != "cancelled by agent:coder" {
		t.Errorf("executed %v, %q", got.Executed(), got.Reason)
	}
}

func TestCancelAndEndAtOneMoment(t *testing.T) {
	s := testkit.Gateway(t)
	ends := 0
	for round := range 30 {
		started, release := s.Runner.Blocks()
		task := s.MustSubmit(testkit.Run("python", fmt.Sprint(round)))
		testkit.Receive(t, "the run begins", started)
		var asked atomic.Bool
		together(2, func(i int) {
			if i == 0 {
				release()
				return
			}
			_, err := s.Cancel(context.Background(), s.Agent("coder"), task.ID, "")
			if asked.Store(err == nil); err != nil && writ.KindOf(err) != writ.Conflict {
				t.Error(err)
			}
		})
		var got writ.Task
		testkit.Eventually(t, "the task ends", func() bool { got = s.Stored(task.ID); return got.State.Terminal() })
		if got.State != writ.TaskSucceeded && got.State != writ.TaskKilled || got.State == writ.TaskKilled && !asked.Load() {
			t.Errorf("task is %s, cancel recorded %v", got.State, asked.Load())
		}
		if got.State == writ.TaskSucceeded {
			ends++
		}
		n := 0
		for _, typ := range s.Types(task.ID) {
			if typ == writ.EventAgentFinished {
				n++
			}
		}
		if n != 1 || s.Runner.CallsOf(task.ID) != 1 {
			t.Errorf("%d ends, %d runs", n, s.Runner.CallsOf(task.ID))
		}
	}
	t.Logf("%d of 30 ended by themselves", ends)
}

func TestBacklogFull(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots, g.Options.Backlog = 2, 3 })
	coder := s.Agent("coder")
	started, release := s.Runner.Blocks()
	keyed := testkit.Run("python", "first")
	keyed.Key = "first"
	first := s.MustSubmit(keyed)
	s.MustSubmit(testkit.Run("python", "x"))
	testkit.Receive(t, "one run begins", started)
	testkit.Receive(t, "another begins", started)

	// Exactly as many as there is room for, also at one moment.
	var mu sync.Mutex
	var waiting []writ.Task
	refused := 0
	together(20, func(int) {
		task, _, err := s.Submit(context.Background(), coder, testkit.Run("python", "y"))
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			waiting = append(waiting, task)
		case writ.KindOf(err) == writ.Exhausted && strings.Contains(writ.Message(err), "3 tasks wait"):
			refused++
		default:
			t.Error(err)
		}
	})
	if len(waiting) != 3 || refused != 17 {
		t.Fatalf("%d taken, %d refused", len(waiting), refused)
	}
	tasks, _, err := s.Tasks.List(t.Context(), coder, writ.TaskFilter{})
	if err != nil || len(tasks) != 5 || len(s.Events("")) != 2*4+3*2 {
		t.Errorf("%d tasks, %d events, %v", len(tasks), len(s.Events("")), err)
	}
	// What needs no slot is taken: a resend, a denial, a plan step, a held request.
	if got, created, err := s.Submit(t.Context(), coder, keyed); err != nil || created || got.ID != first.ID {
		t.Errorf("resend: %s created %v, %v", got.ID, created, err)
	}
	s.MustSubmit(testkit.Run("node", "1"))
	s.MustSubmit(writ.TaskRequest{Step: "x"})
	s.MustSubmit(testkit.Run("bash", "1"))
	// A cancelled one makes room.
	if _, err := s.Cancel(t.Context(), coder, waiting[0].ID, ""); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "there is room", func() bool {
		_, _, err := s.Submit(context.Background(), coder, testkit.Run("python", "z"))
		return err == nil
	})
	release()
	s.Until(waiting[1].ID, writ.TaskSucceeded)
	s.Until(waiting[2].ID, writ.TaskSucceeded)
}

// Without a backlog there are still the slots.
func TestNoBacklogAtAll(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots, g.Options.Backlog = 1, 0 })
	started, release := s.Runner.Blocks()
	defer release()
	s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	_, _, err := s.Submit(t.Context(), s.Agent("coder"), testkit.Run("python", "2"))
	wantKind(t, "a second one", err, writ.Exhausted)
}

func TestSlotsBoundWhatRuns(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 3 })
	var now, most atomic.Int64
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		return testkit.Ran(0, "", ""), nil
	})
	var ids []writ.TaskID
	for i := range 40 {
		ids = append(ids, s.MustSubmit(testkit.Run("python", fmt.Sprint(i))).ID)
	}
	for _, id := range ids {
		s.Until(id, writ.TaskSucceeded)
	}
	if n := most.Load(); n > 3 {
		t.Errorf("%d ran at one time", n)
	}
}

func TestCloseKeepsWhatIsQueuedAndKillsWhatRuns(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 1 })
	started, release := s.Runner.Blocks()
	defer release()
	running := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	queued := s.MustSubmit(testkit.Run("python", "2"))
	held := s.MustSubmit(testkit.Run("bash", "3"))
	s.Stop() // with a context that is over

	got := s.Stored(running.ID)
	if got.State != writ.TaskKilled || got.Reason != "cancelled: the server stopped" {
		t.Errorf("what ran is %s: %s", got.State, got.Reason)
	}
	wantTypes(t, s, running.ID, allowedRun...)
	if got := s.Stored(queued.ID); got.State != writ.TaskQueued || s.Runner.CallsOf(queued.ID) != 0 {
		t.Errorf("what was queued is %s, %d runs", got.State, s.Runner.CallsOf(queued.ID))
	}
	// A closed gateway still answers, and starts nothing.
	late := s.MustSubmit(testkit.Run("python", "4"))
	s.MustGrant(held)
	for _, id := range []writ.TaskID{late.ID, held.ID} {
		if got := s.Stored(id); got.State != writ.TaskQueued {
			t.Errorf("after Close the task is %s", got.State)
		}
	}
	s.Close(t.Context()) // again
	if n := s.Runner.Calls(); n != 1 {
		t.Errorf("%d runs", n)
	}
	release()
	s.Restart()
	for _, id := range []writ.TaskID{queued.ID, late.ID, held.ID} {
		s.Until(id, writ.TaskSucceeded)
		if n := s.Runner.CallsOf(id); n != 1 {
			t.Errorf("%d runs", n)
		}
	}
}

func TestCloseWaitsForWhatRuns(t *testing.T) {
	s := testkit.Gateway(t)
	started, release := s.Runner.Blocks()
	task := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	closed := make(chan struct{}, 1)
	go func() { s.Close(context.Background()); closed <- struct{}{} }()
	select {
	case <-closed:
		t.Fatal("closed although a run is under way")
	default:
	}
	release()
	testkit.Receive(t, "Close returns", closed)
	if got := s.Stored(task.ID); got.State != writ.TaskSucceeded {
		t.Errorf("task is %s", got.State)
	}
}
