package admin

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"writ"
	"writ/auth"
	"writ/store"
)

// refusalsAMinute bounds what refused keys can add to the log. More are counted,
// and the count stands in the first record of a later minute.
const refusalsAMinute = 60

// Door authenticates keys and records those that it refuses, so that guessing is
// seen (case AUD-06).
type Door struct {
	*auth.Authenticator
	s   *Service
	log *slog.Logger

	mu      sync.Mutex
	minute  time.Time // guarded by mu; which one is counted
	written int       // guarded by mu; refusals recorded in it
	dropped int64     // guarded by mu; refusals not recorded since the last that was
}

// NewDoor is a door to the service's own keys.
func NewDoor(s *Service, log *slog.Logger) *Door {
	return &Door{Authenticator: auth.New(s, s), s: s, log: log}
}

// Bearer is auth.Authenticator.Bearer. A refusal that cannot be recorded is logged
// and still a refusal.
func (d *Door) Bearer(ctx context.Context, token string, now time.Time) (writ.Principal, error) {
	p, err := d.Authenticator.Bearer(ctx, token, now)
	if writ.KindOf(err) != writ.Unauthenticated {
		return p, err
	}
	dropped, due := d.due(now)
	if !due {
		return p, err
	}
	cause := writ.Message(err)
	if e, ok := errors.AsType[*writ.Error](err); ok && e.Err != nil {
		cause = e.Err.Error() // names a key that exists, never what was sent
	}
	rerr := d.s.db.Update(ctx, func(tx *store.Tx) error {
		_, err := d.s.log.Append(ctx, tx, writ.Event{Type: writ.EventAuthRefused, Data: writ.EventData{Reason: cause, Count: dropped}})
		return err
	})
	if rerr != nil {
		d.log.ErrorContext(ctx, "record refused key", "err", rerr)
	}
	return p, err
}

// due reports whether a refusal at now is recorded, and how many were not since
// the last that was.
func (d *Door) due(now time.Time) (dropped int64, due bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m := now.Truncate(time.Minute); !m.Equal(d.minute) {
		d.minute, d.written = m, 0
	}
	if d.written >= refusalsAMinute {
		d.dropped++
		return 0, false
	}
	d.written++
	dropped, d.dropped = d.dropped, 0
	return dropped, true
}
