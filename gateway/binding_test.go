package gateway_test

import (
	"context"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// Policies that a set of GatewayPolicy moves to.
const (
	denyShell  = `@id("no-shell") @reason("not any more") forbid (principal, action, resource in Scope::"shell");`
	allowAll   = `@id("all") permit (principal, action, resource);`
	holdAll    = `@id("hold-all") @hold("everything is looked at now") permit (principal, action, resource);`
	holdTwo    = `@id("hold-two") @hold("two must look") @grants("2") permit (principal, action, resource);`
	holdNobody = `@id("hold-nobody") @hold("a wizard must look") @approvers("wizard") permit (principal, action, resource);`
)

// queuedBehind is a granted shell task that waits for the only slot, which release
// gives free.
func queuedBehind(t *testing.T, req writ.TaskRequest) (s *testkit.System, task writ.Task, release func()) {
	t.Helper()
	s = testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 1 })
	started, free := s.Runner.Blocks()
	t.Cleanup(free)
	s.MustSubmit(testkit.Run("python", "busy"))
	testkit.Receive(t, "the first run begins", started)
	task = s.MustSubmit(req)
	if task.State == writ.TaskHeld {
		s.MustGrant(task)
	}
	if task = s.Stored(task.ID); task.State != writ.TaskQueued {
		t.Fatalf("task is %s", task.State)
	}
	return s, task, free
}

func TestPA07_PolicyMovesBetweenRequestAndGrant(t *testing.T) {
	t.Run("deny", func(t *testing.T) {
		s := testkit.Gateway(t)
		task := s.MustSubmit(testkit.Run("bash", "true"))
		setPolicy(t, s, denyShell)
		s.MustGrant(task)
		task = s.Until(task.ID, writ.TaskDenied)
		if !strings.Contains(task.Reason, "not any more") || len(task.Rules) != 1 || task.Rules[0].ID != "no-shell" {
			t.Errorf("%s %v", task.Reason, task.Rules)
		}
		if a := s.StoredApproval(task.Approval); a.State != writ.ApprovalCancelled {
			t.Errorf("approval is %s", a.State)
		}
		wantNotRun(t, s, task)
	})
	t.Run("hold", func(t *testing.T) {
		s := testkit.Gateway(t)
		task := s.MustSubmit(testkit.Run("bash", "true"))
		setPolicy(t, s, holdAll)
		s.MustGrant(task)
		askedAgain(t, s, task)
	})
	t.Run("allow", func(t *testing.T) {
		s := testkit.Gateway(t)
		task := s.MustSubmit(testkit.Run("bash", "true"))
		setPolicy(t, s, allowAll)
		s.MustGrant(task)
		s.Until(task.ID, writ.TaskSucceeded)
		wantTypes(t, s, task.ID, heldRun...)
	})
}

