package approval

import (
	"time"

	"writ"
)

// The steps of an approval that are not votes. Each is a Conflict that says where
// the approval stands when that is not where the step begins.

// Queue moves a from granted to queued: its task waits to start, or somebody resumes
// its call.
func Queue(a *writ.Approval) error {
	return step(a, "queue approval", writ.ApprovalGranted, writ.ApprovalQueued)
}

// Resume moves a from queued to resuming: its task was claimed, or the intent of its
// call is recorded.
func Resume(a *writ.Approval) error {
	return step(a, "resume approval", writ.ApprovalQueued, writ.ApprovalResuming)
}

// Consume moves a from resuming to consumed: its one run is recorded as started, or the
// outcome of its call is recorded.
func Consume(a *writ.Approval) error {
	return step(a, "use approval", writ.ApprovalResuming, writ.ApprovalConsumed)
}

// Cancel ends a in any state that is not terminal.
func Cancel(a *writ.Approval, now time.Time) error {
	if a.State.Terminal() {
		return conflict("cancel approval", "%s", History(*a))
	}
	decide(a, writ.ApprovalCancelled, now)
	return nil
}

// Expire ends an a whose time is over: a pending one, and the one of a call that was
// granted, or queued, and that nobody carried out. Before that it is a Conflict too.
func Expire(a *writ.Approval, now time.Time) error {
	const op = "expire approval"
	idle := (a.State == writ.ApprovalGranted || a.State == writ.ApprovalQueued) && a.Action != writ.ActionRun
	if a.State != writ.ApprovalPending && !idle {
		return conflict(op, "%s", History(*a))
	}
	if now.Before(a.Expires) {
		return conflict(op, "approval %s does not expire before %s", a.ID, stamp(a.Expires))
	}
	decide(a, writ.ApprovalExpired, now)
	return nil
}

func step(a *writ.Approval, op string, from, to writ.ApprovalState) error {
	if a.State != from {
		return conflict(op, "%s", History(*a))
	}
	a.State = to
	return nil
}
