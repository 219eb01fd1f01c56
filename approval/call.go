package approval

import (
	"time"

	"writ"
)

// call is what the orders for all tools have: who calls, where, and who decides.
type call struct {
	requester writ.Ref
	identity  writ.IdentityID
	workspace writ.Workspace
	mode      writ.ApprovalMode
}

// isCall reports whether a is for a tool's call, and says what it must of it.
func isCall(a writ.Approval) bool {
	switch a.Action {
	case writ.ActionPatch, writ.ActionExec, writ.ActionInput:
		return a.Call != nil
	}
	return false
}

// request is a new pending approval for the call, which does not say yet what it covers.
func (c call) request(action writ.Action, d writ.Decision, now time.Time, ttl time.Duration) writ.Approval {
	a := pending(d, now, ttl)
	a.ID, a.Action = writ.NewApprovalID(), action
	a.Tenant, a.Identity, a.Requester = c.workspace.Tenant, c.identity, c.requester
	a.Call = &writ.HeldCall{Workspace: c.workspace.ID, Root: c.workspace.Root, Mode: c.mode}
	return a
}

// fields are those of a digest that say who calls, and where.
func (c call) fields() []string {
	return []string{
		string(c.requester.Kind), c.requester.ID, string(c.identity),
		string(c.workspace.Tenant), string(c.workspace.ID), c.workspace.Root,
	}
}

// moved says which of who calls and where is not as a has it; empty for neither. a is for
// a call.
func (c call) moved(a writ.Approval) string {
	switch {
	case a.Requester != c.requester || a.Identity != c.identity:
		return "who asks: the approval is for " + a.Requester.String()
	case a.Tenant != c.workspace.Tenant || a.Call.Workspace != c.workspace.ID:
		return "the workspace: the approval is for " + string(a.Call.Workspace) + " of tenant " + string(a.Tenant)
	case a.Call.Root != c.workspace.Root:
		return "the workspace's root: it is another folder now"
	}
	return ""
}

// another reports whether a could be given by its requester, and somebody else must agree
// to the call now.
func (c call) another(a writ.Approval) bool {
	return a.Call.Mode == writ.ApprovalsConfirm && c.mode != writ.ApprovalsConfirm && c.mode != writ.ApprovalsOff
}

// The words of what moved that all calls have.
const (
	movedPolicy  = "the policy: the approval is under version %.12s"
	movedAgree   = "who must agree: an operator who did not ask"
	movedNothing = "the approval itself: its digest is not over what it says"
)
