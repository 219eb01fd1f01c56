package work

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"writ"
	"writ/store"
)

// The methods below are the inbox (spec/02 §10.1). They are UNAUTHORIZED for who does
// not administer, and know the works of who's tenant only: others are WORK_NOT_FOUND
// and INTENT_NOT_FOUND.

// person refuses who is none.
func person(who writ.Principal) error {
	if who.Administers() {
		return nil
	}
	return &writ.Error{Kind: writ.Denied, Code: codeUnauthorized, Op: "open inbox",
		Msg: "the inbox is for operators and the owner of the data folder: an agent has the tools steer_status and steer_claim_next"}
}

// Works lists works, newest first, and the cursor of the next page.
func (s *Service) Works(ctx context.Context, who writ.Principal, f writ.WorkFilter) (list []writ.Work, next string, err error) {
	if err := person(who); err != nil {
		return nil, "", err
	}
	f.Tenant, _ = who.Narrow(f.Tenant, "")
	err = s.db.View(ctx, func(tx *store.Tx) error {
		list, next, err = tx.Works(ctx, f)
		return err
	})
	return list, next, err
}

// Work is one work.
func (s *Service) Work(ctx context.Context, who writ.Principal, id writ.WorkID) (w writ.Work, err error) {
	if err := person(who); err != nil {
		return w, err
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		w, err = visible(ctx, tx, who, id)
		return err
	})
	return w, err
}

func visible(ctx context.Context, tx *store.Tx, who writ.Principal, id writ.WorkID) (writ.Work, error) {
	w, err := tx.Work(ctx, id)
	if writ.KindOf(err) == writ.NotFound || err == nil && !who.Sees(w.Tenant, "") {
		return writ.Work{}, noWork(id)
	}
	return w, err
}

// maxListed bounds the list of intents: beside those that are not over, of which there
// are fewer, the latest of the rest.
const maxListed = most + 500

// Intents lists the intents of a work and those of its workspace that have no work:
// claimed, queued, drafts, then the rest, the latest first.
func (s *Service) Intents(ctx context.Context, who writ.Principal, id writ.WorkID) (list []writ.Intent, err error) {
	if err := person(who); err != nil {
		return nil, err
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		w, err := visible(ctx, tx, who, id)
		if err != nil {
			return err
		}
		list, err = intentsOf(ctx, tx, w)
		return err
	})
	return list, err
}

func intentsOf(ctx context.Context, tx *store.Tx, w writ.Work) ([]writ.Intent, error) {
	return tx.Intents(ctx, store.IntentFilter{Tenant: w.Tenant, Workspace: w.Workspace, Root: w.Root, Work: w.ID, Loose: true, Limit: maxListed})
}

// AddIntent writes a draft. On a closed work it waits for the next one. req must be valid.
// RESOURCE_QUEUE_FULL when MaxOpenIntents are open.
func (s *Service) AddIntent(ctx context.Context, who writ.Principal, id writ.WorkID, req writ.IntentRequest) (i writ.Intent, err error) {
	if err := person(who); err != nil {
		return i, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		w, err := visible(ctx, tx, who, id)
		if err != nil {
			return err
		}
		n, err := tx.CountOpenIntents(ctx, w.Tenant, w.Workspace, w.Root)
		if err != nil {
			return err
		}
		if n >= writ.MaxOpenIntents {
			return &writ.Error{Kind: writ.Exhausted, Code: codeQueueFull, Op: "add intent",
				Msg: fmt.Sprintf("%d intents are open in workspace %s: cancel some, or let them be done", n, w.Workspace)}
		}
		i = newIntent(who, w, req)
		return insert(ctx, tx, &w, &i)
	})
	return i, err
}

// newIntent is a draft for w or, when that is closed, for the next.
func newIntent(who writ.Principal, w writ.Work, req writ.IntentRequest) writ.Intent {
	now := writ.Now()
	i := writ.Intent{
		ID: writ.NewIntentID(), Work: w.ID, Workspace: w.Workspace, Root: w.Root, Tenant: w.Tenant, Revision: 1,
		Kind: cmp.Or(req.Kind, writ.IntentFollowUp), Delivery: cmp.Or(req.Delivery, writ.DeliverAfter),
		Body: req.Body, State: writ.IntentDraft, By: who.Ref(), Created: now, Updated: now,
	}
	if !w.State.Open() {
		i.Work, i.Delivery = "", writ.DeliverNextWork
	}
	return i
}

