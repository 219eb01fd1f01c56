package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"writ"
	"writ/patch"
	"writ/store"
)

// patchOrder is a request of a patch with all that decides about it.
type patchOrder struct {
	who   writ.Principal // whose request it is: the requester, also when another resumes it
	actor writ.Ref       // who makes it happen now
	ws    writ.Workspace
	req   writ.PatchRequest
	paths []string // that the request names; none when it cannot be read
}

// patchOrder checks the form of req and finds what it is about.
func (w *Workspaces) patchOrder(ctx context.Context, who writ.Principal, req writ.PatchRequest) (patchOrder, error) {
	o := patchOrder{who: who, actor: who.Ref(), req: req}
	var err error
	if o.ws, err = w.registry.Get(who, req.Workspace); err != nil {
		return o, err
	}
	if err := (writ.UndoRequest{Key: req.Key}).Validate(); err != nil {
		return o, &writ.Error{Kind: writ.Invalid, Code: codeInvalidPatch, Op: "apply patch", Msg: "operation_" + err.Error()}
	}
	if req.Undo == "" {
		o.paths = pathsOf(req, o.ws, nil)
		return o, nil
	}
	old, err := w.Operation(ctx, who, req.Undo, "")
	switch {
	case err != nil:
		return o, err
	case old.Workspace != o.ws.ID || old.Root != o.ws.Root:
		return o, &writ.Error{Kind: writ.Conflict, Code: codeInvalidPatch, Op: "undo", Msg: fmt.Sprintf("operation %s changed %s in workspace %s, which is not this one", old.ID, old.Root, old.Workspace)}
	case old.Result.Status != writ.PatchApplied || old.CheckOnly:
		return o, &writ.Error{Kind: writ.Conflict, Code: codeInvalidPatch, Op: "undo", Msg: fmt.Sprintf("operation %s is %s: only one that is applied can be undone", old.ID, old.Result.Status)}
	}
	o.paths = pathsOf(req, o.ws, old.Result.Changes)
	return o, nil
}

// pathsOf are the paths that a request names for policy: those of its patch, or, when it
// is an undoing, of the changes that it takes back. What cannot be read names none: the
// runner refuses it by the same parser.
func pathsOf(req writ.PatchRequest, ws writ.Workspace, undone []writ.FileChange) (paths []string) {
	if req.Undo == "" {
		if p, err := patch.Parse(req.Patch, ws.Root); err == nil {
			return p.Paths()
		}
		return nil
	}
	for _, c := range undone {
		paths = append(paths, c.Path)
	}
	return paths
}

// Patch carries out req (spec/02 §6). replayed says that its key named an operation of
// the same content, which is then the answer. A held request is an error with a
// *writ.Held in its chain; an error after the operation is in the ledger has a
// *writ.OperationError in its chain.
//
// An operation that is in the ledger is carried to its end and recorded, also when ctx
// ends meanwhile.
func (w *Workspaces) Patch(ctx context.Context, who writ.Principal, req writ.PatchRequest) (op writ.Operation, replayed bool, err error) {
	if err := w.enter(); err != nil {
		return op, false, err
	}
	defer w.leave()
	o, err := w.patchOrder(ctx, who, req)
	if err != nil {
		return op, false, err
	}
	d := w.decide(who, o.ws, writ.ActionPatch, o.paths)
	if d.Effect == writ.Deny {
		return op, false, w.refuse(ctx, who, o.ws, writ.ActionPatch, o.paths, d)
	}
	// A finished operation answers before hold and lease (spec/02 §16 item 12).
	first, err := w.earlier(ctx, o)
	if err != nil {
		return op, false, err
	}
	if first != nil && first.Finished != nil {
		return *first, true, nil
	}
	if mode := holds(o.ws, d); mode != writ.ApprovalsOff {
		return op, false, w.hold(ctx, o, d, mode, nil)
	}
	lease, err := w.leases.Acquire(ctx, o.ws.Root)
	if err != nil {
		return op, false, err
	}
	defer lease.Release()
	// The rules may have moved while it waited.
	switch d = w.decide(who, o.ws, writ.ActionPatch, o.paths); d.Effect {
	case writ.Deny:
		return op, false, w.refuse(ctx, who, o.ws, writ.ActionPatch, o.paths, d)
	case writ.Hold:
		return op, false, w.hold(ctx, o, d, writ.ApprovalsReview, nil)
	}
	op, done, replayed, err := w.begin(ctx, o, d, nil)
	if err != nil || replayed {
		return op, replayed, err
	}
	defer done()
	op, err = w.carryOut(ctx, o, op, "")
	return op, false, err
}

