package rest

import (
	"context"
	"net/http"
	"sync"
	"time"

	"writ"
)

// watchTask streams the life of a task as server-sent events: "task" and "output"
// hold a writ.TaskEvent; "error" holds a problem and is the last. The stream ends
// after the task's terminal state. It is not resumed from an id: a client asks
// again and is told the state as it then stands.
func (a *API) watchTask(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.TaskID](r)
	if err != nil {
		return err
	}
	s := &stream{w: w, control: http.NewResponseController(w)}
	ctx, cancel := context.WithCancel(r.Context())
	var beat sync.WaitGroup
	beat.Go(func() { s.beat(ctx, a.heartbeat) })
	err = ended(r.Context(), a.Tasks.Watch(ctx, who, id, s.emit))
	cancel()
	beat.Wait() // from here on s is ours alone
	switch {
	case err == nil && !s.started:
		return s.open() // nothing to tell, and that is the answer
	case err == nil, s.lost != nil:
		return nil // the client has all of it, or is gone
	case s.started:
		_ = s.event("error", problemOf(err)) // err is the answer to the log either way
	}
	return err
}

// stream writes server-sent events. Handler and heartbeat share it.
type stream struct {
	control *http.ResponseController

	mu      sync.Mutex
	w       http.ResponseWriter // guarded by mu
	started bool                // guarded by mu; the header is written
	lost    error               // guarded by mu; why the client gets no more
}

// open writes the header.
func (s *stream) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write("")
}

func (s *stream) emit(e writ.TaskEvent) error {
	if e.Output != nil {
		return s.event("output", e)
	}
	return s.event("task", e)
}

func (s *stream) event(name string, v any) error {
	b, err := encode(v) // one line, with its newline
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write("event: " + name + "\ndata: " + string(b) + "\n")
}

// beat writes a comment at every interval until ctx ends.
func (s *stream) beat(ctx context.Context, every time.Duration) {
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			s.mu.Lock()
			_ = s.write(":\n\n") // kept in lost
			s.mu.Unlock()
		}
	}
}

// write sends text at once. s.mu is held.
func (s *stream) write(text string) error {
	if s.lost != nil {
		return s.lost
	}
	if !s.started {
		s.started = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.WriteHeader(http.StatusOK)
	}
	if _, s.lost = s.w.Write([]byte(text)); s.lost == nil {
		s.lost = s.control.Flush()
	}
	return s.lost
}
