package runner

import (
	"sync"

	"writ"
)

// calls are those under way of something that is closed once and waits for them. The zero
// value is open, with none.
type calls struct {
	mu     sync.Mutex
	closed bool           // guarded by mu; once true, under only falls
	under  sync.WaitGroup // added to under mu while not closed
}

// enter counts a call, which must leave. After close it is Unavailable.
func (c *calls) enter(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return shuttingDown(op)
	}
	c.under.Add(1)
	return nil
}

func (c *calls) leave() { c.under.Done() }

// also runs fn behind a call that is under way, and counts it as one.
func (c *calls) also(fn func()) { c.under.Go(fn) }

// close lets no more calls in, and reports whether it was the first to.
func (c *calls) close() (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first = !c.closed
	c.closed = true
	return first
}

// wait returns when none is under way. It is for after close.
func (c *calls) wait() { c.under.Wait() }

func shuttingDown(op string) error {
	return &writ.Error{Kind: writ.Unavailable, Op: op, Msg: "the runner is shutting down; send the request again later"}
}
