package gateway_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
)

// The scenarios of spec/01 §5, in its order.

func TestScenario01_ApprovedPythonEndToEnd(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) {
		g.Policy = `@id("hold-all") @hold("look first") permit (principal, action, resource);`
	})
	s.Runner.Does(func(_ context.Context, spec writ.RunSpec, _ func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(0, "hello\n", ""), nil
	})
	task := s.MustSubmit(testkit.Run("py", "print('hello')"))
	if task.State != writ.TaskHeld || s.Runner.Calls() != 0 {
		t.Fatalf("state %s after submit, %d runs", task.State, s.Runner.Calls())
	}
	s.MustGrant(task)
	task = s.Until(task.ID, writ.TaskSucceeded)
	wantTypes(t, s, task.ID, heldRun...)

	if r := task.Result; r == nil || !r.Started || r.ExitCode == nil || *r.ExitCode != 0 || r.WallMS == 0 || r.Sandbox.Provider != "scripted" {
		t.Errorf("result %+v", r)
	}
	full, err := s.Tasks.Get(context.Background(), s.Agent("coder"), task.ID)
	if err != nil || full.Result.Stdout.Text != "hello\n" {
		t.Errorf("stdout %q, %v", full.Result.Stdout.Text, err)
	}
	if got := s.Runner.SpecOf(task.ID); got.Language != "python" || got.Code != "print('hello')" || got.Limits != writ.DefaultLimits {
		t.Errorf("ran %+v", got)
	}
	if a := s.StoredApproval(task.Approval); a.State != writ.ApprovalConsumed || len(a.Votes) != 1 {
		t.Errorf("approval is %s with votes %v", a.State, a.Votes)
	}

	// Who did what stands in the events, with the digests that tie them together.
	byType := map[writ.EventType]writ.Event{}
	for _, e := range s.Events(task.ID) {
		byType[e.Type] = e
		if e.Tenant != "acme" {
			t.Errorf("%s is of tenant %q", e.Type, e.Tenant)
		}
	}
	if e := byType[writ.EventTaskReceived]; e.Actor != s.Agent("coder").Ref() || e.Data.Spec != task.Digest || e.Data.CodeBytes != 14 {
		t.Errorf("received: %+v", e)
	}
	if e := byType[writ.EventTaskDecided]; e.Data.Effect != writ.Hold || len(e.Data.Rules) != 1 || e.Data.Rules[0].ID != "hold-all" || e.Data.Policy != s.Policy().Version() {
		t.Errorf("decided: %+v", e.Data)
	}
	if e := byType[writ.EventApprovalDecided]; e.Actor != s.Operator("ann").Ref() || e.Data.Status != writ.ApprovalQueued && e.Data.Status != writ.ApprovalGranted || len(e.Data.Votes) != 1 || e.Approval != task.Approval {
		t.Errorf("approval decided: %+v", e)
	}
	if e := byType[writ.EventToolInvoked]; e.Data.Binds != byType[writ.EventApprovalRequested].Data.Binds || e.Data.Spec != task.Digest {
		t.Errorf("invoked: %+v", e.Data)
	}
	if e := byType[writ.EventToolResult]; e.Data.Outcome != writ.Succeeded || e.Data.Started == nil || !*e.Data.Started || e.Data.Stdout.Bytes != 6 {
		t.Errorf("result: %+v", e.Data)
	}
	if e := byType[writ.EventAgentFinished]; e.Data.State != writ.TaskSucceeded {
		t.Errorf("finished: %+v", e.Data)
	}
}

func TestScenario02_ShellThatExits3(t *testing.T) {
	s := testkit.Gateway(t)
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(3, "", "no such thing\n"), nil
	})
	task := s.MustSubmit(testkit.Run("bash", "exit 3"))
	s.MustGrant(task)
	s.Until(task.ID, writ.TaskFailed)
	wantTypes(t, s, task.ID, heldRun...)
	got, err := s.Tasks.Get(context.Background(), s.Agent("coder"), task.ID)
	if err != nil || *got.Result.ExitCode != 3 || got.Result.Stderr.Text != "no such thing\n" || !got.Executed() {
		t.Errorf("%+v, %v", got.Result, err)
	}
}

