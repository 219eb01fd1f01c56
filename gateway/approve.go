package gateway

import (
	"context"
	"fmt"
	"strings"

	"writ"
	"writ/approval"
	"writ/store"
)

// Approvals lists what who may see, newest first, and the cursor of the next page.
func (g *Gateway) Approvals(ctx context.Context, who writ.Principal, f writ.ApprovalFilter) (list []writ.Approval, next string, err error) {
	f.Tenant, f.Identity = who.Narrow(f.Tenant, f.Identity)
	err = g.db.View(ctx, func(tx *store.Tx) error {
		list, next, err = tx.Approvals(ctx, f)
		return err
	})
	return list, next, err
}

// Approval is one approval with exactly what will run. NotFound when there is
// none that who may see.
func (g *Gateway) Approval(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.ApprovalView, error) {
	a, err := g.visibleApproval(ctx, who, id)
	if err != nil {
		return writ.ApprovalView{}, err
	}
	return g.show(ctx, a)
}

// show is a with the text for its approver, which is empty when what would have run
// was deleted.
func (g *Gateway) show(ctx context.Context, a writ.Approval) (writ.ApprovalView, error) {
	if a.Call != nil {
		return g.showCall(ctx, a)
	}
	v := writ.ApprovalView{Approval: a}
	var t writ.Task
	var spec writ.RunSpec
	deleted := false
	err := g.db.View(ctx, func(tx *store.Tx) error {
		var err error
		if t, err = tx.Task(ctx, a.Task); err != nil {
			return err
		}
		spec, err = getSpec(ctx, tx, t)
		if deleted = writ.KindOf(err) == writ.NotFound && t.State.Terminal(); deleted {
			return nil
		}
		return err
	})
	if err != nil {
		return writ.ApprovalView{}, err
	}
	if deleted {
		return v, nil
	}
	v.Text = approval.Render(t, spec, a)
	v.Shown = writ.DigestOf([]byte(v.Text))
	return v, nil
}

func (g *Gateway) visibleApproval(ctx context.Context, who writ.Principal, id writ.ApprovalID) (a writ.Approval, err error) {
	err = g.db.View(ctx, func(tx *store.Tx) error {
		a, err = tx.Approval(ctx, id)
		return err
	})
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return a, err
	}
	if err != nil || !who.Sees(a.Tenant, a.Identity) {
		return writ.Approval{}, &writ.Error{Op: "read approval", Kind: writ.NotFound, Msg: fmt.Sprintf("there is no approval %q", id), Err: err}
	}
	return a, nil
}

// Vote gives who's verdict on a held request. The last grant that it needs queues
// its task, in the same transaction, and launches it. A refused attempt is recorded
// before its error is answered.
//
// Errors: Denied when who may not decide it; Conflict when it is decided, expired,
// or not what who was shown; Invalid without a reason that is asked for.
func (g *Gateway) Vote(ctx context.Context, who writ.Principal, id writ.ApprovalID, v writ.VoteRequest) (writ.Approval, error) {
	a, err := g.visibleApproval(ctx, who, id)
	if err == nil {
		err = approval.Eligible(a, who) // before anything is rendered
	}
	if err != nil {
		return writ.Approval{}, g.refuseVote(ctx, who, id, err)
	}
	// Rendered before the transaction, since large code takes a while. What is shown
	// rests on nothing that can change while the approval waits.
	seen, err := g.show(ctx, a)
	if err != nil {
		return writ.Approval{}, err
	}
	if a.Task != "" {
		defer g.tells(a.Task)()
	}
	var t writ.Task
	err = g.db.Update(ctx, func(tx *store.Tx) error {
		if a, err = tx.Approval(ctx, id); err != nil {
			return err
		}
		if err := approval.Vote(&a, who, v, seen.Shown, writ.Now()); err != nil {
			return err
		}
		if a.Call != nil {
			return g.settleCallVote(ctx, tx, a, who)
		}
		if t, err = tx.Task(ctx, a.Task); err != nil {
			return err
		}
		return g.settleVote(ctx, tx, &t, &a, who)
	})
	if err != nil {
		return writ.Approval{}, g.refuseVote(ctx, who, id, err)
	}
	if a.Call != nil {
		return a, nil
	}
	g.watch.Changed(t)
	if t.State == writ.TaskQueued {
		g.launch(t.ID, shareOf(t))
	}
	return a, nil
}