// holds is who must agree to a patch that d does not deny: nobody, with ApprovalsOff.
func holds(ws writ.Workspace, d writ.Decision) writ.ApprovalMode {
	if d.Effect == writ.Hold {
		return writ.ApprovalsReview
	}
	return ws.Approvals
}

// earlier is the operation that the request's key names already, nil when there is
// none. It is OPERATION_KEY_CONFLICT when that is another request, or another's.
func (w *Workspaces) earlier(ctx context.Context, o patchOrder) (first *writ.Operation, err error) {
	if o.req.Key == "" {
		return nil, nil
	}
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		first, err = earlierOperation(ctx, tx, o)
		return err
	})
	return first, err
}

func earlierOperation(ctx context.Context, tx *store.Tx, o patchOrder) (*writ.Operation, error) {
	if o.req.Key == "" {
		return nil, nil
	}
	op, err := tx.OperationByKey(ctx, o.ws.Tenant, o.ws.ID, o.ws.Root, o.req.Key)
	switch {
	case writ.KindOf(err) == writ.NotFound:
		return nil, nil
	case err != nil:
		return nil, err
	case op.By != o.who.Ref():
		return nil, &writ.Error{Kind: writ.Conflict, Code: codeKeyConflict, Op: "apply patch", Msg: fmt.Sprintf("somebody else used the key %q in workspace %s: send the request under another key", o.req.Key, o.ws.ID)}
	case op.Fingerprint != o.req.Fingerprint():
		return nil, &writ.Error{Kind: writ.Conflict, Code: codeKeyConflict, Op: "apply patch", Msg: fmt.Sprintf("key %q names an operation with other content: send the change under another key", o.req.Key)}
	}
	return &op, nil
}

// begin puts the operation into the ledger, with the decision and the intent: nothing
// changes before that is committed. a is the approval it is carried out for, nil for
// none; it moves to resuming in the same transaction. replayed says that the key names
// an operation already. Otherwise, without an error, done must be called when the
// operation is over.
func (w *Workspaces) begin(ctx context.Context, o patchOrder, d writ.Decision, a *writ.Approval) (op writ.Operation, done func(), replayed bool, err error) {
	fresh := writ.Operation{
		ID: writ.NewOperationID(), Key: o.req.Key, Workspace: o.ws.ID, Root: o.ws.Root, Tenant: o.ws.Tenant, By: o.who.Ref(),
		CheckOnly: o.req.CheckOnly, Undoes: o.req.Undo, Fingerprint: o.req.Fingerprint(),
		Result: writ.PatchResult{Status: writ.PatchUnknown}, Created: writ.Now(), Owner: w.g.opt.Owner,
	}
	if a != nil {
		fresh.Approval = a.ID
	}
	w.take(string(fresh.ID)) // before it is stored, so that no sweep takes it for lost
	err = w.g.db.Update(ctx, func(tx *store.Tx) error {
		first, err := earlierOperation(ctx, tx, o)
		if replayed = first != nil; err != nil || replayed {
			if replayed {
				op = *first
			}
			return err
		}
		op = fresh
		if a != nil {
			if err := resuming(ctx, tx, *a, func(c *writ.HeldCall) { c.Operation = op.ID }); err != nil {
				return err
			}
		}
		if err := tx.InsertOperation(ctx, op); err != nil {
			return err
		}
		return w.g.record(ctx, tx, patchStarted(op, o, d, a))
	})
	if err != nil || replayed {
		w.drop(string(fresh.ID))
	}
	switch {
	case err != nil:
		return writ.Operation{}, nil, false, err
	case replayed && op.Finished == nil && op.Result.Reason == "":
		op.Result.Reason = "it is not finished: ask operation_status"
		fallthrough
	case replayed:
		return op, nil, true, nil
	}
	return op, func() { w.drop(string(fresh.ID)) }, false, nil
}

// carryOut has the runner do what the ledger says has begun, and records how it ended.
func (w *Workspaces) carryOut(ctx context.Context, o patchOrder, op writ.Operation, bound writ.Digest) (writ.Operation, error) {
	result, err := w.files.Patch(ctx, o.ws, op.ID, o.req, bound)
	return w.ended(context.WithoutCancel(ctx), op, result, err)
}

