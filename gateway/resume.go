package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ"
	"writ/approval"
	"writ/store"
)

// Resume carries out what a granted hold waits with, at most once; once that is over it
// answers again what it answered (spec/02 §9). Errors are those of Patch and
// APPROVAL_NOT_FOUND, APPROVAL_CONFLICT when it is not granted, or is being carried out,
// APPROVAL_AMBIGUOUS when it cannot be said how it ended.
//
// The files are looked at again: when they are not as they were when the hold was
// opened, a new one is opened, which says what moved, and is the answer.
func (w *Workspaces) Resume(ctx context.Context, who writ.Principal, id writ.ApprovalID) (a writ.Approval, op writ.Operation, err error) {
	if err := w.enter(); err != nil {
		return a, op, err
	}
	defer w.leave()
	if _, err := w.heldPatch(ctx, who, id); err != nil {
		return a, op, err
	}
	if !w.take(string(id)) {
		return a, op, conflictOf(id, "approval %s is being carried out by another call", id)
	}
	defer w.drop(string(id))
	if a, err = w.heldPatch(ctx, who, id); err != nil { // as it is now that nobody else moves it
		return a, op, err
	}
	switch a.State {
	case writ.ApprovalConsumed:
		op, err = w.outcome(ctx, a)
	case writ.ApprovalGranted, writ.ApprovalQueued:
		op, err = w.resume(ctx, who, a)
	case writ.ApprovalResuming:
		op, err = w.reconcile(ctx, who, a)
	default:
		return a, op, conflictOf(id, "%s", approval.History(a))
	}
	if op.ID == "" && writ.KindOf(err) == writ.Conflict && writ.CodeOf(err) == "" {
		err = conflictOf(id, "%s: another server has it", writ.Message(err))
	}
	if err == nil {
		a, err = w.heldPatch(ctx, who, id)
	}
	return a, op, err
}

func conflictOf(id writ.ApprovalID, format string, args ...any) error {
	return &writ.Error{Kind: writ.Conflict, Code: codeApprovalConflict, Op: "resume " + string(id), Msg: fmt.Sprintf(format, args...)}
}

func ambiguous(a writ.Approval, why string) error {
	var err error = &writ.Error{Kind: writ.Conflict, Code: codeApprovalAmbiguous, Op: "resume " + string(a.ID), Msg: fmt.Sprintf("what approval %s was given for may have been done: %s", a.ID, why)}
	if op := a.Call.Operation; op != "" {
		err = &writ.OperationError{Operation: op, Err: err}
	}
	return err
}

// resume carries a granted hold out. It is decided again, by the rules and the registry
// of now, for its requester.
func (w *Workspaces) resume(ctx context.Context, who writ.Principal, a writ.Approval) (op writ.Operation, err error) {
	if a.State == writ.ApprovalGranted && !writ.Now().Before(a.Expires) {
		if err := w.g.Expire(ctx, a.ID); err != nil {
			return op, err
		}
		return op, conflictOf(a.ID, "approval %s was granted and expired unused at %s: send the patch again", a.ID, a.Expires.Format("15:04:05 MST"))
	}
	o := patchOrder{who: requesterOf(a), actor: who.Ref()}
	var plan writ.PatchPlan
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		o.req, plan, err = held(ctx, tx, a)
		return err
	})
	if writ.KindOf(err) == writ.NotFound {
		return op, ambiguous(a, "what it held is gone")
	}
	if err != nil {
		return op, err
	}
	if o.req.Fingerprint() != a.Spec || o.req.Key != a.Call.Key || plan.Digest() != a.Call.Plan {
		return op, w.voidHeld(ctx, a, "what is stored of it is not what was approved")
	}
	// Not who's registry alone: the workspace must be the requester's, too.
	if o.ws, err = w.registry.Get(o.who, a.Call.Workspace); err != nil {
		return op, err
	}
	if o.ws.Root != a.Call.Root {
		return op, conflictOf(a.ID, "approval %s is for %s, and workspace %s is another folder here", a.ID, a.Call.Root, o.ws.ID)
	}
	o.paths = pathsOf(o.req, o.ws, plan.Changes)
	if a.State == writ.ApprovalGranted {
		if err := w.queue(ctx, &a); err != nil {
			return op, err
		}
	}
	lease, err := w.leases.Acquire(ctx, o.ws.Root)
	if err != nil {
		return op, err // it stays queued, and can be resumed later
	}
	defer lease.Release()
	d := w.decide(o.who, o.ws, writ.ActionPatch, o.paths)
	if d.Effect == writ.Deny {
		return op, w.refuseResumed(ctx, o, a, d)
	}
	now, err := w.files.Plan(ctx, o.ws, o.req)
	if err != nil && notBegun(err) {
		return op, err
	}
	if err == nil && !satisfies(a, o, d, now) {
		return op, w.hold(ctx, o, d, stricter(holds(o.ws, d), a.Call.Mode), &askedAgain{a, movedFiles(a, plan, now)})
	}
	return w.carryOutHeld(ctx, o, a, d, err)
}

