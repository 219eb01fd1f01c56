package runner

import (
	"context"
	"time"

	"writ"
)

// exits is one call of Exits: the ends that it has not told yet.
type exits struct {
	wake  chan struct{}        // holds one: something was queued
	queue []writ.ProcessStatus // guarded by Processes.mu
}

// Exits tells fn how each process ended, in the order of their ends and from the calling
// goroutine: first those that are remembered, then each as it ends, until ctx is done or
// fn fails, whose error it answers then. When Close has ended everything it tells that
// too, and answers Unavailable. When it is called again it begins anew, so everybody is
// told of each end once at least.
//
// A slow fn delays nobody else.
func (m *Processes) Exits(ctx context.Context, fn func(writ.ProcessStatus) error) error {
	x := &exits{wake: make(chan struct{}, 1)}
	m.mu.Lock()
	for _, p := range m.ended {
		x.queue = append(x.queue, p.status())
	}
	m.exits[x] = struct{}{}
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		delete(m.exits, x)
		m.mu.Unlock()
	}()
	for gone := false; ; {
		m.mu.Lock()
		queue := x.queue
		x.queue = nil
		m.mu.Unlock()
		for _, s := range queue {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fn(s); err != nil {
				return err
			}
		}
		if gone {
			return shuttingDown("follow processes")
		}
		select {
		case <-x.wake:
		case <-m.gone:
			gone = true // nothing is queued any more; what is there is told yet
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// over moves a process from the live to the ended, and tells it. Whoever sees that it has
// ended finds its slot free.
func (m *Processes) over(p *process, res writ.Result, killed error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p.end(res, killed, time.Now())
	m.live--
	m.ended = append(m.ended, p)
	s := p.status()
	for x := range m.exits {
		x.queue = append(x.queue, s)
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
	m.evict(*s.Ended)
}