func TestScenario03to07_Denials(t *testing.T) {
	guest := func(s *testkit.System) writ.Principal { return s.Agent("guest") }
	ann := func(s *testkit.System) writ.Principal { return s.Operator("ann") }
	tests := []struct {
		name   string
		who    func(*testkit.System) writ.Principal // coder when nil
		req    writ.TaskRequest
		ops    []writ.Operator // instead of the usual ones
		policy string
		reason []string
		rules  []writ.Rule
	}{
		{name: "Scenario03_IdentityUnknown", who: ann, req: writ.TaskRequest{Identity: "ghost", Spec: testkit.Run("python", "1").Spec},
			reason: []string{`"ghost" is not registered`}},
		{name: "Scenario03_IdentityOfAnotherTenant", who: ann, req: writ.TaskRequest{Identity: "guest", Spec: testkit.Run("python", "1").Spec},
			reason: []string{`"guest" is not registered`}},
		{name: "Scenario04_IdentityOfAnotherRole", req: writ.TaskRequest{Role: "ops", Spec: testkit.Run("python", "1").Spec},
			reason: []string{`not registered to role "ops"`}},
		{name: "Scenario04_PlanStepOfAnotherRole", req: writ.TaskRequest{Role: "ops", Step: "think"},
			reason: []string{`not registered to role "ops"`}},
		{name: "Scenario05_ScopeMissing", who: func(s *testkit.System) writ.Principal { return s.Agent("idle") }, req: testkit.Run("python", "1"),
			policy: `@id("all") permit (principal, action, resource);`, reason: []string{`no scope "python"`}},
		{name: "Scenario05_ScopeBeforePolicy", who: guest, req: testkit.Run("node", "1"),
			policy: `@id("no") forbid (principal, action, resource);`, reason: []string{`no scope "node"`}},
		{name: "Scenario06_PolicyForbids", req: testkit.Run("node", "1"),
			reason: []string{"acme runs no node", "test.cedar:8"}, rules: []writ.Rule{{ID: "no-node", File: "test.cedar", Line: 8, Effect: writ.Deny}}},
		{name: "Scenario06_NoRule", req: testkit.Run("python", "1"), policy: `@id("x") permit (principal, action, resource in Scope::"shell");`,
			reason: []string{"no rule"}},
		{name: "Scenario07_NoApprover", req: testkit.Run("sh", "1"), ops: []writ.Operator{{ID: "eve", Tenant: "globex"}},
			reason: []string{"a person looks at shell", "1 approver(s)", "there are 0", "writ operators add"}, rules: []writ.Rule{{ID: "hold-shell", File: "test.cedar", Line: 4, Effect: writ.Hold}}},
		{name: "Scenario07_ApproverWithoutTheRole", req: testkit.Run("sh", "1"), ops: []writ.Operator{{ID: "ann", Tenant: "acme", Roles: []string{"lead"}}},
			policy: `@id("h") @hold("x") @approvers("security") permit (principal, action, resource);`, reason: []string{"there are 0"}, rules: []writ.Rule{{ID: "h", File: "test.cedar", Line: 1, Effect: writ.Hold}}},
		{name: "Scenario07_TooFewApprovers", req: testkit.Run("sh", "1"),
			policy: `@id("h") @hold("x") @grants("3") permit (principal, action, resource);`, reason: []string{"3 approver(s)", "there are 2"}, rules: []writ.Rule{{ID: "h", File: "test.cedar", Line: 1, Effect: writ.Hold}}},
		{name: "Scenario07_OnlyTheRequesterCould", who: ann, req: writ.TaskRequest{Identity: "coder", Spec: testkit.Run("sh", "1").Spec}, ops: []writ.Operator{{ID: "ann", Tenant: "acme"}},
			reason: []string{"there are 0"}, rules: []writ.Rule{{ID: "hold-shell", File: "test.cedar", Line: 4, Effect: writ.Hold}}},
		{name: "Scenario07_ApproverDisabled", req: testkit.Run("sh", "1"), ops: []writ.Operator{{ID: "ann", Tenant: "acme", Disabled: new(time.Now())}},
			reason: []string{"there are 0"}, rules: []writ.Rule{{ID: "hold-shell", File: "test.cedar", Line: 4, Effect: writ.Hold}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := testkit.Gateway(t, func(g *testkit.GatewaySetup) {
				if tt.ops != nil {
					g.Operators = tt.ops
				}
				if tt.policy != "" {
					g.Policy = tt.policy
				}
			})
			who := s.Agent("coder")
			if tt.who != nil {
				who = tt.who(s)
			}
			task, created, err := s.Submit(t.Context(), who, tt.req)
			if err != nil || !created {
				t.Fatalf("created %v, %v", created, err)
			}
			if task.State != writ.TaskDenied || task.Finished == nil {
				t.Errorf("task is %s, finished %v", task.State, task.Finished)
			}
			for _, r := range tt.reason {
				if !strings.Contains(task.Reason, r) {
					t.Errorf("reason %q has not %q", task.Reason, r)
				}
			}
			if d := cmp.Diff(tt.rules, task.Rules); d != "" {
				t.Errorf("rules (-want +got):\n%s", d)
			}
			if task.Tenant != who.Tenant {
				t.Errorf("tenant is %q, want the asking one's, %q", task.Tenant, who.Tenant)
			}
			wantNotRun(t, s, s.Stored(task.ID))
			wantTypes(t, s, task.ID, writ.EventTaskReceived, writ.EventTaskDecided)
			e := s.Events(task.ID)[1]
			if e.Data.Effect != writ.Deny || e.Data.Reason != task.Reason || e.Data.State != writ.TaskDenied || !cmp.Equal(e.Data.Rules, tt.rules) {
				t.Errorf("event %+v", e.Data)
			}
			_, err = s.Tasks.Spec(t.Context(), testkit.Local(), task.ID)
			wantKind(t, "spec of a task that was denied at once", err, writ.NotFound)
		})
	}
}

