package gateway

import (
	"context"
	"fmt"

	"writ"
	"writ/store"
)

// cancelled is why a run's context ended: somebody asked.
type cancelled struct {
	by     writ.Ref
	reason string
}

func (c *cancelled) Error() string {
	s := "cancelled"
	if c.by != (writ.Ref{}) {
		s += " by " + c.by.String()
	}
	if c.reason != "" {
		s += ": " + c.reason
	}
	return s
}

// Cancel ends a task that is not over: one that waits ends cancelled at once; one
// that runs is stopped and ends killed, which the answer need not show yet. Who
// asked is recorded first.
//
// Errors: NotFound when there is no such task that who may see; Conflict when it
// is over; Unavailable when another gateway runs it.
func (g *Gateway) Cancel(ctx context.Context, who writ.Principal, id writ.TaskID, reason string) (writ.Task, error) {
	var t writ.Task
	why := &cancelled{by: who.Ref(), reason: cut(reason, maxReason)}
	err := g.db.Update(ctx, func(tx *store.Tx) error {
		var err error
		if t, err = tx.Task(ctx, id); err != nil && writ.KindOf(err) != writ.NotFound {
			return err
		}
		if err != nil || !who.Sees(t.Tenant, t.Identity) {
			return &writ.Error{Op: "cancel task", Kind: writ.NotFound, Msg: fmt.Sprintf("there is no task %q", id), Err: err}
		}
		return g.cancelTask(ctx, tx, &t, who, why)
	})
	if err != nil {
		return writ.Task{}, err
	}
	g.mu.Lock()
	c := g.live[id]
	g.mu.Unlock()
	if c != nil {
		c.cancel(why) // also one that waits: its place is for another
	}
	if t.State != writ.TaskRunning {
		g.watch.Changed(t)
	}
	return t, nil
}

func (g *Gateway) cancelTask(ctx context.Context, tx *store.Tx, t *writ.Task, who writ.Principal, why *cancelled) error {
	asked := event(*t, writ.EventTaskCancelled, writ.EventData{Reason: why.reason})
	asked.Actor = who.Ref()
	switch t.State {
	case writ.TaskRunning:
		if t.Owner != g.opt.Owner {
			return &writ.Error{Op: "cancel task", Kind: writ.Unavailable, Msg: fmt.Sprintf("task %s runs on gateway %q: ask that one", t.ID, t.Owner)}
		}
		asked.Data.State = t.State
		return g.record(ctx, tx, asked)
	case writ.TaskHeld, writ.TaskQueued:
	default:
		return &writ.Error{Op: "cancel task", Kind: writ.Conflict, Msg: fmt.Sprintf("task %s is over: %s", t.ID, t.State)}
	}
	from := t.State
	a, err := approvalOf(ctx, tx, *t)
	if err != nil {
		return err
	}
	end(t, writ.TaskCancelled, why.Error())
	if err := swapTask(ctx, tx, *t, from); err != nil {
		return err
	}
	asked.Data.State = t.State
	if err := g.record(ctx, tx, asked); err != nil {
		return err
	}
	if a != nil && !a.State.Terminal() {
		return g.voidApproval(ctx, tx, a, why.Error())
	}
	return nil
}
