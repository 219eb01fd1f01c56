package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"writ"
	"writ/store"
)

// Sweep settles the processes and the patches that nobody carries out any more: what the
// runner knows of how they ended becomes how they ended in the ledger. first is true for
// the sweep before anything else of this process began. Output that was kept for its time
// is deleted.
//
// A patch of which the runner has no trace ends unknown (spec/02 §6, scenario 60): the
// ledger does not guess.
func (w *Workspaces) Sweep(ctx context.Context, first bool) error {
	err := w.settleProcesses(ctx, first)
	if err != nil && first {
		return err
	}
	if !first {
		err = errors.Join(err, w.endUnsent(ctx))
	}
	return errors.Join(err, w.dropOutputs(ctx), w.settlePatches(ctx, first))
}

func (w *Workspaces) settlePatches(ctx context.Context, first bool) error {
	lost, err := w.lost(ctx)
	if err != nil || len(lost) == 0 && !first {
		return err
	}
	settled, err := w.files.Recover(ctx)
	if err != nil {
		return fmt.Errorf("settle patches: %w", err)
	}
	var errs []error
	for _, s := range settled {
		op, known := lost[s.Operation]
		delete(lost, s.Operation)
		switch {
		case s.Result.Status == writ.PatchUnknown:
			w.g.slog.Error("a patch was interrupted and cannot be settled yet", "operation", s.Operation, "reason", s.Result.Reason)
		case known:
			errs = append(errs, w.settle(ctx, op, s.Result))
		case !w.carriesOut(string(s.Operation)):
			errs = append(errs, w.forgetRecorded(ctx, s.Operation))
		}
	}
	for _, op := range lost {
		errs = append(errs, w.settle(ctx, op, writ.PatchResult{
			Status: writ.PatchUnknown,
			Reason: "the server stopped while it was under way, and the runner has no trace of it: look at the files, then send it under another key",
		}))
	}
	return errors.Join(errs...)
}

// lost are the operations of this gateway that are not finished, and that no call of
// this process carries out.
func (w *Workspaces) lost(ctx context.Context) (map[writ.OperationID]writ.Operation, error) {
	lost := map[writ.OperationID]writ.Operation{}
	err := w.g.db.View(ctx, func(tx *store.Tx) error {
		clear(lost)
		unfinished, err := tx.UnfinishedOperations(ctx, w.g.opt.Owner)
		for _, op := range unfinished {
			if !w.carriesOut(string(op.ID)) {
				lost[op.ID] = op
			}
		}
		return err
	})
	return lost, err
}

func (w *Workspaces) settle(ctx context.Context, op writ.Operation, result writ.PatchResult) error {
	op.Result = boundedResult(result)
	if err := w.g.db.Update(ctx, func(tx *store.Tx) error {
		op := op
		return w.finishIn(ctx, tx, &op)
	}); err != nil {
		return fmt.Errorf("settle %s: %w", op.ID, err)
	}
	w.g.slog.Warn("an interrupted patch was settled", "operation", op.ID, "status", op.Result.Status)
	w.forget(ctx, op)
	return nil
}

// forgetRecorded lets the runner drop what it kept of an operation that the ledger has
// as finished. One that the ledger does not know is another ledger's.
func (w *Workspaces) forgetRecorded(ctx context.Context, id writ.OperationID) error {
	var op writ.Operation
	err := w.g.db.View(ctx, func(tx *store.Tx) (err error) {
		op, err = tx.Operation(ctx, id)
		return err
	})
	switch {
	case writ.KindOf(err) == writ.NotFound:
		w.g.slog.Warn("the runner has a patch that this ledger does not know", "operation", id)
		return nil
	case err != nil:
		return err
	case op.Finished != nil:
		// Also when the ledger has it as unknown: that stays, and nobody asks the runner.
		if err := w.files.Forget(ctx, id); err != nil {
			return fmt.Errorf("forget %s: %w", id, err)
		}
	}
	return nil
}

// Watch sweeps, and records the ends of processes, until ctx ends.
func (w *Workspaces) Watch(ctx context.Context) {
	var following sync.WaitGroup
	defer following.Wait()
	following.Go(func() { w.follow(ctx) })
	eachBeat(ctx, func() {
		if err := w.Sweep(ctx, false); err != nil && ctx.Err() == nil {
			w.g.slog.Error("sweep workspaces", "err", err)
		}
	})
}
