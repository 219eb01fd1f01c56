package work

import (
	"context"
	"fmt"

	"writ"
	"writ/store"
)

// Open starts a work in a workspace that who may read. Instructions that wait there and
// belong to no work become its own; those for the next work are then for after this
// one. Errors: WORKSPACE_NOT_FOUND, UNAUTHORIZED, Invalid for the title,
// RESOURCE_QUEUE_FULL when MaxOpenWorks are open.
func (s *Service) Open(ctx context.Context, who writ.Principal, workspace writ.WorkspaceID, title string) (writ.Work, error) {
	if err := writ.ValidTitle(title); err != nil {
		return writ.Work{}, &writ.Error{Kind: writ.Invalid, Op: "open work", Msg: err.Error()}
	}
	ws, err := s.workspaces.Readable(ctx, who, workspace, "work_open")
	if err != nil {
		return writ.Work{}, err
	}
	var w writ.Work
	err = s.update(ctx, func(tx *store.Tx) error {
		n, err := tx.CountOpenWorks(ctx, ws.Tenant, ws.ID, ws.Root)
		if err != nil {
			return err
		}
		if n >= writ.MaxOpenWorks {
			return &writ.Error{Kind: writ.Exhausted, Code: codeQueueFull, Op: "open work",
				Msg: fmt.Sprintf("%d works are open in workspace %s: finish one", n, ws.ID)}
		}
		w = writ.Work{
			ID: writ.NewWorkID(), Workspace: ws.ID, Root: ws.Root, Tenant: ws.Tenant, Title: title,
			State: writ.WorkActive, Revision: 1, By: who.Ref(), Created: writ.Now(),
		}
		if err := tx.InsertWork(ctx, w); err != nil {
			return err
		}
		adopted, err := adopt(ctx, tx, w)
		if err != nil {
			return err
		}
		return s.record(ctx, tx, writ.EventWorkOpened, who.Ref(), w, nil, writ.EventData{Count: int64(adopted)})
	})
	return w, err
}

// adopt gives w the drafts and queued intents of its workspace that have no work.
func adopt(ctx context.Context, tx *store.Tx, w writ.Work) (int, error) {
	loose, err := tx.Intents(ctx, store.IntentFilter{
		Tenant: w.Tenant, Workspace: w.Workspace, Root: w.Root, Loose: true,
		States: []writ.IntentState{writ.IntentDraft, writ.IntentQueued}, Limit: most,
	})
	if err != nil {
		return 0, err
	}
	for _, was := range loose {
		i := was
		i.Work, i.Revision, i.Updated = w.ID, was.Revision+1, w.Created
		if i.Delivery == writ.DeliverNextWork {
			i.Delivery = writ.DeliverAfter // this is the next work
		}
		if err := replace(ctx, tx, i, was); err != nil {
			return 0, err
		}
	}
	return len(loose), nil
}

// most bounds a list of intents that are not over: their bound, and the notices of
// stops, which are not refused.
const most = 10 * writ.MaxOpenIntents

// find reads a work for an agent. It is WORK_NOT_FOUND when it is not of a workspace
// that who may see, and UNAUTHORIZED when who may not read there.
func (s *Service) find(ctx context.Context, who writ.Principal, id writ.WorkID, what string) (w writ.Work, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		w, err = tx.Work(ctx, id)
		return err
	})
	if writ.KindOf(err) == writ.NotFound {
		return w, noWork(id)
	}
	if err != nil {
		return w, err
	}
	ws, err := s.workspaces.Workspace(who, w.Workspace)
	if writ.KindOf(err) == writ.NotFound || err == nil && (ws.Tenant != w.Tenant || ws.Root != w.Root) {
		return writ.Work{}, noWork(id)
	}
	if err == nil {
		_, err = s.workspaces.Readable(ctx, who, w.Workspace, what)
	}
	return w, err
}

// Status is a work with what waits in it as counts, and the intents that were claimed
// and are not completed: an agent that lost an answer finds them here, and the notice
// of a stop. Errors: WORK_NOT_FOUND, UNAUTHORIZED.
func (s *Service) Status(ctx context.Context, who writ.Principal, id writ.WorkID) (st writ.WorkStatus, claimed []writ.Intent, err error) {
	if _, err = s.find(ctx, who, id, "steer_status"); err != nil {
		return st, nil, err
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		w, err := tx.Work(ctx, id)
		if err != nil {
			return err
		}
		n, err := countIntents(ctx, tx, w)
		if err != nil {
			return err
		}
		st = writ.WorkStatus{Work: w, WorkCounts: n.counts()}
		claimed, err = tx.Intents(ctx, store.IntentFilter{
			Tenant: w.Tenant, Workspace: w.Workspace, Root: w.Root, Work: w.ID, States: []writ.IntentState{writ.IntentClaimed}, Limit: most,
		})
		return err
	})
	return st, claimed, err
}

