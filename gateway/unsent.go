package gateway

import (
	"context"

	"writ"
	"writ/store"
)

// endUnsent ends the processes that are recorded as begun by this gateway, and that no
// call of this process began: where a record was made although its transaction ended with
// an error, nothing was sent. It is not for the first sweep, which finds those of an earlier
// process.
func (w *Workspaces) endUnsent(ctx context.Context) error {
	var unsent []writ.Process
	err := w.g.db.View(ctx, func(tx *store.Tx) error {
		unsent = nil
		running, err := tx.RunningProcesses(ctx, w.g.opt.Owner)
		for _, p := range running {
			// It is in the table from before its record until after that of its end.
			if w.procs.get(p.ID) == nil {
				unsent = append(unsent, p)
			}
		}
		return err
	})
	for _, p := range unsent {
		live := newLive(p, nil)
		close(live.begun)
		w.procs.add(p.ID, live)
		_ = w.notStarted(ctx, live, &writ.Error{Kind: writ.Unavailable, Code: codeSpawnFailed, Op: "start command",
			Msg: "it was in doubt whether it is recorded, and so it was not sent"}) // the answer to a call that is over
	}
	return err
}
