package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"writ"
)

// MaxWaiters is how many requests may wait for one root (spec/02 §3.3).
const MaxWaiters = 64

// The codes of errors of leases (spec/02 §5.14).
const (
	CodeQueueFull = "RESOURCE_QUEUE_FULL" // one waiter too many
	CodeBusy      = "WORKSPACE_BUSY"      // a process holds the root
)

// Leases say who may change what is beneath a root: one holder at a time. Roots that
// overlap, which are the same folder or one beneath the other, exclude each other;
// others are independent. The zero Leases are ready, with nothing held.
//
// A root is looked at when it is asked for: symlinks to it are resolved, and a folder
// that is mounted at two places is one. Two roots of which one holds a mount of a
// folder beneath the other are not told to overlap.
type Leases struct {
	mu   sync.Mutex
	held []*Lease // guarded by mu; no two of them overlap
	// waiting are guarded by mu, in the order in which they came. Each overlaps one
	// that is held or one that waits before it.
	waiting []*waiter
}

// Lease is a root held for one request, or for one process. It must be released.
type Lease struct {
	leases  *Leases
	root    place
	process writ.ProcessID // guarded by Leases.mu; that it is held for, empty for a request
	once    sync.Once
}

type waiter struct {
	lease   *Lease
	granted chan struct{} // closed, under Leases.mu, when the lease is held or refused
	refused error         // set before granted is closed
}

// Acquire holds root, which must be absolute and need not be there, for one request.
// It waits until no other lease overlaps it and nobody who came before waits for one
// that does; the place in the order is taken when Acquire is called.
//
// Nobody waits for a process: when one holds a root that overlaps this one, or comes to
// hold it meanwhile (Keep), the error is of kind writ.Conflict with CodeBusy and names
// it.
//
// Without an error the caller must Release the lease, by defer, so that a panic does it
// too. Other errors are of kind writ.Exhausted with CodeQueueFull when MaxWaiters wait
// for roots that overlap this one, of kind writ.Invalid when root is not absolute, or
// that of ctx. Nothing is held or waits then.
func (l *Leases) Acquire(ctx context.Context, root string) (*Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(root) {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "hold workspace", Msg: fmt.Sprintf("root %q is not absolute", root)}
	}
	lease := &Lease{leases: l, root: locate(root)}
	w, err := l.enter(lease)
	switch {
	case err != nil:
		return nil, err
	case w == nil:
		return lease, nil
	}
	select {
	case <-w.granted:
		if w.refused != nil {
			return nil, w.refused
		}
		if err := ctx.Err(); err != nil { // both came, and a request that is over must not begin
			lease.Release()
			return nil, err
		}
		return lease, nil
	case <-ctx.Done():
		l.leave(w)
		return nil, ctx.Err()
	}
}

// enter makes lease held and answers no waiter, or lets it wait.
func (l *Leases) enter(lease *Lease) (*waiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.held {
		if h.process != "" && h.root.overlaps(lease.root) {
			return nil, busy(h.process)
		}
	}
	if l.free(lease, l.waiting) {
		l.held = append(l.held, lease)
		return nil, nil
	}
	before := 0
	for _, w := range l.waiting {
		if w.lease.root.overlaps(lease.root) {
			before++
		}
	}
	if before >= MaxWaiters {
		return nil, &writ.Error{
			Kind: writ.Exhausted, Code: CodeQueueFull, Op: "hold workspace",
			Msg: fmt.Sprintf("%d requests wait for this workspace already: try again later", before),
		}
	}
	w := &waiter{lease: lease, granted: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	return w, nil
}

// leave gives up a waiter's place, or the lease if it was granted meanwhile.
func (l *Leases) leave(w *waiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, w); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.grant(w.lease.root)
		return
	}
	if w.refused == nil {
		l.drop(w.lease)
	}
}

// Keep makes the lease the process's: who waits for it is refused at once, as is
// everybody who comes (spec/02 §8.2). It is released as before, when the process has
// ended.
func (h *Lease) Keep(id writ.ProcessID) {
	l := h.leases
	l.mu.Lock()
	defer l.mu.Unlock()
	h.process = id
	var stay []*waiter
	for _, w := range l.waiting {
		if !w.lease.root.overlaps(h.root) {
			stay = append(stay, w)
			continue
		}
		w.refused = busy(id)
		close(w.granted)
	}
	gone := len(stay) < len(l.waiting)
	l.waiting = stay
	if gone {
		l.grantAll() // who waited behind those that are gone only
	}
}

func busy(id writ.ProcessID) error {
	return &writ.Error{
		Kind: writ.Conflict, Code: CodeBusy, Op: "hold workspace",
		Msg: fmt.Sprintf("process %s runs in this workspace: wait for its end, or end it with terminate_process", id),
	}
}

// Release gives the root up, to those who wait for it. A second call does nothing.
func (h *Lease) Release() {
	h.once.Do(func() {
		h.leases.mu.Lock()
		defer h.leases.mu.Unlock()
		h.leases.drop(h)
	})
}

// drop ends a lease that is held. mu is held.
func (l *Leases) drop(lease *Lease) {
	l.held = slices.DeleteFunc(l.held, func(h *Lease) bool { return h == lease })
	l.grant(lease.root)
}

// grant gives leases to waiters whom nothing is before any more, after something that
// overlaps freed has gone. mu is held.
func (l *Leases) grant(freed place) {
	l.grantIf(func(w *waiter) bool { return w.lease.root.overlaps(freed) })
}

func (l *Leases) grantAll() { l.grantIf(func(*waiter) bool { return true }) }

func (l *Leases) grantIf(concerned func(*waiter) bool) {
	for i := 0; i < len(l.waiting); {
		w := l.waiting[i]
		if !concerned(w) || !l.free(w.lease, l.waiting[:i]) {
			i++
			continue
		}
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.held = append(l.held, w.lease)
		close(w.granted)
	}
}

// free reports whether lease overlaps none that is held, and none of those who wait
// before it. mu is held.
func (l *Leases) free(lease *Lease, before []*waiter) bool {
	return !slices.ContainsFunc(l.held, func(h *Lease) bool { return h.root.overlaps(lease.root) }) &&
		!slices.ContainsFunc(before, func(w *waiter) bool { return w.lease.root.overlaps(lease.root) })
}
