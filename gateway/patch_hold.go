package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"writ"
	"writ/approval"
	"writ/store"
)

// askedAgain is a granted hold that a fresh one replaces, and why.
type askedAgain struct {
	old writ.Approval
	why string
}

// hold opens a hold for o, or finds the open one, and answers it as an error.
func (w *Workspaces) hold(ctx context.Context, o patchOrder, d writ.Decision, mode writ.ApprovalMode, again *askedAgain) error {
	a, err := w.openHold(ctx, o, d, mode, again)
	if err != nil {
		return err
	}
	return heldBy(a, o.who.Ref())
}

// heldBy is the error that says to who that a must be decided first.
func heldBy(a writ.Approval, who writ.Ref) *writ.Held {
	self := a.Call.Mode == writ.ApprovalsConfirm && a.Requester == who
	next := fmt.Sprintf("an operator decides it (writ approvals show %s)", a.ID)
	switch {
	case a.State != writ.ApprovalPending:
		next = fmt.Sprintf("it is %s already", a.State)
	case self:
		next = "ask your user, then grant or deny it with approval_resolve"
	}
	return &writ.Held{Approval: a.ID, Self: self, Err: &writ.Error{
		Kind: writ.Conflict, Code: codeApprovalRequired, Op: "apply patch",
		Msg: fmt.Sprintf("nothing was changed: %s; approval %s waits: %s, then carry it out with operation_resume", a.Reason, a.ID, next),
	}}
}

// openHold answers the hold that is open for o, or opens one that binds what the files
// are and would be. An error of planning is the patch's own: nobody is asked about what
// cannot be done.
func (w *Workspaces) openHold(ctx context.Context, o patchOrder, d writ.Decision, mode writ.ApprovalMode, again *askedAgain) (a writ.Approval, err error) {
	p := approval.PatchOrder{
		Request: o.req, Workspace: o.ws, Requester: o.who.Ref(), Identity: identityOf(o.who), Mode: mode,
	}
	if again == nil {
		if a, err = w.activeHold(ctx, approval.PatchKey(p)); writ.KindOf(err) != writ.NotFound {
			return a, err
		}
	}
	if p.Plan, err = w.files.Plan(ctx, o.ws, o.req); err != nil {
		return a, err
	}
	if d.Effect != writ.Hold {
		d.Reason = fmt.Sprintf("workspace %s wants a confirmation of each change", o.ws.ID)
		if mode == writ.ApprovalsReview {
			d.Reason = fmt.Sprintf("workspace %s wants a review of each change", o.ws.ID)
		}
		d.Rules = nil
	}
	fresh := approval.RequestPatch(p, d, writ.Now(), w.g.opt.ApprovalTTL)
	if again != nil {
		fresh.Replaces = again.old.ID
		fresh.Reason = fmt.Sprintf("%s (%s)", d.Reason, again.why)
	}
	refused := writ.Decision{}
	err = w.g.db.Update(ctx, func(tx *store.Tx) error {
		if refused, err = w.storeHold(ctx, tx, o, d, fresh, p.Plan, again); err != nil || refused.Effect == writ.Deny {
			return err
		}
		return w.g.record(ctx, tx, requested(fresh))
	})
	switch {
	case writ.KindOf(err) == writ.Conflict && again == nil:
		return w.activeHold(ctx, fresh.Request) // another call opened the same meanwhile
	case err != nil:
		return a, err
	case refused.Effect == writ.Deny:
		return a, w.refuse(ctx, o.who, o.ws, writ.ActionPatch, o.paths, refused)
	}
	return fresh, nil
}

// activeHold is the hold that is open for a request, or NotFound. One whose time is over
// ends now, if that was not noticed yet: nobody could decide it, or carry it out.
func (w *Workspaces) activeHold(ctx context.Context, request writ.Digest) (a writ.Approval, err error) {
	find := func() error {
		return w.g.db.View(ctx, func(tx *store.Tx) error {
			a, err = tx.ActiveApproval(ctx, request)
			return err
		})
	}
	if err = find(); err != nil || writ.Now().Before(a.Expires) {
		return a, err
	}
	if err = w.g.Expire(ctx, a.ID); err == nil {
		err = find()
	}
	return a, err
}

