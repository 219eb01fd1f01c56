package session

import (
	"context"
	"fmt"

	"writ"
	"writ/store"
)

// Sessions answers one page of the sessions of f's tenant, or of who's where who is an
// operator, newest first, and the cursor of the next, empty after the last. Those that are
// over are among them until they are removed. It is Denied to all but operators and the
// owner of the data folder, as what follows.
func (s *Service) Sessions(ctx context.Context, who writ.Principal, f writ.SessionFilter) (ss []writ.Session, next string, err error) {
	if err := mayOperate("list sessions", who); err != nil {
		return nil, "", err
	}
	f.Tenant, _ = who.Narrow(f.Tenant, "")
	err = s.db.View(ctx, func(tx *store.Tx) error { ss, next, err = tx.Sessions(ctx, f); return err })
	return ss, next, err
}

// Contents answers one session and what is in it, also one that is over and was not removed
// yet. One of a tenant that who may not see is NotFound, as one that is not there.
func (s *Service) Contents(ctx context.Context, who writ.Principal, id writ.SessionID) (c writ.SessionContents, err error) {
	const op = "show session"
	if err := mayOperate(op, who); err != nil {
		return c, err
	}
	err = s.db.View(ctx, func(tx *store.Tx) error { c, err = contents(ctx, tx, op, who, id); return err })
	return c, err
}

// Remove removes one session, whoever uses it now, and what is in it, with an event of who
// did it in the same transaction. Its bytes go at once, but for those that somebody else
// names, and those that were put or renewed within Options.Grace, which go with the first
// pass of Retain after that. It answers what is gone. An error of removing bytes leaves
// them to that pass.
func (s *Service) Remove(ctx context.Context, who writ.Principal, id writ.SessionID) (writ.FileRemoval, error) {
	const op = "remove session"
	if err := mayOperate(op, who); err != nil {
		return writ.FileRemoval{}, err
	}
	var of writ.SessionContents
	var r writ.FileRemoval
	err := s.db.Update(ctx, func(tx *store.Tx) (err error) {
		if of, err = contents(ctx, tx, op, who, id); err != nil {
			return err
		}
		r = writ.FileRemoval{Sessions: 1, Objects: of.Objects, Bytes: of.Bytes}
		if err := tx.DeleteSession(ctx, of.Session); err != nil || s.opt.Record == nil {
			return err
		}
		removed := r
		return s.opt.Record(ctx, tx, writ.Event{
			Type: writ.EventSessionRemoved, Tenant: of.Tenant, Actor: who.Ref(), Data: writ.EventData{Subject: string(id), Removed: &removed},
		})
	})
	if err != nil {
		return writ.FileRemoval{}, err
	}
	seen := map[writ.Digest]bool{}
	var digests []writ.Digest
	for _, o := range of.Files {
		if !seen[o.SHA256] {
			seen[o.SHA256] = true
			digests = append(digests, o.SHA256)
		}
	}
	n, bytes, err := s.blobs.SweepOf(ctx, digests, s.now().Add(-s.opt.Grace), s.inUse)
	r.Blobs, r.BlobBytes = int64(n), bytes
	s.mu.Lock()
	s.removed.Add(writ.FileRemoval{Blobs: r.Blobs, BlobBytes: r.BlobBytes})
	s.mu.Unlock()
	if err != nil {
		return r, fmt.Errorf("%s: its files are gone, not all of their bytes: %w", op, err)
	}
	return r, nil
}

func mayOperate(op string, who writ.Principal) error {
	if !who.Administers() {
		return &writ.Error{Op: op, Kind: writ.Denied, Msg: "the files of the code interpreter's users are for operators and the owner of the data folder"}
	}
	return nil
}

func contents(ctx context.Context, tx *store.Tx, op string, who writ.Principal, id writ.SessionID) (c writ.SessionContents, err error) {
	c.Session, err = tx.Session(ctx, id)
	if err == nil {
		if tenant, _ := who.Narrow(c.Tenant, ""); tenant != c.Tenant {
			err = &writ.Error{Kind: writ.NotFound}
		}
	}
	if writ.KindOf(err) == writ.NotFound {
		return writ.SessionContents{}, &writ.Error{Op: op, Kind: writ.NotFound, Msg: fmt.Sprintf("there is no session %q", string(id)), Err: err}
	}
	if err == nil {
		c.Files, err = tx.Objects(ctx, id, int(c.Objects))
	}
	return c, err
}
