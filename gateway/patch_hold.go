package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"writ"
	"writ/approval"
	"writ/store"
)

// hold opens a hold for o, or finds the open one, and answers it as an error.
func (w *Workspaces) hold(ctx context.Context, o patchOrder, d writ.Decision, mode writ.ApprovalMode, again *askedAgain) error {
	a, err := w.holdPatch(ctx, o, d, mode, again)
	if err != nil {
		return err
	}
	return heldBy(a, o.who.Ref())
}

// holdPatch answers the hold that is open for o, or opens one that binds what the files
// are and would be. An error of planning is the patch's own: nobody is asked about what
// cannot be done.
func (w *Workspaces) holdPatch(ctx context.Context, o patchOrder, d writ.Decision, mode writ.ApprovalMode, again *askedAgain) (a writ.Approval, err error) {
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
	d = wanted(d, o.ws, mode, "change")
	h := heldOrder{
		who: o.who, ws: o.ws, d: d, paths: o.paths, again: again,
		fresh: approval.RequestPatch(p, d, writ.Now(), w.g.opt.ApprovalTTL), bodies: map[string][]byte{},
	}
	for name, v := range map[string]any{store.BodyPatch: heldRequest{o.req, o.req.Key}, store.BodyPlan: p.Plan} {
		if h.bodies[name], err = json.Marshal(v); err != nil {
			return a, fmt.Errorf("encode held %s: %w", name, err)
		}
	}
	return w.openHold(ctx, h)
}

// heldRequest is a request as it waits: with its key, which is not part of what it does.
type heldRequest struct {
	writ.PatchRequest
	Key string `json:"operation_key"`
}

// heldPatch reads the patch that waits with a. It is NotFound when that was deleted.
func heldPatch(ctx context.Context, tx *store.Tx, a writ.Approval) (req writ.PatchRequest, plan writ.PatchPlan, err error) {
	h, err := heldBody[heldRequest](ctx, tx, a, store.BodyPatch)
	if err == nil {
		plan, err = heldBody[writ.PatchPlan](ctx, tx, a, store.BodyPlan)
	}
	req = h.PatchRequest
	req.Key = h.Key
	return req, plan, err
}

// CreateApproval opens a hold for a call, also where no approval is asked for, or
// answers the one that is open for the same (spec/02 §9).
func (w *Workspaces) CreateApproval(ctx context.Context, who writ.Principal, call writ.ToolCall) (a writ.Approval, err error) {
	if err := w.enter(); err != nil {
		return a, err
	}
	defer w.leave()
	switch {
	case call.Patch != nil:
		return w.createPatchApproval(ctx, who, *call.Patch)
	case call.Command != nil:
		return w.createCommandApproval(ctx, who, *call.Command)
	}
	return a, &writ.Error{Kind: writ.Invalid, Code: codeInvalidPatch, Op: "create approval", Msg: "there is no call to hold"}
}

func (w *Workspaces) createPatchApproval(ctx context.Context, who writ.Principal, req writ.PatchRequest) (a writ.Approval, err error) {
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
	return w.holdPatch(ctx, o, d, explicit(holds(o.ws, d)), nil)
}

// explicit is the mode of a hold that was asked for where mode is what is wanted.
func explicit(mode writ.ApprovalMode) writ.ApprovalMode {
	if mode == writ.ApprovalsOff {
		return writ.ApprovalsConfirm
	}
	return mode
}
