package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"writ"
	"writ/store"
)

// How often a gateway says that it lives, and for how long that is believed.
const (
	beat     = 5 * time.Second
	leaseFor = 30 * time.Second
)

// sweepPage bounds one transaction's work of a sweep.
const sweepPage = 100

// Sweep settles what time and crashes leave: a task that runs under a gateway
// that is gone ends interrupted, an approval whose time is over expires, and a
// queued task that nobody carries is launched. first is true for the sweep before
// anything else of this process ran: nobody carries any queued task then, and what
// it finds interrupted is recorded as a recovery.
func (g *Gateway) Sweep(ctx context.Context, first bool) error {
	if err := g.beat(ctx); err != nil {
		return err
	}
	lost, err := g.interruptLost(ctx)
	if first && lost > 0 {
		err = errors.Join(err, g.db.Update(ctx, func(tx *store.Tx) error {
			return g.record(ctx, tx, writ.Event{Type: writ.EventServerRecovers, Data: writ.EventData{Count: int64(lost)}})
		}))
	}
	return errors.Join(err, g.expireDue(ctx), g.launchQueued(ctx, first))
}

// Watch sweeps until ctx ends. Jobs do the same sooner; this is for what a job
// was lost for.
func (g *Gateway) Watch(ctx context.Context) {
	eachBeat(ctx, func() {
		if err := g.Sweep(ctx, false); err != nil && ctx.Err() == nil {
			g.slog.Error("sweep", "err", err)
		}
	})
}

// eachBeat calls fn once in each beat until ctx ends.
func eachBeat(ctx context.Context, fn func()) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			fn()
		}
	}
}

func (g *Gateway) beat(ctx context.Context) error {
	return g.db.Update(ctx, func(tx *store.Tx) error {
		return tx.Beat(ctx, g.opt.Owner, leaseFor)
	})
}

// interruptLost ends the running tasks of gateways that are gone, and those of this
// one that it does not carry: an earlier process of its name did, or it could not
// record their outcome.
func (g *Gateway) interruptLost(ctx context.Context) (n int, err error) {
	var lost []writ.Task
	err = g.db.View(ctx, func(tx *store.Tx) error {
		running, err := tx.Running(ctx, "")
		if err != nil {
			return err
		}
		alive, err := tx.Alive(ctx)
		if err != nil {
			return err
		}
		for _, t := range running {
			gone := !alive[t.Owner]
			if t.Owner == g.opt.Owner {
				gone = !g.carries(t.ID) // the name is kept over restarts
			}
			if gone {
				lost = append(lost, t)
			}
		}
		return nil
	})
	for _, t := range lost {
		err = errors.Join(err, g.interrupt(ctx, t))
	}
	return len(lost), err
}

func (g *Gateway) interrupt(ctx context.Context, t writ.Task) error {
	res := writ.Result{
		Outcome: writ.Interrupted, Started: true,
		Reason: "the server stopped while it ran; it may have done part of its work and is not started again",
	}
	err := g.recordOutcome(ctx, &t, res)
	if writ.KindOf(err) == writ.Conflict {
		return nil // settled meanwhile
	}
	if err != nil {
		return fmt.Errorf("interrupt %s: %w", t.ID, err)
	}
	g.watch.Changed(t)
	g.slog.Warn("run interrupted", "task", t.ID, "owner", t.Owner)
	return nil
}

func (g *Gateway) expireDue(ctx context.Context) error {
	var due []writ.Approval
	err := g.db.View(ctx, func(tx *store.Tx) (err error) {
		due, err = tx.DueApprovals(ctx, writ.Now(), sweepPage)
		return err
	})
	for _, a := range due {
		err = errors.Join(err, g.Expire(ctx, a.ID))
	}
	return err
}

// launchQueued carries queued tasks that nobody carries: at the first sweep all of
// them, later those that have waited for longer than a claim takes.
func (g *Gateway) launchQueued(ctx context.Context, first bool) error {
	var due []writ.Task
	f := writ.TaskFilter{States: []writ.TaskState{writ.TaskQueued}, Page: writ.Page{Limit: sweepPage}}
	for more := true; more; more = f.Page.Cursor != "" {
		var page []writ.Task
		err := g.db.View(ctx, func(tx *store.Tx) (err error) {
			page, f.Page.Cursor, err = tx.Tasks(ctx, f)
			return err
		})
		if err != nil {
			return err
		}
		for _, t := range page {
			if first || time.Since(t.Updated) > leaseFor {
				due = append(due, t)
			}
		}
	}
	for _, t := range slices.Backward(due) { // listed newest first
		g.launch(t.ID, shareOf(t))
	}
	return nil
}
