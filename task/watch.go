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
// answers it as it stands then. A wait that ran out of time is no error.
func (s *Service) Wait(ctx context.Context, who writ.Principal, id writ.TaskID, d time.Duration) (writ.Task, error) {
	f := s.hub.join(id)
	defer s.hub.leave(id, f)
	ctx, cancel := context.WithTimeout(ctx, min(d, MaxWait))
	defer cancel()
	for {
		_, news := s.hub.read(f, 0)
		// Not ctx: the answer is due also when the time is over.
		t, err := s.Get(context.WithoutCancel(ctx), who, id)
		if err != nil || t.State.Terminal() || ctx.Err() != nil {
			return t, err
		}
		sleep(ctx, news)
	}
}

// Watch calls emit with the task as it stands, then with each new state and each
// piece of output, and returns after its terminal state, or with emit's error. The
// output of a task that is over comes from the store, before that state.
func (s *Service) Watch(ctx context.Context, who writ.Principal, id writ.TaskID, emit func(writ.TaskEvent) error) error {
	f := s.hub.join(id)
	defer s.hub.leave(id, f)
	var last writ.TaskState
	n := 0
	for {
		chunks, news := s.hub.read(f, n)
		t, err := s.Get(ctx, who, id)
		if err != nil {
			return err
		}
		if t.State.Terminal() {
			// What was written between the read above and the end.
			chunks, _ = s.hub.read(f, n)
			if n == 0 && len(chunks) == 0 {
				chunks = stored(t)
			}
		} else if t.State != last {
			if err := emit(writ.TaskEvent{Task: &t}); err != nil {
				return err
			}
		}
		for i := range chunks {
			if err := emit(writ.TaskEvent{Output: &chunks[i]}); err != nil {
				return err
			}
		}
		n += len(chunks)
		if t.State.Terminal() {
			return emit(writ.TaskEvent{Task: &t})
		}
		last = t.State
		if err := ctx.Err(); err != nil {
			return err
		}
		sleep(ctx, news)
	}
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
			n := min(len(b), maxChunk)
			chunks = append(chunks, writ.Chunk{Stream: o.stream, Data: b[:n]})
			b = b[n:]
		}
	}
	return chunks
}

const maxChunk = 32 << 10 // of writ.Chunk's contract

func sleep(ctx context.Context, news <-chan struct{}) {
	tick := time.NewTimer(poll)
	defer tick.Stop()
	select {
	case <-ctx.Done():
	case <-news:
	case <-tick.C:
	}
}