// voted are the events of a's last vote.
func voted(a writ.Approval, who writ.Principal) []writ.Event {
	last := a.Votes[len(a.Votes)-1]
	v := ofApproval(a, writ.EventApprovalVoted, writ.EventData{Reason: last.Reason, Votes: []writ.Vote{last}, Binds: a.Digest})
	v.Actor = who.Ref()
	if a.State == writ.ApprovalPending {
		return []writ.Event{v}
	}
	return []writ.Event{v, settled(a, who.Ref(), last.Reason)}
}

// settleVote stores a vote and what follows from it.
func (g *Gateway) settleVote(ctx context.Context, tx *store.Tx, t *writ.Task, a *writ.Approval, who writ.Principal) error {
	last := a.Votes[len(a.Votes)-1]
	events := voted(*a, who)
	if a.State == writ.ApprovalPending {
		if err := swapApproval(ctx, tx, *a, writ.ApprovalPending); err != nil {
			return err
		}
		return g.record(ctx, tx, events...)
	}
	if a.State == writ.ApprovalGranted {
		if err := approval.Queue(a); err != nil {
			return err
		}
		t.State, t.Updated, t.Reason = writ.TaskQueued, writ.Now(), fmt.Sprintf("granted by %s", who.Ref())
		if err := tx.Enqueue(ctx, store.Job{Kind: store.JobDispatch, Task: t.ID}); err != nil {
			return err
		}
		events = append(events, event(*t, writ.EventTaskQueued, writ.EventData{State: t.State}))
	} else {
		end(t, writ.TaskDenied, strings.TrimSuffix(fmt.Sprintf("denied by %s: %s", who.Ref(), last.Reason), ": "))
	}
	if err := swapApproval(ctx, tx, *a, writ.ApprovalPending); err != nil {
		return err
	}
	if err := swapTask(ctx, tx, *t, writ.TaskHeld); err != nil {
		return err
	}
	return g.record(ctx, tx, events...)
}

// refuseVote records that somebody tried to decide what they may not.
func (g *Gateway) refuseVote(ctx context.Context, who writ.Principal, id writ.ApprovalID, cause error) error {
	switch writ.KindOf(cause) {
	case writ.Denied, writ.Conflict:
	default:
		return cause
	}
	dropped, due := g.refusals.Due(who.Ref().String(), writ.Now())
	if !due {
		return cause
	}
	err := g.db.Update(ctx, func(tx *store.Tx) error {
		a, err := tx.Approval(ctx, id)
		if err != nil {
			return err
		}
		e := ofApproval(a, writ.EventApprovalVoted, writ.EventData{Reason: "refused: " + writ.Message(cause), Count: dropped})
		e.Actor = who.Ref()
		return g.record(ctx, tx, e)
	})
	if err != nil {
		return err
	}
	return cause
}

// voidApproval cancels an approval that covers what will not run.
func (g *Gateway) voidApproval(ctx context.Context, tx *store.Tx, a *writ.Approval, reason string) error {
	from := a.State
	if err := approval.Cancel(a, writ.Now()); err != nil {
		return err
	}
	if err := swapApproval(ctx, tx, *a, from); err != nil {
		return err
	}
	return g.record(ctx, tx, settled(*a, writ.Ref{}, reason))
}

// Expire ends an approval whose time is over, and its task with it. It does
// nothing when that was decided before, or when its time is not over.
func (g *Gateway) Expire(ctx context.Context, id writ.ApprovalID) error {
	var t writ.Task
	done := false
	err := g.db.Update(ctx, func(tx *store.Tx) error {
		done = false
		a, err := tx.Approval(ctx, id)
		if err != nil || writ.Now().Before(a.Expires) {
			return err
		}
		if a.Call != nil {
			return g.expireCall(ctx, tx, a)
		}
		if a.State != writ.ApprovalPending {
			return nil
		}
		if t, err = tx.Task(ctx, a.Task); err != nil {
			return err
		}
		if err := approval.Expire(&a, writ.Now()); err != nil {
			return err
		}
		const reason = "nobody decided in time"
		end(&t, writ.TaskExpired, reason)
		if err := swapApproval(ctx, tx, a, writ.ApprovalPending); err != nil {
			return err
		}
		if err := swapTask(ctx, tx, t, writ.TaskHeld); err != nil {
			return err
		}
		done = true
		return g.record(ctx, tx, settled(a, writ.Ref{}, reason))
	})
	if err == nil && done {
		g.watch.Changed(t)
	}
	return err
}
