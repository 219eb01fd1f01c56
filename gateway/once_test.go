package gateway_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// engines runs test on SQLite and on PostgreSQL, where writers do not queue.
func engines(t *testing.T, test func(t *testing.T, on func(*testkit.GatewaySetup))) {
	t.Run("sqlite", func(t *testing.T) { test(t, func(*testkit.GatewaySetup) {}) })
	t.Run("postgres", func(t *testing.T) {
		fresh := testkit.Postgres(t)
		test(t, func(g *testkit.GatewaySetup) { g.URL = fresh(t) })
	})
}

// together calls f n times at one moment and waits for all of them.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	gate := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-gate; f(i) })
	}
	close(gate)
	wg.Wait()
}

func TestScenario14_POL07_TwoApproversAtOneMoment(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s := testkit.Gateway(t, on, func(g *testkit.GatewaySetup) { g.Jobs = true })
		ops := []writ.Principal{s.Operator("ann"), s.Operator("bob")}
		for round := range 40 {
			task := s.MustSubmit(testkit.Run("bash", fmt.Sprint(round)))
			verdicts := [][2]writ.Verdict{{writ.Grant, writ.Grant}, {writ.Grant, writ.Refuse}}[round%2]
			var errs [2]error
			together(2, func(i int) { _, errs[i] = s.Decide(ops[i], task, verdicts[i], "") })
			won := 0
			for i, err := range errs {
				if err == nil {
					won++
					if verdicts[i] == writ.Grant {
						s.Until(task.ID, writ.TaskSucceeded)
					} else {
						s.Until(task.ID, writ.TaskDenied)
					}
				} else if writ.KindOf(err) != writ.Conflict {
					t.Errorf("round %d: %v", round, err)
				}
			}
			if n := s.Runner.CallsOf(task.ID); won != 1 || n > 1 || (n == 1) != (s.Stored(task.ID).State == writ.TaskSucceeded) {
				t.Fatalf("round %d: %d decisions counted, %d runs, task %s", round, won, n, s.Stored(task.ID).State)
			}
		}
	})
}

func TestNGrantsAtOneMomentAreAllKept(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s := testkit.Gateway(t, on, func(g *testkit.GatewaySetup) { g.Policy = holdTwo })
		for round := range 10 {
			task := s.MustSubmit(testkit.Run("bash", fmt.Sprint(round)))
			together(2, func(i int) {
				if _, err := s.Decide(s.Operator([]string{"ann", "bob"}[i]), task, writ.Grant, ""); err != nil {
					t.Error(err)
				}
			})
			s.Until(task.ID, writ.TaskSucceeded)
			if a := s.StoredApproval(task.Approval); len(a.Votes) != 2 || s.Runner.CallsOf(task.ID) != 1 {
				t.Errorf("votes %v, %d runs", a.Votes, s.Runner.CallsOf(task.ID))
			}
		}
	})
}

func TestCP08_TheSameKeyAtOneMoment(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s := testkit.Gateway(t, on, func(g *testkit.GatewaySetup) { g.Jobs = true })
		coder := s.Agent("coder")
		for round := range 10 {
			req := testkit.Run("python", fmt.Sprint(round))
			req.Key = fmt.Sprint("key-", round)
			var tasks [8]writ.Task
			var created [8]bool
			var errs [8]error
			together(8, func(i int) { tasks[i], created[i], errs[i] = s.Submit(context.Background(), coder, req) })
			n := 0
			for i := range tasks {
				if errs[i] != nil || tasks[i].ID != tasks[0].ID {
					t.Errorf("round %d: %s, %v", round, tasks[i].ID, errs[i])
				}
				if created[i] {
					n++
				}
			}
			s.Until(tasks[0].ID, writ.TaskSucceeded)
			if n != 1 || s.Runner.CallsOf(tasks[0].ID) != 1 {
				t.Errorf("round %d: %d created, %d runs", round, n, s.Runner.CallsOf(tasks[0].ID))
			}
		}
		if all := s.Events(""); len(all) != 60 {
			t.Errorf("%d events, want 6 of each task and no refusal", len(all))
		}
	})
}

