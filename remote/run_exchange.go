package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"google.golang.org/grpc/mem"

	"writ"
)

// open is Exchange.Open at the runner's end. One input is open at a time.
func (r *received) open(ctx context.Context, digest writ.Digest) (io.ReadCloser, error) {
	size, ok := r.sizes[digest]
	if !ok {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "open input", Msg: "the run has no file of digest " + string(digest)}
	}
	r.mu.Lock()
	busy := r.opened
	r.mu.Unlock()
	if busy {
		return nil, errors.New("open input: the one before it is still open")
	}
	if err := acquire(ctx, r.turn); err != nil {
		return nil, err
	}
	in := &receivedInput{r: r, ctx: ctx, left: size}
	if err := in.ask(digest); err != nil {
		in.end()
		return nil, err
	}
	if err := in.next(); err != nil && !errors.Is(err, io.EOF) { // the first answer says whether it can be opened
		return nil, errors.Join(err, in.Close())
	}
	return in, nil
}

// receivedInput is an input at the runner's end, for one goroutine.
type receivedInput struct {
	r    *received
	ctx  context.Context
	left int64 // bytes that may still come
	now  mem.Reader
	err  error // that reading ended with
	over bool  // its end has come, or it was given up: the turn was given back
}

func (in *receivedInput) ask(digest writ.Digest) error {
	if err := in.r.begin(&in.r.opened); err != nil {
		return err
	}
	if err := in.r.send(in.ctx, &reply{Open: digest}); err != nil {
		return in.r.giveUp(err)
	}
	return nil
}

// end gives the turn back.
func (in *receivedInput) end() {
	if !in.over {
		in.over = true
		release(in.r.turn)
	}
}

// next waits for what is not read yet, or for how the input ended.
func (in *receivedInput) next() error {
	for in.err == nil && in.now.Remaining() == 0 {
		a, err := in.arrival()
		switch {
		case err != nil:
			in.err = err
		case a.end != nil:
			in.err = a.end.err("open input")
			if in.err == nil && in.left > 0 {
				in.err = io.ErrUnexpectedEOF
			} else if in.err == nil {
				in.err = io.EOF
			}
		case int64(a.data.Len()) > in.left:
			a.data.Free()
			in.err = errors.New("the gateway sends more of an input than it has")
		default:
			in.left -= int64(a.data.Len())
			in.now.Reset(a.data)
			a.data.Free() // now has its own
			if err := in.r.send(in.ctx, &reply{More: true}); err != nil {
				in.err = in.giveUp(err)
			}
		}
	}
	return in.err
}

func (in *receivedInput) arrival() (arrival, error) {
	select {
	case a := <-in.r.arrivals:
		if a.end != nil {
			in.end()
		}
		return a, nil
	case <-in.ctx.Done():
		return arrival{}, in.giveUp(context.Cause(in.ctx))
	}
}

func (in *receivedInput) giveUp(err error) error {
	err = in.r.giveUp(err)
	in.end()
	return err
}

func (in *receivedInput) Read(p []byte) (int, error) {
	if err := in.next(); err != nil {
		return 0, err
	}
	return in.now.Read(p)
}

// Close waits until the gateway has done with the input.
func (in *receivedInput) Close() error {
	defer in.now.Close() // never fails
	if in.err == nil {
		in.err = fs.ErrClosed
	}
	if !in.over {
		if err := in.r.send(in.ctx, &reply{Close: true}); err != nil {
			return in.giveUp(err)
		}
	}
	for !in.over {
		a, err := in.arrival()
		if err != nil {
			return err
		}
		a.data.Free()
	}
	return nil
}

// keep is Exchange.Keep at the runner's end.
func (r *received) keep(ctx context.Context, f writ.OutputFile, body io.Reader) error {
	if err := acquire(ctx, r.turn); err != nil {
		return err
	}
	defer release(r.turn)
	if err := r.begin(&r.keeping); err != nil {
		return err
	}
	more := newWindow()
	r.mu.Lock()
	r.more = more
	r.mu.Unlock()
	f.Digest = "" // the gateway works it out
	if err := r.send(ctx, &reply{Keep: &f}); err != nil {
		return r.giveUp(err)
	}
	answer, whole := r.sendOutput(ctx, f.Size, body, more)
	if err := r.send(ctx, &reply{End: verdictOf(whole)}); err != nil {
		return r.giveUp(err)
	}
	if answer == nil {
		select {
		case answer = <-r.answers:
		case <-ctx.Done():
			return r.giveUp(context.Cause(ctx))
		}
	}
	if err := answer.err("keep output"); err != nil && (whole == nil || errors.Is(whole, errAnswered)) {
		return err
	}
	return whole
}

var errAnswered = errors.New("the gateway does not want the file")

// sendOutput sends size bytes of body, which must be all, or as much as it can. Answer is
// what the gateway said before that was done, if it did.
func (r *received) sendOutput(ctx context.Context, size int64, body io.Reader, more <-chan struct{}) (answer *verdict, err error) {
	for sent := int64(0); ; {
		select {
		case answer = <-r.answers:
			return answer, errAnswered
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-more:
		}
		f := r.frames.frame()
		end := f.fill(body)
		sent += int64(f.n)
		switch {
		case end != nil && !errors.Is(end, io.EOF) && !errors.Is(end, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("read output: %w", end)
		case sent > size || end != nil && sent < size:
			return nil, fmt.Errorf("the file had %d bytes, and now has %d or more", size, sent)
		}
		if f.n > 0 {
			if err := r.send(ctx, f); err != nil {
				return nil, err
			}
		} else {
			f.drop()
		}
		if end != nil {
			return nil, nil
		}
	}
}
