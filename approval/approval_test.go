package approval_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"writ"
	"writ/approval"
)

var (
	start = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	ttl   = time.Hour

	alice = operator("alice")
	bob   = operator("bob")
	carol = operator("carol", "security")
)

func operator(id string, roles ...string) writ.Principal {
	return writ.Principal{Kind: writ.KindOperator, ID: id, Tenant: "acme", Roles: roles}
}

func testTask() (writ.Task, writ.RunSpec) {
	spec := writ.RunSpec{Language: "python", Code: "print(1)\n", Limits: writ.DefaultLimits}
	return writ.Task{
		ID: "task_1", Tenant: "acme", Identity: "coder", Requester: writ.Ref{Kind: writ.KindAgent, ID: "coder"},
		State: writ.TaskHeld, Language: "python", Digest: spec.Digest(),
	}, spec
}

func hold(need writ.Need) writ.Decision {
	return writ.Decision{Effect: writ.Hold, Reason: "runs code", Policy: writ.DigestOf([]byte("policy 1")), Need: &need,
		Rules: []writ.Rule{{ID: "hold-python", File: "main.cedar", Line: 12, Effect: writ.Hold}}}
}

func pending(need writ.Need) writ.Approval {
	task, _ := testTask()
	return approval.Request(task, hold(need), start, ttl)
}

const shown = writ.Digest("shown")

func grant(a *writ.Approval, by writ.Principal, at time.Time) error {
	return approval.Vote(a, by, writ.VoteRequest{Verdict: writ.Grant, Shown: shown, Reason: "read it"}, shown, at)
}

func deny(a *writ.Approval, by writ.Principal, at time.Time) error {
	return approval.Vote(a, by, writ.VoteRequest{Verdict: writ.Refuse, Reason: "not today"}, shown, at)
}

// wantError checks kind and words of err.
func wantError(t *testing.T, err error, kind writ.Kind, words ...string) {
	t.Helper()
	if err == nil || writ.KindOf(err) != kind {
		t.Fatalf("error is %v, want kind %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(writ.Message(err), w) {
			t.Errorf("error says %q, want %q in it", writ.Message(err), w)
		}
	}
}

