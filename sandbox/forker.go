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
	quit chan struct{} // closed to end the thread
	done chan struct{} // closed when it has ended
}

func newForker() *forker {
	f := &forker{jobs: make(chan func()), quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(f.done)
		// Never unlocked: the thread ends with this goroutine, and every process that
		// it started and that still lives dies with it.
		runtime.LockOSThread()
		for {
			select {
			case job := <-f.jobs:
				job()
			case <-f.quit:
				return
			}
		}
	}()
	return f
}

// start starts cmd in group g, or fails with os.ErrClosed after close.
func (f *forker) start(g *cgroup, cmd *exec.Cmd) error {
	result := make(chan error, 1)
	select {
	case <-f.quit:
		return os.ErrClosed
	case f.jobs <- func() { result <- g.run(cmd.Start) }:
		return <-result
	}
}

// close ends the thread. It must be called once.
func (f *forker) close() {
	close(f.quit)
	<-f.done
}
