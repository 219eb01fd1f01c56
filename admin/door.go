package admin

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"writ"
	"writ/audit"
	"writ/auth"
	"writ/store"
)

// Door authenticates keys and records those that it refuses, so that guessing is
// seen (case AUD-06).
type Door struct {
	*auth.Authenticator
	s   *Service
	log *slog.Logger

	refusals audit.Bound
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
	dropped, due := d.refusals.Due("keys", now)
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