func TestRequest(t *testing.T) {
	task, spec := testTask()
	d := hold(writ.Need{Grants: 2, Roles: []string{"security"}})
	a := approval.Request(task, d, start, ttl)
	if !strings.HasPrefix(string(a.ID), "apr_") {
		t.Errorf("id is %q", a.ID)
	}
	want := writ.Approval{
		ID: a.ID, Action: writ.ActionRun, Task: "task_1", Tenant: "acme", Identity: "coder", Requester: task.Requester, State: writ.ApprovalPending,
		Reason: "runs code", Rules: d.Rules, Need: writ.Need{Grants: 2, Roles: []string{"security"}},
		Spec: spec.Digest(), Policy: d.Policy, Digest: approval.Bind("task_1", task.Requester, "coder", spec.Digest(), d.Policy),
		Created: start, Expires: start.Add(ttl),
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	d.Need = nil
	if a := approval.Request(task, d, start, ttl); a.Need.Grants != 1 {
		t.Errorf("without a need %d grants are needed, want 1", a.Need.Grants)
	}
}

// Every step from every state: where it leads, or that it is a Conflict which
// changes nothing.
func TestEveryStepFromEveryState(t *testing.T) {
	const (
		pend = writ.ApprovalPending
		gran = writ.ApprovalGranted
		queu = writ.ApprovalQueued
		resu = writ.ApprovalResuming
		cons = writ.ApprovalConsumed
		deni = writ.ApprovalDenied
		expi = writ.ApprovalExpired
		canc = writ.ApprovalCancelled
	)
	late := start.Add(ttl)
	steps := []struct {
		name string
		do   func(a *writ.Approval) error
		to   map[writ.ApprovalState]writ.ApprovalState
	}{
		{"grant", func(a *writ.Approval) error { return grant(a, alice, start) }, map[writ.ApprovalState]writ.ApprovalState{pend: gran}},
		{"deny", func(a *writ.Approval) error { return deny(a, alice, start) }, map[writ.ApprovalState]writ.ApprovalState{pend: deni}},
		{"grant late", func(a *writ.Approval) error { return grant(a, alice, late) }, nil},
		{"deny late", func(a *writ.Approval) error { return deny(a, alice, late) }, nil},
		{"queue", approval.Queue, map[writ.ApprovalState]writ.ApprovalState{gran: queu}},
		{"resume", approval.Resume, map[writ.ApprovalState]writ.ApprovalState{queu: resu}},
		{"consume", approval.Consume, map[writ.ApprovalState]writ.ApprovalState{resu: cons}},
		{"cancel", func(a *writ.Approval) error { return approval.Cancel(a, start) }, map[writ.ApprovalState]writ.ApprovalState{pend: canc, gran: canc, queu: canc, resu: canc}},
		{"expire", func(a *writ.Approval) error { return approval.Expire(a, late) }, map[writ.ApprovalState]writ.ApprovalState{pend: expi}},
		{"expire early", func(a *writ.Approval) error { return approval.Expire(a, late.Add(-time.Millisecond)) }, nil},
	}
	for _, step := range steps {
		for _, from := range []writ.ApprovalState{pend, gran, queu, resu, cons, deni, expi, canc} {
			t.Run(fmt.Sprintf("%s from %s", step.name, from), func(t *testing.T) {
				a := pending(writ.Need{})
				a.State = from
				before := a
				err := step.do(&a)
				want, ok := step.to[from]
				if !ok {
					wantError(t, err, writ.Conflict)
					if diff := cmp.Diff(before, a); diff != "" {
						t.Errorf("an error changed the approval:\n%s", diff)
					}
					return
				}
				if err != nil || a.State != want {
					t.Fatalf("state %s, error %v, want %s", a.State, err, want)
				}
				switch want {
				case gran, deni, expi, canc:
					if a.Decided == nil {
						t.Error("when it was decided is not kept")
					}
				}
			})
		}
	}
}

func TestScenario08_DeniedWithAReason(t *testing.T) {
	a := pending(writ.Need{Grants: 2})
	if err := deny(&a, alice, start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want := []writ.Vote{{By: alice.Ref(), Verdict: writ.Refuse, Reason: "not today", At: start.Add(time.Minute)}}
	if diff := cmp.Diff(want, a.Votes); diff != "" || a.State != writ.ApprovalDenied {
		t.Errorf("state %s, votes:\n%s", a.State, diff)
	}
	wantError(t, grant(&a, bob, start), writ.Conflict, "was denied by operator:alice at 2026-05-06T07:09:09Z")
}

func TestScenario09_PA09_ALateDecisionIsRefused(t *testing.T) {
	a := pending(writ.Need{})
	if err := grant(&a, alice, a.Expires.Add(-time.Millisecond)); err != nil {
		t.Errorf("a millisecond before: %v", err)
	}
	a = pending(writ.Need{})
	wantError(t, grant(&a, alice, a.Expires), writ.Conflict, "expired at 2026-05-06T08:08:09Z")
	wantError(t, deny(&a, alice, a.Expires), writ.Conflict, "expired at")
	if err := approval.Expire(&a, a.Expires); err != nil {
		t.Fatal(err)
	}
	wantError(t, grant(&a, alice, start), writ.Conflict, "expired at 2026-05-06T08:08:09Z")
}

func TestScenario10_POL06_WhoMayDecide(t *testing.T) {
	tests := []struct {
		name string
		who  writ.Principal
		a    func(a *writ.Approval)
		want string // in the error; empty for may
	}{
		{"an operator", alice, nil, ""},
		{"the requester, an agent", writ.Principal{Kind: writ.KindAgent, ID: "coder", Tenant: "acme"}, nil, "only operators may"},
		{"another agent", writ.Principal{Kind: writ.KindAgent, ID: "reviewer", Tenant: "acme", Roles: []string{"security"}}, nil, "only operators may"},
		{"a run of an agent", writ.Principal{Kind: writ.KindAgentRun, ID: "x", Tenant: "acme"}, nil, "only operators may"},
		{"a user", writ.Principal{Kind: writ.KindUser, ID: "x", Tenant: "acme"}, nil, "only operators may"},
		{"the owner of the data folder", writ.Principal{Kind: writ.KindLocal, ID: "uid-0", Tenant: "acme"}, nil, "only operators may"},
		{"nobody", writ.Principal{}, nil, "only operators may"},
		{"an operator who asked", alice, func(a *writ.Approval) { a.Requester = alice.Ref() }, "another operator must"},
		{"an operator with the requester's name but not kind", alice, func(a *writ.Approval) { a.Requester = writ.Ref{Kind: writ.KindUser, ID: "alice"} }, ""},
		{"an operator of the identity's name", operator("coder"), nil, "bears the name of the identity"},
		{"an operator of another tenant", writ.Principal{Kind: writ.KindOperator, ID: "alice", Tenant: "other"}, nil, "another tenant"},
		{"an operator of no tenant", writ.Principal{Kind: writ.KindOperator, ID: "alice"}, nil, "another tenant"},
		{"without a role that is needed", alice, func(a *writ.Approval) { a.Need.Roles = []string{"security"} }, `not the role "security"`},
		{"with one of two roles", carol, func(a *writ.Approval) { a.Need.Roles = []string{"security", "legal"} }, `not the role "legal"`},
		{"with the role", carol, func(a *writ.Approval) { a.Need.Roles = []string{"security"} }, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := pending(writ.Need{})
			if tt.a != nil {
				tt.a(&a)
			}
			for _, v := range []writ.Verdict{writ.Grant, writ.Refuse} {
				b := a
				err := approval.Vote(&b, tt.who, writ.VoteRequest{Verdict: v, Shown: shown}, shown, start)
				if tt.want == "" {
					if err != nil {
						t.Errorf("%s: %v", v, err)
					}
					continue
				}
				wantError(t, err, writ.Denied, tt.want)
				if diff := cmp.Diff(a, b); diff != "" {
					t.Errorf("a refused vote changed the approval:\n%s", diff)
				}
			}
		})
	}
}

func TestScenario11_PA07_AnApprovalCoversExactlyWhatItWasAskedFor(t *testing.T) {
	task, spec := testTask()
	d := hold(writ.Need{})
	a := approval.Request(task, d, start, ttl)
	if err := approval.Covers(a, task, spec.Digest(), d.Policy); err != nil {
		t.Errorf("what it was asked for: %v", err)
	}
	other := spec
	other.Code += "#"
	tests := map[string]struct {
		change func(t *writ.Task, a *writ.Approval)
		spec   writ.Digest
		policy writ.Digest
		want   string
	}{
		"another task":      {change: func(t *writ.Task, _ *writ.Approval) { t.ID = "task_2" }, want: "the task: the approval is for task_1"},
		"another requester": {change: func(t *writ.Task, _ *writ.Approval) { t.Requester.ID = "x" }, want: "who it runs for"},
		"another identity":  {change: func(t *writ.Task, _ *writ.Approval) { t.Identity = "x" }, want: "who it runs for"},
		"other code":        {spec: other.Digest(), want: "what will run"},
		"other policy":      {policy: writ.DigestOf([]byte("policy 2")), want: "the policy"},
		"a forged spec":     {change: func(_ *writ.Task, a *writ.Approval) { a.Spec = other.Digest() }, spec: other.Digest(), want: "the approval itself"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			task, a := task, a
			if tt.change != nil {
				tt.change(&task, &a)
			}
			err := approval.Covers(a, task, cmpOr(tt.spec, spec.Digest()), cmpOr(tt.policy, d.Policy))
			wantError(t, err, writ.Conflict, "changed since approval", tt.want)
		})
	}
}

