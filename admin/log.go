package admin

import (
	"context"
	"fmt"
	"io"

	"writ"
	"writ/audit"
	"writ/store"
)

// Verifier is the public key of the log's checkpoints.
func (s *Service) Verifier() string { return s.log.Verifier() }

// Events lists events in the order of the log. An agent must name one of its tasks.
func (s *Service) Events(ctx context.Context, who writ.Principal, f writ.EventFilter) (list []writ.Event, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		if f, err = s.narrow(ctx, tx, who, f); err != nil {
			return err
		}
		list, err = tx.Events(ctx, f)
		return err
	})
	return list, err
}

func (s *Service) narrow(ctx context.Context, tx *store.Tx, who writ.Principal, f writ.EventFilter) (writ.EventFilter, error) {
	if who.Administers() {
		if t := tenantOf(who); t != "" {
			f.Tenant = t
		}
		return f, nil
	}
	t, err := tx.Task(ctx, f.Task)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return f, err
	}
	if f.Task == "" || err != nil || !who.Sees(t.Tenant, t.Identity) {
		return f, &writ.Error{Op: "list events", Kind: writ.Denied, Msg: fmt.Sprintf("%s may read the events of its own tasks only: name one", who.Ref()), Err: err}
	}
	f.Tenant = t.Tenant
	return f, nil
}

// Checkpoint is the log's last signed head. Kept elsewhere it is the anchor that
// shows a later truncation.
func (s *Service) Checkpoint(ctx context.Context, who writ.Principal) (c writ.Checkpoint, err error) {
	err = s.read(ctx, "read checkpoint", who, func(tx *store.Tx) error {
		c, err = audit.Head(ctx, tx, s.log.Verifier())
		return err
	})
	return c, err
}

// Verify recomputes the whole log.
func (s *Service) Verify(ctx context.Context, who writ.Principal, anchors []string) (r writ.AuditReport, err error) {
	err = s.read(ctx, "verify log", who, func(tx *store.Tx) error {
		r, err = audit.Verify(ctx, tx, s.log.Verifier(), anchors...)
		return err
	})
	return r, err
}

// Prove shows that the event seq is in the log. NotFound when it is not, or is
// another tenant's.
func (s *Service) Prove(ctx context.Context, who writ.Principal, seq int64) (p writ.AuditProof, err error) {
	err = s.read(ctx, "prove event", who, func(tx *store.Tx) error {
		recs, err := tx.Records(ctx, seq-1, 1)
		if err != nil {
			return err
		}
		t := tenantOf(who)
		if seq < 0 || len(recs) == 0 || recs[0].Seq != seq || t != "" && recs[0].Tenant != t {
			return &writ.Error{Op: "prove event", Kind: writ.NotFound, Msg: fmt.Sprintf("there is no event %d", seq)}
		}
		p, err = audit.Prove(ctx, tx, s.log.Verifier(), seq)
		return err
	})
	return p, err
}

// Export writes events to w, one JSON object a line: "jsonl" are the records as
// they are signed, "cloudevents" wraps each in CloudEvents 1.0. What it refuses it
// refuses before it writes.
func (s *Service) Export(ctx context.Context, who writ.Principal, w io.Writer, format string, f writ.EventFilter) error {
	return s.read(ctx, "export log", who, func(tx *store.Tx) error {
		f, err := s.narrow(ctx, tx, who, f)
		if err != nil {
			return err
		}
		return audit.Export(ctx, tx, w, format, f)
	})
}

func (s *Service) read(ctx context.Context, op string, who writ.Principal, fn func(*store.Tx) error) error {
	if err := mayRead(op, who); err != nil {
		return err
	}
	return s.db.View(ctx, fn)
}

// Explain says what would be decided about req now, and why: a policy.Explanation.
func (s *Service) Explain(_ context.Context, who writ.Principal, req writ.TaskRequest) (any, error) {
	return s.gw.Explain(who, req)
}
