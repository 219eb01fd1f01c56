package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
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
	// Renew keeps a blob as if it had been put now, and answers how many bytes it has.
	// NotFound is a blob that is not there.
	Renew(ctx context.Context, digest writ.Digest) (int64, error)
	// Sweep removes what was put before a time, last, and of which inUse does not say that
	// somebody uses it. With dry it only counts.
	Sweep(ctx context.Context, before time.Time, inUse func(context.Context, []writ.Digest) ([]writ.Digest, error), dry bool) (n int, bytes int64, err error)
	// SweepOf is Sweep for some digests alone.
	SweepOf(ctx context.Context, of []writ.Digest, before time.Time, inUse func(context.Context, []writ.Digest) ([]writ.Digest, error)) (n int, bytes int64, err error)
}

// Limits bound what is kept. What is over and not yet removed counts.
type Limits struct {
	SessionObjects int64 // of one session
	SessionBytes   int64 // of one session
	TenantSessions int64 // of a tenant
	TenantBytes    int64 // of all sessions and runtime sessions of a tenant
	RuntimeFiles   int64 // of one runtime session
	RuntimeBytes   int64 // of one runtime session
}

// Options say for how long things are kept, and how much of them.
type Options struct {
	TTL       time.Duration // of a session, from when it was made
	Retention time.Duration // after that, until it is removed
	// Grace is how long bytes that nobody names are kept. Half of it is the time that the
	// row of an object has to commit in.
	Grace time.Duration
	// RuntimeTTL is how long a runtime session is kept that nobody uses.
	RuntimeTTL time.Duration
	// RuntimeLease is after how long one is free whose holder died. Who holds it renews it
	// at each third of that. The clocks of gateways must differ by less than the rest.
	RuntimeLease time.Duration
	Limits       Limits
	// Record, if it is not nil, puts an event that an operator is to find into the log, in
	// the transaction that does what it says. Its error undoes that.
	Record func(context.Context, *store.Tx, writ.Event) error
	// Foreign, if it is not nil, is told when p asked for what is there and is not p's to
	// use: another user's, another tenant's, or of another entity than p named. p is told
	// that it is not there. what has ids alone. It is called after the transaction, by the
	// goroutine that serves p, which waits for it; how much of it is written down is its
	// own to bound.
	Foreign func(ctx context.Context, p writ.Principal, what string)
}

// Defaults are the times of spec/03 §14.1 and spec/05 §4.1, and room for one machine.
//
// Each run may make a session. One user at the full rate of spec/03 §5, 20 in 30 s, makes
// 57,600 a day, of which those of three days are there, in rows of about 420 bytes: the 10
// million that a tenant may have are those of 57 such users, day and night, and 4 GB.
func Defaults() Options {
	return Options{
		TTL: 24 * time.Hour, Retention: 48 * time.Hour, Grace: time.Hour,
		RuntimeTTL: 8*time.Hour + 10*time.Minute, RuntimeLease: 30 * time.Second,
		Limits: Limits{
			SessionObjects: 1000, SessionBytes: 8 << 30, TenantSessions: 10_000_000, TenantBytes: 64 << 30,
			RuntimeFiles: 20_000, RuntimeBytes: 512 << 20,
		},
	}
}

// Service is what may be done with sessions. Its methods may be called at once.
type Service struct {
	db    *store.DB
	blobs Blobs
	opt   Options
	now   func() time.Time // writ.Now, but for tests of what takes days

	mu      sync.Mutex
	removed writ.FileRemoval // guarded by mu; since New
}

// New is a service on a store and the bytes that belong to it ([Bind]): no other store may
// name digests of blobs.
func New(db *store.DB, blobs Blobs, opt Options) (*Service, error) {
	var errs []error
	for name, v := range map[string]int64{
		"TTL": int64(opt.TTL), "Grace": int64(opt.Grace), "RuntimeTTL": int64(opt.RuntimeTTL), "RuntimeLease": int64(opt.RuntimeLease / 3),
		"SessionObjects": opt.Limits.SessionObjects, "SessionBytes": opt.Limits.SessionBytes,
		"TenantSessions": opt.Limits.TenantSessions, "TenantBytes": opt.Limits.TenantBytes,
		"RuntimeFiles": opt.Limits.RuntimeFiles, "RuntimeBytes": opt.Limits.RuntimeBytes,
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

const missingMsg = "there is no such session or file, or it has expired: upload it again"

// missing is the answer for all that a caller may not see, and what is not there.
func missing(op string) error {
	return &writ.Error{Kind: writ.NotFound, Op: op, Msg: missingMsg}
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
	switch {
	case err == nil && got.Key != e.key(p):
		return writ.Session{}, hidden("find session", "session "+string(id))
	case writ.KindOf(err) == writ.NotFound, err == nil && !s.now().Before(got.Expires):
		return writ.Session{}, missing("find session")
	}
	return got, err
}

// Find answers a session that p, who names e, may use. As with all methods that are given a
// session, Invalid is an entity that is none, and NotFound what is not there, or over, or
// not for p.
func (s *Service) Find(ctx context.Context, p writ.Principal, e Entity, id writ.SessionID) (got writ.Session, err error) {
	err = s.view(ctx, p, func(tx *store.Tx) (err error) { got, err = s.find(ctx, tx, p, e, id); return err })
	return got, err
}

// Get answers one object of a session that p, who names e, may use.
func (s *Service) Get(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID, id writ.ObjectID) (o writ.Object, err error) {
	err = s.view(ctx, p, func(tx *store.Tx) error {
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
	if writ.KindOf(err) != writ.NotFound {
		return of, o, err
	}
	// Looked for in any case, so that the answer takes as long for what is nowhere.
	switch holder, err := tx.SessionOfObject(ctx, id); {
	case err == nil && holder.Key != e.key(p):
		return of, writ.Object{}, hidden("find object", fmt.Sprintf("object %s of session %s", id, holder.ID))
	case err == nil, writ.KindOf(err) == writ.NotFound:
		return of, writ.Object{}, missing("find object")
	default:
		return of, writ.Object{}, err
	}
}

// List answers all objects of a session that p, who names e, may use, in the order in
// which they came.
func (s *Service) List(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID) (os []writ.Object, err error) {
	err = s.view(ctx, p, func(tx *store.Tx) error {
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
// the caller must close it. o is one that a method of this service answered: that is the
// right to read it. An early end, and of the whole also other bytes than were put, are an
// error in the place of io.EOF. NotFound means that the bytes were removed since, Invalid
// that the range is not within them.
func (s *Service) Open(ctx context.Context, o writ.Object, from, n int64) (io.ReadCloser, error) {
	r, err := s.blobs.Open(ctx, o.SHA256, from, n)
	if writ.KindOf(err) == writ.NotFound {
		return nil, &writ.Error{Kind: writ.NotFound, Op: "open object", Msg: missingMsg, Err: err}
	}
	return r, err
}

// Delete deletes one object of a session that p, who names e, may use. Its bytes go with
// the next pass of Retain, unless another object has the same ones.
func (s *Service) Delete(ctx context.Context, p writ.Principal, e Entity, in writ.SessionID, id writ.ObjectID) error {
	return s.update(ctx, p, func(tx *store.Tx) error {
		of, o, err := s.object(ctx, tx, p, e, in, id)
		if err != nil {
			return err
		}
		return tx.DeleteObject(ctx, of, o)
	})
}