func TestScenario08_DeniedByAPerson(t *testing.T) {
	s := testkit.Gateway(t)
	task := s.MustSubmit(testkit.Run("bash", "rm -r /"))
	a, err := s.Decide(s.Operator("ann"), task, writ.Refuse, "not today")
	if err != nil || a.State != writ.ApprovalDenied {
		t.Fatalf("%s, %v", a.State, err)
	}
	task = s.Stored(task.ID)
	if task.State != writ.TaskDenied || task.Reason != "denied by operator:ann: not today" || task.Finished == nil {
		t.Errorf("task is %s: %s", task.State, task.Reason)
	}
	wantNotRun(t, s, task)
	wantTypes(t, s, task.ID, writ.EventTaskReceived, writ.EventTaskDecided, writ.EventApprovalRequested, writ.EventApprovalVoted, writ.EventApprovalDecided)
	last := s.Events(task.ID)[4]
	if last.Data.Reason != "not today" || last.Data.Status != writ.ApprovalDenied || last.Actor != s.Operator("ann").Ref() {
		t.Errorf("last event %+v", last)
	}
	_, err = s.Decide(s.Operator("bob"), task, writ.Grant, "")
	wantKind(t, "grant after the denial", err, writ.Conflict)
	if got := s.Stored(task.ID); got.State != writ.TaskDenied {
		t.Errorf("task became %s", got.State)
	}
}

