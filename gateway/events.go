package gateway

import (
	"writ"
)

// The events of a task, in the order of spec/01 §2 rule 6. They hold digests,
// sizes and reasons; never code, arguments or output.

func event(t writ.Task, typ writ.EventType, d writ.EventData) writ.Event {
	return writ.Event{Type: typ, Tenant: t.Tenant, Task: t.ID, Data: d}
}

func (o order) received() writ.Event {
	t := o.task
	d := writ.EventData{Key: t.Key, Identity: t.Identity, Role: t.Role, RetryOf: t.RetryOf, Clamped: t.Clamped}
	if s := o.spec; s != nil {
		d.Language, d.Spec, d.Code, d.CodeBytes = s.Language, t.Digest, writ.DigestOf([]byte(s.Code)), int64(len(s.Code))
		d.Args, d.Inputs, d.Limits = len(s.Args), len(s.Inputs)+len(s.Files), s.Limits
	}
	e := event(t, writ.EventTaskReceived, d)
	e.Actor = t.Requester
	return e
}

func decided(t writ.Task, d writ.Decision) writ.Event {
	return event(t, writ.EventTaskDecided, writ.EventData{
		Effect: d.Effect, Rules: d.Rules, Policy: d.Policy, Reason: d.Reason, Need: d.Need, State: t.State,
	})
}

func ofApproval(a writ.Approval, typ writ.EventType, d writ.EventData) writ.Event {
	d.Status = a.State
	return writ.Event{Type: typ, Tenant: a.Tenant, Task: a.Task, Approval: a.ID, Data: d}
}

func requested(a writ.Approval) writ.Event {
	need := a.Need
	return ofApproval(a, writ.EventApprovalRequested, writ.EventData{
		Reason: a.Reason, Rules: a.Rules, Policy: a.Policy, Spec: a.Spec, Binds: a.Digest, Need: &need,
	})
}

// settled is the end of an approval's waiting: granted (queued), denied, expired
// or cancelled, with every vote.
func settled(a writ.Approval, by writ.Ref, reason string) writ.Event {
	e := ofApproval(a, writ.EventApprovalDecided, writ.EventData{Reason: reason, Votes: a.Votes, Binds: a.Digest})
	e.Actor = by
	return e
}

func invoked(t writ.Task, s writ.RunSpec, policy writ.Digest, binds writ.Digest) writ.Event {
	e := event(t, writ.EventToolInvoked, writ.EventData{
		Language: s.Language, Spec: t.Digest, Code: writ.DigestOf([]byte(s.Code)), CodeBytes: int64(len(s.Code)),
		Args: len(s.Args), Inputs: len(s.Inputs) + len(s.Files), Limits: s.Limits, Policy: policy, Binds: binds,
	})
	e.Approval = t.Approval
	return e
}

func reported(t writ.Task, r writ.Result) writ.Event {
	d := writ.EventData{
		Outcome: r.Outcome, Started: &r.Started, ExitCode: r.ExitCode, Signal: r.Signal, Reason: cut(r.Reason, maxReason),
		WallMS: r.WallMS, CPUMS: r.CPUMS, PeakBytes: r.PeakBytes, Sandbox: &r.Sandbox,
	}
	if r.Started {
		d.Stdout, d.Stderr = r.Stdout.Facts(), r.Stderr.Facts()
		d.Dropped = r.DroppedFiles
		for _, f := range r.Files {
			if f.State != writ.OutputSame {
				d.Kept++
				d.KeptBytes += f.Size
			}
		}
	}
	return event(t, writ.EventToolResult, d)
}

func finished(t writ.Task) writ.Event {
	return event(t, writ.EventAgentFinished, writ.EventData{State: t.State, Reason: cut(t.Reason, maxReason)})
}
