package sandbox

import (
	"os"
	"os/exec"
	"runtime"
)

// forker starts processes on one thread that lives as long as the forker. The
// kernel sends a parent-death signal when the thread that forked ends, not the
// process, and the Go runtime may end any other thread.
type forker struct {
	jobs chan func()
	done chan struct{}
}

func newForker() *forker {
	f := &forker{jobs: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		// Never unlocked: the thread ends with this goroutine, and every process that
		// it started and that still lives dies with it.
		runtime.LockOSThread()
		for job := range f.jobs {
			job()
		}
	}()
	return f
}

// start starts cmd in group g, or fails with os.ErrClosed after close.
func (f *forker) start(g *cgroup, cmd *exec.Cmd) error {
	result := make(chan error, 1)
	select {
	case <-f.done:
		return os.ErrClosed
	case f.jobs <- func() { result <- g.run(cmd.Start) }:
		return <-result
	}
}

// close ends the thread. It must be called once, and start not after it began.
func (f *forker) close() {
	close(f.jobs)
	<-f.done
}
