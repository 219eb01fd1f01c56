package watch

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
)

// MaxWatches is how many folders one watcher watches that has no other limit, and the most
// it may have.
const MaxWatches = 8192

// Options are the settings of a watcher. Zero fields mean what their comments say.
type Options struct {
	// Watches is how many folders are watched. 0 means MaxWatches, or a sixteenth of what
	// the host lets one user have when that is less: editors live off the same.
	Watches int
}

func (o Options) watches() int {
	if o.Watches > 0 {
		return min(o.Watches, MaxWatches)
	}
	if host := userWatches(); host > 0 {
		return max(min(MaxWatches, host/16), 1)
	}
	return MaxWatches
}

// Watcher tells what changes beneath one root. It is safe for concurrent use. It must be
// closed.
type Watcher struct {
	root   string
	limit  int
	before func() // of tests: called before each read
	ctx    context.Context
	stop   context.CancelFunc
	wg     sync.WaitGroup // the goroutines of instances; added to under mu while not closed

	restarting sync.Mutex // held by Restart; before mu

	mu            sync.Mutex
	closed        bool                       // guarded by mu
	current       *instance                  // guarded by mu; the one whose events are told
	lost          bool                       // guarded by mu; current watches nothing any more
	epoch, seq    uint64                     // guarded by mu; of the last event
	subscriptions map[*Subscription]struct{} // guarded by mu
}

// Open watches the folder root, an absolute path without symlinks, in epoch 1. It returns
// when all watches stand, which takes as long as walking through all folders does;
// cancelling ctx ends it with an error, and does nothing later.
//
// It takes one instance of inotify, of which hosts allow a user 128 or so, and up to
// Options.Watches watches. It fails when there is no instance or no folder, or the root
// itself cannot be watched. Folders beneath that cannot be watched make it Partial.
func Open(ctx context.Context, root string, opt Options) (*Watcher, error) {
	return open(ctx, root, opt, nil)
}

func open(ctx context.Context, root string, opt Options, before func()) (*Watcher, error) {
	if !filepath.IsAbs(root) {
		return nil, fmt.Errorf("watch: root %q is not absolute", root)
	}
	w := &Watcher{root: root, limit: opt.watches(), before: before, epoch: 1, subscriptions: map[*Subscription]struct{}{}}
	in, err := newInstance(ctx, root, w.limit, before)
	if err != nil {
		return nil, fmt.Errorf("watch %q: %w", root, err)
	}
	w.ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	w.adopt(in)
	in.scan.spent = 0 // somebody waited for it
	w.wg.Go(func() { w.follow(in) })
	return w, nil
}

// adopt makes an instance the one whose events are told. mu is held.
func (w *Watcher) adopt(in *instance) {
	in.scan.ctx = w.ctx
	in.emit = func(e Event) { w.emit(in, e) }
	w.current, w.lost = in, false
}

// follow runs an instance, and in the same epoch those that take its place because events
// were lost or could not be understood.
func (w *Watcher) follow(in *instance) {
	for in.run(w.ctx) && in.rest(w.ctx) {
		next, err := newInstance(w.ctx, w.root, w.limit, w.before)
		if err != nil {
			w.lose(in)
			return
		}
		in.close()
		if !w.replace(in, next) {
			next.close()
			return
		}
		in = next
	}
}

// replace puts next in the place of in, unless a restart has done so.
func (w *Watcher) replace(in, next *instance) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.current != in {
		return false
	}
	w.adopt(next)
	w.broadcast(Event{Kind: ResyncRequired})
	return true
}

// lose gives up an instance for which there is no other.
func (w *Watcher) lose(in *instance) {
	in.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == in && !w.closed {
		w.lost = true
		w.broadcast(Event{Kind: ResyncRequired})
	}
}

// emit tells of an event that an instance saw, if it is still the one in use.
func (w *Watcher) emit(in *instance, e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current == in && !w.closed {
		w.broadcast(e)
	}
}

// broadcast numbers an event and gives it to everybody. mu is held.
func (w *Watcher) broadcast(e Event) {
	w.seq++
	e.Epoch, e.Seq = w.epoch, w.seq
	for s := range w.subscriptions {
		s.push(e)
	}
}

// Subscribe gives the events from now on. What was there before, the subscriber must look
// at after this call. The caller must Close the subscription.
func (w *Watcher) Subscribe() *Subscription {
	s := newSubscription(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		s.end()
		return s
	}
	w.subscriptions[s] = struct{}{}
	return s
}

// Restart watches the folder anew that is at the root's path now, in the next epoch, whose
// first event is ResyncRequired. The old watch ends when all new watches stand. With an
// error the old one goes on in its epoch, and is followed by a ResyncRequired; it is
// ErrClosed after Close.
func (w *Watcher) Restart() error {
	w.restarting.Lock()
	defer w.restarting.Unlock()
	next, err := newInstance(w.ctx, w.root, w.limit, w.before)
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		if next != nil {
			next.close()
		}
		return ErrClosed
	}
	defer w.mu.Unlock()
	if err != nil {
		w.broadcast(Event{Kind: ResyncRequired})
		return fmt.Errorf("watch %q anew: %w", w.root, err)
	}
	old := w.current
	w.adopt(next)
	next.scan.spent = 0
	w.epoch, w.seq = w.epoch+1, 0
	w.broadcast(Event{Kind: ResyncRequired})
	old.close()
	w.wg.Go(func() { w.follow(next) })
	return nil
}

// Partial reports whether something beneath the root is not watched: there are more folders
// than Options or the host allow, one could not be read, or another file system is
// mounted there. It is also true when nothing is watched any more, since the root is gone,
// until Restart finds it.
func (w *Watcher) Partial() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost || w.closed || w.current.lacks.Load()
}

// Close ends the watch and all subscriptions, and waits for what runs. It may be called
// more than once.
func (w *Watcher) Close() {
	w.mu.Lock()
	w.closed = true
	for s := range w.subscriptions {
		s.end()
	}
	clear(w.subscriptions)
	w.stop()
	w.current.close()
	w.mu.Unlock()
	w.wg.Wait()
}
