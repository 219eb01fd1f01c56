package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
)

// No record, no run: what cannot be recorded at admission is not admitted.
func TestAUD04_NoRecordAtAdmission(t *testing.T) {
	for _, typ := range []writ.EventType{writ.EventTaskReceived, writ.EventTaskDecided, writ.EventApprovalRequested, writ.EventTaskRefused} {
		t.Run(string(typ), func(t *testing.T) {
			s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Jobs = true })
			mend := failOn(t, s, typ)
			req := testkit.Run("python", "1")
			switch typ {
			case writ.EventApprovalRequested:
				req = testkit.Run("bash", "1")
			case writ.EventTaskRefused:
				req = testkit.Run("python", "")
			}
			_, created, err := s.Submit(t.Context(), s.Agent("coder"), req)
			if err == nil || created {
				t.Errorf("created %v, %v", created, err)
			}
			if typ == writ.EventTaskRefused {
				wantKind(t, "a refusal that cannot be recorded", err, writ.Internal)
			}
			tasks, _, err := s.Tasks.List(t.Context(), testkit.Local(), writ.TaskFilter{})
			approvals, _, err2 := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{})
			if err != nil || err2 != nil || len(tasks) != 0 || len(approvals) != 0 || len(s.Events("")) != 0 {
				t.Errorf("%d tasks, %d approvals, %d events, %v %v", len(tasks), len(approvals), len(s.Events("")), err, err2)
			}
			mend()
			next := s.MustSubmit(testkit.Run("python", "2"))
			s.Until(next.ID, writ.TaskSucceeded)
			if s.Runner.Calls() != 1 { // nor did a job outlive the refused one
				t.Errorf("%d runs", s.Runner.Calls())
			}
		})
	}
}

func TestAUD04_NoRecordAtTheClaim(t *testing.T) {
	for _, typ := range []writ.EventType{writ.EventAgentStarted, writ.EventToolInvoked} {
		t.Run(string(typ), func(t *testing.T) {
			s := testkit.Gateway(t)
			mend := failOn(t, s, typ)
			task := s.MustSubmit(testkit.Run("bash", "true"))
			s.MustGrant(task)
			testkit.Eventually(t, "the claim fails", func() bool { return s.Slog.Count("task was not carried", string(task.ID)) > 0 })
			if got := s.Stored(task.ID); got.State != writ.TaskQueued || got.Owner != "" || s.Runner.Calls() != 0 {
				t.Fatalf("task is %s of %q, %d runs", got.State, got.Owner, s.Runner.Calls())
			}
			if a := s.StoredApproval(task.Approval); a.State != writ.ApprovalQueued {
				t.Errorf("approval is %s", a.State)
			}
			wantTypes(t, s, task.ID, heldRun[:6]...)
			// It is not lost either.
			mend()
			if err := s.Sweep(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			s.Until(task.ID, writ.TaskSucceeded)
			wantTypes(t, s, task.ID, heldRun...)
		})
	}
}

func TestAUD04_NoRecordOfADecision(t *testing.T) {
	for _, typ := range []writ.EventType{writ.EventApprovalVoted, writ.EventApprovalDecided, writ.EventTaskQueued} {
		t.Run(string(typ), func(t *testing.T) {
			s := testkit.Gateway(t)
			task := s.MustSubmit(testkit.Run("bash", "true"))
			mend := failOn(t, s, typ)
			if _, err := s.Decide(s.Operator("ann"), task, writ.Grant, ""); err == nil {
				t.Error("granted without a record")
			}
			if a := s.StoredApproval(task.Approval); a.State != writ.ApprovalPending || len(a.Votes) != 0 || s.Stored(task.ID).State != writ.TaskHeld {
				t.Errorf("approval is %s with %v, task %s", a.State, a.Votes, s.Stored(task.ID).State)
			}
			mend()
			s.MustGrant(task)
			s.Until(task.ID, writ.TaskSucceeded)
		})
	}
}

// A run whose outcome cannot be recorded for a while is recorded when that ends; it
// is not run again meanwhile.
func TestAUD04_OutcomeIsRecordedOnceTheStoreAnswers(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Jobs, g.Options.Insist = true, time.Minute })
	started, release := s.Runner.Blocks()
	task := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	mend := failOn(t, s, writ.EventAgentFinished)
	release()
	sweep(t, s)
	if got := s.Stored(task.ID); got.State != writ.TaskRunning {
		t.Fatalf("task is %s", got.State)
	}
	mend()
	s.Until(task.ID, writ.TaskSucceeded)
	wantTypes(t, s, task.ID, allowedRun...)
	if s.Runner.Calls() != 1 {
		t.Errorf("%d runs", s.Runner.Calls())
	}
}