// ClaimNext takes the first intent that may be claimed now, for whoever asks; nil when
// there is none. Its text does not change any more. Errors: WORK_NOT_FOUND,
// WORK_CLOSED, UNAUTHORIZED.
func (s *Service) ClaimNext(ctx context.Context, who writ.Principal, id writ.WorkID) (item *writ.Intent, err error) {
	if _, err := s.find(ctx, who, id, "steer_claim_next"); err != nil {
		return nil, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		item = nil
		w, err := tx.Work(ctx, id)
		if err != nil {
			return err
		}
		if !w.State.Open() {
			return closed(w)
		}
		was, err := tx.NextIntent(ctx, id, claimable(w.State))
		if writ.KindOf(err) == writ.NotFound {
			return nil
		}
		if err != nil {
			return err
		}
		i := was
		i.State, i.Updated = writ.IntentClaimed, writ.Now()
		if err := replace(ctx, tx, i, was); err != nil {
			return err
		}
		if err := bump(ctx, tx, &w); err != nil {
			return err
		}
		item = &i
		return s.record(ctx, tx, writ.EventIntentClaimed, who.Ref(), w, &i, writ.EventData{})
	})
	if err != nil {
		return nil, err
	}
	return item, nil
}

// Complete says what became of a claimed intent: done or blocked. Errors:
// INTENT_NOT_FOUND, also for a work that is not there; INTENT_NOT_EDITABLE when it is
// not claimed; Invalid for another outcome; UNAUTHORIZED.
func (s *Service) Complete(ctx context.Context, who writ.Principal, work writ.WorkID, id writ.IntentID, outcome writ.IntentState) (i writ.Intent, err error) {
	if outcome != writ.IntentDone && outcome != writ.IntentBlocked {
		return i, &writ.Error{Kind: writ.Invalid, Op: "complete intent", Msg: fmt.Sprintf("outcome: want %s or %s", writ.IntentDone, writ.IntentBlocked)}
	}
	if _, err := s.find(ctx, who, work, "steer_complete"); err != nil {
		if writ.CodeOf(err) == codeWorkNotFound {
			err = noIntent(id)
		}
		return i, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		w, err := tx.Work(ctx, work)
		if err != nil {
			return err
		}
		was, err := tx.Intent(ctx, id)
		if writ.KindOf(err) == writ.NotFound || err == nil && (was.Work != work || was.State == writ.IntentDraft) {
			return noIntent(id) // nor is a draft there for an agent
		}
		if err != nil {
			return err
		}
		if was.State != writ.IntentClaimed {
			return &writ.Error{Kind: writ.Conflict, Code: codeNotEditable, Op: "complete intent",
				Msg: fmt.Sprintf("intent %s is %s: only a claimed one can be completed", id, was.State)}
		}
		i = was
		i.State, i.Updated, i.Revision = outcome, writ.Now(), was.Revision+1
		if err := replace(ctx, tx, i, was); err != nil {
			return err
		}
		if err := bump(ctx, tx, &w); err != nil {
			return err
		}
		return s.record(ctx, tx, writ.EventIntentCompleted, who.Ref(), w, &i, writ.EventData{})
	})
	return i, err
}

// Finish closes a work in which nothing is pending. Otherwise it says how many
// instructions are; when all of them are for after the work, it is closing from then
// on and they may be claimed. What is left when it closes, drafts and intents for the
// next work, then belongs to no work. Errors: WORK_NOT_FOUND, WORK_CLOSED,
// UNAUTHORIZED.
func (s *Service) Finish(ctx context.Context, who writ.Principal, id writ.WorkID) (f writ.Finish, err error) {
	if _, err := s.find(ctx, who, id, "work_finish"); err != nil {
		return f, err
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		w, err := tx.Work(ctx, id)
		if err != nil {
			return err
		}
		if !w.State.Open() {
			return closed(w)
		}
		n, err := countIntents(ctx, tx, w)
		if err != nil {
			return err
		}
		to := n.finish()
		f = writ.Finish{Work: w, Closed: to == writ.WorkClosed, Queued: n.pending()}
		if to == w.State {
			return nil
		}
		w.State = to
		if f.Closed {
			now := writ.Now()
			w.Closed = &now
			if err := detach(ctx, tx, w); err != nil {
				return err
			}
		}
		if err := bump(ctx, tx, &w); err != nil {
			return err
		}
		f.Work = w
		return s.record(ctx, tx, writ.EventWorkFinished, who.Ref(), w, nil, writ.EventData{Count: int64(f.Queued)})
	})
	return f, err
}

// detach takes what is not over out of a work that closes.
func detach(ctx context.Context, tx *store.Tx, w writ.Work) error {
	left, err := tx.Intents(ctx, store.IntentFilter{
		Tenant: w.Tenant, Workspace: w.Workspace, Root: w.Root, Work: w.ID,
		States: []writ.IntentState{writ.IntentDraft, writ.IntentQueued}, Limit: most,
	})
	if err != nil {
		return err
	}
	for _, was := range left {
		i := was
		i.Work, i.Revision, i.Updated = "", was.Revision+1, *w.Closed
		if err := replace(ctx, tx, i, was); err != nil {
			return err
		}
	}
	return nil
}

// Hint says what waits in the open work id of a workspace or, when id is empty, in its
// only open work. found is false when there is none: a hint is never an error of its
// own (spec/02 §5).
func (s *Service) Hint(ctx context.Context, who writ.Principal, workspace writ.WorkspaceID, id writ.WorkID) (hint writ.WorkHint, found bool, err error) {
	ws, err := s.workspaces.Workspace(who, workspace)
	if err != nil {
		return hint, false, err
	}
	err = s.db.View(ctx, func(tx *store.Tx) error {
		hint, found, err = tx.WorkHint(ctx, ws.Tenant, ws.ID, ws.Root, id)
		return err
	})
	return hint, found, err
}
