package sandbox

import (
	"io"
	"os"

	"writ"
)

// drain reads one output of a program until its end, keeps a prefix and counts the
// rest, so that no program ever waits for us and none can fill our memory.
type drain struct {
	from  *os.File  // our end of the pipe; closed by run
	to    io.Writer // gets what is kept as it comes; nil discards
	limit int64

	kept  []byte // run's until done is closed, as is total
	total int64
	done  chan struct{}
}

func newDrain(to io.Writer, limit int64) (d *drain, theirs *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	return &drain{from: r, to: to, limit: limit, done: make(chan struct{})}, w, nil
}

// run reads until the end, or the deadline set on from. A writer that fails gets no
// more; what is kept is not touched by that.
func (d *drain) run() {
	defer close(d.done)
	defer d.from.Close()
	buf := make([]byte, writ.MaxChunkBytes) // the most that a writer gets at once
	for {
		n, err := d.from.Read(buf)
		d.total += int64(n)
		if b := buf[:min(int64(n), d.limit-int64(len(d.kept)))]; len(b) > 0 {
			d.kept = append(d.kept, b...)
			if d.to != nil {
				if _, err := d.to.Write(b); err != nil {
					d.to = nil
				}
			}
		}
		if err != nil {
			return // EOF, or the deadline: there is nothing else to be had
		}
	}
}

// output waits for the end.
func (d *drain) output() writ.Output {
	<-d.done
	return writ.NewOutput(d.kept, d.total)
}
