package auth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	fetchTimeout = 5 * time.Second
	// fetchEvery is the least time from one fetch to the next, whatever tokens come,
	// and so for how long a new key may be unknown at most. It is above fetchTimeout,
	// so that an address that hangs is not asked without a pause.
	fetchEvery = 10 * time.Second
	// keepFor is for how long the last good set serves while its address fails. Then
	// nobody comes in by it: a key that was withdrawn must end some time.
	keepFor = time.Hour
	// patience is for how long a fetch under way keeps those waiting whose key is in the
	// last good set: an address that is slow is one that fails.
	patience = time.Second
)

// remoteKeys are the keys at an address. A set serves for refresh; then the next
// token has it fetched anew, and so does one whose key it does not have. Who needs a
// fetch waits for the one that is under way, not for long where the last good set has
// the key; nobody else waits. Between fetches fetchEvery passes, so that a flood of
// tokens with made-up keys costs nothing, and a real new key is seen with the next.
type remoteKeys struct {
	url     string
	fetch   func(ctx context.Context, url string) ([]byte, error)
	failed  func(ctx context.Context, err error) // may be nil
	refresh time.Duration

	mu      sync.Mutex
	set     keySet        // guarded by mu; the last good one
	fetched time.Time     // guarded by mu; when set was fetched; zero: never
	tried   time.Time     // guarded by mu; when the last fetch began; zero: never
	err     error         // guarded by mu; how the last fetch failed; nil: it did not
	flight  chan struct{} // guarded by mu; closed when the fetch under way is over; nil: none is
}

// peek is the key of that id, without fetching.
func (r *remoteKeys) peek(kid string) (tokenKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.set.keys[kid]
	return k, ok
}

// find is the key of that id, or why one of that id cannot be used. The error says
// that there is no set, or that ctx ended.
func (r *remoteKeys) find(ctx context.Context, kid string, now time.Time) (key tokenKey, known bool, unusable string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, has := r.set.keys[kid]; !has || !r.within(now, r.refresh) {
		if err := r.freshen(ctx, now, has && r.serves(now)); err != nil {
			return tokenKey{}, false, "", err
		}
	}
	if !r.serves(now) {
		return tokenKey{}, false, "", refuse(ReasonKeysUnavailable, "%v", r.err)
	}
	key, known = r.set.keys[kid]
	return key, known, r.set.unusable[kid], nil
}

// freshen fetches the set if that is due, or waits for the fetch under way; spare tells
// that the set at hand would do. The error is that ctx ended. r.mu is held, but not
// meanwhile.
func (r *remoteKeys) freshen(ctx context.Context, now time.Time, spare bool) error {
	over := r.flight
	switch {
	case over == nil && !r.tried.IsZero() && now.Sub(r.tried).Abs() < fetchEvery: // unless the clock went back
		return nil
	case over == nil:
		over = make(chan struct{})
		r.tried, r.flight = now, over
		r.mu.Unlock()
		defer r.mu.Lock()
		r.renew(ctx, now, over)
		return nil
	case spare && r.err != nil: // it failed the last time
		return nil
	}
	r.mu.Unlock()
	defer r.mu.Lock()
	var enough <-chan time.Time // never
	if spare {
		t := time.NewTimer(patience)
		defer t.Stop()
		enough = t.C
	}
	select {
	case <-over:
	case <-enough:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// serves reports whether the set may let anybody in. r.mu is held.
func (r *remoteKeys) serves(now time.Time) bool { return r.within(now, max(keepFor, r.refresh)) }

// within reports whether the set was fetched no longer than d ago. Who waited for a
// fetch may have begun before it. r.mu is held.
func (r *remoteKeys) within(now time.Time, d time.Duration) bool {
	return !r.fetched.IsZero() && now.Sub(r.fetched).Abs() < d
}

// renew fetches the set, and ends the flight however it ends.
func (r *remoteKeys) renew(ctx context.Context, now time.Time, over chan struct{}) {
	var set keySet
	err := errors.New("fetch keys: it did not return")
	defer func() {
		r.mu.Lock()
		if r.err = err; err == nil {
			r.set, r.fetched = set, now
		}
		r.flight = nil
		r.mu.Unlock()
		close(over)
		if err != nil && r.failed != nil {
			r.failed(ctx, err)
		}
	}()
	set, err = r.get(ctx)
}

// get fetches and reads the set. It goes on when the caller goes away, for those
// who wait for it.
func (r *remoteKeys) get(ctx context.Context) (set keySet, err error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer stop()
	data, err := r.fetch(ctx, r.url)
	if err != nil {
		return keySet{}, fmt.Errorf("fetch keys: %w", err)
	}
	entries, err := parseKeySet(data, r.url)
	if err != nil {
		return keySet{}, err
	}
	return setOf(entries)
}
