package session

import (
	"context"
	"fmt"
	"time"

	"writ"
	"writ/store"
)

// retainPage is how many sessions a pass reads at a time.
const retainPage = 100

// Removed is what a pass removed, or would.
type Removed struct {
	Sessions int   // that were over
	Objects  int64 // of them
	Bytes    int64 // of their objects, each counted as if no other had the same ones
	// Blobs are those that nobody named any more. A dry pass counts those of objects that
	// are gone already, not those of the sessions that it would remove.
	Blobs     int
	BlobBytes int64
}

// Retain makes one pass (spec/05 §4.1): sessions that were over longer ago than
// Options.Retention are removed with their objects, then bytes that nobody names and that
// were put longer ago than Options.Grace. With dry it counts and removes nothing. Each
// session is removed in a transaction that looks at it again; one that somebody else
// removed is not counted. Passes may run at once, and after an error or a crash the next
// one goes on where this one was. What an error left undone is not in the counts.
func (s *Service) Retain(ctx context.Context, dry bool) (Removed, error) {
	var r Removed
	if err := s.retainSessions(ctx, dry, &r); err != nil {
		return r, fmt.Errorf("remove expired sessions: %w", err)
	}
	var err error
	r.Blobs, r.BlobBytes, err = s.blobs.Sweep(ctx, s.now().Add(-s.opt.Grace), s.inUse, dry)
	return r, err
}

func (s *Service) retainSessions(ctx context.Context, dry bool, r *Removed) error {
	cut := s.now().Add(-s.opt.Retention)
	var last writ.Session
	for {
		var page []writ.Session
		err := s.db.View(ctx, func(tx *store.Tx) (err error) {
			page, err = tx.ExpiredSessions(ctx, cut, last, retainPage)
			return err
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, old := range page {
			last = old
			if !dry {
				if old, err = s.remove(ctx, old.ID); writ.KindOf(err) == writ.NotFound {
					continue
				}
				if err != nil {
					return err
				}
			}
			r.Sessions++
			r.Objects += old.Objects
			r.Bytes += old.Bytes
		}
	}
}

// remove removes a session as it is now: one that is over stays so.
func (s *Service) remove(ctx context.Context, id writ.SessionID) (old writ.Session, err error) {
	err = s.db.Update(ctx, func(tx *store.Tx) error {
		if old, err = tx.Session(ctx, id); err != nil {
			return err
		}
		return tx.DeleteSession(ctx, old)
	})
	return old, err
}

func (s *Service) inUse(ctx context.Context, of []writ.Digest) (used []writ.Digest, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error { used, err = tx.UsedDigests(ctx, of); return err })
	return used, err
}

// Watch makes a pass at once and then one every so often until ctx ends, and reports each.
// What is due is in the store, so nothing is lost with a process that ends.
func (s *Service) Watch(ctx context.Context, every time.Duration, report func(Removed, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		report(s.Retain(ctx, false))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
