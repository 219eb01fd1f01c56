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

// caller is what all orders have in common, for tests of what all approvals of calls have.
type caller struct {
	who  writ.Ref
	mode writ.ApprovalMode
}

// calls are the tools' calls that can be held.
var calls = map[writ.Action]struct {
	one, happens string
	request      func(c caller, d writ.Decision) writ.Approval
	covers       func(a writ.Approval, c caller, policy writ.Digest) error
}{
	writ.ActionPatch: {
		"patch", "the patch would do",
		func(c caller, d writ.Decision) writ.Approval {
			return approval.RequestPatch(c.patch(), d, start, ttl)
		},
		func(a writ.Approval, c caller, policy writ.Digest) error {
			return approval.CoversPatch(a, c.patch(), policy)
		},
	},
	writ.ActionExec: {
		"command", "would be started",
		func(c caller, d writ.Decision) writ.Approval {
			return approval.RequestCommand(c.command(), d, start, ttl)
		},
		func(a writ.Approval, c caller, policy writ.Digest) error {
			return approval.CoversCommand(a, c.command(), policy)
		},
	},
	writ.ActionInput: {
		"input", "would be written",
		func(c caller, d writ.Decision) writ.Approval {
			return approval.RequestInput(c.input(), d, start, ttl)
		},
		func(a writ.Approval, c caller, policy writ.Digest) error {
			return approval.CoversInput(a, c.input(), policy)
		},
	},
}

func (c caller) patch() approval.PatchOrder {
	p := testOrder(c.mode)
	p.Requester = c.who
	return p
}

func (c caller) command() approval.CommandOrder {
	p := testCommand(c.mode)
	p.Requester = c.who
	return p
}

func (c caller) input() approval.InputOrder {
	p := testInput(c.mode)
	p.Requester = c.who
	return p
}

func TestPA07_CallsAreNotTakenForEachOther(t *testing.T) {
	task, spec := testTask()
	for asked, call := range calls {
		c := caller{coder.Ref(), writ.ApprovalsReview}
		a := call.request(c, hold(writ.Need{}))
		wantError(t, approval.Covers(a, task, spec.Digest(), policy1), writ.Conflict, "the task")
		for other, call := range calls {
			err := call.covers(a, c, policy1)
			if asked == other && err != nil {
				t.Errorf("%s for itself: %v", asked, err)
			}
			if asked != other {
				wantError(t, err, writ.Conflict, "what is asked for: the approval is not for a", call.one)
			}
		}
		wantError(t, call.covers(pending(writ.Need{}), c, policy1), writ.Conflict, "the approval is not for a", call.one)
		a.Call = nil
		wantError(t, call.covers(a, c, policy1), writ.Conflict, "the approval is not for a", call.one)
	}
}

// What an agent could confirm itself is not what an operator agreed to.
func TestAWorkspaceThatBecameStricterNeedsANewApproval(t *testing.T) {
	const off, confirm, review = writ.ApprovalsOff, writ.ApprovalsConfirm, writ.ApprovalsReview
	for _, tt := range []struct {
		was, is writ.ApprovalMode
		ok      bool
	}{
		{off, off, true}, {confirm, confirm, true}, {review, review, true}, {confirm, off, true},
		{review, confirm, true}, {review, off, true}, {off, confirm, true}, {off, review, true},
		{confirm, review, false}, {confirm, "unheard of", false},
	} {
		for action, call := range calls {
			t.Run(fmt.Sprintf("%s from %s to %s", action, tt.was, tt.is), func(t *testing.T) {
				a := call.request(caller{coder.Ref(), tt.was}, hold(writ.Need{}))
				err := call.covers(a, caller{coder.Ref(), tt.is}, policy1)
				if tt.ok && err != nil {
					t.Error(err)
				}
				if !tt.ok {
					wantError(t, err, writ.Conflict, "who must agree")
				}
			})
		}
	}
}

