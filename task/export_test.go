package task

import (
	"context"
	"sync/atomic"

	"writ"
)

// Feeds is how many tasks h keeps anything of.
func (h *Hub) Feeds() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.feeds)
}

// Watchers is how many wait for news of anything.
func (h *Hub) Watchers() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.feeds {
		n += f.watchers
	}
	return n
}

// CountLooks counts, from here on, how often those who wait read the store.
func (s *Service) CountLooks() *atomic.Int64 {
	n := new(atomic.Int64)
	s.look = func(ctx context.Context, who writ.Principal, id writ.TaskID) (writ.Task, error) {
		n.Add(1)
		return s.Get(ctx, who, id)
	}
	return n
}
