package approval_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"writ"
	"writ/approval"
)

var (
	coder    = writ.Principal{Kind: writ.KindAgent, ID: "coder", Tenant: "acme"}
	reviewer = writ.Principal{Kind: writ.KindAgent, ID: "reviewer", Tenant: "acme"}
	owner    = writ.Principal{Kind: writ.KindLocal, ID: "uid-0", Tenant: writ.DefaultTenant}

	policy1 = writ.DigestOf([]byte("policy 1"))
)

func testOrder(mode writ.ApprovalMode) approval.PatchOrder {
	return approval.PatchOrder{
		Request:   writ.PatchRequest{Workspace: "site", Patch: "*** Begin Patch\n*** Add File: a\n+1\n*** End Patch", Key: "key-1"},
		Workspace: writ.Workspace{ID: "site", Tenant: "acme", Root: "/srv/site", Profile: writ.WorkspaceWrite, Approvals: mode},
		Requester: coder.Ref(), Identity: "coder", Mode: mode,
		Plan: writ.PatchPlan{Changes: []writ.FileChange{{Path: "a", After: "sha256:1", Kind: "add"}}, Diff: "diff"},
	}
}

func pendingPatch(mode writ.ApprovalMode, need writ.Need) writ.Approval {
	return approval.RequestPatch(testOrder(mode), hold(need), start, ttl)
}

