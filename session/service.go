package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"writ"
	"writ/store"
)

// Blobs keeps bytes by their digest.
type Blobs interface {
	// Put keeps at most limit bytes, and answers once they are on the disk. More are
	// Invalid with writ.CodeFileTooLarge.
	Put(ctx context.Context, r io.Reader, limit int64) (writ.Digest, int64, error)
	// Open answers n bytes from an offset on, all of them when n is negative; the caller
	// closes it. Bytes that are missing or, in the whole, other ones are an error in the
	// place of io.EOF. NotFound and Invalid are a blob and a range that are not there.
	Open(ctx context.Context, digest writ.Digest, from, n int64) (io.ReadCloser, error)
	// Sweep removes what was put before a time, last, and of which inUse does not say that
	// somebody uses it. With dry it only counts.
	Sweep(ctx context.Context, before time.Time, inUse func(context.Context, []writ.Digest) ([]writ.Digest, error), dry bool) (n int, bytes int64, err error)
}

// Limits bound what is kept. What is over and not yet removed counts.
type Limits struct {
	SessionObjects int64 // of one session
	SessionBytes   int64 // of one session
	TenantSessions int64 // of all sessions of a tenant
	TenantBytes    int64 // of all sessions of a tenant
}

// Options are how long what is kept for, and how much.
type Options struct {
	TTL       time.Duration // of a session, from when it was made
	Retention time.Duration // after that, until it is removed
	// Grace is how long bytes that nobody names are kept. Half of it is the time that the
	// row of an object has to commit in.
	Grace  time.Duration
	Limits Limits
}

// Defaults are the times of spec/03 §14.1 and spec/05 §4.1, and room for one machine.
func Defaults() Options {
	return Options{
		TTL: 24 * time.Hour, Retention: 48 * time.Hour, Grace: time.Hour,
		Limits: Limits{SessionObjects: 1000, SessionBytes: 8 << 30, TenantSessions: 100_000, TenantBytes: 64 << 30},
	}
}

// Service is what may be done with sessions. Its methods may be called at once.
type Service struct {
	db    *store.DB
	blobs Blobs
	opt   Options
	now   func() time.Time // writ.Now, but for tests of what takes days
}

// New is a service on a store and the bytes that belong to it: no other store may name
// digests of blobs.
func New(db *store.DB, blobs Blobs, opt Options) (*Service, error) {
	var errs []error
	for name, v := range map[string]int64{
		"TTL": int64(opt.TTL), "Grace": int64(opt.Grace),
		"SessionObjects": opt.Limits.SessionObjects, "SessionBytes": opt.Limits.SessionBytes,
		"TenantSessions": opt.Limits.TenantSessions, "TenantBytes": opt.Limits.TenantBytes,
	} {
		if v <= 0 {
			errs = append(errs, fmt.Errorf("%s is %d: want more than 0", name, v))
		}
	}
	if opt.Retention < 0 {
		errs = append(errs, fmt.Errorf("retention is %v: want 0 or more", opt.Retention))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("storage sessions: %w", err)
	}
	return &Service{db: db, blobs: blobs, opt: opt, now: writ.Now}, nil
}

// missing is the answer for all that a caller may not see, and what is not there.
func missing(op string) error {
	return &writ.Error{Kind: writ.NotFound, Op: op, Msg: "there is no such session or file, or it has expired: upload it again"}
}

// Create makes a session of e for p, which holds nothing yet. Invalid is an entity that
// is none, Exhausted a tenant with as many sessions as it may have.
func (s *Service) Create(ctx context.Context, p writ.Principal, e Entity) (writ.Session, error) {
	if err := e.Check(); err != nil {
		return writ.Session{}, err
	}
	now := s.now()
	made := writ.Session{
		ID: writ.NewSessionID(), Tenant: p.Tenant, By: p.Ref(), Kind: e.Kind, Key: e.key(p),
		Created: now, Expires: now.Add(s.opt.TTL),
	}
	err := s.db.Update(ctx, func(tx *store.Tx) error {
		totals, err := tx.SessionTotals(ctx, p.Tenant)
		if err != nil {
			return err
		}
		if totals.Sessions >= s.opt.Limits.TenantSessions {
			return exhausted("create session", "the tenant has %d storage sessions, the most it may have: wait until some expire", totals.Sessions)
		}
		return tx.InsertSession(ctx, made)
	})
	if err != nil {
		return writ.Session{}, err
	}
	return made, nil
}

func exhausted(op, format string, args ...any) error {
	return &writ.Error{Kind: writ.Exhausted, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// find reads a session in a transaction, if p may use it as e.
func (s *Service) find(ctx context.Context, tx *store.Tx, p writ.Principal, e Entity, id writ.SessionID) (writ.Session, error) {
	if err := e.Check(); err != nil {
		return writ.Session{}, err
	}
	if !id.Valid() {
		return writ.Session{}, missing("find session")
	}
	got, err := tx.Session(ctx, id)
	if writ.KindOf(err) == writ.NotFound || err == nil && (got.Key != e.key(p) || !s.now().Before(got.Expires)) {
		return writ.Session{}, missing("find session")
	}
	return got, err
}

// Find answers a session that p, who names e, may use.
func (s *Service) Find(ctx context.Context, p writ.Principal, e Entity, id writ.SessionID) (got writ.Session, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) (err error) { got, err = s.find(ctx, tx, p, e, id); return err })
	return got, err
}

// Get answers one object of a session that p, who names e, may use.
func (s *Service) Get(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID, id writ.ObjectID) (o writ.Object, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		_, o, err = s.object(ctx, tx, p, e, in, id)
		return err
	})
	return o, err
}

func (s *Service) object(ctx context.Context, tx *store.Tx, p writ.Principal, e Entity, in writ.SessionID, id writ.ObjectID) (writ.Session, writ.Object, error) {
	of, err := s.find(ctx, tx, p, e, in)
	if err != nil {
		return of, writ.Object{}, err
	}
	o, err := tx.Object(ctx, in, id)
	if writ.KindOf(err) == writ.NotFound {
		err = missing("find object")
	}
	return of, o, err
}

// List answers all objects of a session that p, who names e, may use, in the order in
// which they came.
func (s *Service) List(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID) (os []writ.Object, err error) {
	err = s.db.View(ctx, func(tx *store.Tx) error {
		of, err := s.find(ctx, tx, p, e, in)
		if err != nil {
			return err
		}
		os, err = tx.Objects(ctx, in, int(of.Objects)) // of the same snapshot: all of them
		return err
	})
	return os, err
}

// Open answers n bytes of o from an offset on, or all that follow it when n is negative;
// the caller must close it. o is one that Get, List or Put answered: that is the right to
// read it. An early end is an error in the place of io.EOF. NotFound means that o was
// removed since, Invalid that the range is not within it.
func (s *Service) Open(ctx context.Context, o writ.Object, from, n int64) (io.ReadCloser, error) {
	r, err := s.blobs.Open(ctx, o.SHA256, from, n)
	if writ.KindOf(err) == writ.NotFound {
		return nil, &writ.Error{Kind: writ.NotFound, Op: "open object", Msg: missing("").Error(), Err: err}
	}
	return r, err
}

// Delete deletes one object of a session that p, who names e, may use. Its bytes go with
// the next pass of Retain, unless another object has the same ones.
func (s *Service) Delete(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID, id writ.ObjectID) error {
	return s.db.Update(ctx, func(tx *store.Tx) error {
		of, o, err := s.object(ctx, tx, p, e, in, id)
		if err != nil {
			return err
		}
		return tx.DeleteObject(ctx, of, o)
	})
}
