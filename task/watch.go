package task

import (
	"context"
	"time"

	"writ"
)

// poll is how often a waiter looks at the store by itself: news of tasks that
// another gateway carries come no other way.
const poll = time.Second

// MaxWait is the longest that one Wait takes.
const MaxWait = time.Minute

// Wait blocks until the task is over, or d (at most MaxWait) or ctx is, and
// answers it as it stands then. A wait that ran out of time is no error. Output of
// the task costs a waiter nothing.
func (s *Service) Wait(ctx context.Context, who writ.Principal, id writ.TaskID, d time.Duration) (writ.Task, error) {
	f := s.hub.join(id)
	defer s.hub.leave(id, f)
	ctx, cancel := context.WithTimeout(ctx, min(d, MaxWait))
	defer cancel()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for ended := (<-chan struct{})(f.ended); ; {
		// Not ctx: the answer is due also when the time is over.
		t, err := s.look(context.WithoutCancel(ctx), who, id)
		if err != nil || t.State.Terminal() || ctx.Err() != nil {
			return t, err
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		case <-ended:
			ended = nil // heard: if the store does not say so yet, the ticks do
		}
	}
}

// Watch calls emit with the task as it stands, then with each new state and each
// piece of output, and returns after its terminal state, or with emit's error. The
// output of a task that is over comes from the store, before that state. States in
// which another gateway's task stands for less than a second may be left out.
//
// Output and states that are heard of in this process are passed on without a look
// at the store.
func (s *Service) Watch(ctx context.Context, who writ.Principal, id writ.TaskID, emit func(writ.TaskEvent) error) error {
	f := s.hub.join(id)
	defer s.hub.leave(id, f)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	ended := (<-chan struct{})(f.ended)
	past, _ := s.hub.read(f, 0) // states among these are older than what the store says
	w := watcher{emit: emit}
	var t writ.Task
	for n, look, first := 0, true, true; ; first = false {
		if look {
			var err error
			if t, err = s.look(ctx, who, id); err != nil {
				return err
			}
		}
		over := t.State.Terminal()
		if first && !over {
			if err := w.state(t); err != nil {
				return err
			}
		}
		// After the store: when that says that it is over, here is all that came before.
		events, news := s.hub.read(f, n)
		for i, e := range events {
			if e.Task != nil && n+i < len(past) {
				continue
			}
			if err := w.event(e); err != nil {
				return err
			}
		}
		n += len(events)
		if over {
			return w.end(t)
		}
		if look {
			// One that another gateway gave it, or the last of those above.
			if err := w.state(t); err != nil {
				return err
			}
		}
		look = true
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-news:
			look = false
		case <-tick.C:
		case <-ended:
			ended = nil // heard: if the store does not say so yet, the ticks do
		}
	}
}

// watcher passes on what is news to one caller.
type watcher struct {
	emit   func(writ.TaskEvent) error
	last   writ.Task // emitted last; zero before the first
	output bool      // some was emitted
}

// state emits t unless the caller has seen that state, or a later one.
func (w *watcher) state(t writ.Task) error {
	if t.State == w.last.State || t.Updated.Before(w.last.Updated) {
		return nil
	}
	w.last = t
	return w.emit(writ.TaskEvent{Task: &t})
}

func (w *watcher) event(e writ.TaskEvent) error {
	if e.Task != nil {
		return w.state(*e.Task)
	}
	w.output = true
	return w.emit(e)
}

// end emits the terminal state, and before it the output if none came live.
func (w *watcher) end(t writ.Task) error {
	if !w.output {
		for _, c := range stored(t) {
			if err := w.emit(writ.TaskEvent{Output: &c}); err != nil {
				return err
			}
		}
	}
	return w.emit(writ.TaskEvent{Task: &t})
}

// stored is the output of a task that is over, as chunks.
func stored(t writ.Task) (chunks []writ.Chunk) {
	if t.Result == nil {
		return nil
	}
	for _, o := range []struct {
		stream writ.Stream
		data   []byte
	}{{writ.Stdout, t.Result.Stdout.Data()}, {writ.Stderr, t.Result.Stderr.Data()}} {
		for b := o.data; len(b) > 0; {
			n := min(len(b), writ.MaxChunkBytes)
			chunks = append(chunks, writ.Chunk{Stream: o.stream, Data: b[:n]})
			b = b[n:]
		}
	}
	return chunks
}