func TestPOL06_WhoMayDecideACall(t *testing.T) {
	const confirm, review = writ.ApprovalsConfirm, writ.ApprovalsReview
	asked := func(by writ.Principal, identity writ.IdentityID) func(a *writ.Approval) {
		return func(a *writ.Approval) { a.Requester, a.Identity = by.Ref(), identity }
	}
	security := func(a *writ.Approval) { a.Need.Roles = []string{"security"} }
	withRole := coder
	withRole.Roles = []string{"security"}
	elsewhere := coder
	elsewhere.Tenant = "other"
	user := writ.Principal{Kind: writ.KindUser, ID: "alice", Tenant: "acme"}
	tests := []struct {
		name string
		mode writ.ApprovalMode
		who  writ.Principal
		a    func(a *writ.Approval)
		want string // in the error; empty for may
	}{
		{"confirm: the agent that asked", confirm, coder, nil, ""},
		{"confirm: the user who asked", confirm, user, asked(user, "alice"), ""},
		{"confirm: the owner who asked, in another tenant's workspace", confirm, owner, asked(owner, ""), ""},
		{"confirm: the operator who asked", confirm, alice, asked(alice, "alice"), ""},
		{"confirm: an operator who did not ask", confirm, alice, nil, ""},
		{"confirm: another agent", confirm, reviewer, nil, "only whoever asked for it or an operator may"},
		{"confirm: the owner who did not ask", confirm, owner, nil, "only whoever asked for it or an operator may"},
		{"confirm: the requester's name, another kind", confirm, writ.Principal{Kind: writ.KindAgentRun, ID: "coder", Tenant: "acme"}, nil, "only whoever asked for it"},
		{"confirm: the requester's name, in another tenant", confirm, elsewhere, nil, "another tenant"},
		{"confirm: an operator of another tenant", confirm, writ.Principal{Kind: writ.KindOperator, ID: "alice", Tenant: "other"}, nil, "another tenant"},
		{"confirm: an operator of the identity's name", confirm, operator("coder"), nil, "bears the name of the identity"},
		{"confirm: the requester without a role that is needed", confirm, coder, security, `not the role "security"`},
		{"confirm: the requester with it", confirm, withRole, security, ""},
		{"confirm: nobody, where nobody asked", confirm, writ.Principal{}, func(a *writ.Approval) { a.Requester, a.Tenant = writ.Ref{}, "" }, "only whoever asked for it"},
		{"review: the agent that asked", review, coder, nil, "only operators may"},
		{"review: the owner who asked", review, owner, asked(owner, ""), "only operators may"},
		{"review: the operator who asked", review, alice, asked(alice, "alice"), "another operator must"},
		{"review: an operator who did not ask", review, alice, nil, ""},
		{"off, and held all the same: the agent that asked", writ.ApprovalsOff, coder, nil, "only operators may"},
		{"a run that says confirm", confirm, coder, func(a *writ.Approval) { a.Action = writ.ActionRun }, "only operators may"},
		{"an action that is not heard of", confirm, coder, func(a *writ.Approval) { a.Action = "x" }, "only operators may"},
		{"a call that says nothing", confirm, coder, func(a *writ.Approval) { a.Call = nil }, "only operators may"},
	}
	for _, tt := range tests {
		for action, call := range calls {
			t.Run(tt.name+", "+call.one, func(t *testing.T) {
				a := call.request(caller{coder.Ref(), tt.mode}, hold(writ.Need{}))
				if a.Action != action {
					t.Fatalf("action is %s", a.Action)
				}
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
}

// Whoever confirms their own call was asked by their client; an operator reads the text.
func TestScenario116_119_WhoseGrantNamesWhatWasShown(t *testing.T) {
	for _, call := range calls {
		vote := func(mode writ.ApprovalMode, by writ.Principal, named writ.Digest) error {
			a := call.request(caller{coder.Ref(), mode}, hold(writ.Need{}))
			return approval.Vote(&a, by, writ.VoteRequest{Verdict: writ.Grant, Shown: named}, shown, start)
		}
		for _, named := range []writ.Digest{"", shown} {
			if err := vote(writ.ApprovalsConfirm, coder, named); err != nil {
				t.Errorf("the requester's own %s, naming %q: %v", call.one, named, err)
			}
		}
		changed := "what was shown is not what " + call.happens + " now"
		wantError(t, vote(writ.ApprovalsConfirm, coder, "old"), writ.Conflict, changed)
		wantError(t, vote(writ.ApprovalsConfirm, alice, ""), writ.Conflict, changed)
		wantError(t, vote(writ.ApprovalsReview, alice, ""), writ.Conflict, changed)
		wantError(t, vote(writ.ApprovalsReview, alice, "old"), writ.Conflict, changed)

		a := call.request(caller{coder.Ref(), writ.ApprovalsConfirm}, hold(writ.Need{Reason: true}))
		wantError(t, approval.Vote(&a, coder, writ.VoteRequest{Verdict: writ.Grant}, shown, start), writ.Invalid, "needs a reason")
	}
}

// Two grants are by two, also when one of them is the requester's.
func TestARequesterIsOneOfSeveralGrants(t *testing.T) {
	for _, call := range calls {
		a := call.request(caller{coder.Ref(), writ.ApprovalsConfirm}, hold(writ.Need{Grants: 2}))
		if err := grant(&a, coder, start); err != nil || a.State != writ.ApprovalPending {
			t.Fatalf("%s: state %s, %v", call.one, a.State, err)
		}
		wantError(t, grant(&a, coder, start), writ.Conflict, "agent:coder has voted")
		if err := grant(&a, alice, start); err != nil || a.State != writ.ApprovalGranted {
			t.Errorf("%s: state %s, %v", call.one, a.State, err)
		}
	}
}

// Every step of a call's approval from every state.
func TestEveryStepOfACallFromEveryState(t *testing.T) {
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
	type states = map[writ.ApprovalState]writ.ApprovalState
	steps := []struct {
		name string
		do   func(a *writ.Approval) error
		to   states
	}{
		{"confirm", func(a *writ.Approval) error { return grant(a, coder, start) }, states{pend: gran}},
		{"grant", func(a *writ.Approval) error { return grant(a, alice, start) }, states{pend: gran}},
		{"deny", func(a *writ.Approval) error { return deny(a, alice, start) }, states{pend: deni}},
		{"withdraw", func(a *writ.Approval) error { return deny(a, coder, start) }, states{pend: deni}},
		{"confirm late", func(a *writ.Approval) error { return grant(a, coder, late) }, nil},
		{"queue", approval.Queue, states{gran: queu}},
		{"resume", approval.Resume, states{queu: resu}},
		{"consume", approval.Consume, states{resu: cons}},
		{"cancel", func(a *writ.Approval) error { return approval.Cancel(a, start) }, states{pend: canc, gran: canc, queu: canc, resu: canc}},
		{"expire", func(a *writ.Approval) error { return approval.Expire(a, late) }, states{pend: expi, gran: expi, queu: expi}},
		{"expire early", func(a *writ.Approval) error { return approval.Expire(a, late.Add(-time.Millisecond)) }, nil},
	}
	for _, call := range calls {
		for _, step := range steps {
			for _, from := range writ.ApprovalStates {
				t.Run(fmt.Sprintf("%s a %s from %s", step.name, call.one, from), func(t *testing.T) {
					a := call.request(caller{coder.Ref(), writ.ApprovalsConfirm}, hold(writ.Need{}))
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
}

func TestScenario117_PA06_HistoryOfACall(t *testing.T) {
	for _, call := range calls {
		t.Run(call.one, func(t *testing.T) {
			a := call.request(caller{coder.Ref(), writ.ApprovalsConfirm}, hold(writ.Need{}))
			says := func(a writ.Approval, want string) {
				t.Helper()
				if got := approval.History(a); got != "approval "+string(a.ID)+" "+want {
					t.Errorf("history of a %s one: %q, want %q", a.State, got, want)
				}
			}
			do := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			says(a, "is pending, with 0 of 1 grants")
			denied := a
			do(deny(&denied, coder, start))
			says(denied, "was denied by agent:coder at 2026-05-06T07:08:09Z")
			wantError(t, approval.Queue(&denied), writ.Conflict, "was denied by")
			idle := a
			do(approval.Expire(&idle, a.Expires))
			says(idle, "expired at 2026-05-06T08:08:09Z")

			do(grant(&a, coder, start))
			says(a, "was granted by agent:coder at 2026-05-06T07:08:09Z and waits until it is resumed")
			idle = a
			do(approval.Expire(&idle, a.Expires))
			says(idle, "was granted by agent:coder and expired at 2026-05-06T08:08:09Z, before anybody resumed it")
			wantError(t, approval.Queue(&idle), writ.Conflict, "before anybody resumed it")
			do(approval.Queue(&a))
			says(a, "was granted by agent:coder at 2026-05-06T07:08:09Z (queued)")
			do(approval.Resume(&a))
			wantError(t, approval.Resume(&a), writ.Conflict, "(resuming)")
			do(approval.Consume(&a))
			says(a, "was granted by agent:coder at 2026-05-06T07:08:09Z and is used up: one grant is for one "+call.one)
			wantError(t, approval.Consume(&a), writ.Conflict, "one grant is for one "+call.one)
		})
	}
}

// Whatever steps are taken in whatever order, a call's approval is consumed at most
// once and only after enough grants of those who may give them, and a terminal state
// stays.
func TestPropertyOfAnySequenceOfStepsOfACall(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]writ.ApprovalMode{writ.ApprovalsOff, writ.ApprovalsConfirm, writ.ApprovalsReview}).Draw(rt, "mode")
		requester := rapid.SampledFrom([]writ.Principal{coder, alice, owner}).Draw(rt, "requester")
		call := calls[rapid.SampledFrom([]writ.Action{writ.ActionPatch, writ.ActionExec, writ.ActionInput}).Draw(rt, "action")]
		c := caller{requester.Ref(), mode}
		need := writ.Need{Grants: rapid.IntRange(0, 3).Draw(rt, "grants")}
		a := call.request(c, hold(need))
		people := []writ.Principal{coder, reviewer, owner, alice, bob, carol, operator("coder")}
		at, consumed := start, 0
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			before := a
			at = at.Add(time.Duration(rapid.IntRange(0, 10).Draw(rt, "minutes")) * time.Minute)
			who := rapid.SampledFrom(people).Draw(rt, "who")
			step := rapid.SampledFrom([]string{"grant", "grant", "grant", "unread grant", "deny", "queue", "resume", "consume", "cancel", "expire"}).Draw(rt, "step")
			var err error
			switch step {
			case "grant":
				err = grant(&a, who, at)
			case "unread grant":
				err = approval.Vote(&a, who, writ.VoteRequest{Verdict: writ.Grant}, shown, at)
				if err == nil && (mode != writ.ApprovalsConfirm || who.Ref() != a.Requester) {
					rt.Fatalf("%s granted what they did not read", who.Ref())
				}
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
			if err := call.covers(a, c, policy1); err != nil {
				rt.Fatalf("after %s it covers something else: %v", step, err)
			}
		}
		if consumed > 1 {
			rt.Fatalf("consumed %d times", consumed)
		}
		by := map[writ.Ref]bool{}
		for _, v := range a.Votes {
			own := v.By == a.Requester
			if by[v.By] || own && mode != writ.ApprovalsConfirm || !own && (v.By.Kind != writ.KindOperator || v.By.ID == string(a.Identity)) {
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
		if !strings.Contains(approval.History(a), string(a.ID)) {
			rt.Fatalf("history is %q", approval.History(a))
		}
	})
}
