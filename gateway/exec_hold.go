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

// heldCommand is a command as it waits, with the workspace as it was when it was asked
// for, and what was read out of the command for its approver.
type heldCommand struct {
	Request   writ.CommandRequest `json:"request"`
	Workspace writ.Workspace      `json:"workspace"`
	Reading   approval.Reading    `json:"reading"`
}

// holdCommand opens a hold for o, or finds the open one, and answers it as an error.
func (w *Workspaces) holdCommand(ctx context.Context, o commandOrder, d writ.Decision, mode writ.ApprovalMode, again *askedAgain) error {
	a, err := w.openCommandHold(ctx, o, d, mode, again)
	if err != nil {
		return err
	}
	return heldBy(a, o.who.Ref())
}

func (o commandOrder) approvalOrder(mode writ.ApprovalMode) approval.CommandOrder {
	return approval.CommandOrder{
		Request: o.req, Workspace: o.ws, Requester: o.who.Ref(), Identity: identityOf(o.who), Mode: mode,
	}
}

func (w *Workspaces) openCommandHold(ctx context.Context, o commandOrder, d writ.Decision, mode writ.ApprovalMode, again *askedAgain) (a writ.Approval, err error) {
	p := o.approvalOrder(mode)
	if again == nil {
		if a, err = w.activeHold(ctx, approval.CommandKey(p)); writ.KindOf(err) != writ.NotFound {
			return a, err
		}
	}
	body, err := json.Marshal(heldCommand{o.req, o.ws, readingOf(o.commands)})
	if err != nil {
		return a, fmt.Errorf("encode held command: %w", err)
	}
	d = wanted(d, o.ws, mode, "command")
	return w.openHold(ctx, heldOrder{
		who: o.who, ws: o.ws, d: d, again: again,
		fresh:  approval.RequestCommand(p, d, writ.Now(), w.g.opt.ApprovalTTL),
		bodies: map[string][]byte{store.BodyCommand: body},
	})
}

// readingOf says in words what commands a line would run.
func readingOf(commands []policy.CommandFacts) (r approval.Reading) {
	for _, c := range commands {
		line := approval.ShellLine(append([]string{c.Path}, c.Args...))
		r.Commands = append(r.Commands, line)
		for _, why := range c.Opaque {
			r.Unknown = append(r.Unknown, fmt.Sprintf("%s: %s", why, line))
		}
	}
	return r
}

func (w *Workspaces) createCommandApproval(ctx context.Context, who writ.Principal, req writ.CommandRequest) (a writ.Approval, err error) {
	o, err := w.commandOrder(who, req)
	if err != nil {
		return a, err
	}
	d := w.decideCommand(o)
	if d.Effect == writ.Deny {
		return a, w.refuseCommand(ctx, o, d)
	}
	if err := startable(o.ws); err != nil {
		return a, err
	}
	return w.openCommandHold(ctx, o, d, explicit(holds(o.ws, d)), nil)
}

// resumeCommand starts a granted command, decided again by the rules and the registry of
// now, for its requester.
func (w *Workspaces) resumeCommand(ctx context.Context, who writ.Principal, a writ.Approval) (p writ.Process, err error) {
	var c heldCommand
	if err := w.g.readHeld(ctx, a, func(tx *store.Tx) (err error) {
		c, err = heldBody[heldCommand](ctx, tx, a, store.BodyCommand)
		return err
	}); err != nil {
		return p, err
	}
	if c.Request.Fingerprint() != a.Spec || c.Request.Workspace != a.Call.Workspace {
		return p, w.voidHeld(ctx, a, "what is stored of it is not what was approved")
	}
	if _, err := w.requesters(a); err != nil {
		return p, err
	}
	o, err := w.commandOrder(requesterOf(a), c.Request)
	if err != nil {
		return p, err
	}
	o.actor = who.Ref()
	if a.State == writ.ApprovalGranted {
		if err := w.queue(ctx, &a); err != nil {
			return p, err
		}
	}
	lease, err := w.leases.Acquire(ctx, o.ws.Root)
	if err != nil {
		return p, err // it stays queued, and can be resumed later
	}
	d := w.decideCommand(o)
	again := func() error {
		switch {
		case d.Effect == writ.Deny:
			return w.refuseResumed(ctx, o.who, o.ws, nil, a, d)
		case startable(o.ws) != nil:
			return w.consumeWith(ctx, a, nil, startable(o.ws))
		case !meets(a, d) || approval.CoversCommand(a, o.approvalOrder(holds(o.ws, d)), policyOf(a, d)) != nil:
			return w.holdCommand(ctx, o, d, stricter(holds(o.ws, d), a.Call.Mode), &askedAgain{a, fmt.Sprintf("asked again: what %s was granted for, or with, is not what is asked for now", a.ID)})
		}
		return nil
	}
	if err := again(); err != nil {
		lease.Release()
		return p, err
	}
	return w.start(ctx, o, d, lease, &a)
}

// meets reports whether what a was granted with is enough for what d asks for.
func meets(a writ.Approval, d writ.Decision) bool {
	return d.Effect != writ.Hold || approval.Meets(a, *d.Need)
}

// policyOf is the version of the rules that a must have been opened under: it matters
// where a rule holds.
func policyOf(a writ.Approval, d writ.Decision) writ.Digest {
	if d.Effect == writ.Hold {
		return d.Policy
	}
	return a.Policy
}