func TestPA07_PolicyMovesBetweenGrantAndStart(t *testing.T) {
	t.Run("deny", func(t *testing.T) {
		s, task, release := queuedBehind(t, testkit.Run("bash", "true"))
		setPolicy(t, s, denyShell)
		release()
		task = s.Until(task.ID, writ.TaskDenied)
		wantNotRun(t, s, task)
		if a := s.StoredApproval(task.Approval); a.State != writ.ApprovalCancelled {
			t.Errorf("approval is %s", a.State)
		}
		es := s.Events(task.ID)
		if e := es[len(es)-1]; e.Type != writ.EventTaskDecided || e.Data.State != writ.TaskDenied || e.Data.Policy != s.Policy().Version() {
			t.Errorf("last event %+v", e)
		}
	})
	t.Run("hold", func(t *testing.T) {
		s, task, release := queuedBehind(t, testkit.Run("bash", "true"))
		setPolicy(t, s, holdAll)
		release()
		askedAgain(t, s, task)
	})
	t.Run("hold, more grants than before", func(t *testing.T) {
		s, task, release := queuedBehind(t, testkit.Run("bash", "true"))
		setPolicy(t, s, holdTwo)
		release()
		task = s.Until(task.ID, writ.TaskHeld)
		s.MustGrant(task)
		if got := s.Stored(task.ID); got.State != writ.TaskHeld {
			t.Fatalf("after one of two grants the task is %s", got.State)
		}
		if _, err := s.Decide(s.Operator("ann"), task, writ.Grant, ""); writ.KindOf(err) != writ.Conflict {
			t.Errorf("a second grant of ann: %v", err)
		}
		if _, err := s.Decide(s.Operator("bob"), task, writ.Grant, ""); err != nil {
			t.Fatal(err)
		}
		s.Until(task.ID, writ.TaskSucceeded)
	})
	t.Run("hold that nobody can lift", func(t *testing.T) {
		s, task, release := queuedBehind(t, testkit.Run("bash", "true"))
		setPolicy(t, s, holdNobody)
		release()
		task = s.Until(task.ID, writ.TaskDenied)
		wantNotRun(t, s, task)
	})
	t.Run("hold of what was allowed", func(t *testing.T) {
		s, task, release := queuedBehind(t, testkit.Run("python", "1"))
		setPolicy(t, s, holdAll)
		release()
		task = s.Until(task.ID, writ.TaskHeld)
		if a := s.StoredApproval(task.Approval); a.Replaces != "" || a.State != writ.ApprovalPending {
			t.Errorf("%+v", a)
		}
		wantNotRun(t, s, task)
		s.MustGrant(task)
		s.Until(task.ID, writ.TaskSucceeded)
	})
	t.Run("another version that says the same", func(t *testing.T) {
		s, task, release := queuedBehind(t, testkit.Run("bash", "true"))
		setPolicy(t, s, testkit.GatewayPolicy+"// a word\n")
		release()
		askedAgain(t, s, task)
	})
}

// askedAgain checks that the grant of task was not used, that a new approval stands
// for it, and that the grant of that one runs the task once.
func askedAgain(t *testing.T, s *testkit.System, task writ.Task) {
	t.Helper()
	old := task.Approval
	testkit.Eventually(t, "the task is asked about again", func() bool { return s.Stored(task.ID).Approval != old })
	task = s.Stored(task.ID)
	if task.State != writ.TaskHeld {
		t.Fatalf("task is %s", task.State)
	}
	wantNotRun(t, s, task)
	next := s.StoredApproval(task.Approval)
	if next.Replaces != old || next.State != writ.ApprovalPending || next.Policy != s.Policy().Version() || !strings.Contains(next.Reason, "asked again") {
		t.Errorf("new approval %+v", next)
	}
	if a := s.StoredApproval(old); a.State != writ.ApprovalCancelled {
		t.Errorf("old approval is %s", a.State)
	}
	// PA-06: the old approval opens nothing.
	before := task
	before.Approval = old
	_, err := s.Decide(s.Operator("bob"), before, writ.Grant, "")
	wantKind(t, "grant of the old approval", err, writ.Conflict)
	wantNotRun(t, s, s.Stored(task.ID))

	s.MustGrant(task)
	s.Until(task.ID, writ.TaskSucceeded)
	if n := s.Runner.CallsOf(task.ID); n != 1 {
		t.Errorf("%d runs", n)
	}
}