// satisfies reports whether what a was granted for, and with, is what would happen and
// is asked for now.
func satisfies(a writ.Approval, o patchOrder, d writ.Decision, now writ.PatchPlan) bool {
	policy := a.Policy // which matters where a rule holds
	if d.Effect == writ.Hold {
		policy = d.Policy
		if !approval.Meets(a, *d.Need) {
			return false
		}
	}
	return approval.CoversPatch(a, approval.PatchOrder{
		Request: o.req, Workspace: o.ws, Requester: o.who.Ref(), Identity: identityOf(o.who), Mode: holds(o.ws, d), Plan: now,
	}, policy) == nil
}

// voidHeld ends a hold that cannot be carried out, and answers why.
func (w *Workspaces) voidHeld(ctx context.Context, a writ.Approval, reason string) error {
	if err := w.g.db.Update(ctx, func(tx *store.Tx) error { return w.endHold(ctx, tx, a, reason) }); err != nil {
		return err
	}
	return conflictOf(a.ID, "approval %s is void: %s; send the patch again", a.ID, reason)
}

// carryOutHeld does what a was given for. fault, when it is not nil, is why the patch
// cannot be applied to the files as they are: that is recorded as how it ended.
func (w *Workspaces) carryOutHeld(ctx context.Context, o patchOrder, a writ.Approval, d writ.Decision, fault error) (op writ.Operation, err error) {
	op, done, replayed, err := w.begin(ctx, o, d, &a)
	switch {
	case writ.CodeOf(err) == codeKeyConflict:
		return op, w.consumeWith(ctx, a, "", err)
	case err != nil:
		return op, err
	case replayed: // the key was used meanwhile, for the same
		return op, w.consumeWith(ctx, a, op.ID, nil)
	}
	defer done()
	if fault != nil {
		op, err = w.ended(context.WithoutCancel(ctx), op, writ.PatchResult{}, fault)
	} else {
		op, err = w.carryOut(ctx, o, op, a.Call.Plan)
	}
	if op.Finished == nil { // it ended, and that could not be recorded (spec/02 §9)
		a.Call.Operation = op.ID
		return op, ambiguous(a, writ.Message(err))
	}
	return op, err
}

// requesterOf is who asked for a, without rights beyond its name: the registry of
// identities says which it has.
func requesterOf(a writ.Approval) writ.Principal {
	return writ.Principal{Kind: a.Requester.Kind, ID: a.Requester.ID, Tenant: a.Tenant}
}

func (w *Workspaces) queue(ctx context.Context, a *writ.Approval) error {
	if err := approval.Queue(a); err != nil {
		return err
	}
	return w.g.db.Update(ctx, func(tx *store.Tx) error {
		return swapApproval(ctx, tx, *a, writ.ApprovalGranted)
	})
}

// resuming moves a, in the transaction that puts its operation into the ledger.
func resuming(ctx context.Context, tx *store.Tx, a writ.Approval, op writ.OperationID) error {
	from := a.State
	if from == writ.ApprovalQueued {
		if err := approval.Resume(&a); err != nil {
			return err
		}
	}
	held := *a.Call
	held.Operation = op
	a.Call = &held
	return swapApproval(ctx, tx, a, from)
}

// consume ends the approval of an operation that is over, with it (spec/02 §15
// invariant 6).
func (w *Workspaces) consume(ctx context.Context, tx *store.Tx, op writ.Operation) error {
	a, err := tx.Approval(ctx, op.Approval)
	if err != nil {
		return err
	}
	if a.State != writ.ApprovalResuming {
		return nil // settled already
	}
	if err := approval.Consume(&a); err != nil {
		return err
	}
	if err := swapApproval(ctx, tx, a, writ.ApprovalResuming); err != nil {
		return err
	}
	return scrub(ctx, tx, a)
}

