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

// heldOrder is a call that waits for approval, with all that is kept of it until then.
type heldOrder struct {
	who   writ.Principal
	ws    writ.Workspace
	d     writ.Decision
	paths []string // that it names, for the record of a refusal
	fresh writ.Approval
	// bodies are what was asked for and what an approver reads, by their names in the
	// store.
	bodies map[string][]byte
	again  *askedAgain // nil when it was not asked before
}

// wanted is d, in the words of a workspace that wants an approval where no rule does.
func wanted(d writ.Decision, ws writ.Workspace, mode writ.ApprovalMode, what string) writ.Decision {
	if d.Effect == writ.Hold {
		return d
	}
	word := "confirmation"
	if mode == writ.ApprovalsReview {
		word = "review"
	}
	d.Reason, d.Rules = fmt.Sprintf("workspace %s wants a %s of each %s", ws.ID, word, what), nil
	return d
}

// maxHolds bounds how often it is tried to open a hold while others open the same and
// have it end.
const maxHolds = 8

// openHold opens a hold, or answers the one that is open for the same.
func (w *Workspaces) openHold(ctx context.Context, h heldOrder) (a writ.Approval, err error) {
	for range maxHolds {
		if a, err = w.tryHold(ctx, h); writ.KindOf(err) != writ.NotFound {
			break
		}
	}
	return a, err
}

// tryHold is openHold but for NotFound, when there was one for the same that is over now.
func (w *Workspaces) tryHold(ctx context.Context, h heldOrder) (writ.Approval, error) {
	if h.again != nil {
		h.fresh.Replaces = h.again.old.ID
		h.fresh.Reason = fmt.Sprintf("%s (%s)", h.d.Reason, h.again.why)
	}
	refused := writ.Decision{}
	err := w.g.db.Update(ctx, func(tx *store.Tx) (err error) {
		if refused, err = w.storeHold(ctx, tx, h); err != nil || refused.Effect == writ.Deny {
			return err
		}
		return w.g.record(ctx, tx, requested(h.fresh))
	})
	switch {
	case writ.KindOf(err) == writ.Conflict && h.again == nil:
		return w.activeHold(ctx, h.fresh.Request) // another call opened the same meanwhile
	case err != nil:
		return writ.Approval{}, err
	case refused.Effect == writ.Deny:
		return writ.Approval{}, w.refuse(ctx, h.who, h.ws, h.fresh.Action, h.paths, refused)
	}
	return h.fresh, nil
}

// storeHold stores a fresh hold with what an approver reads, unless nobody could
// decide it: then that is the decision.
func (w *Workspaces) storeHold(ctx context.Context, tx *store.Tx, h heldOrder) (refused writ.Decision, err error) {
	if h.fresh.Call.Mode == writ.ApprovalsReview {
		d := h.d
		if err := w.g.checkApprovers(ctx, tx, h.fresh, &d); err != nil || d.Effect == writ.Deny {
			return d, err
		}
	}
	if err := w.g.checkHeld(ctx, tx, h.fresh.Tenant, h.fresh.Identity); err != nil {
		return refused, err
	}
	if h.again != nil {
		if err := w.endHold(ctx, tx, h.again.old, h.again.why); err != nil {
			return refused, err
		}
	}
	if err := tx.InsertApproval(ctx, h.fresh); err != nil {
		return refused, err
	}
	for name, body := range h.bodies {
		if err := tx.PutApprovalBody(ctx, h.fresh.ID, name, body); err != nil {
			return refused, err
		}
	}
	return refused, tx.Enqueue(ctx, store.Job{Kind: store.JobExpire, Approval: h.fresh.ID, At: h.fresh.Expires})
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
		Kind: writ.Conflict, Code: codeApprovalRequired, Op: string(a.Action),
		Msg: fmt.Sprintf("nothing was done: %s; approval %s waits: %s, then carry it out with operation_resume", a.Reason, a.ID, next),
	}}
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
	_, err := tx.DeleteApprovalBodies(ctx, a.ID, store.BodyPatch, store.BodyPlan, store.BodyCommand, store.BodyInput)
	return err
}

