package runner

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"writ"
)

// admission hands out slots, first come first served, to a bounded number of
// waiters that each wait a bounded time.
type admission struct {
	slots int           // set once
	queue int           // set once
	wait  time.Duration // set once

	mu      sync.Mutex
	taken   int       // guarded by mu; never above slots
	waiters []*ticket // guarded by mu; not empty only while taken == slots; at most queue
}

// ticket is a place in the queue.
type ticket struct {
	granted chan struct{} // closed, under admission.mu, when the slot is the ticket's
}

func newAdmission(slots, queue int, wait time.Duration) *admission {
	return &admission{slots: slots, queue: queue, wait: wait}
}

// acquire waits for a slot, which must be released. Its errors are of kind
// writ.Exhausted, or ctx's.
func (a *admission) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a.mu.Lock()
	if a.taken < a.slots {
		a.taken++
		a.mu.Unlock()
		return nil
	}
	if len(a.waiters) >= a.queue {
		a.mu.Unlock()
		return exhausted("all %d slots are in use and %d runs wait already; try again later", a.slots, a.queue)
	}
	t := &ticket{granted: make(chan struct{})}
	a.waiters = append(a.waiters, t)
	a.mu.Unlock()

	timer := time.NewTimer(a.wait)
	defer timer.Stop()
	select {
	case <-t.granted:
		if err := ctx.Err(); err != nil { // both came, and a cancelled run must not start
			a.release()
			return err
		}
		return nil
	case <-ctx.Done():
		a.leave(t)
		return ctx.Err()
	case <-timer.C:
		a.leave(t)
		return exhausted("none of %d slots became free within %v; try again later", a.slots, a.wait)
	}
}

// leave gives up t's place, and the slot if it was granted meanwhile.
func (a *admission) leave(t *ticket) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.waiters, t); i >= 0 {
		a.waiters = slices.Delete(a.waiters, i, i+1)
		return
	}
	a.pass()
}

// release gives a slot back, to the first waiter if there is one.
func (a *admission) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pass()
}

// pass hands the caller's slot on. mu is held.
func (a *admission) pass() {
	if len(a.waiters) == 0 {
		a.taken--
		return
	}
	first := a.waiters[0]
	a.waiters = slices.Delete(a.waiters, 0, 1)
	close(first.granted)
}

func exhausted(format string, args ...any) error {
	return &writ.Error{Kind: writ.Exhausted, Op: "run", Msg: fmt.Sprintf(format, args...)}
}
