package session

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"writ"
	"writ/store"
)

// Kept is a file whose bytes are kept already.
type Kept struct {
	Name         string // as [NameFault] lets it be
	Type         string // as that of a File; TypeOf answers one
	Digest       writ.Digest
	Size         int64 // bytes
	ModifiedFrom *writ.ObjectRef
}

// Adopt makes objects of files whose bytes were put among those of this service, within
// Options.Grace, in a session that p, who names e, may use; all in one transaction. It
// answers them in the order of kept. Invalid is a name that is refused, Exhausted a bound
// of the session or the tenant, Internal bytes that are not there; after an error there is
// no object.
func (s *Service) Adopt(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID, kept []Kept) ([]writ.Object, error) {
	const op = "keep files of a run"
	var total int64
	for _, k := range kept {
		if fault := NameFault(k.Name); fault != "" {
			return nil, &writ.Error{Kind: writ.Invalid, Op: op, Msg: fmt.Sprintf("file name %q %s", k.Name, fault)}
		}
		total += k.Size
	}
	check := func(ctx context.Context, tx *store.Tx) (writ.Session, error) {
		of, err := s.find(ctx, tx, p, e, in)
		if err != nil || len(kept) == 0 {
			return of, err
		}
		room, err := s.room(ctx, tx, of, int64(len(kept)))
		if err == nil && total > room {
			err = s.full(room)
		}
		return of, err
	}
	err := s.view(ctx, p, func(tx *store.Tx) error { _, err := check(ctx, tx); return err })
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	for _, k := range kept {
		if err := s.renew(ctx, k.Digest, k.Size); err != nil {
			return nil, &writ.Error{Op: op, Err: fmt.Errorf("%q: %w", k.Name, err)}
		}
	}
	// As with Put: the bytes are safe for all of the grace, the rows have half.
	ctx, cancel := context.WithTimeout(ctx, s.opt.Grace/2)
	defer cancel()
	objects := make([]writ.Object, len(kept))
	for i, k := range kept {
		objects[i] = writ.Object{
			ID: writ.NewObjectID(), Session: in, Name: k.Name, Type: cleanType(k.Type), Size: k.Size, SHA256: k.Digest,
			ModifiedFrom: k.ModifiedFrom, Created: s.now(),
		}
	}
	err = s.update(ctx, p, func(tx *store.Tx) error {
		of, err := check(ctx, tx)
		if err != nil {
			return err
		}
		return tx.InsertObjects(ctx, of, objects)
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// renew makes bytes that were put as safe from Retain as if they were put now, and holds
// them to be size. No bytes at all are always there.
func (s *Service) renew(ctx context.Context, digest writ.Digest, size int64) error {
	got, err := s.blobs.Renew(ctx, digest)
	if writ.KindOf(err) == writ.NotFound && digest == writ.DigestOf(nil) {
		_, got, err = s.blobs.Put(ctx, strings.NewReader(""), 0)
	}
	if err == nil && got != size {
		err = fmt.Errorf("it has %d bytes, not %d", got, size)
	}
	return err
}

// ListKeep answers the objects of a session that p, who names e, may use, that stand for
// folders that are empty (writ.KeepName), in the order in which they came.
func (s *Service) ListKeep(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID) ([]writ.Object, error) {
	os, err := s.List(ctx, p, e, in)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(os, func(o writ.Object) bool { return o.Name == writ.KeepName || path.Base(o.Name) != writ.KeepName }), nil
}