func TestRequestPatch(t *testing.T) {
	p, d := testOrder(writ.ApprovalsReview), hold(writ.Need{Grants: 2, Roles: []string{"security"}})
	a := approval.RequestPatch(p, d, start, ttl)
	if !regexp.MustCompile(`^appr-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(string(a.ID)) {
		t.Errorf("id is %q", a.ID)
	}
	want := writ.Approval{
		ID: a.ID, Action: writ.ActionPatch, Tenant: "acme", Identity: "coder", Requester: coder.Ref(), State: writ.ApprovalPending,
		Reason: "runs code", Rules: d.Rules, Need: writ.Need{Grants: 2, Roles: []string{"security"}},
		Call: &writ.HeldCall{Workspace: "site", Root: "/srv/site", Mode: writ.ApprovalsReview, Key: "key-1", Plan: p.Plan.Digest()},
		Spec: p.Request.Fingerprint(), Policy: policy1, Digest: approval.BindPatch(p, policy1), Request: approval.PatchKey(p),
		Created: start, Expires: start.Add(ttl),
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
	d.Need = nil
	if a := approval.RequestPatch(p, d, start, ttl); a.Need.Grants != 1 {
		t.Errorf("without a need %d grants are needed, want 1", a.Need.Grants)
	}
}

// changes are all that may differ between two orders, each with whether it is another
// request, and with the words of what moved.
var changes = map[string]struct {
	change  func(p *approval.PatchOrder)
	request bool
	moved   string
}{
	"requester":    {func(p *approval.PatchOrder) { p.Requester.ID = "x" }, true, "who asks: the approval is for agent:coder"},
	"kind":         {func(p *approval.PatchOrder) { p.Requester.Kind = writ.KindUser }, true, "who asks"},
	"identity":     {func(p *approval.PatchOrder) { p.Identity = "x" }, false, "who asks"},
	"tenant":       {func(p *approval.PatchOrder) { p.Workspace.Tenant = "x" }, true, "the workspace: the approval is for site of tenant acme"},
	"workspace":    {func(p *approval.PatchOrder) { p.Workspace.ID = "x" }, true, "the workspace: the approval is for site"},
	"root":         {func(p *approval.PatchOrder) { p.Workspace.Root = "/srv/other" }, true, "the workspace's root"},
	"key":          {func(p *approval.PatchOrder) { p.Request.Key = "key-2" }, true, `the operation key: the approval is for "key-1"`},
	"no key":       {func(p *approval.PatchOrder) { p.Request.Key = "" }, true, "the operation key"},
	"patch":        {func(p *approval.PatchOrder) { p.Request.Patch += "\n" }, true, "what was sent"},
	"check only":   {func(p *approval.PatchOrder) { p.Request.CheckOnly = true }, true, "what was sent"},
	"undo":         {func(p *approval.PatchOrder) { p.Request.Undo = "op-1" }, true, "what was sent"},
	"expectations": {func(p *approval.PatchOrder) { p.Request.Expected = map[string]string{"a": "absent"} }, true, "what was sent"},
	"before": {func(p *approval.PatchOrder) {
		p.Plan.Changes = []writ.FileChange{{Path: "a", Before: "sha256:0", After: "sha256:1", Kind: "update"}}
	}, false, "the files"},
	"after": {func(p *approval.PatchOrder) {
		p.Plan.Changes = []writ.FileChange{{Path: "a", After: "sha256:2", Kind: "add"}}
	}, false, "the files"},
	"another path": {func(p *approval.PatchOrder) {
		p.Plan.Changes = append(p.Plan.Changes, writ.FileChange{Path: "b", Kind: "add"})
	}, false, "the files"},
	"nothing to do": {func(p *approval.PatchOrder) { p.Plan.Changes = nil }, false, "the files"},
}

func TestPA07_APatchApprovalCoversExactlyWhatItWasAskedFor(t *testing.T) {
	p := testOrder(writ.ApprovalsConfirm)
	a := approval.RequestPatch(p, hold(writ.Need{}), start, ttl)
	if err := approval.CoversPatch(a, p, policy1); err != nil {
		t.Errorf("what it was asked for: %v", err)
	}
	for name, tt := range changes {
		t.Run(name, func(t *testing.T) {
			p := testOrder(writ.ApprovalsConfirm)
			tt.change(&p)
			wantError(t, approval.CoversPatch(a, p, policy1), writ.Conflict, "changed since approval "+string(a.ID), tt.moved, "needs a new one")
			if same := approval.PatchKey(p) == a.Request; same == tt.request {
				t.Errorf("it shares the open approval: %v, want %v", same, !tt.request)
			}
		})
	}
	wantError(t, approval.CoversPatch(a, p, writ.DigestOf([]byte("policy 2"))), writ.Conflict, "the policy")
	forged := a
	forged.Digest = approval.BindPatch(p, "x")
	wantError(t, approval.CoversPatch(forged, p, policy1), writ.Conflict, "the approval itself")

	// The diff is for people: what it says follows from the versions.
	p.Plan.Diff, p.Plan.Cut = "x", true
	if err := approval.CoversPatch(a, p, policy1); err != nil {
		t.Errorf("another diff: %v", err)
	}
}

func TestPA07_RunsAndPatchesAreNotTakenForEachOther(t *testing.T) {
	task, spec := testTask()
	wantError(t, approval.CoversPatch(pending(writ.Need{}), testOrder(writ.ApprovalsReview), policy1), writ.Conflict, "the approval is not for a patch")
	wantError(t, approval.Covers(pendingPatch(writ.ApprovalsReview, writ.Need{}), task, spec.Digest(), policy1), writ.Conflict, "the task")
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
		t.Run(fmt.Sprintf("%s to %s", tt.was, tt.is), func(t *testing.T) {
			err := approval.CoversPatch(pendingPatch(tt.was, writ.Need{}), testOrder(tt.is), policy1)
			if tt.ok && err != nil {
				t.Error(err)
			}
			if !tt.ok {
				wantError(t, err, writ.Conflict, "who must agree")
			}
		})
	}
}

func TestBindPatchKeepsItsFieldsApart(t *testing.T) {
	seenBind, seenKey := map[writ.Digest]string{}, map[writ.Digest]string{}
	for _, f := range [][4]string{{"a", "b", "c", "d"}, {"ab", "", "c", "d"}, {"", "ab", "c", "d"}, {"a", "bc", "", "d"}, {"a", "b", "", "cd"}, {"b", "a", "c", "d"}, {}} {
		p := testOrder(writ.ApprovalsReview)
		p.Workspace.Tenant, p.Workspace.ID, p.Workspace.Root, p.Request.Key = writ.Tenant(f[0]), writ.WorkspaceID(f[1]), f[2], f[3]
		for d, seen := range map[writ.Digest]map[writ.Digest]string{approval.BindPatch(p, policy1): seenBind, approval.PatchKey(p): seenKey} {
			if old, ok := seen[d]; ok {
				t.Errorf("%q and %s have one digest", f, old)
			}
			seen[d] = fmt.Sprintf("%q", f)
		}
	}
}

func TestPOL06_WhoMayDecideAPatch(t *testing.T) {
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
		{"a patch that says nothing", confirm, coder, func(a *writ.Approval) { a.Call = nil }, "only operators may"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := pendingPatch(tt.mode, writ.Need{})
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

// Whoever confirms their own patch was asked by their client; an operator reads the text.
func TestScenario116_WhoseGrantNamesWhatWasShown(t *testing.T) {
	vote := func(mode writ.ApprovalMode, by writ.Principal, named writ.Digest) error {
		a := pendingPatch(mode, writ.Need{})
		return approval.Vote(&a, by, writ.VoteRequest{Verdict: writ.Grant, Shown: named}, shown, start)
	}
	for _, named := range []writ.Digest{"", shown} {
		if err := vote(writ.ApprovalsConfirm, coder, named); err != nil {
			t.Errorf("the requester's own, naming %q: %v", named, err)
		}
	}
	const changed = "what was shown is not what the patch would do now"
	wantError(t, vote(writ.ApprovalsConfirm, coder, "old"), writ.Conflict, changed)
	wantError(t, vote(writ.ApprovalsConfirm, alice, ""), writ.Conflict, changed)
	wantError(t, vote(writ.ApprovalsReview, alice, ""), writ.Conflict, changed)
	wantError(t, vote(writ.ApprovalsReview, alice, "old"), writ.Conflict, changed)

	a := pendingPatch(writ.ApprovalsConfirm, writ.Need{Reason: true})
	wantError(t, approval.Vote(&a, coder, writ.VoteRequest{Verdict: writ.Grant}, shown, start), writ.Invalid, "needs a reason")
}

// Two grants are by two, also when one of them is the requester's.
func TestARequesterIsOneOfSeveralGrants(t *testing.T) {
	a := pendingPatch(writ.ApprovalsConfirm, writ.Need{Grants: 2})
	if err := grant(&a, coder, start); err != nil || a.State != writ.ApprovalPending {
		t.Fatalf("state %s, %v", a.State, err)
	}
	wantError(t, grant(&a, coder, start), writ.Conflict, "agent:coder has voted")
	if err := grant(&a, alice, start); err != nil || a.State != writ.ApprovalGranted {
		t.Errorf("state %s, %v", a.State, err)
	}
}

// Every step of a patch's approval from every state.
func TestEveryStepOfAPatchFromEveryState(t *testing.T) {
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
		{"expire", func(a *writ.Approval) error { return approval.Expire(a, late) }, states{pend: expi, gran: expi}},
		{"expire early", func(a *writ.Approval) error { return approval.Expire(a, late.Add(-time.Millisecond)) }, nil},
	}
	for _, step := range steps {
		for _, from := range writ.ApprovalStates {
			t.Run(fmt.Sprintf("%s from %s", step.name, from), func(t *testing.T) {
				a := pendingPatch(writ.ApprovalsConfirm, writ.Need{})
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

func TestScenario117_PA06_HistoryOfAPatch(t *testing.T) {
	a := pendingPatch(writ.ApprovalsConfirm, writ.Need{})
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
	says(a, "was granted by agent:coder at 2026-05-06T07:08:09Z and is used up: one grant is for one patch")
	wantError(t, approval.Consume(&a), writ.Conflict, "one grant is for one patch")
}

// Whatever steps are taken in whatever order, a patch's approval is consumed at most
// once and only after enough grants of those who may give them, and a terminal state
// stays.
func TestPropertyOfAnySequenceOfStepsOfAPatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mode := rapid.SampledFrom([]writ.ApprovalMode{writ.ApprovalsOff, writ.ApprovalsConfirm, writ.ApprovalsReview}).Draw(rt, "mode")
		p := testOrder(mode)
		requester := rapid.SampledFrom([]writ.Principal{coder, alice, owner}).Draw(rt, "requester")
		p.Requester = requester.Ref()
		need := writ.Need{Grants: rapid.IntRange(0, 3).Draw(rt, "grants")}
		a := approval.RequestPatch(p, hold(need), start, ttl)
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
			if err := approval.CoversPatch(a, p, policy1); err != nil {
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