// storeHold stores a fresh hold with what an approver reads, unless nobody could
// decide it: then that is the decision.
func (w *Workspaces) storeHold(ctx context.Context, tx *store.Tx, o patchOrder, d writ.Decision, fresh writ.Approval, plan writ.PatchPlan, again *askedAgain) (refused writ.Decision, err error) {
	if fresh.Call.Mode == writ.ApprovalsReview {
		if err := w.g.checkApprovers(ctx, tx, fresh, &d); err != nil || d.Effect == writ.Deny {
			return d, err
		}
	}
	if err := w.g.checkHeld(ctx, tx, fresh.Tenant, fresh.Identity); err != nil {
		return refused, err
	}
	if again != nil {
		if err := w.endHold(ctx, tx, again.old, again.why); err != nil {
			return refused, err
		}
	}
	if err := tx.InsertApproval(ctx, fresh); err != nil {
		return refused, err
	}
	request, err := json.Marshal(heldRequest{o.req, o.req.Key})
	if err != nil {
		return refused, fmt.Errorf("encode held patch: %w", err)
	}
	shown, err := json.Marshal(plan)
	if err != nil {
		return refused, fmt.Errorf("encode plan: %w", err)
	}
	if err := tx.PutApprovalBody(ctx, fresh.ID, store.BodyPatch, request); err != nil {
		return refused, err
	}
	if err := tx.PutApprovalBody(ctx, fresh.ID, store.BodyPlan, shown); err != nil {
		return refused, err
	}
	return refused, tx.Enqueue(ctx, store.Job{Kind: store.JobExpire, Approval: fresh.ID, At: fresh.Expires})
}

// heldRequest is a request as it waits: with its key, which is not part of what it does.
type heldRequest struct {
	writ.PatchRequest
	Key string `json:"operation_key"`
}

// held reads what waits with a. It is NotFound when that was deleted.
func held(ctx context.Context, tx *store.Tx, a writ.Approval) (req writ.PatchRequest, plan writ.PatchPlan, err error) {
	var h heldRequest
	for name, into := range map[string]any{store.BodyPatch: &h, store.BodyPlan: &plan} {
		b, err := tx.ApprovalBody(ctx, a.ID, name)
		if err != nil {
			return req, plan, err
		}
		if err := json.Unmarshal(b, into); err != nil {
			return req, plan, fmt.Errorf("decode %s of %s: %w", name, a.ID, err)
		}
	}
	req = h.PatchRequest
	req.Key = h.Key
	return req, plan, nil
}

// endHold cancels a, and deletes what was held.
func (w *Workspaces) endHold(ctx context.Context, tx *store.Tx, a writ.Approval, reason string) error {
	if err := w.g.voidApproval(ctx, tx, &a, reason); err != nil {
		return err
	}
	return scrub(ctx, tx, a)
}

// scrub deletes what a held: of an approval that is over only digests and names remain
// (spec/02 §9 "Scrubbing").
func scrub(ctx context.Context, tx *store.Tx, a writ.Approval) error {
	_, err := tx.DeleteApprovalBodies(ctx, a.ID, store.BodyPatch, store.BodyPlan)
	return err
}

// CreateApproval opens a hold for req, also where no approval is asked for, or answers
// the one that is open for the same (spec/02 §9).
func (w *Workspaces) CreateApproval(ctx context.Context, who writ.Principal, _ string, req writ.PatchRequest) (a writ.Approval, err error) {
	if err := w.enter(); err != nil {
		return a, err
	}
	defer w.leave()
	o, err := w.patchOrder(ctx, who, req)
	if err != nil {
		return a, err
	}
	d := w.decide(who, o.ws, writ.ActionPatch, o.paths)
	if d.Effect == writ.Deny {
		return a, w.refuse(ctx, who, o.ws, writ.ActionPatch, o.paths, d)
	}
	if _, err := w.earlier(ctx, o); err != nil {
		return a, err // the key is another request's: what is granted could never be carried out
	}
	mode := holds(o.ws, d)
	if mode == writ.ApprovalsOff {
		mode = writ.ApprovalsConfirm
	}
	return w.openHold(ctx, o, d, mode, nil)
}