func TestDispatchOftenRunsOnce(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 8; g.Jobs = true })
	for round := range 20 {
		task := s.MustSubmit(testkit.Run("python", fmt.Sprint(round)))
		together(8, func(int) {
			if err := s.Do(context.Background(), store.Job{Kind: store.JobDispatch, Task: task.ID}); err != nil {
				t.Error(err)
			}
		})
		s.Until(task.ID, writ.TaskSucceeded)
		if n := s.Runner.CallsOf(task.ID); n != 1 {
			t.Fatalf("round %d: %d runs", round, n)
		}
		wantTypes(t, s, task.ID, allowedRun...)
	}
	if err := s.Do(t.Context(), store.Job{Kind: "dance"}); err == nil {
		t.Error("a job of unknown kind is no error")
	}
}

// A task that one gateway runs is nothing to another, whatever asks for it.
func TestARunningTaskIsNotRunByAnotherGateway(t *testing.T) {
	s := testkit.Gateway(t)
	other := s.Sibling("gw_other")
	started, release := s.Runner.Blocks()
	task := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	for range 5 {
		if err := other.Do(t.Context(), store.Job{Kind: store.JobDispatch, Task: task.ID}); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Sweep(t.Context(), true); err != nil { // whose lease of s counts
		t.Fatal(err)
	}
	for range 10 { // each after what was asked for before it, or soon after
		other.Until(other.MustSubmit(testkit.Run("python", "own")).ID, writ.TaskSucceeded)
	}
	if got := s.Stored(task.ID); got.State != writ.TaskRunning || other.Runner.CallsOf(task.ID) != 0 {
		t.Fatalf("task is %s, the other ran it %d times", got.State, other.Runner.CallsOf(task.ID))
	}
	_, err := other.Cancel(t.Context(), testkit.Local(), task.ID, "")
	wantKind(t, "cancel through the other", err, writ.Unavailable)
	release()
	s.Until(task.ID, writ.TaskSucceeded)
	wantTypes(t, s, task.ID, allowedRun...)
}

func TestTwoGatewaysShareQueuedTasks(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s := testkit.Gateway(t, on)
		other := s.Sibling("gw_other")
		for round := range 20 {
			task := s.MustSubmit(testkit.Run("bash", fmt.Sprint(round)))
			together(4, func(i int) {
				switch i {
				case 0:
					s.MustGrant(task)
				case 1:
					_ = other.Do(context.Background(), store.Job{Kind: store.JobDispatch, Task: task.ID})
				case 2:
					if err := other.Sweep(context.Background(), true); err != nil {
						t.Error(err)
					}
				case 3:
					if err := s.Sweep(context.Background(), false); err != nil {
						t.Error(err)
					}
				}
			})
			s.Until(task.ID, writ.TaskSucceeded)
			if n := s.Runner.CallsOf(task.ID) + other.Runner.CallsOf(task.ID); n != 1 {
				t.Fatalf("round %d: %d runs", round, n)
			}
			wantTypes(t, s, task.ID, heldRun...)
		}
	})
}

func TestScenario13_CP09_RunningWhenTheServerDied(t *testing.T) {
	s := testkit.Gateway(t)
	started, release := s.Runner.Blocks()
	defer release()
	task := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	next := s.Crashed() // which sweeps first of all
	got := next.Stored(task.ID)
	if got.State != writ.TaskInterrupted || got.Result == nil || !got.Result.Started || !got.Executed() || got.Reason == "" || got.Finished == nil {
		t.Errorf("%+v, result %+v", got, got.Result)
	}
	wantTypes(t, next, task.ID, allowedRun...)
	es := next.Events(task.ID)
	if r, f := es[4].Data, es[5].Data; r.Outcome != writ.Interrupted || !*r.Started || f.State != writ.TaskInterrupted || f.Reason == "" {
		t.Errorf("events %+v, %+v", r, f)
	}
	for _, again := range []func() error{
		func() error { return next.Sweep(t.Context(), true) },
		func() error { return next.Do(t.Context(), store.Job{Kind: store.JobDispatch, Task: task.ID}) },
	} {
		if err := again(); err != nil {
			t.Fatal(err)
		}
	}
	next.Restart()
	if got := next.Stored(task.ID); got.State != writ.TaskInterrupted || next.Runner.Calls() != 0 {
		t.Errorf("task is %s, %d runs", got.State, next.Runner.Calls())
	}
	wantTypes(t, next, task.ID, allowedRun...)
}

