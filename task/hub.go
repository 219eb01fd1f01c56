package task

import (
	"sync"

	"writ"
)

// Hub passes on what happens to tasks in this process. It is the gateway's
// observer. Its zero value is ready.
type Hub struct {
	mu    sync.Mutex
	feeds map[writ.TaskID]*feed // guarded by mu; of tasks that run here or are watched
}

// feed is one task's news. It outlives its place in the map for who joined it.
type feed struct {
	// events are guarded by Hub.mu: all output so far, bounded by the run's limits,
	// among the states that are not terminal.
	events   []writ.TaskEvent
	news     chan struct{} // guarded by Hub.mu; closed and replaced when there is any
	watchers int           // guarded by Hub.mu
	running  bool          // guarded by Hub.mu; its run is under way here

	ended chan struct{} // closed once, when the task is over; output does not touch it
}

// Changed tells the watchers of t that it stands elsewhere now.
func (h *Hub) Changed(t writ.Task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[t.ID]
	if t.State == writ.TaskRunning {
		f = h.feed(t.ID)
		f.running = true
	}
	if f == nil {
		return
	}
	if t.State.Terminal() {
		f.running = false
		delete(h.feeds, t.ID) // so that there is no second close
		close(f.ended)
		return
	}
	f.events = append(f.events, writ.TaskEvent{Task: &t})
	f.wake()
}

// Output keeps c for the task's watchers, also those yet to come.
func (h *Hub) Output(id writ.TaskID, c writ.Chunk) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feed(id)
	f.events = append(f.events, writ.TaskEvent{Output: &c})
	f.wake()
}

// feed finds or makes the feed of a task; the caller holds h.mu.
func (h *Hub) feed(id writ.TaskID) *feed {
	f := h.feeds[id]
	if f == nil {
		f = &feed{news: make(chan struct{}), ended: make(chan struct{})}
		if h.feeds == nil {
			h.feeds = map[writ.TaskID]*feed{}
		}
		h.feeds[id] = f
	}
	return f
}

func (f *feed) wake() {
	close(f.news)
	f.news = make(chan struct{})
}

// join is the feed of a task, to be left when done.
func (h *Hub) join(id writ.TaskID) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feed(id)
	f.watchers++
	return f
}

func (h *Hub) leave(id writ.TaskID, f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.watchers--
	if f.watchers == 0 && !f.running && h.feeds[id] == f {
		delete(h.feeds, id)
	}
}

// read is the events of f from the nth on, and a channel that is closed when there
// are more. The events must not be changed.
func (h *Hub) read(f *feed, n int) ([]writ.TaskEvent, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f.events[n:], f.news
}
