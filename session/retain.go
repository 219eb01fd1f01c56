package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"writ"
	"writ/store"
)

// retainPage is how many rows a pass reads, or removes, at a time.
const retainPage = 100

// countsGrace is how long counts of requests are kept after their window ended, so that no
// gateway whose clock is behind counts on.
const countsGrace = time.Hour

// recordTime bounds how long what was removed is recorded when the pass was told to end.
const recordTime = 5 * time.Second

// Retain makes one pass for by, the zero Ref being the server itself (spec/05 §4.1). It
// removes
//
//   - sessions that were over longer ago than Options.Retention, with their objects;
//   - runtime sessions that nobody used for Options.RuntimeTTL and nobody holds;
//   - the bodies of what users ran, when it ended longer ago than a session made at its end
//     is kept; the record of it stays;
//   - counts of requests whose window is long over;
//   - bytes that nobody names and that were put longer ago than Options.Grace.
//
// With dry it counts and removes nothing; it counts the bytes of objects that are gone
// already, not those of the sessions that it would remove. Passes may run at once: what
// another removed is not counted. After an error or a crash the next one goes on where this
// one was; what an error left undone is not in the counts, and does not keep the rest from
// being done.
//
// What was removed is one event at the end. Rows are counted for it as they go, so that a
// crash has them in the event of the next pass, which begins with that; of bytes a crash may
// forget some. Nothing is removed while what is not recorded yet cannot be.
func (s *Service) Retain(ctx context.Context, by writ.Ref, dry bool) (writ.FileRemoval, error) {
	p := pass{s: s, dry: dry}
	if !dry {
		if err := s.record(ctx, writ.Ref{}); err != nil { // what a crash left
			return p.removed, fmt.Errorf("record what was removed before: %w", err)
		}
	}
	var errs []error
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"expired sessions", p.sessions},
		{"runtime sessions", p.runtimes},
		{"bodies of runs", p.bodies},
		{"counts of requests", p.counts},
		{"bytes that nobody names", p.blobs}, // last: of what was removed before
	} {
		if err := step.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("remove %s: %w", step.name, err))
		}
	}
	if dry {
		return p.removed, errors.Join(errs...)
	}
	s.mu.Lock()
	s.removed.Add(p.removed)
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer stop()
	if err := s.record(ctx, by); err != nil {
		errs = append(errs, fmt.Errorf("record what was removed: %w", err))
	}
	return p.removed, errors.Join(errs...)
}

// record makes an event of what was removed and stands in none, if there is anything.
func (s *Service) record(ctx context.Context, by writ.Ref) error {
	if s.opt.Record == nil {
		return nil
	}
	return s.db.Update(ctx, func(tx *store.Tx) error {
		r, err := tx.TakeRemoval(ctx)
		if err != nil || r == (writ.FileRemoval{}) {
			return err
		}
		return s.opt.Record(ctx, tx, writ.Event{Type: writ.EventFilesRemoved, Actor: by, Data: writ.EventData{Removed: &r}})
	})
}

// pass is one of Retain.
type pass struct {
	s       *Service
	dry     bool
	removed writ.FileRemoval // or what would be
}

// remove removes in a transaction what fn answers, and counts it there, and here once it
// is gone.
func (p *pass) remove(ctx context.Context, fn func(*store.Tx) (writ.FileRemoval, error)) error {
	var r writ.FileRemoval
	err := p.s.db.Update(ctx, func(tx *store.Tx) (err error) {
		if r, err = fn(tx); err != nil || r == (writ.FileRemoval{}) || p.s.opt.Record == nil {
			return err
		}
		return tx.AddRemoval(ctx, r)
	})
	if err == nil {
		p.removed.Add(r)
	}
	return err
}

func (p *pass) sessions(ctx context.Context) error {
	cut := p.s.now().Add(-p.s.opt.Retention)
	of := func(t writ.SessionTotals) writ.FileRemoval {
		return writ.FileRemoval{Sessions: t.Sessions, Objects: t.Objects, Bytes: t.Bytes}
	}
	if p.dry {
		return p.s.db.View(ctx, func(tx *store.Tx) error {
			t, err := tx.ExpiredSessions(ctx, cut)
			p.removed.Add(of(t))
			return err
		})
	}
	return pages(func() (more bool, err error) {
		err = p.remove(ctx, func(tx *store.Tx) (writ.FileRemoval, error) {
			t, err := tx.DeleteExpiredSessions(ctx, cut, retainPage)
			more = t.Sessions > 0
			return of(t), err
		})
		return more, err
	})
}