func TestPolicyThatCannotBeRecordedIsNotInForce(t *testing.T) {
	s := testkit.Gateway(t)
	old := s.Policy().Version()
	mend := failOn(t, s, writ.EventPolicyLoaded)
	if err := s.SetPolicy(t.Context(), testkit.Local(), testkit.CompilePolicy(t, allowAll)); err == nil {
		t.Error("no error")
	}
	if s.Policy().Version() != old {
		t.Error("it is in force")
	}
	mend()
	setPolicy(t, s, allowAll)
	es := s.Events("")
	if e := es[len(es)-1]; e.Type != writ.EventPolicyLoaded || e.Data.Policy != s.Policy().Version() || e.Data.Policy == old || e.Actor != testkit.Local().Ref() {
		t.Errorf("%+v", e)
	}
}

func TestPA12_NoSecretsInRecordsAndLogs(t *testing.T) {
	marks := []string{"AAA111", "BBB222", "CCC333", "DDD444", "EEE555", "FFF666", "GGG777", "HHH888"}
	s := testkit.Gateway(t)
	s.Runner.Does(func(_ context.Context, _ writ.RunSpec, emit func(writ.Chunk)) (writ.Result, error) {
		emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("GGG777")})
		return testkit.Ran(1, "GGG777", "HHH888"), nil
	})
	secret := func(l writ.Language) writ.TaskRequest {
		return writ.TaskRequest{Spec: &writ.RunSpec{
			Language: l, Code: "deploy --token=AAA111", Args: []string{"--token", "BBB222", "-u", "bob:CCC333"}, Stdin: "https://x:DDD444@h/r",
			Env: map[string]string{"API_KEY": "EEE555"}, Inputs: []writ.Input{{Path: "creds", Content: []byte("FFF666")}},
		}}
	}
	ran := s.MustSubmit(secret("python"))
	s.Until(ran.ID, writ.TaskFailed)
	held := s.MustSubmit(secret("bash"))
	s.MustGrant(held)
	s.Until(held.ID, writ.TaskFailed)
	denied := s.MustSubmit(secret("node"))
	refused := s.MustSubmit(secret("bash"))
	if _, err := s.Decide(s.Operator("bob"), refused, writ.Refuse, "no"); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for what, f := range map[string]func(*writ.RunSpec){
		"args": func(r *writ.RunSpec) { r.Args = append(r.Args, "x\x00") }, "env": func(r *writ.RunSpec) { r.Env["A"] = "\xff" },
		"code": func(r *writ.RunSpec) { r.Code += "\x00" }, "stdin": func(r *writ.RunSpec) { r.Stdin += "\xff" },
		"limits": func(r *writ.RunSpec) { r.Limits.WallMS = -1 },
	} {
		req := secret("python")
		f(req.Spec)
		_, _, err := s.Submit(t.Context(), s.Agent("coder"), req)
		wantKind(t, what, err, writ.Invalid)
		texts = append(texts, err.Error())
	}
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return writ.Result{}, errors.New("the runner is gone")
	})
	lost := s.MustSubmit(secret("python"))
	s.Until(lost.ID, writ.TaskFailed)

	for _, e := range s.Events("") {
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	for _, id := range []writ.TaskID{ran.ID, held.ID, denied.ID, refused.ID, lost.ID} {
		task := s.Stored(id)
		texts = append(texts, fmt.Sprintf("%+v %+v", task, task.Result))
		if task.Approval != "" {
			texts = append(texts, fmt.Sprintf("%+v", s.StoredApproval(task.Approval)))
		}
	}
	testkit.Eventually(t, "the runs are logged", func() bool { return s.Slog.Count("run finished") == 3 })
	texts = append(texts, s.Slog.String())
	for _, text := range texts {
		for _, m := range marks {
			if strings.Contains(text, m) {
				t.Errorf("%s is in %s", m, text)
			}
		}
	}
	if len(texts) < 30 {
		t.Errorf("only %d texts were looked at", len(texts))
	}
}

