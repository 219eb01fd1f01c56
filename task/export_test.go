package task

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
