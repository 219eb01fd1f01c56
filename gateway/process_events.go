package gateway

import "writ"

// The events of processes. They hold the program's name, digests and sizes; never
// arguments, input or output.

func processStarted(p writ.Process, o commandOrder, d writ.Decision, a *writ.Approval) writ.Event {
	e := ofProcess(p, writ.EventProcessStarted, writ.EventData{
		Action: writ.ActionExec, Spec: p.Fingerprint, Program: cut(p.Program, maxWord), Programs: p.Programs,
		Args: len(o.req.Command) - 1, Effect: writ.Allow, Rules: d.Rules, Policy: d.Policy, Reason: cut(d.Reason, maxReason),
	})
	e.Actor = o.actor
	if a != nil {
		e.Data.Effect, e.Data.Binds = writ.Hold, a.Digest
	}
	return e
}

func inputGiven(p writ.Process, by writ.Ref, data []byte, d writ.Decision, a *writ.Approval) writ.Event {
	e := ofProcess(p, writ.EventProcessInput, writ.EventData{
		Action: writ.ActionInput, Code: writ.DigestOf(data), CodeBytes: int64(len(data)),
		Effect: writ.Allow, Rules: d.Rules, Policy: d.Policy,
	})
	e.Actor = by
	if a != nil {
		e.Approval, e.Data.Effect, e.Data.Binds = a.ID, writ.Hold, a.Digest
	}
	return e
}

func processFinished(p writ.Process) writ.Event {
	d := writ.EventData{Termination: p.Termination, ExitCode: p.ExitCode, Reason: p.Reason, Count: p.Total}
	if p.Signal != nil {
		d.Signal = p.Signal.Name
	}
	return ofProcess(p, writ.EventProcessFinished, d)
}

func ofProcess(p writ.Process, typ writ.EventType, d writ.EventData) writ.Event {
	d.Workspace, d.Process = p.Workspace, p.ID
	return writ.Event{Type: typ, Tenant: p.Tenant, Approval: p.Approval, Data: d}
}
