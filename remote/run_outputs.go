package remote

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc/mem"

	"writ"
)

// output is a file on its way from the runner to the gateway.
type output struct {
	ctx    context.Context
	stop   context.CancelFunc   // ends ctx
	more   func() error         // lets one more frame be sent
	frames chan mem.BufferSlice // holds all that the runner may send; closed at the end
	done   chan struct{}        // closed when Keep has returned

	file writ.OutputFile
	kept bool // set by the keeper before done is closed

	fault error // set by receive before frames is closed
	left  int64 // of receive alone: bytes that are to come
	ended bool  // of receive alone: frames is closed
}

// keep begins to take f.
func (s *sent) keep(f writ.OutputFile) error {
	if s.x.Keep == nil {
		return errors.New("it gave a file that nobody asked for")
	}
	if err := s.rules.offer(f); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(s.ctx)
	o := &output{
		ctx: ctx, stop: stop, more: func() error { return s.send(&request{More: true}) },
		frames: make(chan mem.BufferSlice, frameWindow), done: make(chan struct{}), file: f, left: f.Size,
	}
	s.out = o
	s.wg.Go(func() { s.keepOutput(o) })
	return nil
}

// keepOutput has o kept, and answers.
func (s *sent) keepOutput(o *output) {
	r := &outputReader{out: o}
	defer r.now.Close()
	err := s.x.Keep(o.ctx, o.file, r)
	if err == nil && !errors.Is(r.err, io.EOF) {
		err = errors.New("the file was not read to its end")
	}
	o.stop()
	o.kept = err == nil
	close(o.done)                              // before the runner can give the next
	_ = s.send(&request{Kept: verdictOf(err)}) // fails only with the stream, and then receive ends
}

// data passes on bytes of the output. It never waits for Keep: what the runner says next,
// that it gives the output up, must come through.
func (s *sent) data(b mem.BufferSlice) error {
	n := b.Len()
	o := s.out
	if o == nil || o.ended || n == 0 || n > frameBytes || int64(n) > o.left {
		b.Free()
		return errors.New("it sent bytes that are none of a file, or more than it said")
	}
	o.left -= int64(n)
	select {
	case o.frames <- b:
		return nil
	default:
	}
	b.Free()
	return errors.New("it sent more of a file than was asked for")
}

// end is that of the output.
func (s *sent) end(v *verdict) error {
	o := s.out
	if o == nil || o.ended || v.Error == nil && o.left > 0 {
		return errors.New("it ended a file that was not whole")
	}
	o.fault, o.ended = v.err("read output"), true
	close(o.frames)
	return nil
}

// outputReader is the bytes of an output, for one goroutine.
type outputReader struct {
	out *output
	now mem.Reader
	err error // that reading ended with
}

func (r *outputReader) Read(p []byte) (int, error) {
	for r.err == nil && r.now.Remaining() == 0 {
		select {
		case b, ok := <-r.out.frames:
			switch {
			case ok:
				r.now.Reset(b)
				b.Free()         // now has its own
				_ = r.out.more() // fails only with the stream, and then ctx ends
			case r.out.fault != nil:
				r.err = r.out.fault
			default:
				r.err = io.EOF
			}
		case <-r.out.ctx.Done():
			r.err = context.Cause(r.out.ctx)
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return r.now.Read(p)
}