// ResolveApproval is who's verdict on a held call: APPROVAL_CONFLICT when it is not
// pending, UNAUTHORIZED when who may not decide it.
func (w *Workspaces) ResolveApproval(ctx context.Context, who writ.Principal, id writ.ApprovalID, grant bool) (writ.Approval, error) {
	if _, err := w.heldCall(ctx, who, id); err != nil {
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

// heldCall is the approval of a tool's call that who may see, or APPROVAL_NOT_FOUND.
func (w *Workspaces) heldCall(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.Approval, error) {
	a, err := w.g.visibleApproval(ctx, who, id)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return a, err
	}
	if err != nil || a.Call == nil {
		return writ.Approval{}, &writ.Error{Kind: writ.NotFound, Code: codeApprovalNotFound, Op: "read approval", Msg: fmt.Sprintf("there is no held call %.80q", string(id)), Err: err}
	}
	return a, nil
}

// showCall is a with what its approver reads, which is empty when it was deleted.
func (g *Gateway) showCall(ctx context.Context, a writ.Approval) (writ.ApprovalView, error) {
	v := writ.ApprovalView{Approval: a}
	err := g.db.View(ctx, func(tx *store.Tx) (err error) {
		v.Text, err = renderHeld(ctx, tx, a)
		return err
	})
	switch {
	case writ.KindOf(err) == writ.NotFound && a.State.Terminal():
		return v, nil
	case err != nil:
		return v, err
	}
	v.Shown = writ.DigestOf([]byte(v.Text))
	return v, nil
}

func renderHeld(ctx context.Context, tx *store.Tx, a writ.Approval) (string, error) {
	switch a.Action {
	case writ.ActionPatch:
		req, plan, err := heldPatch(ctx, tx, a)
		if err != nil {
			return "", err
		}
		return approval.RenderPatch(a, req, plan), nil
	case writ.ActionExec:
		c, err := heldBody[heldCommand](ctx, tx, a, store.BodyCommand)
		if err != nil {
			return "", err
		}
		return approval.RenderCommand(a, c.Request, c.Workspace, c.Reading), nil
	case writ.ActionInput:
		in, err := heldBody[heldInput](ctx, tx, a, store.BodyInput)
		if err != nil {
			return "", err
		}
		return approval.RenderInput(a, in.Process, in.Data, in.End), nil
	}
	return "", fmt.Errorf("approval %s is for %q, which nothing holds", a.ID, a.Action)
}

// heldBody reads what waits with a under a name. It is NotFound when it was deleted.
func heldBody[T any](ctx context.Context, tx *store.Tx, a writ.Approval, name string) (v T, err error) {
	b, err := tx.ApprovalBody(ctx, a.ID, name)
	if err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("decode %s of %s: %w", name, a.ID, err)
	}
	return v, nil
}

// readHeld reads what waits with a for who is about to carry it out, to whom it is
// ambiguous when that is gone.
func (g *Gateway) readHeld(ctx context.Context, a writ.Approval, read func(*store.Tx) error) error {
	err := g.db.View(ctx, read)
	if writ.KindOf(err) == writ.NotFound {
		return ambiguous(a, "what it held is gone")
	}
	return err
}

// settleCallVote stores a vote on a call. A granted one waits until it is resumed.
func (g *Gateway) settleCallVote(ctx context.Context, tx *store.Tx, a writ.Approval, who writ.Principal) error {
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

// expireCall ends the hold of a call whose time is over, granted or not. One that
// somebody has begun to carry out, and that still waits for its turn, is then not carried
// out: it can begin only while it is queued.
func (g *Gateway) expireCall(ctx context.Context, tx *store.Tx, a writ.Approval) error {
	from, reason := a.State, "nobody decided in time"
	switch from {
	case writ.ApprovalPending:
	case writ.ApprovalGranted, writ.ApprovalQueued:
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
