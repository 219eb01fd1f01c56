package work

import (
	"context"

	"writ"
	"writ/store"
)

// claimable are the deliveries of the intents that an agent may have of a work in
// state s.
func claimable(s writ.WorkState) []writ.Delivery {
	switch s {
	case writ.WorkActive:
		return []writ.Delivery{writ.DeliverCheckpoint}
	case writ.WorkClosing:
		return []writ.Delivery{writ.DeliverCheckpoint, writ.DeliverAfter}
	}
	return nil
}

// tally is how many intents of a work wait. Those for the next work are nobody's yet.
type tally struct {
	state      writ.WorkState
	claimed    int
	checkpoint int // queued
	after      int // queued
}

func countIntents(ctx context.Context, tx *store.Tx, w writ.Work) (tally, error) {
	counts, err := tx.IntentCounts(ctx, w.ID)
	n := tally{state: w.State}
	for _, c := range counts {
		switch {
		case c.State == writ.IntentClaimed:
			n.claimed += c.N
		case c.State == writ.IntentQueued && c.Delivery == writ.DeliverCheckpoint:
			n.checkpoint += c.N
		case c.State == writ.IntentQueued && c.Delivery == writ.DeliverAfter:
			n.after += c.N
		}
	}
	return n, err
}

// pending is how many the agent has to see to before the work can close.
func (n tally) pending() int { return n.claimed + n.checkpoint + n.after }

// finish is the state of the work once its agent says that it is done.
func (n tally) finish() writ.WorkState {
	switch {
	case n.claimed > 0 || n.checkpoint > 0:
		return n.state
	case n.after > 0:
		return writ.WorkClosing
	}
	return writ.WorkClosed
}

func (n tally) counts() writ.WorkCounts {
	c := writ.WorkCounts{Queued: n.checkpoint + n.after, Claimed: n.claimed}
	for _, d := range claimable(n.state) {
		switch d {
		case writ.DeliverCheckpoint:
			c.Claimable += n.checkpoint
		case writ.DeliverAfter:
			c.Claimable += n.after
		}
	}
	return c
}
