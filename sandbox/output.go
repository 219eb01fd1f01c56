package sandbox

import (
	"io"
	"os"
	"time"

	"writ"
)

// drain reads one output of a program until its end, passes on a prefix and counts the
// rest, so that no program ever waits for us and none can fill our memory.
type drain struct {
	from  *os.File  // our end; closed by run. Nil for an output that there is not
	to    io.Writer // gets the prefix as it comes; nil discards
	limit int64     // of the prefix, which is also kept unless it is Unlimited

	kept  []byte // run's until done is closed, as is total
	total int64
	done  chan struct{}
}

func newDrain(from *os.File, to io.Writer, limit int64) *drain {
	return &drain{from: from, to: to, limit: limit, done: make(chan struct{})}
}

// run reads until the end, or the deadline set on from. A writer that fails gets no
// more; what is kept is not touched by that.
func (d *drain) run() {
	defer close(d.done)
	if d.from == nil {
		return
	}
	defer d.from.Close()
	buf := make([]byte, writ.MaxChunkBytes) // the most that a writer gets at once
	for {
		n, err := d.from.Read(buf)
		if b := buf[:min(int64(n), max(0, d.limit-d.total))]; len(b) > 0 {
			if d.limit != Unlimited {
				d.kept = append(d.kept, b...)
			}
			if d.to != nil {
				if _, err := d.to.Write(b); err != nil {
					d.to = nil
				}
			}
		}
		d.total += int64(n)
		if err != nil {
			// EOF, the deadline, or EIO, which is how a terminal says that nobody has it
			// open any more: there is nothing else to be had.
			return
		}
	}
}

// endBy makes run end at deadline.
func (d *drain) endBy(deadline time.Time) {
	if d.from != nil {
		_ = d.from.SetReadDeadline(deadline) // closed already when it ended
	}
}

// abandon closes a drain that is never run.
func (d *drain) abandon() error {
	if d == nil || d.from == nil {
		return nil
	}
	return d.from.Close()
}

// output waits for the end.
func (d *drain) output() writ.Output {
	<-d.done
	return writ.NewOutput(d.kept, d.total)
}