// ended records how the runner ended an operation: cause, when it is not nil, says
// that nothing was changed.
func (w *Workspaces) ended(ctx context.Context, op writ.Operation, result writ.PatchResult, cause error) (writ.Operation, error) {
	var answer error
	op.Result = result
	if cause != nil {
		op.Result = writ.PatchResult{Status: writ.PatchRolledBack, Reason: "nothing was changed: " + cmp.Or(ended(cause), kept(cause))}
		if !notBegun(cause) {
			op.Result.Status = writ.PatchRejected
			op.Code, op.Message = cmp.Or(writ.CodeOf(cause), codeInternal), kept(cause)
			answer = &writ.OperationError{Operation: op.ID, Err: cause}
		}
		if writ.KindOf(cause) == writ.Internal && ended(cause) == "" {
			w.g.slog.Error("patch failed", "operation", op.ID, "err", cause)
		}
	}
	op.Result = boundedResult(op.Result)
	if err := w.recordEnd(ctx, &op); err != nil {
		w.g.slog.Error("end of a patch was not recorded", "operation", op.ID, "status", op.Result.Status, "err", err)
		return op, &writ.OperationError{Operation: op.ID, Err: &writ.Error{
			Kind: writ.Unavailable, Code: codeInternal, Op: "apply patch", Err: err,
			Msg: "how the patch ended could not be recorded: ask operation_status later, and do not send it again before",
		}}
	}
	w.forget(ctx, op)
	return op, answer
}

// kept is what is recorded of the words in which a patch was refused. Those that say why
// it cannot be read, or does not fit, show lines of it and of the file, which are for the
// caller and nobody else (spec/02 §6.2).
func kept(cause error) string {
	text := writ.Message(cause)
	if writ.CodeOf(cause) != codeInvalidPatch {
		return cut(text, maxReason)
	}
	if line, _, ok := strings.Cut(text, ":"); ok && patchLine.MatchString(line) {
		return line + " cannot be read, or does not fit the files"
	}
	return "the patch cannot be read, or does not fit the files"
}

var patchLine = regexp.MustCompile(`^patch line [0-9]+$`)

// notBegun reports whether cause is a matter of contact and time alone, and not of the
// patch: the same patch may be sent again (spec/02 §16 item 15).
func notBegun(cause error) bool {
	return ended(cause) != "" || writ.KindOf(cause) == writ.Unavailable
}

// ended says in words that a context's end is err, if it is.
func ended(err error) string {
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was cancelled before it began"
	case errors.Is(err, context.DeadlineExceeded):
		return "the time of the request was over before it began"
	}
	return ""
}

// boundedResult holds a runner's report to a size that a record can have.
func boundedResult(r writ.PatchResult) writ.PatchResult {
	r.Reason = cut(r.Reason, maxReason)
	if !slices.Contains(patchEnds, r.Status) {
		r.Status, r.Reason = writ.PatchUnknown, "the runner's report makes no sense: look at the files"
	}
	return r
}

var patchEnds = []writ.PatchStatus{
	writ.PatchApplied, writ.PatchChecked, writ.PatchRejected, writ.PatchRolledBack, writ.PatchPartial, writ.PatchUnknown,
}

// recordEnd finishes op in the ledger, and its approval with it, for as long as the
// store may be restarting. It is no error that somebody else finished it. With an error
// op is as it was, not finished.
func (w *Workspaces) recordEnd(ctx context.Context, op *writ.Operation) error {
	var over writ.Operation
	err := w.g.insist(func() error {
		return w.g.db.Update(ctx, func(tx *store.Tx) error {
			over = *op
			return w.finishIn(ctx, tx, &over)
		})
	})
	if err == nil {
		*op = over
	}
	return err
}

// finishIn is recordEnd within a transaction.
func (w *Workspaces) finishIn(ctx context.Context, tx *store.Tx, op *writ.Operation) error {
	now := writ.Now()
	op.Finished = &now
	done, err := tx.FinishOperation(ctx, *op)
	if err != nil {
		return err
	}
	if !done { // a sweep, or an earlier try whose answer was lost
		*op, err = tx.Operation(ctx, op.ID)
		return err
	}
	if op.Approval != "" {
		if err := consumeIn(ctx, tx, op.Approval, nil); err != nil {
			return err
		}
	}
	return w.g.record(ctx, tx, patchFinished(*op))
}

// forget lets the runner drop what it kept of an operation whose end is recorded. What
// fails is done by a sweep.
func (w *Workspaces) forget(ctx context.Context, op writ.Operation) {
	switch op.Result.Status {
	case writ.PatchApplied, writ.PatchRolledBack, writ.PatchPartial:
	default:
		return // it kept nothing, or does not know yet
	}
	if err := w.files.Forget(ctx, op.ID); err != nil {
		w.g.slog.Warn("runner did not forget a patch", "operation", op.ID, "err", err)
	}
}