// A sweep leaves alone what this gateway runs, and ends what it does not carry
// although its name is on it: a run whose outcome could not be recorded.
func TestSweepEndsOnlyWhatIsLost(t *testing.T) {
	s := testkit.Gateway(t)
	started, release := s.Runner.Blocks()
	task := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	lost := task
	lost.ID, lost.State, lost.Owner = writ.TaskID(writ.NewID("task")), writ.TaskRunning, s.Setup.Options.Owner
	dead := lost
	dead.ID, dead.Owner = writ.TaskID(writ.NewID("task")), "gw_dead"
	if err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
		if err := tx.InsertTask(t.Context(), lost); err != nil {
			return err
		}
		return tx.InsertTask(t.Context(), dead)
	}); err != nil {
		t.Fatal(err)
	}
	sweep(t, s)
	for _, id := range []writ.TaskID{lost.ID, dead.ID} {
		if got := s.Stored(id); got.State != writ.TaskInterrupted {
			t.Errorf("lost task is %s", got.State)
		}
	}
	if got := s.Stored(task.ID); got.State != writ.TaskRunning {
		t.Errorf("the one that runs is %s", got.State)
	}
	release()
	s.Until(task.ID, writ.TaskSucceeded)
}

// A gateway that another took for dead finds that out when its run is over: the
// first record stands.
func TestOutcomeAfterAnotherGatewayCalledItInterrupted(t *testing.T) {
	s := testkit.Gateway(t)
	started, release := s.Runner.Blocks()
	task := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	if err := s.DB.Update(t.Context(), func(tx *store.Tx) error { return tx.Leave(t.Context(), s.Setup.Options.Owner) }); err != nil {
		t.Fatal(err)
	}
	s.Sibling("gw_other") // sweeps
	if got := s.Stored(task.ID); got.State != writ.TaskInterrupted {
		t.Fatalf("task is %s", got.State)
	}
	release()
	testkit.Eventually(t, "the run is over", func() bool { return s.Slog.Count("task was not carried", "no longer") == 1 })
	if got := s.Stored(task.ID); got.State != writ.TaskInterrupted {
		t.Errorf("task became %s", got.State)
	}
	wantTypes(t, s, task.ID, allowedRun...)
}

// Every queued task is carried after a start, the oldest first, however many.
func TestFirstSweepCarriesAllThatIsQueued(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 1 })
	started, release := s.Runner.Blocks()
	defer release()
	s.MustSubmit(testkit.Run("python", "busy"))
	testkit.Receive(t, "the first run begins", started)
	var ids []writ.TaskID
	for i := range 120 {
		ids = append(ids, s.MustSubmit(testkit.Run("python", fmt.Sprint(i))).ID)
	}
	next := s.Crashed()
	for _, id := range ids {
		next.Until(id, writ.TaskSucceeded)
	}
	if n := next.Runner.Calls(); n != len(ids) {
		t.Errorf("%d runs of %d tasks", n, len(ids))
	}
}

// What the runner reports is believed only as far as it makes sense.
func TestRunnerReportsNonsense(t *testing.T) {
	for name, res := range map[string]writ.Result{
		"no outcome":              {Started: true},
		"a state, not an outcome": {Outcome: "queued", Started: true},
		"success without a start": {Outcome: writ.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Gateway(t)
			s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) { return res, nil })
			task := s.MustSubmit(testkit.Run("python", "1"))
			if got := s.Until(task.ID, writ.TaskInterrupted); !got.Executed() {
				t.Error("it is not said to have been executed")
			}
		})
	}
}

// Submit and a running server's sweeps and jobs leave no goroutine for each look at
// a queued task.
func TestSweepsDoNotPileUp(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots, g.Options.Backlog = 1, 3 })
	started, release := s.Runner.Blocks()
	defer release()
	s.MustSubmit(testkit.Run("python", "busy"))
	testkit.Receive(t, "the first run begins", started)
	waiting := s.MustSubmit(testkit.Run("python", "waits"))
	for range 50 {
		if err := s.Sweep(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := s.Do(t.Context(), store.Job{Kind: store.JobDispatch, Task: waiting.ID}); err != nil {
			t.Fatal(err)
		}
	}
	// They would count as a backlog, too.
	s.MustSubmit(testkit.Run("python", "also fits"))
	release()
	s.Until(waiting.ID, writ.TaskSucceeded)
}

func TestWatchSweepsUntilItsContextEnds(t *testing.T) {
	s := testkit.Gateway(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Watch(ctx); close(done) }()
	cancel()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}
