package watch

import (
	"context"
	"errors"
	"sync"
)

// Kind says what an event is about.
type Kind string

// The kinds (spec/02 §14).
const (
	Create         Kind = "create"
	Modify         Kind = "modify" // content, or what the inode says of it
	Remove         Kind = "remove"
	Rename         Kind = "rename"
	ResyncRequired Kind = "resync_required" // anything may have changed
)

// Event is one change. Paths are relative to the root, with slashes, in the bytes of the
// file system.
type Event struct {
	Epoch uint64 // from 1; one more after each restart
	Seq   uint64 // from 1 in each epoch
	Kind  Kind

	Path     string // of Create, Modify and Remove
	From, To string // of Rename
}

// bufferedEvents is what is kept for a subscriber that does not take it (spec/02 §3.3).
const bufferedEvents = 512

// ErrClosed is what Next answers when there will be no more events.
var ErrClosed = errors.New("the watch is closed")

// Subscription is one listener's events. It must be closed.
type Subscription struct {
	watcher *Watcher
	wake    chan struct{} // holds a token when there is something to look at

	mu     sync.Mutex // after Watcher.mu, where both are held
	events []Event    // guarded by mu; at most bufferedEvents
	lost   Event      // guarded by mu; the last event that was dropped, which came before events; Seq 0: none
	closed bool       // guarded by mu
}

func newSubscription(w *Watcher) *Subscription {
	return &Subscription{watcher: w, wake: make(chan struct{}, 1)}
}

// Next waits for the next event. One that came too late gets ResyncRequired in the place of
// all that it lost, with the epoch and number of the last of them. What was kept is still
// given after the end; then the error is ErrClosed. Else it is of ctx. It may be called by
// one goroutine at a time.
func (s *Subscription) Next(ctx context.Context) (Event, error) {
	for {
		e, ok, closed := s.take()
		switch {
		case ok:
			return e, nil
		case closed:
			return Event{}, ErrClosed
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Event{}, ctx.Err()
		}
	}
}

func (s *Subscription) take() (e Event, ok, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost.Seq > 0 {
		e = Event{Epoch: s.lost.Epoch, Seq: s.lost.Seq, Kind: ResyncRequired}
		s.lost = Event{}
		return e, true, false
	}
	if len(s.events) > 0 {
		e, s.events = s.events[0], s.events[1:]
		return e, true, false
	}
	return Event{}, false, s.closed
}

// push never waits: what is too much is dropped, with all before it.
func (s *Subscription) push(e Event) {
	s.mu.Lock()
	if len(s.events) == bufferedEvents {
		s.events, s.lost = nil, e
	} else {
		s.events = append(s.events, e)
	}
	s.mu.Unlock()
	s.nudge()
}

func (s *Subscription) end() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.nudge()
}

func (s *Subscription) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close ends the subscription. It may be called more than once.
func (s *Subscription) Close() {
	s.watcher.mu.Lock()
	delete(s.watcher.subscriptions, s)
	s.watcher.mu.Unlock()
	s.end()
}
