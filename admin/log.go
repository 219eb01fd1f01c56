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

// Events lists at most f.Limit events (0 or more than writ.MaxPage means that) in
// the order of the log, from f.After+1 on. more says that the log has others that f
// selects, after the last of them.
//
// Denied when who may not read what f asks for: an agent must name one of its tasks,
// and only the owner of the data folder may name a tenant that is not its own.
func (s *Service) Events(ctx context.Context, who writ.Principal, f writ.EventFilter) (list []writ.Event, more bool, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		if err := s.narrow(ctx, tx, who, &f); err != nil {
			return err
		}
		if list, err = tx.Events(ctx, f); err != nil || len(list) == 0 {
			return err
		}
		f.After, f.Limit = list[len(list)-1].Seq, 1
		next, err := tx.Events(ctx, f)
		more = len(next) > 0
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return list, more, nil
}

// narrow bounds f to what who may read.
func (s *Service) narrow(ctx context.Context, tx *store.Tx, who writ.Principal, f *writ.EventFilter) error {
	const op = "list events"
	own, _ := who.Narrow(f.Tenant, "")
	if f.Tenant != "" && f.Tenant != own {
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: fmt.Sprintf("%s may read the events of tenant %q only", who.Ref(), own)}
	}
	f.Tenant = own
	if who.Administers() {
		return nil
	}
	t, err := tx.Task(ctx, f.Task)
	if err != nil && writ.KindOf(err) != writ.NotFound {
		return err
	}
	if f.Task == "" || err != nil || !who.Sees(t.Tenant, t.Identity) {
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: fmt.Sprintf("%s may read the events of its own tasks only: name one", who.Ref()), Err: err}
	}
	return nil
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
	if err := s.read(ctx, "export log", who, func(tx *store.Tx) error { return s.narrow(ctx, tx, who, &f) }); err != nil {
		return err
	}
	view := func(ctx context.Context, fn func(audit.Source) error) error {
		return s.db.View(ctx, func(tx *store.Tx) error { return fn(tx) })
	}
	return audit.Export(ctx, view, w, format, f)
}

func (s *Service) read(ctx context.Context, op string, who writ.Principal, fn func(*store.Tx) error) error {
	if err := mayRead(op, who); err != nil {
		return err
	}
	return s.db.View(ctx, fn)
}

// Explain says what would be decided about req now, and why: a policy.Explanation.
// Who does not administer is told the decision, as the task itself would say it,
// and neither of the other rules nor of what would have to differ: that is a guide
// past the policy.
func (s *Service) Explain(_ context.Context, who writ.Principal, req writ.TaskRequest) (any, error) {
	x, err := s.gw.Explain(who, req)
	if err != nil {
		return nil, err
	}
	if !who.Administers() {
		x.Matched, x.Nearest = nil, nil
	}
	return x, nil
}