// A grant in the very moment in which the task is asked about again, while it is
// still in the hands of who asked: it is carried all the same.
func TestGrantWhileTheTaskIsBeingHeldAgain(t *testing.T) {
	var s *testkit.System
	var first writ.ApprovalID // written before the grant that makes Changed read it
	s = testkit.Gateway(t, func(g *testkit.GatewaySetup) {
		g.Changed = func(task writ.Task) {
			if task.State == writ.TaskHeld && first != "" && task.Approval != first {
				s.MustGrant(task)
			}
		}
	})
	task := s.MustSubmit(testkit.Run("bash", "true"))
	first = task.Approval
	setPolicy(t, s, holdAll)
	s.MustGrant(task)
	s.Until(task.ID, writ.TaskSucceeded)
	if n := s.Runner.CallsOf(task.ID); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestPA07_StoredSpecWasChanged(t *testing.T) {
	change := map[string]string{
		"other code": `UPDATE bodies SET data = CAST(replace(CAST(data AS TEXT), 'true', 'evil') AS BLOB) WHERE name = 'spec'`,
		"no JSON":    `UPDATE bodies SET data = CAST('{' AS BLOB) WHERE name = 'spec'`,
		"gone":       `DELETE FROM bodies WHERE name = 'spec'`,
		"swapped":    `UPDATE bodies SET data = (SELECT data FROM bodies b JOIN tasks t ON b.task = t.id WHERE t.state = 'running' AND b.name = 'spec') WHERE name = 'spec'`,
	}
	for name, q := range change {
		t.Run(name+" while held", func(t *testing.T) {
			s := testkit.Gateway(t)
			started, release := s.Runner.Blocks()
			defer release()
			s.MustSubmit(testkit.Run("python", "busy"))
			testkit.Receive(t, "the first run begins", started)
			task := s.MustSubmit(testkit.Run("bash", "true"))
			direct(t, s, q)
			if _, err := s.Decide(s.Operator("ann"), task, writ.Grant, ""); err == nil {
				t.Error("it could be granted")
			}
			if got := s.Stored(task.ID); got.State != writ.TaskHeld {
				t.Errorf("task is %s", got.State)
			}
			wantNotRun(t, s, s.Stored(task.ID))
		})
		t.Run(name+" after the grant", func(t *testing.T) {
			s, task, release := queuedBehind(t, testkit.Run("bash", "true"))
			direct(t, s, q)
			release()
			task = s.Until(task.ID, writ.TaskDenied)
			wantNotRun(t, s, task)
			if a := s.StoredApproval(task.Approval); a.State != writ.ApprovalCancelled {
				t.Errorf("approval is %s", a.State)
			}
		})
	}
}

// What an approver granted is what they were shown, not what is there later.
func TestPA06_GrantNamesWhatWasShown(t *testing.T) {
	s := testkit.Gateway(t)
	ctx, ann := t.Context(), s.Operator("ann")
	one, two := s.MustSubmit(testkit.Run("bash", "echo 1")), s.MustSubmit(testkit.Run("bash", "echo 2"))
	seen, err := s.Approval(ctx, ann, one.Approval)
	if err != nil || !strings.Contains(seen.Text, "echo 1") {
		t.Fatalf("%v\n%s", err, seen.Text)
	}
	for what, shown := range map[string]writ.Digest{"nothing": "", "another": writ.DigestOf([]byte("x"))} {
		_, err := s.Vote(ctx, ann, one.Approval, writ.VoteRequest{Verdict: writ.Grant, Shown: shown})
		wantKind(t, "grant of "+what, err, writ.Conflict)
	}
	_, err = s.Vote(ctx, ann, two.Approval, writ.VoteRequest{Verdict: writ.Grant, Shown: seen.Shown})
	wantKind(t, "grant with the other's text", err, writ.Conflict)

	s.MustGrant(one)
	s.Until(one.ID, writ.TaskSucceeded)
	for range 3 {
		_, err = s.Decide(s.Operator("bob"), one, writ.Grant, "")
		wantKind(t, "grant of what is used up", err, writ.Conflict)
	}
	if s.Runner.CallsOf(one.ID) != 1 || s.Runner.CallsOf(two.ID) != 0 {
		t.Errorf("runs %v", s.Runner.Order())
	}
	if a := s.StoredApproval(one.Approval); a.State != writ.ApprovalConsumed {
		t.Errorf("approval is %s", a.State)
	}
}

// A grant for one call is not one for its twin.
func TestPA06_TheIdenticalCallIsAskedAgain(t *testing.T) {
	s := testkit.Gateway(t)
	one := s.MustSubmit(testkit.Run("bash", "true"))
	s.MustGrant(one)
	s.Until(one.ID, writ.TaskSucceeded)
	two := s.MustSubmit(testkit.Run("bash", "true"))
	if two.State != writ.TaskHeld || two.Approval == one.Approval {
		t.Errorf("the twin is %s under %s", two.State, two.Approval)
	}
	retry := testkit.Run("bash", "true")
	retry.RetryOf = one.ID
	if three := s.MustSubmit(retry); three.State != writ.TaskHeld || three.RetryOf != one.ID {
		t.Errorf("the retry is %s", three.State)
	}
	if s.Runner.Calls() != 1 {
		t.Errorf("%d runs", s.Runner.Calls())
	}
}

func TestRetryNamesAnOwnTaskThatIsOver(t *testing.T) {
	s := testkit.Gateway(t)
	held := s.MustSubmit(testkit.Run("bash", "true"))
	retry := testkit.Run("python", "1")
	retry.RetryOf = held.ID
	_, _, err := s.Submit(t.Context(), s.Agent("coder"), retry)
	wantKind(t, "of a task that is not over", err, writ.Conflict)
	_, _, err = s.Submit(t.Context(), s.Agent("guest"), retry)
	wantKind(t, "of another's task", err, writ.Invalid)
}

// PA-09: what waits for a person keeps nothing else waiting.
func TestPA09_AHeldCallBlocksNoOther(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 1 })
	for range 5 {
		s.MustSubmit(testkit.Run("bash", "true"))
	}
	done := s.MustSubmit(testkit.Run("python", "1"))
	s.Until(done.ID, writ.TaskSucceeded)
	if s.Runner.Calls() != 1 {
		t.Errorf("%d runs", s.Runner.Calls())
	}
}

