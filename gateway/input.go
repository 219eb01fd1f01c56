package gateway

import (
	"context"
	"encoding/json"
	"fmt"

	"writ"
	"writ/approval"
	"writ/policy"
	"writ/store"
)

// heldInput is an input as it waits.
type heldInput struct {
	Process writ.Process `json:"process"` // as it was when it was asked for
	Data    []byte       `json:"data"`
	End     bool         `json:"end"`
}

// Input writes data to a process, and closes its input after that when end is set
// (spec/02 §5.7). Policy is asked about each write: an approved shell is no blank
// cheque. What is written is recorded, by size and digest, before it is.
//
// Errors: PROCESS_NOT_FOUND, also when the input is closed or the process has ended;
// UNAUTHORIZED; held as Exec. When the process takes no more before ctx ends the error is
// Exhausted and says how much went in.
func (w *Workspaces) Input(ctx context.Context, who writ.Principal, id writ.ProcessID, data []byte, end bool) error {
	if err := w.enter(); err != nil {
		return err
	}
	defer w.leave()
	if len(data) > writ.MaxInputChunk {
		return &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "write input", Msg: fmt.Sprintf("data has %d bytes, the most is %d: write it in parts", len(data), writ.MaxInputChunk)}
	}
	p, err := w.running(ctx, who, id)
	if err != nil {
		return err
	}
	ws, err := w.workspaceOf(who, p)
	if err != nil {
		return err
	}
	d := w.decideInput(who, ws, p, len(data))
	switch {
	case d.Effect == writ.Deny:
		return w.refuse(ctx, who, ws, writ.ActionInput, nil, d)
	case d.Effect == writ.Hold:
		return w.holdInput(ctx, who, ws, p, data, end, d)
	}
	return w.write(ctx, who.Ref(), p, data, end, d, nil)
}

// running is a process of who that has not ended, as far as is known.
func (w *Workspaces) running(ctx context.Context, who writ.Principal, id writ.ProcessID) (writ.Process, error) {
	p, err := w.processOf(ctx, who, id)
	if err == nil && p.State == writ.ProcessExited {
		err = &writ.Error{Kind: writ.NotFound, Code: codeProcessNotFound, Op: "write input", Msg: fmt.Sprintf("process %s has ended: it takes no input", id)}
	}
	return p, err
}

// workspaceOf is the workspace of p as it is registered now.
func (w *Workspaces) workspaceOf(who writ.Principal, p writ.Process) (writ.Workspace, error) {
	ws, err := w.registry.Get(who, p.Workspace)
	if err == nil && ws.Root != p.Root {
		err = &writ.Error{Kind: writ.Denied, Code: codeUnauthorized, Op: "write input", Msg: fmt.Sprintf("process %s works in %s, and workspace %s is another folder here", p.ID, p.Root, ws.ID)}
	}
	return ws, err
}

func (w *Workspaces) decideInput(who writ.Principal, ws writ.Workspace, p writ.Process, size int) writ.Decision {
	return w.ask(who, ws, writ.ActionInput, func(rules *policy.Set, r policy.Request) writ.Decision {
		r.Line = policy.LineFacts{Programs: p.Programs, TTY: p.TTY, Digest: p.Fingerprint}
		r.Command = policy.CommandFacts{Program: p.Program, Path: p.Program}
		r.InputBytes = int64(size)
		return rules.Decide(r)
	})
}