func cmpOr(a, b writ.Digest) writ.Digest {
	if a != "" {
		return a
	}
	return b
}

func TestBindKeepsItsFieldsApart(t *testing.T) {
	seen := map[writ.Digest]string{}
	for _, f := range [][6]string{
		{"a", "b", "c", "d", "e", "f"}, {"ab", "", "c", "d", "e", "f"}, {"", "ab", "c", "d", "e", "f"},
		{"a", "bc", "", "d", "e", "f"}, {"a", "b", "c", "de", "", "f"}, {"a", "b", "c", "d", "ef", ""}, {"a", "b", "c", "d", "", "ef"},
		{"b", "a", "c", "d", "e", "f"}, {"a", "b", "c", "d", "f", "e"}, {},
	} {
		d := approval.Bind(writ.TaskID(f[0]), writ.Ref{Kind: writ.PrincipalKind(f[1]), ID: f[2]}, writ.IdentityID(f[3]), writ.Digest(f[4]), writ.Digest(f[5]))
		if old, ok := seen[d]; ok {
			t.Errorf("%q and %s have one digest", f, old)
		}
		seen[d] = fmt.Sprintf("%q", f)
	}
}

func TestScenario14_POL07_FirstDecisionWins(t *testing.T) {
	// What each approver's transaction reads is one of these two: the second sees
	// the first's vote. Stores make it so by compare-and-set.
	a := pending(writ.Need{})
	if err := grant(&a, alice, start); err != nil || a.State != writ.ApprovalGranted {
		t.Fatalf("state %s, %v", a.State, err)
	}
	wantError(t, grant(&a, bob, start), writ.Conflict, "was granted by operator:alice at 2026-05-06T07:08:09Z")
	wantError(t, deny(&a, bob, start), writ.Conflict, "was granted by operator:alice")
	a = pending(writ.Need{})
	if err := approval.Cancel(&a, start); err != nil {
		t.Fatal(err)
	}
	wantError(t, grant(&a, bob, start), writ.Conflict, "was cancelled at")
}

