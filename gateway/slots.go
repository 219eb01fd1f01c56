package gateway

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"writ"
)

// slots are the places of runs under way. Who waits for one does not wait for all that
// came before: a slot goes to the tenant with the fewest runs under way, of these to the
// one whose turn was longest ago, and in a tenant likewise to an identity or a user. Runs
// of one start in the order in which they came.
type slots struct {
	mu      sync.Mutex
	free    int                     // guarded by mu; nobody waits while it is not 0
	turns   uint64                  // guarded by mu; how many there were
	queue   []*waiter               // guarded by mu; in the order in which they came
	tenants map[writ.Tenant]*holder // guarded by mu; those that wait or run
	owners  map[share]*holder       // guarded by mu; likewise
}

// holder is who has slots or waits for one.
type holder struct {
	runs  int
	waits int
	turn  uint64 // its last: it was given a slot, or began to wait
}

// waiter is a run that waits.
type waiter struct {
	of      share
	granted chan struct{} // closed, under slots.mu, when it has a slot
}

func newSlots(n int) *slots {
	return &slots{free: n, tenants: map[writ.Tenant]*holder{}, owners: map[share]*holder{}}
}

// acquire waits for a slot, which must be released. False means that ctx or closing came
// first.
func (s *slots) acquire(ctx context.Context, closing <-chan struct{}, of share) bool {
	w := s.enter(of)
	select {
	case <-w.granted:
	case <-ctx.Done():
	case <-closing:
	}
	// Of several that came at once the end counts: nothing starts after it.
	select {
	case <-ctx.Done():
	case <-closing:
	default:
		return true
	}
	s.leave(w)
	return false
}

// release gives a slot of that share back.
func (s *slots) release(of share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each(of, func(h *holder) { h.runs-- })
	s.free++
	s.grant()
}

func (s *slots) enter(of share) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &waiter{of, make(chan struct{})}
	s.queue = append(s.queue, w)
	s.turns++
	s.each(of, func(h *holder) {
		if h.waits == 0 {
			h.turn = s.turns
		}
		h.waits++
	})
	s.grant()
	return w
}

// leave gives up w's place, and its slot if it was granted meanwhile.
func (s *slots) leave(w *waiter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.queue, w); i >= 0 {
		s.queue = slices.Delete(s.queue, i, i+1)
		s.each(w.of, func(h *holder) { h.waits-- })
		return
	}
	s.each(w.of, func(h *holder) { h.runs-- })
	s.free++
	s.grant()
}

// grant hands out what is free. mu is held.
func (s *slots) grant() {
	for s.free > 0 && len(s.queue) > 0 {
		w := slices.MinFunc(s.queue, s.order)
		i := slices.Index(s.queue, w)
		s.queue = slices.Delete(s.queue, i, i+1)
		s.free--
		s.turns++
		s.each(w.of, func(h *holder) { h.waits, h.runs, h.turn = h.waits-1, h.runs+1, s.turns })
		close(w.granted)
	}
}

// order says which of two gets a slot first; of equals it is the one that came first. mu
// is held.
func (s *slots) order(a, b *waiter) int {
	t, u := s.tenants[a.of.tenant], s.tenants[b.of.tenant]
	o, p := s.owners[a.of], s.owners[b.of]
	return cmp.Or(cmp.Compare(t.runs, u.runs), cmp.Compare(t.turn, u.turn), cmp.Compare(o.runs, p.runs), cmp.Compare(o.turn, p.turn))
}

// each changes the two holders of a share, and forgets them when they have nothing. mu is
// held.
func (s *slots) each(of share, change func(*holder)) {
	s.tenants[of.tenant] = changed(s.tenants[of.tenant], change)
	s.owners[of] = changed(s.owners[of], change)
	if s.tenants[of.tenant].idle() {
		delete(s.tenants, of.tenant)
	}
	if s.owners[of].idle() {
		delete(s.owners, of)
	}
}

func changed(h *holder, change func(*holder)) *holder {
	if h == nil {
		h = &holder{}
	}
	change(h)
	return h
}

func (h *holder) idle() bool { return h.runs == 0 && h.waits == 0 }