// insert puts i behind all others, and stores it.
func insert(ctx context.Context, tx *store.Tx, w *writ.Work, i *writ.Intent) (err error) {
	if i.Position, err = tx.NextPosition(ctx, w.Tenant, w.Workspace, w.Root); err != nil {
		return err
	}
	if err := tx.InsertIntent(ctx, *i); err != nil {
		return err
	}
	if i.Work == "" {
		return nil
	}
	return bump(ctx, tx, w)
}

// change lets fn change an intent, in one transaction with the work that it belongs to.
// fn is given the intent as it is and answers the event to record, empty for none.
func (s *Service) change(ctx context.Context, who writ.Principal, id writ.IntentID, fn func(*store.Tx, *writ.Intent) (writ.EventType, error)) (i writ.Intent, err error) {
	if err := person(who); err != nil {
		return i, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		was, err := tx.Intent(ctx, id)
		if writ.KindOf(err) == writ.NotFound || err == nil && !who.Sees(was.Tenant, "") {
			return noIntent(id)
		}
		if err != nil {
			return err
		}
		w := writ.Work{Workspace: was.Workspace, Tenant: was.Tenant}
		if was.Work != "" {
			// From here on nobody else changes intents of this work. It may have changed,
			// or gone to another work, until here.
			if w, err = tx.Work(ctx, was.Work); err != nil {
				return err
			}
			again, err := tx.Intent(ctx, id)
			if err != nil {
				return err
			}
			if again.Work != was.Work {
				return errMoved
			}
			was = again
		}
		i = was
		i.Updated = writ.Now()
		event, err := fn(tx, &i)
		if err != nil {
			return err
		}
		i.Revision++
		if err := replace(ctx, tx, i, was); err != nil {
			return err
		}
		if was.Work != "" {
			if err := bump(ctx, tx, &w); err != nil {
				return err
			}
		}
		if event == "" {
			return nil
		}
		return s.record(ctx, tx, event, who.Ref(), w, &i, writ.EventData{})
	})
	return i, err
}

// editable says why an intent can not be changed any more, if it can not.
func editable(i writ.Intent, states ...writ.IntentState) error {
	switch {
	case slices.Contains(states, i.State):
		return nil
	case i.State == writ.IntentClaimed:
		return &writ.Error{Kind: writ.Conflict, Code: codeAlreadyClaimed, Op: "change intent",
			Msg: fmt.Sprintf("an agent has claimed intent %s: it does not change any more", i.ID)}
	}
	return &writ.Error{Kind: writ.Conflict, Code: codeNotEditable, Op: "change intent", Msg: fmt.Sprintf("intent %s is %s", i.ID, i.State)}
}

func current(i writ.Intent, seen int64) error {
	if i.Revision == seen {
		return nil
	}
	return &writ.Error{Kind: writ.Conflict, Code: codeRevisionConflict, Op: "change intent",
		Msg: fmt.Sprintf("intent %s has revision %d, not %d: read it again", i.ID, i.Revision, seen)}
}

// EditIntent changes the text and the delivery of a draft or a queued intent. req must be
// valid. Errors: INTENT_ALREADY_CLAIMED, INTENT_NOT_EDITABLE when it is over,
// INTENT_REVISION_CONFLICT.
func (s *Service) EditIntent(ctx context.Context, who writ.Principal, id writ.IntentID, req writ.IntentEdit) (writ.Intent, error) {
	return s.change(ctx, who, id, func(_ *store.Tx, i *writ.Intent) (writ.EventType, error) {
		if err := cmp.Or(editable(*i, writ.IntentDraft, writ.IntentQueued), current(*i, req.Revision)); err != nil {
			return "", err
		}
		i.Body, i.Delivery = req.Body, cmp.Or(req.Delivery, i.Delivery)
		if i.State == writ.IntentQueued {
			return writ.EventIntentQueued, nil // another instruction than before
		}
		return "", nil
	})
}

// QueueIntent makes a draft an instruction, behind all others. Errors: as of EditIntent, and
// INTENT_NOT_EDITABLE when it is queued already.
func (s *Service) QueueIntent(ctx context.Context, who writ.Principal, id writ.IntentID, revision int64) (writ.Intent, error) {
	return s.change(ctx, who, id, func(tx *store.Tx, i *writ.Intent) (_ writ.EventType, err error) {
		if err := cmp.Or(editable(*i, writ.IntentDraft), current(*i, revision)); err != nil {
			return "", err
		}
		i.State = writ.IntentQueued
		i.Position, err = tx.NextPosition(ctx, i.Tenant, i.Workspace, i.Root)
		return writ.EventIntentQueued, err
	})
}

