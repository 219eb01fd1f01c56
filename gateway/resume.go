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
func (w *Workspaces) Resume(ctx context.Context, who writ.Principal, id writ.ApprovalID) (r writ.Resumed, err error) {
	if err := w.enter(); err != nil {
		return r, err
	}
	defer w.leave()
	if _, err := w.heldCall(ctx, who, id); err != nil {
		return r, err
	}
	if !w.take(string(id)) {
		return r, conflictOf(id, "approval %s is being carried out by another call", id)
	}
	defer w.drop(string(id))
	a, err := w.heldCall(ctx, who, id) // as it is now that nobody else moves it
	if err != nil {
		return r, err
	}
	switch a.State {
	case writ.ApprovalConsumed:
		r, err = w.outcome(ctx, a)
	case writ.ApprovalGranted, writ.ApprovalQueued:
		r, err = w.resume(ctx, who, a)
	case writ.ApprovalResuming:
		r, err = w.reconcile(ctx, who, a)
	default:
		return r, conflictOf(id, "%s", approval.History(a))
	}
	if r.Operation == nil && r.Process == nil && writ.KindOf(err) == writ.Conflict && writ.CodeOf(err) == "" {
		err = w.movedOn(ctx, who, id, err)
	}
	r.Approval = a
	if err == nil {
		r.Approval, err = w.heldCall(ctx, who, id)
	}
	return r, err
}

