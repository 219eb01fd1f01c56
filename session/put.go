package session

import (
	"context"
	"fmt"
	"io"

	"writ"
	"writ/store"
)

// File is one to keep.
type File struct {
	Name     string // as [NameFault] lets it be
	Type     string // what cannot stand in a header becomes application/octet-stream
	ReadOnly bool
	Body     io.Reader
	Max      int64 // bytes that Body may have
}

// Put keeps a file in a session that p, who names e, may use, and answers its object once
// both are durable. Invalid is a name that is refused and, with writ.CodeFileTooLarge, a
// body of more than f.Max bytes; Exhausted a bound of the session or the tenant. After an
// error there is no object. Body is not read when that is clear before, and never further
// than one byte beyond what may be kept; f is not kept.
func (s *Service) Put(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID, f File) (writ.Object, error) {
	if fault := NameFault(f.Name); fault != "" {
		return writ.Object{}, &writ.Error{Kind: writ.Invalid, Op: "put object", Msg: "file name " + fault}
	}
	room, err := s.look(ctx, p, e, in)
	if err != nil {
		return writ.Object{}, err
	}
	digest, size, err := s.blobs.Put(ctx, f.Body, min(f.Max, room))
	if writ.CodeOf(err) == writ.CodeFileTooLarge && room < f.Max {
		return writ.Object{}, s.full(room)
	}
	if err != nil {
		return writ.Object{}, fmt.Errorf("put object: %w", err)
	}
	// From here on the bytes are safe from Retain for all of the grace; the row has half.
	ctx, cancel := context.WithTimeout(ctx, s.opt.Grace/2)
	defer cancel()
	o := writ.Object{
		ID: writ.NewObjectID(), Session: in, Name: f.Name, Type: cleanType(f.Type), Size: size, SHA256: digest,
		ReadOnly: f.ReadOnly, Created: s.now(),
	}
	err = s.update(ctx, p, func(tx *store.Tx) error {
		of, err := s.find(ctx, tx, p, e, in)
		if err != nil {
			return err
		}
		room, err := s.room(ctx, tx, of, 1)
		if err != nil {
			return err
		}
		if size > room {
			return s.full(room)
		}
		return tx.InsertObject(ctx, of, o)
	})
	if err != nil {
		return writ.Object{}, err
	}
	return o, nil
}

// look says before the bytes come how many there is room for.
func (s *Service) look(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID) (room int64, err error) {
	err = s.view(ctx, p, func(tx *store.Tx) error {
		of, err := s.find(ctx, tx, p, e, in)
		if err != nil {
			return err
		}
		room, err = s.room(ctx, tx, of, 1)
		return err
	})
	return room, err
}

// room is how many bytes n more objects of a session may have together.
func (s *Service) room(ctx context.Context, tx *store.Tx, of writ.Session, n int64) (int64, error) {
	totals, err := tx.SessionTotals(ctx, of.Tenant)
	if err != nil {
		return 0, err
	}
	if of.Objects+n > s.opt.Limits.SessionObjects {
		return 0, exhausted("put object", "the session holds %d files, of %d that it may: use another session", of.Objects, s.opt.Limits.SessionObjects)
	}
	// Below zero when a bound was lowered since.
	room := max(0, min(s.opt.Limits.SessionBytes-of.Bytes, s.opt.Limits.TenantBytes-totals.Bytes))
	return room, nil
}

func (s *Service) full(room int64) error {
	return exhausted("put object", "there is room for %d more bytes: use another session, or wait until some expire", room)
}
