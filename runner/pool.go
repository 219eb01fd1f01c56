package runner

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"writ"
	"writ/sandbox"
)

// refillAfter is how long after a take the pool begins to make another box: first
// the program that was started has the cores.
const refillAfter = 25 * time.Millisecond

// pool keeps boxes of one template ready. One goroutine of its own fills it; it
// tries when the pool is made and a little after each take, and gives up until the
// next take when a box cannot be made: whoever takes then finds no box, makes one
// itself and hears why that fails.
type pool struct {
	provider sandbox.Provider
	template sandbox.Template
	want     int
	log      *slog.Logger

	wake chan struct{}      // holds one: the pool may lack a box
	stop context.CancelFunc // ends the filling goroutine
	done chan struct{}      // closed when it is gone

	mu   sync.Mutex
	idle []sandbox.Box // guarded by mu; every box in it has run nothing yet: a box that ran is never lent again
}

// newPool starts a pool, which must be closed. With want 0 it never holds a box.
func newPool(p sandbox.Provider, t sandbox.Template, want int, log *slog.Logger) *pool {
	ctx, stop := context.WithCancel(context.Background())
	w := &pool{
		provider: p, template: t, want: want, log: log,
		wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{}),
	}
	w.wake <- struct{}{}
	go w.fill(ctx) // ends with close, which waits for it
	return w
}

// take hands over a box that a run with limits l may have, or nil when there is
// none. The caller must close it. A nil pool has none.
func (w *pool) take(l writ.Limits) sandbox.Box {
	if w == nil || !w.fits(l) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.signal()
	if len(w.idle) == 0 {
		return nil
	}
	box := w.idle[0] // the oldest, so that none waits for ever
	w.idle = slices.Delete(w.idle, 0, 1)
	return box
}

// fits reports whether a box of the pool's template can take limits l: all others
// are set when a run starts, the sizes of file systems when its box is made.
func (w *pool) fits(l writ.Limits) bool {
	t := w.template.Limits
	return l.WorkspaceBytes == t.WorkspaceBytes && l.TmpBytes == t.TmpBytes && l.Files == t.Files
}

func (w *pool) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// close closes every idle box and waits for the filling goroutine.
func (w *pool) close() {
	w.stop()
	<-w.done
	w.mu.Lock()
	idle := w.idle
	w.idle = nil
	w.mu.Unlock()
	for _, box := range idle {
		w.discard(box)
	}
}

func (w *pool) fill(ctx context.Context) {
	defer close(w.done)
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		if !first {
			select {
			case <-ctx.Done():
				return
			case <-time.After(refillAfter):
			}
		}
		for w.lacks() && ctx.Err() == nil {
			box, err := w.provider.Prepare(ctx, w.template)
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					w.log.Warn("no box could be made ready", "err", err)
				}
				break
			}
			w.mu.Lock()
			w.idle = append(w.idle, box)
			w.mu.Unlock()
		}
	}
}

func (w *pool) lacks() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.idle) < w.want
}

func (w *pool) discard(box sandbox.Box) {
	if err := box.Close(); err != nil {
		w.log.Warn("box left something behind", "err", err)
	}
}