func TestPA06_OneGrantIsForOneRun(t *testing.T) {
	a := pending(writ.Need{})
	for _, step := range []func() error{
		func() error { return grant(&a, alice, start) },
		func() error { return approval.Queue(&a) },
		func() error { return approval.Resume(&a) },
		func() error { return approval.Consume(&a) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, approval.Consume(&a), writ.Conflict, "one grant is for one run")
	wantError(t, approval.Resume(&a), writ.Conflict, "used up")
	wantError(t, grant(&a, bob, start), writ.Conflict, "used up")
}

func TestSeveralGrantsAreNeeded(t *testing.T) {
	a := pending(writ.Need{Grants: 2, Reason: true})
	if err := grant(&a, alice, start); err != nil || a.State != writ.ApprovalPending || a.Decided != nil {
		t.Fatalf("after one grant of two: state %s, decided %v, %v", a.State, a.Decided, err)
	}
	before := a
	wantError(t, grant(&a, alice, start), writ.Conflict, "operator:alice has voted", "each approver votes once")
	wantError(t, approval.Vote(&a, bob, writ.VoteRequest{Verdict: writ.Grant, Shown: shown, Reason: " \n"}, shown, start), writ.Invalid, "needs a reason")
	if diff := cmp.Diff(before, a); diff != "" {
		t.Error(diff)
	}
	if err := grant(&a, bob, start); err != nil || a.State != writ.ApprovalGranted || len(a.Votes) != 2 {
		t.Errorf("after two grants: state %s, %d votes, %v", a.State, len(a.Votes), err)
	}
	if len(before.Votes) != 1 {
		t.Error("a copy's votes were changed")
	}
}

func TestAGrantNamesWhatWasShown(t *testing.T) {
	for name, v := range map[string][2]writ.Digest{"none": {"", shown}, "another": {"old", shown}, "nothing to show": {"", ""}} {
		a := pending(writ.Need{})
		err := approval.Vote(&a, alice, writ.VoteRequest{Verdict: writ.Grant, Shown: v[0]}, v[1], start)
		if writ.KindOf(err) != writ.Conflict || !strings.Contains(writ.Message(err), "what was shown is not what will run now") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMalformedVotes(t *testing.T) {
	for name, v := range map[string]writ.VoteRequest{
		"no verdict":      {},
		"another verdict": {Verdict: "Grant", Shown: shown},
		"long reason":     {Verdict: writ.Refuse, Reason: strings.Repeat("x", writ.MaxReasonBytes+1)},
		"not UTF-8":       {Verdict: writ.Refuse, Reason: "\xff"},
	} {
		a := pending(writ.Need{})
		if err := approval.Vote(&a, alice, v, shown, start); writ.KindOf(err) != writ.Invalid || a.State != writ.ApprovalPending {
			t.Errorf("%s: %v, state %s", name, err, a.State)
		}
	}
}

// Whatever steps are taken in whatever order, an approval is consumed at most once,
// a terminal state stays, and no grant counts that the requester gave.
func TestPropertyOfAnySequenceOfSteps(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		need := writ.Need{Grants: rapid.IntRange(0, 3).Draw(rt, "grants"), Reason: rapid.Bool().Draw(rt, "reason")}
		task, _ := testTask()
		task.Requester = alice.Ref()
		a := approval.Request(task, hold(need), start, ttl)
		people := []writ.Principal{alice, bob, carol, operator("dave"), operator("coder"), {Kind: writ.KindAgent, ID: "coder", Tenant: "acme"}}
		at, consumed := start, 0
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			before := a
			at = at.Add(time.Duration(rapid.IntRange(0, 10).Draw(rt, "minutes")) * time.Minute)
			who := rapid.SampledFrom(people).Draw(rt, "who")
			step := rapid.SampledFrom([]string{"grant", "grant", "grant", "deny", "queue", "resume", "consume", "cancel", "expire"}).Draw(rt, "step")
			var err error
			switch step {
			case "grant":
				err = grant(&a, who, at)
			case "deny":
				err = deny(&a, who, at)
			case "queue":
				err = approval.Queue(&a)
			case "resume":
				err = approval.Resume(&a)
			case "consume":
				if err = approval.Consume(&a); err == nil {
					consumed++
				}
			case "cancel":
				err = approval.Cancel(&a, at)
			case "expire":
				err = approval.Expire(&a, at)
			}
			if err != nil || before.State.Terminal() {
				if diff := cmp.Diff(before, a); diff != "" {
					rt.Fatalf("%s from %s (error %v) changed:\n%s", step, before.State, err, diff)
				}
			}
			if before.State.Terminal() && err == nil {
				rt.Fatalf("%s from %s went well", step, before.State)
			}
		}
		if consumed > 1 {
			rt.Fatalf("consumed %d times", consumed)
		}
		by := map[writ.Ref]bool{}
		for _, v := range a.Votes {
			if v.By == a.Requester || v.By.ID == string(a.Identity) || by[v.By] {
				rt.Fatalf("a vote of %s counts", v.By)
			}
			by[v.By] = true
		}
		switch a.State {
		case writ.ApprovalGranted, writ.ApprovalQueued, writ.ApprovalResuming, writ.ApprovalConsumed:
			if len(by) < max(need.Grants, 1) {
				rt.Fatalf("%s with %d of %d grants", a.State, len(by), need.Grants)
			}
		}
	})
}
