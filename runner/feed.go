package runner

import (
	"io"
	"sync"

	"writ"
)

// feed carries a run's output to emit without ever blocking the program that
// writes it. What waits in it is bounded by what a run may keep of its two
// streams, which the sandbox enforces.
type feed struct {
	emit func(writ.Chunk)
	wake chan struct{} // holds one: something was queued, or the feed was closed
	done chan struct{} // closed when the last chunk is out

	mu     sync.Mutex
	queue  []writ.Chunk // guarded by mu
	closed bool         // guarded by mu; nothing is queued any more
}

// newFeed starts a feed, which must be closed. A nil emit discards.
func newFeed(emit func(writ.Chunk)) *feed {
	f := &feed{emit: emit, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if emit == nil {
		f.closed = true
		close(f.done)
		return f
	}
	go f.run() // ends with close, which waits for it
	return f
}

// stream is a writer into the feed that never fails.
func (f *feed) stream(s writ.Stream) io.Writer { return feedWriter{f, s} }

type feedWriter struct {
	feed   *feed
	stream writ.Stream
}

func (w feedWriter) Write(p []byte) (int, error) {
	w.feed.add(w.stream, p)
	return len(p), nil
}

// add queues a copy of p, filling up the last chunk when it is of the same stream.
func (f *feed) add(s writ.Stream, p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	for len(p) > 0 {
		last := len(f.queue) - 1
		if last < 0 || f.queue[last].Stream != s || len(f.queue[last].Data) == writ.MaxChunkBytes {
			f.queue = append(f.queue, writ.Chunk{Stream: s})
			last++
		}
		n := min(len(p), writ.MaxChunkBytes-len(f.queue[last].Data))
		f.queue[last].Data = append(f.queue[last].Data, p[:n]...)
		p = p[n:]
	}
	f.signal()
}

// close lets nothing more in and returns when everything is out.
func (f *feed) close() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.signal()
	<-f.done
}

func (f *feed) signal() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *feed) run() {
	defer close(f.done)
	for range f.wake {
		f.mu.Lock()
		queue, closed := f.queue, f.closed
		f.queue = nil
		f.mu.Unlock()
		for _, c := range queue {
			f.emit(c)
		}
		if closed {
			return
		}
	}
}
