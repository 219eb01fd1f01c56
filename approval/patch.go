package approval

import (
	"fmt"
	"time"

	"writ"
)

// PatchOrder is one patch of one workspace as it stands now: what was sent, by whom,
// and what it would do to the files there are.
type PatchOrder struct {
	Request   writ.PatchRequest
	Workspace writ.Workspace // as it is registered now
	Requester writ.Ref
	Identity  writ.IdentityID // empty when the owner of the data folder asks
	// Mode says who decides. With writ.ApprovalsConfirm the requester may, too; with
	// any other only operators who did not ask.
	Mode writ.ApprovalMode
	Plan writ.PatchPlan
}

func (p PatchOrder) call() call { return call{p.Requester, p.Identity, p.Workspace, p.Mode} }

// RequestPatch is a new pending approval for a patch, which d held. It expires ttl
// after now, granted or not. A decision without a need asks for one grant. The caller
// keeps p.Request and p.Plan, which RenderPatch shows.
func RequestPatch(p PatchOrder, d writ.Decision, now time.Time, ttl time.Duration) writ.Approval {
	a := p.call().request(writ.ActionPatch, d, now, ttl)
	a.Call.Key, a.Call.Plan = p.Request.Key, p.Plan.Digest()
	a.Spec, a.Request, a.Digest = p.Request.Fingerprint(), PatchKey(p), BindPatch(p, d.Policy)
	return a
}

// PatchKey says which requests share one open approval: those of one requester, of one
// content, under one key, for one workspace at one root (spec/02 §9.1, §16 item 13).
// What the files hold is not in it: a request that is sent again after they moved
// finds the approval that it moved away from.
func PatchKey(p PatchOrder) writ.Digest {
	return bind("writ patch request key v1\n", string(p.Workspace.Tenant), string(p.Workspace.ID), p.Workspace.Root,
		string(p.Request.Fingerprint()), p.Request.Key, string(p.Requester.Kind), p.Requester.ID)
}

// BindPatch is the digest that an approval of a patch covers, made as Bind is: who asks,
// for which workspace at which root, under which key, for what, with the files in which
// versions before and after, under which version of the policies.
func BindPatch(p PatchOrder, policy writ.Digest) writ.Digest {
	return bind("writ patch approval v1\n", append(p.call().fields(), p.Request.Key,
		string(p.Request.Fingerprint()), string(p.Plan.Digest()), string(policy))...)
}

// CoversPatch reports whether a is for exactly p under that version of the policies.
// Else it is a Conflict that says what moved. An approval that its requester could give
// does not cover what another must agree to now; the other way round it does.
func CoversPatch(a writ.Approval, p PatchOrder, policy writ.Digest) error {
	c := p.call()
	if a.Action != writ.ActionPatch || !isCall(a) {
		return moved(a, "what is asked for: the approval is not for a patch")
	}
	same := a.Digest == BindPatch(p, policy)
	if same && !c.another(a) {
		return nil
	}
	what := c.moved(a)
	switch {
	case what != "":
	case a.Call.Key != p.Request.Key:
		what = fmt.Sprintf("the operation key: the approval is for %q", a.Call.Key)
	case a.Spec != p.Request.Fingerprint():
		what = fmt.Sprintf("what was sent: the approval is for request %.12s", a.Spec)
	case a.Call.Plan != p.Plan.Digest():
		what = fmt.Sprintf("the files: the approval is for plan %.12s, and the patch would do something else now", a.Call.Plan)
	case a.Policy != policy:
		what = fmt.Sprintf(movedPolicy, a.Policy)
	case same:
		what = movedAgree
	default:
		what = movedNothing
	}
	return moved(a, what)
}
