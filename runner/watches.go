package runner

import (
	"context"
	"log/slog"
	"sync"

	"writ/watch"
)

// watches watch the roots that are open, one watcher for each canonical root (spec/02 §14).
// What they tell comes late and may be missing, so nothing is decided or answered by it:
// here it is counted for the log. That a root cannot be watched is no error. A nil
// *watches watches nothing. It is safe for concurrent use.
type watches struct {
	log  *slog.Logger
	ctx  context.Context // done once closed
	stop context.CancelFunc
	wg   sync.WaitGroup // of keep and renew; added to before close is called

	mu    sync.Mutex
	roots map[string]*rootWatch // guarded by mu; by canonical roots
}

// rootWatch is one root's watcher.
type rootWatch struct {
	root  string
	trees int // guarded by watches.mu; the open trees on this root, at least 1
	ctx   context.Context
	stop  context.CancelFunc

	up      chan struct{}  // closed once it stands, or does not
	watcher *watch.Watcher // set before up is closed; nil when it does not stand
}

func newWatches(log *slog.Logger) *watches {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancel(context.Background())
	return &watches{log: log, ctx: ctx, stop: stop, roots: map[string]*rootWatch{}}
}

// hold sees that a root is watched while a tree on it is open, which release ends. It does
// not wait for that: whoever needs a file now is not kept by a walk through all folders.
func (s *watches) hold(root string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.roots[root]
	if r == nil {
		r = &rootWatch{root: root, up: make(chan struct{})}
		r.ctx, r.stop = context.WithCancel(s.ctx)
		s.roots[root] = r
		s.wg.Go(func() { s.keep(r) })
	}
	r.trees++
}

func (s *watches) release(root string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.roots[root]; r != nil {
		if r.trees--; r.trees == 0 {
			delete(s.roots, root)
			r.stop()
		}
	}
}

// renew watches the folder that is at a root's path now, when it has been replaced and
// trees on the former one are still open.
func (s *watches) renew(root string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.roots[root]
	if r == nil {
		return
	}
	s.wg.Go(func() {
		<-r.up
		if r.watcher == nil {
			return
		}
		if err := r.watcher.Restart(); err != nil && r.ctx.Err() == nil {
			s.log.Debug("workspace is not watched anew", "root", root, "err", err)
		}
	})
}

// keep watches one root until it is released.
func (s *watches) keep(r *rootWatch) {
	w, err := watch.Open(r.ctx, r.root, watch.Options{})
	if err != nil && r.ctx.Err() == nil {
		s.log.Debug("workspace is not watched", "root", r.root, "err", err)
	}
	r.watcher = w
	close(r.up)
	if err != nil {
		return
	}
	defer w.Close()
	hints := w.Subscribe()
	defer hints.Close()
	var n, resyncs, epoch uint64
	for {
		e, err := hints.Next(r.ctx)
		if err != nil {
			break
		}
		n++
		epoch = e.Epoch
		if e.Kind == watch.ResyncRequired {
			resyncs++
		}
	}
	s.log.Debug("workspace was watched", "root", r.root, "hints", n, "resyncs", resyncs, "epoch", max(epoch, 1), "partial", w.Partial())
}

// close ends all watches. No tree may be opened later.
func (s *watches) close() {
	if s == nil {
		return
	}
	s.stop()
	s.wg.Wait()
}