func TestScenario09_NotAnsweredInTime(t *testing.T) {
	t.Parallel() // it waits most of the time, for the store's clock of jobs
	for name, jobs := range map[string]bool{"by its job": true, "by a sweep": false} {
		t.Run(name, func(t *testing.T) {
			s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.ApprovalTTL = 50 * time.Millisecond; g.Jobs = jobs })
			task := s.MustSubmit(testkit.Run("bash", "true"))
			seen := s.StoredApproval(task.Approval)
			testkit.Eventually(t, "the task expires", func() bool {
				sweepUnless(t, s, jobs)
				return s.Stored(task.ID).State == writ.TaskExpired
			})
			_, err := s.Decide(s.Operator("ann"), task, writ.Grant, "late")
			wantKind(t, "late grant", err, writ.Conflict)
			if !strings.Contains(writ.Message(err), "expired") {
				t.Errorf("late grant: %v", err)
			}
			got := s.Stored(task.ID)
			if got.State != writ.TaskExpired || got.Finished == nil || got.Finished.Before(seen.Expires) {
				t.Errorf("%+v", got)
			}
			wantNotRun(t, s, got)
			wantTypes(t, s, task.ID, writ.EventTaskReceived, writ.EventTaskDecided, writ.EventApprovalRequested,
				writ.EventApprovalDecided, writ.EventApprovalVoted) // the last is the late attempt
			if e := s.Events(task.ID)[3]; e.Data.Status != writ.ApprovalExpired || e.Actor != (writ.Ref{}) {
				t.Errorf("event %+v", e)
			}
		})
	}
}

func sweepUnless(t *testing.T, s *testkit.System, jobs bool) {
	if !jobs {
		sweep(t, s)
	}
}

// A decision in the moment between its time and the expiry counts as late too.
func TestPOL07_LateBeforeTheExpiryIsRecorded(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.ApprovalTTL = time.Millisecond })
	task := s.MustSubmit(testkit.Run("bash", "true"))
	a := s.StoredApproval(task.Approval)
	testkit.Eventually(t, "its time is over", func() bool { return !writ.Now().Before(a.Expires) })
	_, err := s.Decide(s.Operator("ann"), task, writ.Grant, "")
	wantKind(t, "late grant", err, writ.Conflict)
	if got := s.StoredApproval(task.Approval); got.State != writ.ApprovalPending || len(got.Votes) != 0 {
		t.Errorf("approval is %s with %v", got.State, got.Votes)
	}
	if err := s.Expire(t.Context(), task.Approval); err != nil {
		t.Fatal(err)
	}
	if got := s.Stored(task.ID); got.State != writ.TaskExpired {
		t.Errorf("task is %s", got.State)
	}
}

func TestExpireBeforeItsTimeDoesNothing(t *testing.T) {
	s := testkit.Gateway(t)
	task := s.MustSubmit(testkit.Run("bash", "true"))
	before := len(s.Events(""))
	if err := s.Expire(t.Context(), task.Approval); err != nil {
		t.Fatal(err)
	}
	if s.Stored(task.ID).State != writ.TaskHeld || len(s.Events("")) != before {
		t.Errorf("task is %s, %d events", s.Stored(task.ID).State, len(s.Events("")))
	}
	wantKind(t, "of none", s.Expire(t.Context(), "apr_none"), writ.NotFound)
}

