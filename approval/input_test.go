package approval_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/approval"
)

func testInput(mode writ.ApprovalMode) approval.InputOrder {
	return approval.InputOrder{
		Process: writ.Process{
			Workspace: "site", Root: "/srv/site", Tenant: "acme", By: coder.Ref(), Fingerprint: writ.DigestOf([]byte("python3 -i")),
			Program: "python3", TTY: true, Approval: "appr-1",
			ProcessStatus: writ.ProcessStatus{ID: "proc-1", State: writ.ProcessRunning, Started: start},
		},
		Data: []byte("print(1)\n"),
		Workspace: writ.Workspace{
			ID: "site", Tenant: "acme", Root: "/srv/site", Profile: writ.WorkspaceWrite,
			EnvironmentKind: writ.EnvironmentHost, Network: writ.NetworkRestricted, Approvals: mode,
		},
		Requester: coder.Ref(), Identity: "coder", Mode: mode,
	}
}

func TestRequestInput(t *testing.T) {
	p, d := testInput(writ.ApprovalsReview), hold(writ.Need{Grants: 2, Roles: []string{"security"}})
	a := approval.RequestInput(p, d, start, ttl)
	want := writ.Approval{
		ID: a.ID, Action: writ.ActionInput, Tenant: "acme", Identity: "coder", Requester: coder.Ref(), State: writ.ApprovalPending,
		Reason: "runs code", Rules: d.Rules, Need: writ.Need{Grants: 2, Roles: []string{"security"}},
		Call: &writ.HeldCall{Workspace: "site", Root: "/srv/site", Mode: writ.ApprovalsReview, Process: "proc-1"},
		Spec: approval.InputDigest("proc-1", []byte("print(1)\n"), false), Policy: policy1,
		Digest: approval.BindInput(p, policy1), Request: approval.InputKey(p),
		Created: start, Expires: start.Add(ttl),
	}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Error(diff)
	}
}

// inputChanges are all that may differ between two orders, each with whether it is another
// request, and with the words of what moved.
var inputChanges = map[string]struct {
	change  func(p *approval.InputOrder)
	request bool
	moved   string
}{
	"requester":           {func(p *approval.InputOrder) { p.Requester.ID = "x" }, true, "who asks: the approval is for agent:coder"},
	"kind":                {func(p *approval.InputOrder) { p.Requester.Kind = writ.KindUser }, true, "who asks"},
	"identity":            {func(p *approval.InputOrder) { p.Identity = "x" }, true, "who asks"},
	"tenant":              {func(p *approval.InputOrder) { p.Workspace.Tenant = "x" }, true, "the workspace: the approval is for site of tenant acme"},
	"workspace":           {func(p *approval.InputOrder) { p.Workspace.ID = "x" }, true, "the workspace: the approval is for site"},
	"root":                {func(p *approval.InputOrder) { p.Workspace.Root = "/srv/other" }, true, "the workspace's root"},
	"process":             {func(p *approval.InputOrder) { p.Process.ID = "proc-2" }, true, "the process: the approval is for proc-1"},
	"data":                {func(p *approval.InputOrder) { p.Data = []byte("print(2)\n") }, true, "what would be written"},
	"more data":           {func(p *approval.InputOrder) { p.Data = append(p.Data, 0) }, true, "what would be written"},
	"nothing":             {func(p *approval.InputOrder) { p.Data = nil }, true, "what would be written"},
	"end":                 {func(p *approval.InputOrder) { p.Close = true }, true, "what would be written"},
	"program":             {func(p *approval.InputOrder) { p.Process.Program = "bash" }, false, "what the process was started as"},
	"command":             {func(p *approval.InputOrder) { p.Process.Fingerprint = "x" }, false, "what the process was started as"},
	"terminal":            {func(p *approval.InputOrder) { p.Process.TTY = false }, false, "what the process was started as"},
	"process's workspace": {func(p *approval.InputOrder) { p.Process.Workspace = "x" }, false, "what the process was started as"},
	"process's root":      {func(p *approval.InputOrder) { p.Process.Root = "/x" }, false, "what the process was started as"},
}

func TestPA07_AnInputApprovalCoversExactlyWhatItWasAskedFor(t *testing.T) {
	p := testInput(writ.ApprovalsConfirm)
	a := approval.RequestInput(p, hold(writ.Need{}), start, ttl)
	if err := approval.CoversInput(a, p, policy1); err != nil {
		t.Errorf("what it was asked for: %v", err)
	}
	for name, tt := range inputChanges {
		t.Run(name, func(t *testing.T) {
			p := testInput(writ.ApprovalsConfirm)
			tt.change(&p)
			wantError(t, approval.CoversInput(a, p, policy1), writ.Conflict, "changed since approval "+string(a.ID), tt.moved, "needs a new one")
			if same := approval.InputKey(p) == a.Request; same == tt.request {
				t.Errorf("it shares the open approval: %v, want %v", same, !tt.request)
			}
		})
	}
	wantError(t, approval.CoversInput(a, p, writ.DigestOf([]byte("policy 2"))), writ.Conflict, "the policy")
	forged := a
	forged.Digest = approval.BindInput(p, "x")
	wantError(t, approval.CoversInput(forged, p, policy1), writ.Conflict, "or the approval itself")

	// The process goes on, and was begun in what its workspace was then.
	p.Process.State, p.Process.Total, p.Workspace.Network = writ.ProcessExited, 7, writ.NetworkEnabled
	if err := approval.CoversInput(a, p, policy1); err != nil {
		t.Errorf("what changes while it runs: %v", err)
	}
}

func TestBindInputKeepsItsFieldsApart(t *testing.T) {
	seenBind, seenSpec := map[writ.Digest]string{}, map[writ.Digest]string{}
	for _, f := range [][2]string{{"a", "b"}, {"ab", ""}, {"", "ab"}, {"b", "a"}, {"a\xff", "b"}, {"a\ufffd", "b"}, {}} {
		p := testInput(writ.ApprovalsReview)
		p.Process.ID, p.Data = writ.ProcessID(f[0]), []byte(f[1])
		for d, seen := range map[writ.Digest]map[writ.Digest]string{
			approval.BindInput(p, policy1): seenBind, approval.InputDigest(p.Process.ID, p.Data, false): seenSpec,
		} {
			if old, ok := seen[d]; ok {
				t.Errorf("%q and %s have one digest", f, old)
			}
			seen[d] = fmt.Sprintf("%q", f)
		}
	}
}
