package watch

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pairWait is how long the first half of a rename waits for the second, and maxAhead how
	// many later events are read meanwhile. One without the other is a removal or a
	// creation, which is as right: a file can also be moved out of the root.
	pairWait = 50 * time.Millisecond
	maxAhead = 256

	// maxBack is how many renames may come between the two of one exchange: it holds the
	// locks of both folders, but not those of others.
	maxBack = 16

	// quiet is how long nothing must come before what is in doubt is looked at, and
	// maxDoubt how long it may be in doubt.
	quiet    = 20 * time.Millisecond
	maxDoubt = time.Second

	// Scans that took restAfter together are followed by restTimes as much of rest.
	restAfter = 20 * time.Millisecond
	restTimes = 3
)

// instance is one instance of inotify with the tree that it watches. One goroutine makes
// it and runs it; close and lacks may be called by any.
type instance struct {
	kernel *inotify
	scan   scan
	tree   *tree
	emit   func(Event)
	before func() // of tests: called before each read

	renames [][2]record // the last, at most maxBack
	queue   []timed     // read and not handled: the head waits for its other half
	doubt   time.Time   // since when something is in doubt; zero: nothing is
	// again: what is known is worth nothing, and everything must be watched anew.
	again bool

	lacks atomic.Bool // something is not watched
}

// timed is a record and when it was read.
type timed struct {
	record
	at time.Time
}

// newInstance watches what is beneath root, a canonical path. When it returns all watches
// stand, but for what lacks says.
func newInstance(ctx context.Context, root string, limit int, before func()) (*instance, error) {
	top, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	kernel, err := newInotify()
	if err != nil {
		top.close()
		return nil, err
	}
	in := &instance{kernel: kernel, tree: newTree(kernel), emit: func(Event) {}, before: before}
	in.scan = scan{ctx: ctx, tree: in.tree, root: top, limit: limit, lacking: in.lacking}
	if err := in.scan.whole(); err != nil {
		in.close()
		return nil, err
	}
	in.scan.found = func(path string) { in.emit(Event{Kind: Create, Path: path}) }
	return in, nil
}

// close ends all watches, and run. It may be called more than once.
func (in *instance) close() {
	in.kernel.close()
	in.scan.root.close()
}

// lacking takes note that something is not watched, and tells so once.
func (in *instance) lacking() {
	if !in.lacks.Swap(true) {
		in.resync()
	}
}

func (in *instance) resync() { in.emit(Event{Kind: ResyncRequired}) }

// run handles events until the instance is closed, and then answers false, or until
// everything must be watched anew. What is read after ctx is done is not told.
func (in *instance) run(ctx context.Context) (again bool) {
	buf := make([]byte, 64<<10)
	for {
		for !in.again && in.step(time.Now()) {
		}
		if in.again || ctx.Err() != nil {
			return in.again && ctx.Err() == nil
		}
		if !in.rest(ctx) {
			return false
		}
		if in.before != nil {
			in.before()
		}
		n, err := in.read(buf)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			in.settle()
			continue
		case errors.Is(err, os.ErrClosed):
			return false
		case err != nil || !in.take(buf[:n]):
			in.scan.spent += restAfter // should that happen each time
			return true
		}
	}
}

// read waits for records, but no longer than it makes sense.
func (in *instance) read(buf []byte) (n int, err error) {
	if err := in.kernel.file.SetReadDeadline(in.deadline()); err != nil {
		return 0, err
	}
	return in.kernel.file.Read(buf)
}

// take reads records into the queue.
func (in *instance) take(b []byte) bool {
	records, err := parseRecords(nil, b)
	now := time.Now()
	for _, r := range records {
		in.queue = append(in.queue, timed{record: r, at: now})
	}
	return err == nil
}

// rest keeps scans from taking all the time of a core. It is false when ctx is done.
func (in *instance) rest(ctx context.Context) bool {
	if in.scan.spent < restAfter {
		return true
	}
	timer := time.NewTimer(restTimes * in.scan.spent)
	defer timer.Stop()
	in.scan.spent = 0
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// deadline is until when to wait for more.
func (in *instance) deadline() time.Time {
	switch {
	case len(in.queue) > 0:
		return in.queue[0].at.Add(pairWait)
	case in.unsettled():
		return time.Now().Add(quiet)
	}
	return time.Time{}
}

// unsettled reports whether it is in doubt where folders are, or whether all that is known
// of that was told.
func (in *instance) unsettled() bool {
	return in.scan.unsaid || len(in.tree.strays)+len(in.tree.doubtful) > 0
}

// settle ends a doubt when nothing more has come.
func (in *instance) settle() {
	in.again = in.again || len(in.queue) == 0 && in.unsettled()
}

// step handles the record at the head, and is false when there is none, or when it waits
// for its other half.
func (in *instance) step(now time.Time) bool {
	if len(in.queue) == 0 {
		return false
	}
	head := in.queue[0]
	if !head.is(unix.IN_MOVED_FROM) {
		in.queue = in.queue[1:]
		in.handle(head.record)
		in.age(now)
		return true
	}
	ahead := in.queue[:min(len(in.queue), maxAhead)]
	for i, r := range ahead {
		if r.is(unix.IN_MOVED_TO) && r.cookie == head.cookie {
			copy(in.queue[2:], in.queue[1:i]) // what is between stays, behind both
			in.queue = in.queue[2:]
			in.rename(head.record, r.record)
			in.age(now)
			return true
		}
	}
	if len(ahead) < maxAhead && now.Before(head.at.Add(pairWait)) {
		return false
	}
	in.queue = in.queue[1:]
	in.handle(head.record)
	in.age(now)
	return true
}

// age sees that a stream of events without end does not keep something in doubt.
func (in *instance) age(now time.Time) {
	switch {
	case !in.unsettled():
		in.doubt = time.Time{}
	case in.doubt.IsZero():
		in.doubt = now
	case now.Sub(in.doubt) > maxDoubt:
		in.again = true
	}
}