func TestScenario10_RequesterMayNotDecide(t *testing.T) {
	s := testkit.Gateway(t)
	ann, ctx := s.Operator("ann"), t.Context()
	byAnn, _, err := s.Submit(ctx, ann, writ.TaskRequest{Identity: "coder", Spec: testkit.Run("bash", "true").Spec})
	if err != nil || byAnn.State != writ.TaskHeld {
		t.Fatalf("%s, %v", byAnn.State, err)
	}
	tests := map[string]writ.Principal{
		"the operator who asked":    ann,
		"the agent itself (POL-06)": s.Agent("coder"),
		"the owner of the folder":   testkit.Local(),
		"an operator of its name":   {Kind: writ.KindOperator, ID: "coder", Tenant: "acme"},
	}
	n := 0
	for name, who := range tests {
		_, err := s.Decide(who, byAnn, writ.Grant, "the user approved this")
		wantKind(t, name, err, writ.Denied)
		n++
		if a := s.StoredApproval(byAnn.Approval); a.State != writ.ApprovalPending || len(a.Votes) != 0 {
			t.Fatalf("after %s: approval is %s with %v", name, a.State, a.Votes)
		}
		es := s.Events(byAnn.ID)
		if e := es[len(es)-1]; len(es) != 3+n || e.Type != writ.EventApprovalVoted || e.Actor != who.Ref() || !strings.HasPrefix(e.Data.Reason, "refused: ") || len(e.Data.Votes) != 0 {
			t.Errorf("after %s: %d events, last %+v", name, len(es), e)
		}
	}
	// Of another tenant, or no business of this agent, or of a user who bears its name:
	// there is no such thing.
	namesake := writ.Principal{Kind: writ.KindUser, ID: "coder", Tenant: "acme", Roles: []string{"admin"}}
	for _, who := range []writ.Principal{s.Operator("eve"), s.Agent("guest"), s.Agent("idle"), namesake} {
		_, err := s.Vote(ctx, who, byAnn.Approval, writ.VoteRequest{Verdict: writ.Grant})
		wantKind(t, who.ID, err, writ.NotFound)
	}
	if _, err := s.Decide(s.Operator("bob"), byAnn, writ.Grant, ""); err != nil {
		t.Fatal(err)
	}
	s.Until(byAnn.ID, writ.TaskSucceeded)
}

func TestScenario11_OtherContentUnderTheSameKey(t *testing.T) {
	s := testkit.Gateway(t)
	ctx, coder := t.Context(), s.Agent("coder")
	req := testkit.Run("bash", "echo 1")
	req.Key = "step-1"
	task := s.MustSubmit(req)
	again, created, err := s.Submit(ctx, coder, req)
	if err != nil || created || again.ID != task.ID {
		t.Errorf("the same again: %s created %v, %v", again.ID, created, err)
	}
	change := map[string]func(*writ.TaskRequest){
		"code":     func(r *writ.TaskRequest) { r.Spec.Code = "echo 2" },
		"args":     func(r *writ.TaskRequest) { r.Spec.Args = []string{"x"} },
		"stdin":    func(r *writ.TaskRequest) { r.Spec.Stdin = "x" },
		"env":      func(r *writ.TaskRequest) { r.Spec.Env = map[string]string{"A": "1"} },
		"inputs":   func(r *writ.TaskRequest) { r.Spec.Inputs = []writ.Input{{Path: "a"}} },
		"limits":   func(r *writ.TaskRequest) { r.Spec.Limits.WallMS = 1000 },
		"language": func(r *writ.TaskRequest) { r.Spec.Language = "sh" },
		"role":     func(r *writ.TaskRequest) { r.Role = "dev" },
		"step":     func(r *writ.TaskRequest) { r.Step = "x" },
	}
	for what, f := range change {
		other := req
		spec := *req.Spec
		other.Spec = &spec
		f(&other)
		_, _, err := s.Submit(ctx, coder, other)
		wantKind(t, "other "+what, err, writ.Conflict)
	}
	if refused := len(s.Events("")) - len(s.Events(task.ID)); refused != len(change) {
		t.Errorf("%d events beside the task's, want %d refusals", refused, len(change))
	}
	s.MustGrant(task)
	s.Until(task.ID, writ.TaskSucceeded)
	if got := s.Runner.SpecOf(task.ID); got.Code != "echo 1" || s.Runner.Calls() != 1 {
		t.Errorf("ran %q, %d runs", got.Code, s.Runner.Calls())
	}
	// The same key of another identity is another task.
	other, created, err := s.Submit(ctx, s.Agent("guest"), req)
	if err != nil || !created || other.ID == task.ID {
		t.Errorf("guest's: %s created %v, %v", other.ID, created, err)
	}
}

