package sandbox

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

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

// maxPipe is what a pipe may hold that the program has made as large as it may, and more
// than a terminal does.
const maxPipe = 1 << 20

// run reads until the end, or the deadline set on from. What is there then is read all the
// same, however late we come to it.
func (d *drain) run() {
	defer close(d.done)
	if d.from == nil {
		return
	}
	defer d.from.Close()
	buf := make([]byte, writ.MaxChunkBytes) // the most that a writer gets at once
	for {
		n, err := d.from.Read(buf)
		d.take(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			// EOF, or EIO, which is how a terminal says that nobody has it open any more:
			// there is nothing else to be had.
			return
		}
	}
	for left := maxPipe; left > 0; { // no more, as somebody may write on
		n, err := d.readNow(buf)
		if err != nil || n <= 0 {
			return
		}
		d.take(buf[:n])
		left -= n
	}
}

// readNow reads what is there, and does not wait for more.
func (d *drain) readNow(b []byte) (n int, err error) {
	err = control(d.from, func(fd int) (err error) {
		for n, err = unix.Read(fd, b); err == unix.EINTR; {
			n, err = unix.Read(fd, b)
		}
		return err
	})
	return n, err
}

// take passes b on, keeps and counts it. A writer that fails gets no more; what is kept is
// not touched by that.
func (d *drain) take(b []byte) {
	n := int64(len(b))
	if b = b[:min(n, max(0, d.limit-d.total))]; len(b) > 0 {
		if d.limit != Unlimited {
			d.kept = append(d.kept, b...)
		}
		if d.to != nil {
			if _, err := d.to.Write(b); err != nil {
				d.to = nil
			}
		}
	}
	d.total += n
}

// endBy makes run end at deadline, or with what was there then.
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
