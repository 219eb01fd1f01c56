package remote

import (
	"context"
	"errors"
	"fmt"
	"io"

	"writ"
)

// input is a file on its way from the gateway to the runner.
type input struct {
	size   int64
	more   window
	closed chan struct{} // the runner wants no more
}

// open begins to send the bytes of digest.
func (s *sent) open(digest writ.Digest) error {
	size, ok := s.rules.sizes[digest]
	if !ok || s.x.Open == nil {
		return errors.New("it asked for bytes that are not the run's")
	}
	in := &input{size, newWindow(), make(chan struct{})}
	s.mu.Lock()
	s.in, s.failed = in, nil
	s.mu.Unlock()
	s.wg.Go(func() { s.sendInput(in, digest) })
	return nil
}

// sendInput sends the bytes of in, and how that ended.
func (s *sent) sendInput(in *input, digest writ.Digest) {
	err := s.pump(in, digest)
	s.mu.Lock()
	s.in = nil // before the runner can ask for the next
	if !errors.Is(err, errInputClosed) {
		s.failed = err
	}
	s.mu.Unlock()
	_ = s.send(&request{End: verdictOf(err)}) // fails only with the stream, and then receive ends
}

var errInputClosed = errors.New("the runner wants no more of it")

func (s *sent) pump(in *input, digest writ.Digest) (err error) {
	body, err := s.x.Open(s.ctx, digest)
	if err != nil {
		return err
	}
	defer func() {
		if e := body.Close(); err == nil && e != nil {
			err = fmt.Errorf("close input: %w", e)
		}
	}()
	for sent := int64(0); ; {
		select {
		case <-in.more:
		case <-in.closed:
			return errInputClosed
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
		f := s.frames.frame()
		end := f.fill(body)
		sent += int64(f.n)
		switch {
		case end != nil && !errors.Is(end, io.EOF) && !errors.Is(end, io.ErrUnexpectedEOF):
			return fmt.Errorf("read input: %w", end)
		case sent > in.size || end != nil && sent < in.size:
			return &writ.Error{Kind: writ.NotFound, Op: "read input", Msg: fmt.Sprintf("the bytes of %.12s are %d or more, the run was told of %d", digest, sent, in.size)}
		}
		if f.n > 0 {
			if err := s.send(f); err != nil {
				return fmt.Errorf("send input: %w", err)
			}
		} else {
			f.drop()
		}
		if end != nil {
			return nil
		}
	}
}

// more lets one more frame be sent. It may cross the end of the input.
func (s *sent) more() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in == nil {
		return nil
	}
	return s.in.more.open()
}

// closeInput ends an input early. It may cross its end.
func (s *sent) closeInput() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.in == nil {
		return
	}
	select {
	case <-s.in.closed:
	default:
		close(s.in.closed)
	}
}
