package gateway

import "writ"

// telling is a task that a call makes ready to run, until the observer was told of it.
type telling struct {
	calls int
	// asked: it is to be launched then, for that share.
	asked bool
	of    share
}

// tells has the launch of a task wait until told is called: a job of the store may be
// quicker than the call that made the task ready to run, and the observer is to hear of that
// before it hears that the task runs.
func (g *Gateway) tells(id writ.TaskID) (told func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.telling[id] == nil {
		g.telling[id] = &telling{}
	}
	g.telling[id].calls++
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		t := g.telling[id]
		if t.calls--; t.calls > 0 {
			return
		}
		delete(g.telling, id)
		if t.asked {
			g.launchLocked(id, t.of)
		}
	}
}

// delayed reports whether the launch of a task waits, and then keeps it. mu is held.
func (g *Gateway) delayed(id writ.TaskID, of share) bool {
	t := g.telling[id]
	if t == nil {
		return false
	}
	if t.asked = true; of != (share{}) { // a job knows the id only
		t.of = of
	}
	return true
}