// movedOn says what somebody else made of an approval while it was to be carried out.
func (w *Workspaces) movedOn(ctx context.Context, who writ.Principal, id writ.ApprovalID, cause error) error {
	if a, err := w.heldCall(ctx, who, id); err == nil && a.State.Terminal() {
		return conflictOf(id, "%s", approval.History(a))
	}
	return conflictOf(id, "%s: another server has it", writ.Message(cause))
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
func (w *Workspaces) resume(ctx context.Context, who writ.Principal, a writ.Approval) (r writ.Resumed, err error) {
	if a.State != writ.ApprovalResuming && !writ.Now().Before(a.Expires) {
		if err := w.g.Expire(ctx, a.ID); err != nil {
			return r, err
		}
		return r, conflictOf(a.ID, "approval %s was granted and expired unused at %s: send the call again", a.ID, a.Expires.Format("15:04:05 MST"))
	}
	switch a.Action {
	case writ.ActionExec:
		p, err := w.resumeCommand(ctx, who, a)
		return writ.Resumed{Process: processOrNone(p)}, err
	case writ.ActionInput:
		p, err := w.resumeInput(ctx, who, a)
		if err != nil {
			return r, err
		}
		return writ.Resumed{Process: processOrNone(p)}, err
	}
	op, err := w.resumePatch(ctx, who, a)
	return writ.Resumed{Operation: operationOrNone(op)}, err
}

func operationOrNone(op writ.Operation) *writ.Operation {
	if op.ID == "" {
		return nil
	}
	return &op
}

func processOrNone(p writ.Process) *writ.Process {
	if p.ID == "" {
		return nil
	}
	return &p
}

// requesters is the workspace that a was opened for, as it is registered now. It must be
// the requester's, too, and not only that of who resumes.
func (w *Workspaces) requesters(a writ.Approval) (writ.Workspace, error) {
	ws, err := w.registry.Get(requesterOf(a), a.Call.Workspace)
	if err == nil && ws.Root != a.Call.Root {
		err = conflictOf(a.ID, "approval %s is for %s, and workspace %s is another folder here", a.ID, a.Call.Root, ws.ID)
	}
	return ws, err
}

func (w *Workspaces) resumePatch(ctx context.Context, who writ.Principal, a writ.Approval) (op writ.Operation, err error) {
	o := patchOrder{who: requesterOf(a), actor: who.Ref()}
	var plan writ.PatchPlan
	if err := w.g.readHeld(ctx, a, func(tx *store.Tx) (err error) {
		o.req, plan, err = heldPatch(ctx, tx, a)
		return err
	}); err != nil {
		return op, err
	}
	if o.req.Fingerprint() != a.Spec || o.req.Key != a.Call.Key || plan.Digest() != a.Call.Plan {
		return op, w.voidHeld(ctx, a, "what is stored of it is not what was approved")
	}
	if o.ws, err = w.requesters(a); err != nil {
		return op, err
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
		return op, w.refuseResumed(ctx, o.who, o.ws, o.paths, a, d)
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
	return meets(a, d) && approval.CoversPatch(a, approval.PatchOrder{
		Request: o.req, Workspace: o.ws, Requester: o.who.Ref(), Identity: identityOf(o.who), Mode: holds(o.ws, d), Plan: now,
	}, policyOf(a, d)) == nil
}

// voidHeld ends a hold that cannot be carried out, and answers why.
func (w *Workspaces) voidHeld(ctx context.Context, a writ.Approval, reason string) error {
	if err := w.g.db.Update(ctx, func(tx *store.Tx) error { return w.endHold(ctx, tx, a, reason) }); err != nil {
		return err
	}
	return conflictOf(a.ID, "approval %s is void: %s; send the call again", a.ID, reason)
}

// carryOutHeld does what a was given for. fault, when it is not nil, is why the patch
// cannot be applied to the files as they are: that is recorded as how it ended.
func (w *Workspaces) carryOutHeld(ctx context.Context, o patchOrder, a writ.Approval, d writ.Decision, fault error) (op writ.Operation, err error) {
	op, done, replayed, err := w.begin(ctx, o, d, &a)
	switch {
	case writ.CodeOf(err) == codeKeyConflict:
		return op, w.consumeWith(ctx, a, nil, err)
	case err != nil:
		return op, err
	case replayed && op.Finished == nil: // the same, and it is not over: the grant is not used up
		a.Call.Operation = op.ID
		return op, ambiguous(a, "an operation with its key is not finished; resume it again later")
	case replayed: // the key was used meanwhile, for the same
		return op, w.consumeWith(ctx, a, func(c *writ.HeldCall) { c.Operation = op.ID }, nil)
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

// resuming moves a, in the transaction that records what it begins; begun, which may be
// nil, notes that in it.
func resuming(ctx context.Context, tx *store.Tx, a writ.Approval, begun func(*writ.HeldCall)) error {
	from := a.State
	if from == writ.ApprovalQueued {
		if err := approval.Resume(&a); err != nil {
			return err
		}
	}
	if begun != nil {
		call := *a.Call
		begun(&call)
		a.Call = &call
	}
	return swapApproval(ctx, tx, a, from)
}

// consumeIn ends the approval of what is over: with the error that it is answered with,
// or, when that is nil, with what it began. Both are one transaction (spec/02 §15
// invariant 6).
func consumeIn(ctx context.Context, tx *store.Tx, id writ.ApprovalID, cause error) error {
	a, err := tx.Approval(ctx, id)
	if err != nil || a.State != writ.ApprovalResuming { // settled already
		return err
	}
	if err := approval.Consume(&a); err != nil {
		return err
	}
	if err := swapApproval(ctx, tx, a, writ.ApprovalResuming); err != nil {
		return err
	}
	if cause != nil {
		text, err := json.Marshal(storedError{writ.KindOf(cause), writ.CodeOf(cause), writ.Message(cause)})
		if err != nil {
			return fmt.Errorf("encode outcome of %s: %w", id, err)
		}
		if err := tx.PutApprovalBody(ctx, id, store.BodyOutcome, text); err != nil {
			return err
		}
	}
	return scrub(ctx, tx, a)
}

// consumeWith ends a, which was not carried out itself: with what it came to, or with
// the error cause, which is answered.
func (w *Workspaces) consumeWith(ctx context.Context, a writ.Approval, begun func(*writ.HeldCall), cause error) error {
	err := w.g.db.Update(ctx, func(tx *store.Tx) error {
		if err := resuming(ctx, tx, a, begun); err != nil {
			return err
		}
		return consumeIn(ctx, tx, a.ID, cause)
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
func (w *Workspaces) refuseResumed(ctx context.Context, who writ.Principal, ws writ.Workspace, paths []string, a writ.Approval, d writ.Decision) error {
	cause := w.refuse(ctx, who, ws, a.Action, paths, d)
	if writ.CodeOf(cause) != codeUnauthorized {
		return cause
	}
	return w.consumeWith(ctx, a, nil, cause)
}

// outcome is what a consumed approval answered.
func (w *Workspaces) outcome(ctx context.Context, a writ.Approval) (r writ.Resumed, err error) {
	var stored storedError
	failed := false
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		b, err := tx.ApprovalBody(ctx, a.ID, store.BodyOutcome)
		if failed = err == nil; failed {
			return json.Unmarshal(b, &stored)
		}
		switch {
		case writ.KindOf(err) != writ.NotFound:
			return err
		case a.Call.Operation != "":
			op, err := tx.Operation(ctx, a.Call.Operation)
			r.Operation = operationOrNone(op)
			return err
		case a.Call.Process != "":
			p, err := tx.Process(ctx, a.Call.Process)
			r.Process = processOrNone(p)
			return err
		}
		return err
	})
	switch {
	case writ.KindOf(err) == writ.NotFound:
		return r, ambiguous(a, "how it ended was not kept")
	case err != nil:
		return r, err
	case failed:
		return r, &writ.Error{Kind: stored.Kind, Code: stored.Code, Op: "resume", Msg: stored.Msg}
	case r.Operation != nil:
		return r, errorOf(*r.Operation)
	}
	return r, nil
}

// errorOf is the error that a rejected operation was answered with, nil for the others.
func errorOf(op writ.Operation) error {
	if op.Code == "" {
		return nil
	}
	return &writ.OperationError{Operation: op.ID, Err: &writ.Error{Kind: writ.Conflict, Code: op.Code, Op: "apply patch", Msg: op.Message}}
}

// reconcile answers for a hold whose carrying out was interrupted (spec/02 §9).
func (w *Workspaces) reconcile(ctx context.Context, who writ.Principal, a writ.Approval) (r writ.Resumed, err error) {
	if a.Action != writ.ActionPatch {
		if err := w.atAnother(ctx, a); err != nil {
			return r, err
		}
		// A command is never started again, an input never given again.
		why := "the server stopped before it was known"
		if a.Action == writ.ActionExec && a.Call.Process != "" {
			why += "; process_status of " + string(a.Call.Process) + " says what became of it"
		}
		return r, w.consumeWith(ctx, a, nil, ambiguous(a, why))
	}
	if a.Call.Operation == "" { // nothing was begun: the two are one transaction here
		return w.resume(ctx, who, a)
	}
	if err := w.settlePatches(ctx, false); err != nil {
		w.g.slog.Error("settle patches", "err", err)
	}
	var op writ.Operation
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		op, err = tx.Operation(ctx, a.Call.Operation)
		return err
	})
	switch {
	case err != nil && writ.KindOf(err) != writ.NotFound:
		return r, err
	case err != nil || op.Finished == nil:
		return r, ambiguous(a, "it is not known yet how it ended; look at the files, or ask again later")
	}
	r.Operation = &op
	return r, errorOf(op)
}

// atAnother is the error of a call that another server, which lives, is carrying out now.
func (w *Workspaces) atAnother(ctx context.Context, a writ.Approval) error {
	var owner string
	lives := false
	err := w.g.db.View(ctx, func(tx *store.Tx) error {
		p, err := tx.Process(ctx, a.Call.Process)
		if err != nil {
			return err
		}
		alive, err := tx.Alive(ctx)
		owner, lives = p.Owner, alive[p.Owner]
		return err
	})
	switch {
	case writ.KindOf(err) == writ.NotFound:
		return nil
	case err != nil:
		return err
	case lives && owner != w.g.opt.Owner:
		return conflictOf(a.ID, "approval %s is being carried out by server %s: ask there", a.ID, owner)
	}
	return nil
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