// CancelIntent withdraws a draft or a queued intent. Errors: INTENT_ALREADY_CLAIMED,
// INTENT_NOT_EDITABLE when it is over.
func (s *Service) CancelIntent(ctx context.Context, who writ.Principal, id writ.IntentID) (writ.Intent, error) {
	return s.change(ctx, who, id, func(_ *store.Tx, i *writ.Intent) (writ.EventType, error) {
		if err := editable(*i, writ.IntentDraft, writ.IntentQueued); err != nil {
			return "", err
		}
		i.State = writ.IntentCancelled
		return writ.EventIntentCancelled, nil
	})
}

// ReorderIntents puts the queued intents of a work in another order, of which req must name
// each once; the answer is as that of Intents. Errors: WORK_CLOSED,
// INTENT_REVISION_CONFLICT when req does not have exactly the intents that are queued
// now.
func (s *Service) ReorderIntents(ctx context.Context, who writ.Principal, id writ.WorkID, req writ.ReorderRequest) (list []writ.Intent, err error) {
	if err := person(who); err != nil {
		return nil, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		w, err := visible(ctx, tx, who, id)
		if err != nil {
			return err
		}
		if !w.State.Open() {
			return closed(w)
		}
		queued, err := tx.Intents(ctx, store.IntentFilter{
			Tenant: w.Tenant, Workspace: w.Workspace, Root: w.Root, Work: w.ID, States: []writ.IntentState{writ.IntentQueued}, Limit: most,
		})
		if err != nil {
			return err
		}
		if !sameIntents(queued, req.Intents) {
			return &writ.Error{Kind: writ.Conflict, Code: codeRevisionConflict, Op: "reorder intents",
				Msg: fmt.Sprintf("%d intents are queued in work %s, each must be named once and no other: read them again", len(queued), id)}
		}
		if err := reorder(ctx, tx, queued, req.Intents); err != nil {
			return err
		}
		if err := bump(ctx, tx, &w); err != nil {
			return err
		}
		list, err = intentsOf(ctx, tx, w)
		return err
	})
	return list, err
}

func sameIntents(queued []writ.Intent, ids []writ.IntentID) bool {
	have := make([]writ.IntentID, len(queued))
	for n, i := range queued {
		have[n] = i.ID
	}
	slices.Sort(have)
	return slices.Equal(have, slices.Sorted(slices.Values(ids)))
}

// reorder gives the queued intents, which are in the order of their positions, the same
// positions in the order of ids.
func reorder(ctx context.Context, tx *store.Tx, queued []writ.Intent, ids []writ.IntentID) error {
	last := int64(0)
	for n, id := range ids {
		last = max(last+1, queued[n].Position) // two may have had one position
		was := queued[slices.IndexFunc(queued, func(i writ.Intent) bool { return i.ID == id })]
		i := was
		i.Position = last
		if err := replace(ctx, tx, i, was); err != nil {
			return err
		}
	}
	return nil
}

// stopped is what the agent is told when the person says nothing.
const stopped = "The processes of this workspace were stopped. Do not start them again without asking."

// StopWork leaves the agent of a work the notice that its processes are stopped, and ends
// all that run in its workspace. The notice counts as claimed when the work is open,
// which therefore does not finish before it is completed; else it waits for the next
// work. req must be valid. An error after the notice was left is the Stopper's.
func (s *Service) StopWork(ctx context.Context, who writ.Principal, id writ.WorkID, req writ.StopRequest) (writ.Stop, error) {
	if err := person(who); err != nil {
		return writ.Stop{}, err
	}
	var w writ.Work
	var i writ.Intent
	err := s.update(ctx, func(tx *store.Tx) (err error) {
		if w, err = visible(ctx, tx, who, id); err != nil {
			return err
		}
		i = newIntent(who, w, writ.IntentRequest{Body: cmp.Or(req.Reason, stopped), Kind: writ.IntentStopNotice, Delivery: writ.DeliverCheckpoint})
		i.State = writ.IntentQueued
		if w.State.Open() {
			i.State = writ.IntentClaimed
		}
		if err := insert(ctx, tx, &w, &i); err != nil {
			return err
		}
		return s.record(ctx, tx, writ.EventWorkStopped, who.Ref(), w, &i, writ.EventData{})
	})
	if err != nil {
		return writ.Stop{}, err
	}
	// The record is made: whoever asked may hang up, and it is done all the same.
	killed, err := s.stopper.StopWorkspace(context.WithoutCancel(ctx), who, w.Workspace, w.Root)
	if err != nil {
		return writ.Stop{}, err
	}
	return writ.Stop{OK: true, Killed: killed, Intent: i}, nil
}