func (p *pass) runtimes(ctx context.Context) error {
	now := p.s.now()
	cut := now.Add(-p.s.opt.RuntimeTTL)
	var last store.Runtime
	return pages(func() (more bool, err error) {
		var page []store.Runtime
		err = p.s.db.View(ctx, func(tx *store.Tx) (err error) {
			page, err = tx.UnusedRuntimes(ctx, cut, now, last, retainPage)
			return err
		})
		for _, old := range page {
			last = old
			if p.dry {
				p.removed.Add(writ.FileRemoval{Runtimes: 1, RuntimeBytes: old.Bytes})
			} else if err := p.runtime(ctx, old.Key, cut, now); err != nil {
				return false, err
			}
		}
		return len(page) > 0, err
	})
}

// runtime removes a runtime session as it is now, unless somebody took it meanwhile.
func (p *pass) runtime(ctx context.Context, key writ.Digest, cut, now time.Time) error {
	return p.remove(ctx, func(tx *store.Tx) (r writ.FileRemoval, err error) {
		is, err := tx.Runtime(ctx, key)
		switch {
		case writ.KindOf(err) == writ.NotFound:
			return r, nil
		case err != nil || !is.Used.Before(cut) || heldAt(is, now):
			return r, err
		}
		return writ.FileRemoval{Runtimes: 1, RuntimeBytes: is.Bytes}, tx.DeleteRuntime(ctx, is)
	})
}

func (p *pass) bodies(ctx context.Context) error {
	cut := p.s.now().Add(-p.s.opt.TTL - p.s.opt.Retention)
	if p.dry {
		return p.s.db.View(ctx, func(tx *store.Tx) (err error) { p.removed.Bodies, err = tx.UsersBodies(ctx, cut); return err })
	}
	return pages(func() (more bool, err error) {
		err = p.remove(ctx, func(tx *store.Tx) (writ.FileRemoval, error) {
			tasks, n, err := tx.DeleteUsersBodies(ctx, cut, retainPage)
			more = tasks > 0
			return writ.FileRemoval{Bodies: n}, err
		})
		return more, err
	})
}

// counts removes what is of no use to anybody: it is nobody's, and not counted.
func (p *pass) counts(ctx context.Context) error {
	if p.dry {
		return nil
	}
	cut := p.s.now().Add(-countsGrace)
	return pages(func() (more bool, err error) {
		err = p.s.db.Update(ctx, func(tx *store.Tx) error {
			n, err := tx.DeleteCounts(ctx, cut, retainPage)
			more = n > 0
			return err
		})
		return more, err
	})
}

func (p *pass) blobs(ctx context.Context) error {
	n, bytes, err := p.s.blobs.Sweep(ctx, p.s.now().Add(-p.s.opt.Grace), p.s.inUse, p.dry)
	if p.dry {
		p.removed.Add(writ.FileRemoval{Blobs: int64(n), BlobBytes: bytes})
		return err
	}
	if n == 0 {
		return err
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), recordTime) // they are gone
	defer stop()
	counted := p.remove(ctx, func(*store.Tx) (writ.FileRemoval, error) {
		return writ.FileRemoval{Blobs: int64(n), BlobBytes: bytes}, nil
	})
	return errors.Join(err, counted)
}

// pages calls page until there is no more, or an error.
func pages(page func() (more bool, err error)) error {
	for {
		if more, err := page(); err != nil || !more {
			return err
		}
	}
}

func (s *Service) inUse(ctx context.Context, of []writ.Digest) (used []writ.Digest, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error { used, err = tx.UsedDigests(ctx, of); return err })
	return used, err
}

// Watch makes a pass at once and then one every so often until ctx ends, and reports each.
// What is due is in the store, so nothing is lost with a process that ends.
func (s *Service) Watch(ctx context.Context, every time.Duration, dry bool, report func(writ.FileRemoval, error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		report(s.Retain(ctx, writ.Ref{}, dry))
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Usage answers what is kept now, of all tenants, and what was removed since the service
// was made, for operators.
func (s *Service) Usage(ctx context.Context) (u writ.FileUsage, err error) {
	var is store.Usage
	if err := s.db.View(ctx, func(tx *store.Tx) error { is, err = tx.Usage(ctx); return err }); err != nil {
		return u, err
	}
	u = writ.FileUsage{Sessions: is.Sessions, Objects: is.Objects, Bytes: is.Bytes, Runtimes: is.Runtimes, RuntimeBytes: is.RuntimeBytes}
	s.mu.Lock()
	defer s.mu.Unlock()
	u.Removed = s.removed
	return u, nil
}
