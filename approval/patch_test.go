package approval_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

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
