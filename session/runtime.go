package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"writ"
	"writ/store"
)

// CodeRuntimeBusy is the Code of the error for a runtime session that another run has.
const CodeRuntimeBusy = "runtime_session_busy"

// Runtimes are the runtime sessions of the code interpreter (spec/03 §12): what a run of a
// user leaves in its folder is there in the next that has the same hint. Its methods may
// be called at once.
type Runtimes struct {
	s *Service
}

// NewRuntimes are the runtime sessions in the store of s, whose checkpoints are among the
// bytes of s. s.Retain removes them.
func NewRuntimes(s *Service) *Runtimes { return &Runtimes{s: s} }

// Runtime is a runtime session that a run has to itself. Save and Release are for one
// goroutine at a time.
type Runtime struct {
	ID    string // as clients know it: the same for one user and hint
	New   bool   // there was no checkpoint, or it was over
	Files []writ.FileInput

	s      *Service
	key    writ.Digest
	holder string
	saved  []writ.FileInput // the checkpoint, as far as this holder knows; nil when there is none
	lost   chan struct{}
	stop   context.CancelFunc
	wg     sync.WaitGroup
}

// RuntimeID is the id of p's runtime session of that hint, in the words of the contract. A
// user and an identity may share one; their checkpoints are apart.
func RuntimeID(p writ.Principal, hint string) string {
	sum := sha256.Sum256([]byte(string(p.Tenant) + "\x00" + p.ID + "\x00" + hint))
	return "rt_" + hex.EncodeToString(sum[:])[:40]
}

// runtimeKey is the name of a runtime session in the store. No two users and hints share it.
func runtimeKey(p writ.Principal, hint string) writ.Digest {
	return digestOf("writ runtime session 1", string(p.Tenant), string(p.Kind), p.ID, hint)
}

// runtimePoll is how often a runtime session that is held is looked at again.
const runtimePoll = 50 * time.Millisecond

// Acquire takes the runtime session of p with that hint, which one run has at a time, of
// all gateways. While another has it, it is asked for again until wait is over, and is
// then a Conflict with CodeRuntimeBusy. Whoever gets it must call Release; from a process
// that dies it is taken once Options.RuntimeLease is over, on SQLite when the store is
// opened.
func (rs *Runtimes) Acquire(ctx context.Context, p writ.Principal, hint string, wait time.Duration) (*Runtime, error) {
	if hint == "" {
		return nil, errors.New("acquire runtime session: there is no hint")
	}
	r := &Runtime{ID: RuntimeID(p, hint), s: rs.s, key: runtimeKey(p, hint), holder: rand.Text(), lost: make(chan struct{})}
	end := time.NewTimer(wait)
	defer end.Stop()
	for {
		until, err := r.take(ctx, p.Tenant)
		if err == nil {
			r.hold(ctx, until)
			return r, nil
		}
		if writ.CodeOf(err) != CodeRuntimeBusy {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the runtime session: %w", ctx.Err())
		case <-end.C:
			return nil, err
		case <-time.After(runtimePoll):
		}
	}
}

func busy() error {
	return &writ.Error{Kind: writ.Conflict, Code: CodeRuntimeBusy, Op: "acquire runtime session", Msg: "Runtime session is busy"}
}

// heldAt reports whether somebody has r.
func heldAt(r store.Runtime, now time.Time) bool { return r.Holder != "" && now.Before(r.Held) }

// take makes r the holder, until a time, if nobody is. It reads before it writes: who
// waits must not keep writers waiting.
func (r *Runtime) take(ctx context.Context, tenant writ.Tenant) (until time.Time, err error) {
	err = r.s.db.View(ctx, func(tx *store.Tx) error {
		if is, err := tx.Runtime(ctx, r.key); err == nil && heldAt(is, r.s.now()) {
			return busy()
		} else if writ.KindOf(err) != writ.NotFound {
			return err
		}
		return nil
	})
	if err != nil {
		return until, err
	}
	err = r.s.db.Update(ctx, func(tx *store.Tx) error {
		now := r.s.now()
		is, err := r.row(ctx, tx, tenant, now)
		if err != nil {
			return err
		}
		if heldAt(is, now) {
			return busy()
		}
		if !now.Before(is.Used.Add(r.s.opt.RuntimeTTL)) { // over, and not removed yet
			if err := errors.Join(tx.DeleteRuntime(ctx, is), tx.AddRuntime(ctx, r.key, tenant, now)); err != nil {
				return err
			}
			is.Saved = false
		}
		is.Holder = r.holder
		if until, err = r.extend(ctx, tx, is); err != nil {
			return err
		}
		r.New, r.Files, r.saved = !is.Saved, nil, nil
		if is.Saved {
			r.Files, err = tx.RuntimeFiles(ctx, r.key)
			r.saved = slices.Clone(r.Files)
		}
		return err
	})
	return until, err
}

// row reads r in a transaction, which makes it where it is not there. One that was waited for
// may be gone: another transaction removed it, and perhaps made it anew.
func (r *Runtime) row(ctx context.Context, tx *store.Tx, tenant writ.Tenant, now time.Time) (is store.Runtime, err error) {
	for range maxRows {
		if err := tx.AddRuntime(ctx, r.key, tenant, now); err != nil {
			return is, err
		}
		if is, err = tx.Runtime(ctx, r.key); writ.KindOf(err) != writ.NotFound {
			break
		}
	}
	return is, err
}

// maxRows bounds how often a row is looked for that others remove meanwhile.
const maxRows = 8