func TestPA14_ParallelCallsMakeOneChain(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Jobs = true })
	load := func(s *testkit.System) {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				req := testkit.Run("python", fmt.Sprint(i))
				switch i % 5 {
				case 1:
					req = testkit.Run("node", "denied")
				case 2:
					req = testkit.Run("python", "")
				}
				_, _, err := s.Submit(context.Background(), s.Agent("coder"), req)
				if err != nil && (i%5 != 2 || writ.KindOf(err) != writ.Invalid) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		testkit.Eventually(t, "all is over", func() bool {
			left, _, err := s.Tasks.List(t.Context(), testkit.Local(), writ.TaskFilter{States: []writ.TaskState{writ.TaskQueued, writ.TaskRunning}})
			return err == nil && len(left) == 0
		})
	}
	load(s)
	s.Restart()
	load(s)
	r, err := s.Admin.Verify(t.Context(), testkit.Local(), nil)
	want := int64(2 * (30*6 + 10*2 + 10))
	if err != nil || !r.OK || r.Events != want {
		t.Errorf("%+v, %v, want %d events", r, err, want)
	}
	if s.Runner.Calls() != 60 {
		t.Errorf("%d runs", s.Runner.Calls())
	}
}

func TestPA15_TheSequencesDiffer(t *testing.T) {
	s := testkit.Gateway(t)
	notStarted := s.MustSubmit(testkit.Run("bash", "1"))
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return writ.Result{}, &writ.Error{Kind: writ.Unavailable, Msg: "bwrap is gone"}
	})
	s.MustGrant(notStarted)
	s.Until(notStarted.ID, writ.TaskFailed)

	denied := s.MustSubmit(testkit.Run("bash", "2"))
	if _, err := s.Decide(s.Operator("ann"), denied, writ.Refuse, "no"); err != nil {
		t.Fatal(err)
	}

	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return writ.Result{Outcome: writ.TimedOut, Started: true, Reason: "wall time of 1 s"}, nil
	})
	timedOut := s.MustSubmit(testkit.Run("bash", "3"))
	s.MustGrant(timedOut)
	s.Until(timedOut.ID, writ.TaskTimedOut)

	story := func(id writ.TaskID) (out []string) {
		for _, e := range s.Events(id)[3:] {
			line := string(e.Type)
			if e.Task != id {
				t.Errorf("%s is of task %q", e.Type, e.Task)
			}
			if e.Data.Started != nil {
				line += fmt.Sprintf(" started=%v %s", *e.Data.Started, e.Data.Outcome)
			}
			if e.Type == writ.EventApprovalDecided {
				line += " " + string(e.Data.Votes[0].Verdict)
			}
			out = append(out, line)
		}
		return out
	}
	for id, want := range map[writ.TaskID][]string{
		notStarted.ID: {"approval.voted", "approval.decided grant", "task.queued", "agent.started", "tool.invoked", "tool.result started=false failed", "agent.finished"},
		denied.ID:     {"approval.voted", "approval.decided deny"},
		timedOut.ID:   {"approval.voted", "approval.decided grant", "task.queued", "agent.started", "tool.invoked", "tool.result started=true timed_out", "agent.finished"},
	} {
		if d := cmp.Diff(want, story(id)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

// AUD-06: every denial is a record with reason, tenant, who and rule.
func TestAUD06_DeniedAttemptsAreRecords(t *testing.T) {
	s := testkit.Gateway(t)
	ctx := t.Context()
	denied := s.MustSubmit(testkit.Run("node", "1"))
	held := s.MustSubmit(testkit.Run("bash", "1"))
	_, forged := s.Decide(s.Agent("coder"), held, writ.Grant, "approved by the user")
	_, _, inName := s.Submit(ctx, s.Agent("coder"), writ.TaskRequest{Identity: "idle", Step: "x"})
	_, _, noScope := s.Submit(ctx, s.Agent("idle"), testkit.Run("python", "1"))
	if forged == nil || inName == nil || noScope != nil {
		t.Fatal(forged, inName, noScope)
	}
	var got []string
	for _, e := range s.Events("") {
		refused := e.Type == writ.EventTaskRefused || e.Data.Effect == writ.Deny || strings.HasPrefix(e.Data.Reason, "refused: ")
		if !refused {
			continue
		}
		if e.Data.Reason == "" || e.Tenant != "acme" {
			t.Errorf("%+v", e)
		}
		rule := ""
		if len(e.Data.Rules) > 0 {
			rule = e.Data.Rules[0].ID
		}
		got = append(got, fmt.Sprintf("%s %s %s", e.Type, e.Actor.ID, rule))
	}
	want := []string{"task.decided  no-node", "approval.voted coder ", "task.refused coder ", "task.decided  "}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if a := s.Stored(denied.ID); a.Requester != s.Agent("coder").Ref() {
		t.Errorf("requester %v", a.Requester)
	}
}