func TestCP07_ClampedLimitsAreAnswered(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Max.WallMS = 5000; g.Options.Max.MemoryBytes = 1 << 30 })
	req := testkit.Run("python", "1")
	req.Spec.Limits = writ.Limits{WallMS: 1<<63 - 1, MemoryBytes: 1 << 29, Processes: 7}
	task := s.MustSubmit(req)
	if len(task.Clamped) != 1 || task.Clamped[0] != "wall_ms" {
		t.Errorf("clamped %v", task.Clamped)
	}
	s.Until(task.ID, writ.TaskSucceeded)
	got := s.Runner.SpecOf(task.ID).Limits
	if got.WallMS != 5000 || got.MemoryBytes != 1<<29 || got.Processes != 7 || got.OutputBytes != writ.DefaultLimits.OutputBytes {
		t.Errorf("ran within %+v", got)
	}
	if e := s.Events(task.ID)[0]; len(e.Data.Clamped) != 1 || e.Data.Limits != got {
		t.Errorf("event %+v", e.Data)
	}
}

func TestExplainDecidesAsSubmitAndStoresNothing(t *testing.T) {
	s := testkit.Gateway(t)
	coder := s.Agent("coder")
	for _, req := range []writ.TaskRequest{
		testkit.Run("python", "1"), testkit.Run("bash", "1"), testkit.Run("node", "1"), {Step: "think"},
		{Role: "ops", Step: "x"}, {Role: "dev", Spec: testkit.Run("sh", "1").Spec},
	} {
		x, err := s.Explain(coder, req)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(s.Events("")); n != 0 {
			t.Fatalf("%d events", n)
		}
		want := map[writ.Effect]writ.TaskState{writ.Hold: writ.TaskHeld, writ.Deny: writ.TaskDenied, writ.Allow: writ.TaskQueued}[x.Decision.Effect]
		if req.Spec == nil && x.Decision.Effect == writ.Allow {
			want = writ.TaskNoted
		}
		other := testkit.Gateway(t)
		got, _, err := other.Submit(context.Background(), coder, req)
		if err != nil || got.State != want || got.Reason != x.Decision.Reason {
			t.Errorf("explained %s (%s), submitted %s (%s), %v", x.Decision.Effect, x.Decision.Reason, got.State, got.Reason, err)
		}
	}
	_, err := s.Explain(coder, writ.TaskRequest{Identity: "guest", Step: "x"})
	wantKind(t, "in another's name", err, writ.Denied)
}