// hold renews the lease until Release, whatever becomes of the request.
func (r *Runtime) hold(ctx context.Context, until time.Time) {
	ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	r.wg.Go(func() {
		tick := time.NewTicker(r.s.opt.RuntimeLease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			switch next, err := r.renew(ctx, until); {
			case err == nil:
				until = next
			case ctx.Err() != nil:
				return
			case writ.CodeOf(err) == CodeRuntimeBusy || !r.s.now().Before(until):
				close(r.lost)
				return
			}
		}
	})
}

// renew moves the end of the lease away. A store that does not answer is not waited for
// beyond that end: another run may have r from then on.
func (r *Runtime) renew(ctx context.Context, end time.Time) (until time.Time, err error) {
	ctx, stop := context.WithTimeout(ctx, max(end.Sub(r.s.now()), r.s.opt.RuntimeLease/3))
	defer stop()
	err = r.s.db.Update(ctx, func(tx *store.Tx) error {
		is, err := r.mine(ctx, tx)
		if err != nil {
			return err
		}
		until, err = r.extend(ctx, tx, is)
		return err
	})
	return until, err
}

// extend gives the holder of is a whole lease from now on.
func (r *Runtime) extend(ctx context.Context, tx *store.Tx, is store.Runtime) (until time.Time, err error) {
	is.Used = r.s.now()
	is.Held = is.Used.Add(r.s.opt.RuntimeLease)
	return is.Held, tx.HoldRuntime(ctx, is)
}

// mine reads r in a transaction, if it was not given to another since.
func (r *Runtime) mine(ctx context.Context, tx *store.Tx) (store.Runtime, error) {
	is, err := tx.Runtime(ctx, r.key)
	if writ.KindOf(err) == writ.NotFound || err == nil && is.Holder != r.holder {
		return is, busy()
	}
	return is, err
}

// Lost is closed when r can no longer be held, since another run has it or the store does
// not answer. The run should end: nothing of it can be saved that another saved over.
func (r *Runtime) Lost() <-chan struct{} { return r.lost }

// Save makes files the checkpoint, in the place of the last one, at once or not at all.
// Their bytes were put among those of the service. Conflict with CodeRuntimeBusy means that
// r was given to another run since; Exhausted that they are more, or have more bytes, than
// Options.Limits let a checkpoint or the tenant have; Internal that bytes are not there;
// paths that are none, and one that is there twice, are errors too. After an error the last
// checkpoint is there as it was.
func (r *Runtime) Save(ctx context.Context, files []writ.FileInput) error {
	total, err := r.check(files)
	if err != nil {
		return err
	}
	sizes := map[writ.Digest]int64{}
	for _, f := range r.saved { // the checkpoint names them, and this one takes its place at once
		sizes[f.Digest] = f.Size
	}
	for _, f := range files {
		if size, done := sizes[f.Digest]; done && size == f.Size {
			continue
		}
		if err := r.s.renew(ctx, f.Digest, f.Size); err != nil {
			return &writ.Error{Op: "save runtime session", Err: fmt.Errorf("%q: %w", f.Path, err)}
		}
		sizes[f.Digest] = f.Size
	}
	ctx, cancel := context.WithTimeout(ctx, r.s.opt.Grace/2) // as Put
	defer cancel()
	err = r.s.db.Update(ctx, func(tx *store.Tx) error {
		is, err := r.mine(ctx, tx)
		if err != nil {
			return err
		}
		if _, err := r.extend(ctx, tx, is); err != nil {
			return err
		}
		if is.Saved && slices.Equal(files, r.saved) { // most runs change little, and many nothing
			return nil
		}
		totals, err := tx.SessionTotals(ctx, is.Tenant)
		if err != nil {
			return err
		}
		if more := total - is.Bytes; more > 0 && totals.Bytes+more > r.s.opt.Limits.TenantBytes {
			return exhausted("save runtime session", "the tenant has no room for %d more bytes: wait until some expire", more)
		}
		return tx.SaveRuntime(ctx, is, files)
	})
	if err != nil {
		return err
	}
	r.saved = slices.Clone(files)
	return nil
}

// check answers the bytes of a checkpoint, unless it is none.
func (r *Runtime) check(files []writ.FileInput) (total int64, err error) {
	const op = "save runtime session"
	if max := r.s.opt.Limits.RuntimeFiles; int64(len(files)) > max {
		return 0, exhausted(op, "the folder holds %d files, the most that is kept for the next run is %d", len(files), max)
	}
	seen := make(map[string]bool, len(files))
	for _, f := range files {
		if err := writ.ValidPath(f.Path); err != nil {
			return 0, fmt.Errorf("%s: %w", op, err)
		}
		if seen[f.Path] || f.Size < 0 {
			return 0, fmt.Errorf("%s: %q is there twice, or has %d bytes", op, f.Path, f.Size)
		}
		seen[f.Path] = true
		if total += f.Size; f.Size > r.s.opt.Limits.RuntimeBytes || total > r.s.opt.Limits.RuntimeBytes {
			return 0, exhausted(op, "the folder holds more than the %d bytes that are kept for the next run", r.s.opt.Limits.RuntimeBytes)
		}
	}
	return total, nil
}

// releaseTime bounds Release: after it the lease runs out by itself.
const releaseTime = 10 * time.Second

// Release lets another run have r, also when ctx has ended. It may be called again.
func (r *Runtime) Release(ctx context.Context) error {
	r.stop()
	r.wg.Wait()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	err := r.s.db.Update(ctx, func(tx *store.Tx) error {
		is, err := r.mine(ctx, tx)
		if err != nil {
			return err
		}
		is.Holder, is.Used = "", r.s.now()
		return tx.HoldRuntime(ctx, is)
	})
	if writ.CodeOf(err) == CodeRuntimeBusy { // another's already
		return nil
	}
	return err
}