// consumeWith ends a, which was not carried out itself: with op, which is the same, or
// with the error cause, which is answered.
func (w *Workspaces) consumeWith(ctx context.Context, a writ.Approval, op writ.OperationID, cause error) error {
	err := w.g.db.Update(ctx, func(tx *store.Tx) error {
		if err := resuming(ctx, tx, a, op); err != nil {
			return err
		}
		b, err := tx.Approval(ctx, a.ID)
		if err != nil {
			return err
		}
		if err := approval.Consume(&b); err != nil {
			return err
		}
		if err := swapApproval(ctx, tx, b, writ.ApprovalResuming); err != nil {
			return err
		}
		if cause != nil {
			text, err := json.Marshal(storedError{writ.KindOf(cause), writ.CodeOf(cause), writ.Message(cause)})
			if err != nil {
				return fmt.Errorf("encode outcome of %s: %w", a.ID, err)
			}
			if err := tx.PutApprovalBody(ctx, a.ID, store.BodyOutcome, text); err != nil {
				return err
			}
		}
		return scrub(ctx, tx, b)
	})
	if err != nil {
		return err
	}
	return cause
}

// storedError is the terminal error of a hold that never became an operation.
type storedError struct {
	Kind writ.Kind `json:"kind"`
	Code string    `json:"code"`
	Msg  string    `json:"msg"`
}

// refuseResumed ends a granted hold that is not allowed any more (scenario 130).
func (w *Workspaces) refuseResumed(ctx context.Context, o patchOrder, a writ.Approval, d writ.Decision) error {
	cause := w.refuse(ctx, o.who, o.ws, writ.ActionPatch, o.paths, d)
	if writ.CodeOf(cause) != codeUnauthorized {
		return cause
	}
	return w.consumeWith(ctx, a, "", cause)
}

// outcome is what a consumed approval answered.
func (w *Workspaces) outcome(ctx context.Context, a writ.Approval) (op writ.Operation, err error) {
	var stored storedError
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		if a.Call.Operation != "" {
			op, err = tx.Operation(ctx, a.Call.Operation)
			return err
		}
		b, err := tx.ApprovalBody(ctx, a.ID, store.BodyOutcome)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, &stored)
	})
	switch {
	case writ.KindOf(err) == writ.NotFound:
		return op, ambiguous(a, "how it ended was not kept")
	case err != nil:
		return op, err
	case a.Call.Operation == "":
		return op, &writ.Error{Kind: stored.Kind, Code: stored.Code, Op: "resume", Msg: stored.Msg}
	}
	return op, errorOf(op)
}

// errorOf is the error that a rejected operation was answered with, nil for the others.
func errorOf(op writ.Operation) error {
	if op.Code == "" {
		return nil
	}
	return &writ.OperationError{Operation: op.ID, Err: &writ.Error{Kind: writ.Conflict, Code: op.Code, Op: "apply patch", Msg: op.Message}}
}

// reconcile answers for a hold whose carrying out was interrupted (spec/02 §9).
func (w *Workspaces) reconcile(ctx context.Context, who writ.Principal, a writ.Approval) (op writ.Operation, err error) {
	if a.Call.Operation == "" { // nothing was begun: the two are one transaction here
		return w.resume(ctx, who, a)
	}
	if err := w.Sweep(ctx, false); err != nil {
		w.g.slog.Error("settle patches", "err", err)
	}
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		op, err = tx.Operation(ctx, a.Call.Operation)
		return err
	})
	switch {
	case err != nil && writ.KindOf(err) != writ.NotFound:
		return op, err
	case err != nil || op.Finished == nil:
		return op, ambiguous(a, "it is not known yet how it ended; look at the files, or ask again later")
	}
	return op, errorOf(op)
}

// stricter is the one of two modes in which fewer may decide.
func stricter(a, b writ.ApprovalMode) writ.ApprovalMode {
	if a == writ.ApprovalsReview || b == writ.ApprovalsOff {
		return a
	}
	return b
}

// movedFiles says what is not as it was when a was opened with the plan old.
func movedFiles(a writ.Approval, old, now writ.PatchPlan) string {
	if old.Digest() == now.Digest() {
		return fmt.Sprintf("asked again: more is asked for than when %s was opened", a.ID)
	}
	was := map[string]writ.FileChange{}
	for _, c := range old.Changes {
		was[c.Path] = c
	}
	var moved []string
	for _, c := range now.Changes {
		if was[c.Path] != c {
			moved = append(moved, c.Path)
		}
		delete(was, c.Path)
	}
	moved = append(moved, slices.Sorted(maps.Keys(was))...)
	return fmt.Sprintf("asked again: since %s was opened these files moved on: %s", a.ID, strings.Join(bounded(moved), ", "))
}