func TestScenario12_PA11_PendingApprovalSurvivesACrash(t *testing.T) {
	s := testkit.Gateway(t)
	task := s.MustSubmit(testkit.Run("bash", "echo once"))
	seen, err := s.Approval(t.Context(), s.Operator("ann"), task.Approval)
	if err != nil {
		t.Fatal(err)
	}
	next := s.Crashed()
	if got := next.Stored(task.ID); got.State != writ.TaskHeld {
		t.Fatalf("after the restart the task is %s", got.State)
	}
	// What was read before the crash is what is granted after it.
	if _, err := next.Vote(t.Context(), next.Operator("ann"), task.Approval, writ.VoteRequest{Verdict: writ.Grant, Shown: seen.Shown}); err != nil {
		t.Fatal(err)
	}
	next.Until(task.ID, writ.TaskSucceeded)
	next.Restart()
	sweep(t, next)
	wantTypes(t, next, task.ID, heldRun...)
	if n := next.Runner.Calls(); n != 1 {
		t.Errorf("%d runs", n)
	}
}

func TestScenario12_GrantedBeforeTheCrashRunsOnceAfterIt(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.Slots = 1 })
	started, release := s.Runner.Blocks()
	defer release()
	busy := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the first run begins", started)
	task := s.MustSubmit(testkit.Run("bash", "echo once"))
	s.MustGrant(task)
	if got := s.Stored(task.ID); got.State != writ.TaskQueued {
		t.Fatalf("granted task is %s", got.State)
	}
	next := s.Crashed()
	next.Until(task.ID, writ.TaskSucceeded)
	next.Until(busy.ID, writ.TaskInterrupted)
	if next.Runner.CallsOf(task.ID) != 1 || next.Runner.CallsOf(busy.ID) != 0 {
		t.Errorf("runs after the restart: %v", next.Runner.Order())
	}
}

func TestScenario15_RunnerCannotStart(t *testing.T) {
	causes := map[string]struct {
		err  error
		want string
	}{
		"sandbox missing": {&writ.Error{Kind: writ.Unavailable, Op: "prepare", Msg: "bwrap is not installed: apt-get install bubblewrap"}, "not started: bwrap is not installed: apt-get install bubblewrap"},
		"our own fault":   {errors.New("socket /run/secret/place broke"), "not started: internal error"},
	}
	for name, c := range causes {
		t.Run(name, func(t *testing.T) {
			s := testkit.Gateway(t)
			s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
				return writ.Result{}, c.err
			})
			task := s.MustSubmit(testkit.Run("python", "1"))
			task = s.Until(task.ID, writ.TaskFailed)
			if task.Executed() || task.Result == nil || task.Result.Started || task.Reason != c.want {
				t.Errorf("executed %v, %s, result %+v", task.Executed(), task.Reason, task.Result)
			}
			wantTypes(t, s, task.ID, allowedRun...)
			if e := s.Events(task.ID)[4]; e.Data.Started == nil || *e.Data.Started || e.Data.Stdout != nil || e.Data.Outcome != writ.Failed {
				t.Errorf("result event %+v", e.Data)
			}
			_, err := s.Tasks.Output(t.Context(), s.Agent("coder"), task.ID, writ.Stdout)
			wantKind(t, "output", err, writ.NotFound)
		})
	}
}

func TestScenario19_PlanStepIsNeverExecuted(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Jobs = true })
	task := s.MustSubmit(writ.TaskRequest{Step: "think about it", Role: "dev"})
	if task.State != writ.TaskNoted || task.Finished == nil || task.Digest != "" || task.Language != "" {
		t.Errorf("%+v", task)
	}
	sweep(t, s)
	wantNotRun(t, s, s.Stored(task.ID))
	wantTypes(t, s, task.ID, writ.EventTaskReceived, writ.EventTaskDecided)
	_, err := s.Cancel(t.Context(), s.Agent("coder"), task.ID, "")
	wantKind(t, "cancel", err, writ.Conflict)
}