// write records what is to be written and writes it. a is the approval it is written
// for, nil for none.
func (w *Workspaces) write(ctx context.Context, actor writ.Ref, p writ.Process, data []byte, end bool, d writ.Decision, a *writ.Approval) error {
	err := w.g.db.Update(ctx, func(tx *store.Tx) error {
		if a != nil {
			if err := resuming(ctx, tx, *a, nil); err != nil {
				return err
			}
		}
		return w.g.record(ctx, tx, inputGiven(p, actor, data, d, a))
	})
	if err != nil {
		return err
	}
	n, err := 0, error(nil)
	if len(data) > 0 {
		n, err = w.processes.Input(ctx, p.ID, data)
	}
	if err == nil && end {
		err = w.processes.CloseInput(ctx, p.ID)
	}
	switch k := writ.KindOf(err); {
	case err == nil:
	case k == writ.Conflict || k == writ.NotFound:
		err = &writ.Error{Kind: writ.NotFound, Code: codeProcessNotFound, Op: "write input", Msg: fmt.Sprintf("process %s takes no input any more", p.ID), Err: err}
	case n > 0:
		err = &writ.Error{Kind: k, Code: writ.CodeOf(err), Op: "write input", Msg: fmt.Sprintf("%d of %d bytes were written: %s", n, len(data), writ.Message(err)), Err: err}
	}
	if a != nil {
		over := context.WithoutCancel(ctx)
		if failed := w.g.db.Update(over, func(tx *store.Tx) error { return consumeIn(over, tx, a.ID, err) }); failed != nil {
			w.g.slog.Error("a held input was given, and that could not be recorded", "process", p.ID, "approval", a.ID, "err", failed)
			return ambiguous(*a, "the input was given, and that could not be recorded")
		}
	}
	return err
}

func inputOrder(who writ.Principal, ws writ.Workspace, p writ.Process, in heldInput, mode writ.ApprovalMode) approval.InputOrder {
	return approval.InputOrder{
		Process: p, Data: in.Data, Close: in.End, Workspace: ws, Requester: who.Ref(), Identity: identityOf(who), Mode: mode,
	}
}

func (w *Workspaces) holdInput(ctx context.Context, who writ.Principal, ws writ.Workspace, p writ.Process, data []byte, end bool, d writ.Decision) error {
	in := heldInput{Process: p, Data: data, End: end}
	o := inputOrder(who, ws, p, in, writ.ApprovalsReview)
	a, err := w.activeHold(ctx, approval.InputKey(o))
	if writ.KindOf(err) == writ.NotFound {
		var body []byte
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("encode held input: %w", err)
		}
		a, err = w.openHold(ctx, heldOrder{
			who: who, ws: ws, d: d, fresh: approval.RequestInput(o, d, writ.Now(), w.g.opt.ApprovalTTL),
			bodies: map[string][]byte{store.BodyInput: body},
		})
	}
	if err != nil {
		return err
	}
	return heldBy(a, who.Ref())
}

// resumeInput gives a granted input to its process, if that still runs.
func (w *Workspaces) resumeInput(ctx context.Context, who writ.Principal, a writ.Approval) (p writ.Process, err error) {
	var in heldInput
	if err := w.g.readHeld(ctx, a, func(tx *store.Tx) (err error) {
		in, err = heldBody[heldInput](ctx, tx, a, store.BodyInput)
		return err
	}); err != nil {
		return p, err
	}
	requester := requesterOf(a)
	ws, err := w.requesters(a)
	if err != nil {
		return p, err
	}
	if p, err = w.running(ctx, requester, a.Call.Process); err != nil {
		if writ.KindOf(err) == writ.NotFound {
			err = w.voidHeld(ctx, a, "its process takes no input any more")
		}
		return p, err
	}
	d := w.decideInput(requester, ws, p, len(in.Data))
	if a.State == writ.ApprovalGranted {
		if err := w.queue(ctx, &a); err != nil {
			return p, err
		}
	}
	switch {
	case d.Effect == writ.Deny:
		return p, w.refuseResumed(ctx, requester, ws, nil, a, d)
	case !meets(a, d) || approval.CoversInput(a, inputOrder(requester, ws, p, in, writ.ApprovalsReview), policyOf(a, d)) != nil:
		return p, w.voidHeld(ctx, a, "the rules, or what is stored of it, are not what it was approved under")
	}
	return p, w.write(ctx, who.Ref(), p, in.Data, in.End, d, &a)
}