// ResolveApproval is who's verdict on a held patch: APPROVAL_CONFLICT when it is not
// pending, UNAUTHORIZED when who may not decide it.
func (w *Workspaces) ResolveApproval(ctx context.Context, who writ.Principal, id writ.ApprovalID, grant bool) (writ.Approval, error) {
	if _, err := w.heldPatch(ctx, who, id); err != nil {
		return writ.Approval{}, err
	}
	v := writ.VoteRequest{Verdict: writ.Refuse}
	if grant {
		v.Verdict = writ.Grant
	}
	a, err := w.g.Vote(ctx, who, id, v)
	switch writ.KindOf(err) {
	case writ.Denied:
		err = &writ.Error{Kind: writ.Denied, Code: codeUnauthorized, Op: "decide approval", Msg: writ.Message(err), Err: err}
	case writ.Conflict:
		err = &writ.Error{Kind: writ.Conflict, Code: codeApprovalConflict, Op: "decide approval", Msg: writ.Message(err), Err: err}
	}
	return a, err
}

// heldPatch is the approval of a patch that who may see, or APPROVAL_NOT_FOUND.
func (w *Workspaces) heldPatch(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.Approval, error) {
	a, err := w.g.visibleApproval(ctx, who, id)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return a, err
	}
	if err != nil || a.Action != writ.ActionPatch {
		return writ.Approval{}, &writ.Error{Kind: writ.NotFound, Code: codeApprovalNotFound, Op: "read approval", Msg: fmt.Sprintf("there is no held patch %.80q", string(id)), Err: err}
	}
	return a, nil
}

// showPatch is a with what its approver reads, which is empty when it was deleted.
func (g *Gateway) showPatch(ctx context.Context, a writ.Approval) (writ.ApprovalView, error) {
	v := writ.ApprovalView{Approval: a}
	var req writ.PatchRequest
	var plan writ.PatchPlan
	err := g.db.View(ctx, func(tx *store.Tx) (err error) {
		req, plan, err = held(ctx, tx, a)
		return err
	})
	switch {
	case writ.KindOf(err) == writ.NotFound && a.State.Terminal():
		return v, nil
	case err != nil:
		return v, err
	}
	v.Text = approval.RenderPatch(a, req, plan)
	v.Shown = writ.DigestOf([]byte(v.Text))
	return v, nil
}

// settlePatchVote stores a vote on a patch. A granted one waits until it is resumed.
func (g *Gateway) settlePatchVote(ctx context.Context, tx *store.Tx, a writ.Approval, who writ.Principal) error {
	if err := swapApproval(ctx, tx, a, writ.ApprovalPending); err != nil {
		return err
	}
	if a.State.Terminal() {
		if err := scrub(ctx, tx, a); err != nil {
			return err
		}
	}
	return g.record(ctx, tx, voted(a, who)...)
}

// expirePatch ends the hold of a patch whose time is over, granted or not.
func (g *Gateway) expirePatch(ctx context.Context, tx *store.Tx, a writ.Approval) error {
	from, reason := a.State, "nobody decided in time"
	switch from {
	case writ.ApprovalPending:
	case writ.ApprovalGranted:
		reason = "it was granted, and nobody resumed it in time"
	default:
		return nil
	}
	if err := approval.Expire(&a, writ.Now()); err != nil {
		return err
	}
	if err := swapApproval(ctx, tx, a, from); err != nil {
		return err
	}
	if err := scrub(ctx, tx, a); err != nil {
		return err
	}
	return g.record(ctx, tx, settled(a, writ.Ref{}, reason))
}