func TestScenario20_RefusalsStoreNothingElse(t *testing.T) {
	s := testkit.Gateway(t)
	coder := s.Agent("coder")
	spec := func(f func(*writ.RunSpec)) writ.TaskRequest {
		r := testkit.Run("python", "print(1)")
		f(r.Spec)
		return r
	}
	tests := []struct {
		name string
		who  writ.Principal
		req  writ.TaskRequest
		kind writ.Kind
		msg  string
	}{
		{"empty code", coder, testkit.Run("python", ""), writ.Invalid, "code is empty"},
		{"11 MB", coder, testkit.Run("python", strings.Repeat("x", 11<<20)), writ.Invalid, "the most is"},
		{"not UTF-8", coder, testkit.Run("python", "a\xff"), writ.Invalid, "not UTF-8"},
		{"NUL", coder, testkit.Run("python", "a\x00b"), writ.Invalid, "NUL"},
		{"language with a space", coder, testkit.Run("Python ", "1"), writ.Invalid, "is not known"},
		{"cobol", coder, testkit.Run("cobol", "1"), writ.Invalid, "is not known"},
		{"no language", coder, testkit.Run("", "1"), writ.Invalid, "language is missing"},
		{"a long language", coder, testkit.Run(writ.Language(strings.Repeat("x", 1<<20)), "1"), writ.Invalid, "is not known"},
		{"nothing", coder, writ.TaskRequest{}, writ.Invalid, "neither spec nor step"},
		{"CP-05 negative limit", coder, spec(func(r *writ.RunSpec) { r.Limits.WallMS = -1 }), writ.Invalid, "wall_ms"},
		{"CP-05 smallest limit", coder, spec(func(r *writ.RunSpec) { r.Limits.MemoryBytes = -1 << 63 }), writ.Invalid, "memory_bytes"},
		{"CP-05 limit too small", coder, spec(func(r *writ.RunSpec) { r.Limits.Processes = 1 }), writ.Invalid, "processes"},
		{"path out of the workspace", coder, spec(func(r *writ.RunSpec) { r.Inputs = []writ.Input{{Path: "../x"}} }), writ.Invalid, "inputs[0]"},
		{"key that is none", coder, writ.TaskRequest{Key: "a/b", Step: "x"}, writ.Invalid, "key"},
		{"retry of nothing", coder, writ.TaskRequest{RetryOf: "task_none", Step: "x"}, writ.Invalid, "retry_of"},
		{"no identity", s.Operator("ann"), writ.TaskRequest{Step: "x"}, writ.Invalid, "identity is missing"},
		{"identity that is no name", s.Operator("ann"), writ.TaskRequest{Identity: "a b", Step: "x"}, writ.Invalid, "not a name"},
		{"POL-06 in another's name", coder, writ.TaskRequest{Identity: "guest", Step: "x"}, writ.Denied, "may not ask in the name"},
	}
	for i, tt := range tests {
		_, _, err := s.Submit(t.Context(), tt.who, tt.req)
		wantKind(t, tt.name, err, tt.kind)
		if !strings.Contains(writ.Message(err), tt.msg) {
			t.Errorf("%s: message %q has not %q", tt.name, writ.Message(err), tt.msg)
		}
		es := s.Events("")
		if len(es) != i+1 {
			t.Fatalf("%s: %d events, want %d", tt.name, len(es), i+1)
		}
		e := es[i]
		if e.Type != writ.EventTaskRefused || e.Actor != tt.who.Ref() || e.Tenant != tt.who.Tenant || e.Data.Reason == "" || len(e.Data.Reason) > 2100 || e.Task != "" {
			t.Errorf("%s: event %+v", tt.name, e)
		}
	}
	tasks, _, err := s.Tasks.List(t.Context(), testkit.Local(), writ.TaskFilter{})
	if err != nil || len(tasks) != 0 || s.Runner.Calls() != 0 {
		t.Errorf("%d tasks, %v, %d runs", len(tasks), err, s.Runner.Calls())
	}
}
