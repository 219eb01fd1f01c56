package gateway

import "writ"

// The events of a patch. They hold names, versions and reasons, never a patch's text.

// patchStarted is the decision and the intent.
func patchStarted(op writ.Operation, o patchOrder, d writ.Decision, a *writ.Approval) writ.Event {
	e := ofOperation(op, writ.EventPatchStarted, writ.EventData{
		Action: writ.ActionPatch, Key: op.Key, Spec: op.Fingerprint, Undoes: op.Undoes, Paths: bounded(o.paths),
		Effect: writ.Allow, Rules: d.Rules, Policy: d.Policy, Reason: cut(d.Reason, maxReason),
	})
	e.Actor = o.actor
	if a != nil {
		e.Data.Effect, e.Data.Binds, e.Data.Plan = writ.Hold, a.Digest, a.Call.Plan
	}
	return e
}

func patchFinished(op writ.Operation) writ.Event {
	changes := op.Result.Changes
	return ofOperation(op, writ.EventPatchFinished, writ.EventData{
		Patch: op.Result.Status, ErrorCode: op.Code, Reason: cut(op.Result.Reason, maxReason),
		Changes: changes[:min(len(changes), maxChanges)], Count: int64(len(changes)),
	})
}

func ofOperation(op writ.Operation, typ writ.EventType, d writ.EventData) writ.Event {
	d.Workspace, d.Operation = op.Workspace, op.ID
	return writ.Event{Type: typ, Tenant: op.Tenant, Approval: op.Approval, Data: d}
}
