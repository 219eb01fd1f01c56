package approval_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/approval"
)

func testCommand(mode writ.ApprovalMode) approval.CommandOrder {
	return approval.CommandOrder{
		Request: writ.CommandRequest{Workspace: "site", Command: []string{"go", "test", "./..."}},
		Workspace: writ.Workspace{
			ID: "site", Tenant: "acme", Root: "/srv/site", Profile: writ.WorkspaceWrite, Environment: "local",
			EnvironmentKind: writ.EnvironmentHost, Network: writ.NetworkRestricted, Approvals: mode,
			Rules: writ.PathRules{DenyRead: []string{".env"}},
		},
		Requester: coder.Ref(), Identity: "coder", Mode: mode,
	}
}

func TestRequestCommand(t *testing.T) {
	p, d := testCommand(writ.ApprovalsConfirm), hold(writ.Need{Grants: 2, Roles: []string{"security"}})
	a := approval.RequestCommand(p, d, start, ttl)
	want := writ.Approval{
		ID: a.ID, Action: writ.ActionExec, Tenant: "acme", Identity: "coder", Requester: coder.Ref(), State: writ.ApprovalPending,
		Reason: "runs code", Rules: d.Rules, Need: writ.Need{Grants: 2, Roles: []string{"security"}},
		Call: &writ.HeldCall{Workspace: "site", Root: "/srv/site", Mode: writ.ApprovalsConfirm},
		Spec: p.Request.Fingerprint(), Policy: policy1, Digest: approval.BindCommand(p, policy1), Request: approval.CommandKey(p),
		Created: start, Expires: start.Add(ttl),
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}

// commandChanges are all that may differ between two orders, each with whether it is
// another request, and with the words of what moved.
var commandChanges = map[string]struct {
	change  func(p *approval.CommandOrder)
	request bool
	moved   string
}{
	"requester":       {func(p *approval.CommandOrder) { p.Requester.ID = "x" }, true, "who asks: the approval is for agent:coder"},
	"kind":            {func(p *approval.CommandOrder) { p.Requester.Kind = writ.KindUser }, true, "who asks"},
	"identity":        {func(p *approval.CommandOrder) { p.Identity = "x" }, true, "who asks"},
	"tenant":          {func(p *approval.CommandOrder) { p.Workspace.Tenant = "x" }, true, "the workspace: the approval is for site of tenant acme"},
	"workspace":       {func(p *approval.CommandOrder) { p.Workspace.ID = "x" }, true, "the workspace: the approval is for site"},
	"root":            {func(p *approval.CommandOrder) { p.Workspace.Root = "/srv/other" }, true, "the workspace's root"},
	"argument":        {func(p *approval.CommandOrder) { p.Request.Command = []string{"go", "test", "."} }, true, "what was sent"},
	"more arguments":  {func(p *approval.CommandOrder) { p.Request.Command = append(p.Request.Command, "") }, true, "what was sent"},
	"joined":          {func(p *approval.CommandOrder) { p.Request.Command = []string{"go", "test ./..."} }, true, "what was sent"},
	"program":         {func(p *approval.CommandOrder) { p.Request.Command = []string{"./go", "test", "./..."} }, true, "what was sent"},
	"terminal":        {func(p *approval.CommandOrder) { p.Request.TTY = true }, true, "what was sent"},
	"folder":          {func(p *approval.CommandOrder) { p.Request.Dir = "sub" }, true, "what was sent"},
	"named workspace": {func(p *approval.CommandOrder) { p.Request.Workspace = "x" }, true, "what was sent"},
	"profile":         {func(p *approval.CommandOrder) { p.Workspace.Profile = writ.ReadOnly }, false, "the workspace's profile"},
	"environment":     {func(p *approval.CommandOrder) { p.Workspace.Environment = "x" }, false, "environment"},
	"environment kind": {func(p *approval.CommandOrder) {
		p.Workspace.EnvironmentKind = writ.EnvironmentContainer
	}, false, "environment"},
	"network":     {func(p *approval.CommandOrder) { p.Workspace.Network = writ.NetworkEnabled }, false, "network"},
	"rules":       {func(p *approval.CommandOrder) { p.Workspace.Rules.DenyRead = nil }, false, "rules about paths"},
	"rule's kind": {func(p *approval.CommandOrder) { p.Workspace.Rules = writ.PathRules{DenyWrite: []string{".env"}} }, false, "rules about paths"},
}

func TestPA07_Scenario119_ACommandApprovalCoversExactlyWhatItWasAskedFor(t *testing.T) {
	p := testCommand(writ.ApprovalsConfirm)
	a := approval.RequestCommand(p, hold(writ.Need{}), start, ttl)
	if err := approval.CoversCommand(a, p, policy1); err != nil {
		t.Errorf("what it was asked for: %v", err)
	}
	seen := map[writ.Digest]string{a.Digest: "itself"}
	for name, tt := range commandChanges {
		t.Run(name, func(t *testing.T) {
			p := testCommand(writ.ApprovalsConfirm)
			tt.change(&p)
			wantError(t, approval.CoversCommand(a, p, policy1), writ.Conflict, "changed since approval "+string(a.ID), tt.moved, "needs a new one")
			if same := approval.CommandKey(p) == a.Request; same == tt.request {
				t.Errorf("it shares the open approval: %v, want %v", same, !tt.request)
			}
			d := approval.BindCommand(p, policy1)
			if old, ok := seen[d]; ok {
				t.Errorf("%s and %s have one digest", name, old)
			}
			seen[d] = name
		})
	}
	wantError(t, approval.CoversCommand(a, p, writ.DigestOf([]byte("policy 2"))), writ.Conflict, "the policy")
	forged := a
	forged.Digest = approval.BindCommand(p, "x")
	wantError(t, approval.CoversCommand(forged, p, policy1), writ.Conflict, "or the approval itself")

	// Who may decide is asked for apart; the same request again is the same.
	p.Workspace.Approvals = writ.ApprovalsReview
	if err := approval.CoversCommand(a, p, policy1); err != nil || approval.CommandKey(p) != a.Request {
		t.Errorf("another mode of the workspace: %v", err)
	}
}

func TestBindCommandKeepsItsFieldsApart(t *testing.T) {
	seen := map[writ.Digest]string{}
	for _, f := range []struct {
		argv, deny []string
		dir        string
	}{
		{[]string{"a", "b"}, nil, "c"}, {[]string{"a"}, []string{"b"}, "c"}, {[]string{"a", "b", "c"}, nil, ""}, {[]string{"ab"}, nil, "c"},
		{[]string{"a", "", "b"}, nil, "c"}, {[]string{"a b"}, nil, "c"}, {[]string{"b", "a"}, nil, "c"}, {nil, []string{"a", "b"}, "c"}, {},
		{[]string{"a\xff"}, nil, "c"}, {[]string{"a\ufffd"}, nil, "c"}, // one fingerprint, as JSON knows no \xff
	} {
		p := testCommand(writ.ApprovalsReview)
		p.Request.Command, p.Request.Dir, p.Workspace.Rules.DenyRead = f.argv, f.dir, f.deny
		d := approval.BindCommand(p, policy1)
		if old, ok := seen[d]; ok {
			t.Errorf("%q and %s have one digest", f, old)
		}
		seen[d] = fmt.Sprintf("%q", f)
	}
}
