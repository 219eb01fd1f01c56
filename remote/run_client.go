package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"writ"
)

// Run is the runner's Run, never repeated. Beside its outcomes there is one more:
// when contact is lost after the order was sent and before an answer came, the
// result is writ.Interrupted with Started true, without an error, since the code
// may have been executed; the output that came before went to x.Emit, and files went to
// x.Keep. So it is, too, when what the runner says is none of the protocol, when it asks
// for bytes that are not the spec's, gives a file that spec.Collect does not take, or names
// one in its result that it did not give. When the runner could not be reached at all, the
// error is of kind writ.Unavailable.
//
// The digests of files that are new or changed are what the runner says: who keeps the
// bytes knows theirs.
//
// The funcs of x are called by one goroutine at a time, and none after Run has returned.
// Their ctx ends with ctx, and when nobody waits for them any more: Run waits until they
// return. What x.Open answers is read no further then.
func (c *Client) Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error) {
	const op = "run"
	if x == nil {
		x = &writ.Exchange{}
	}
	// JSON would turn bytes that are not UTF-8 into others.
	if err := spec.Validate(); err != nil {
		return writ.Result{}, &writ.Error{Kind: writ.Invalid, Op: op, Msg: err.Error()}
	}
	// The stream outlives ctx: a run that is cancelled still has a result.
	streamCtx, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	stop := context.AfterFunc(ctx, drop) // until the order is sent
	stream, err := c.conn.NewStream(streamCtx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+service+"/"+methodRun)
	if !stop() {
		return unsent(), nil
	}
	if err != nil {
		return writ.Result{}, unreachable(op, err)
	}
	defer c.dropLate(ctx, streamCtx, drop)() // also when nobody takes it
	first := &request{Run: &order{ID: id, Digest: digest, Spec: spec, Opens: x.Open != nil, Keeps: x.Keep != nil}}
	switch err := stream.SendMsg(first); {
	case status.Code(err) == codes.ResourceExhausted: // made here: it was not sent
		return writ.Result{}, &writ.Error{Kind: writ.Invalid, Op: op, Msg: fmt.Sprintf("the run's description is too large for the runner: in JSON it must not have more than %d bytes", MaxMessage), Err: err}
	case err != nil && !errors.Is(err, io.EOF): // io.EOF: the stream is over, and receiving says why
		return interrupted(err), nil
	}
	s := newSent(ctx, stream, drop, spec, x)
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	defer s.settle() // first: a cancel may not get on
	wg.Go(func() {
		select {
		case <-over:
		case <-ctx.Done():
			s.cancel()
		}
	})
	return s.receive(op)
}

// sent is a run at the gateway's end, from its order to its result.
type sent struct {
	caller context.Context // whose end cancels the run
	stream grpc.ClientStream
	drop   func() // ends the stream, and a send that does not get on
	x      *writ.Exchange
	frames frames
	rules  rules

	ctx  context.Context    // of Open and Keep
	stop context.CancelFunc // ends it
	wg   sync.WaitGroup     // of what calls them

	sending sync.Mutex // serialises stream.SendMsg; mu is not taken while it is held
	told    bool       // guarded by sending: a cancel was sent

	mu     sync.Mutex
	in     *input // guarded by mu: that Open was asked for, nil once that is over
	failed error  // guarded by mu: of the last input

	out *output // of receive alone: that Keep was asked for last
}

func newSent(ctx context.Context, stream grpc.ClientStream, drop func(), spec writ.RunSpec, x *writ.Exchange) *sent {
	s := &sent{caller: ctx, stream: stream, drop: drop, x: x, frames: newFrames(), rules: newRules(spec)}
	s.ctx, s.stop = context.WithCancel(ctx)
	return s
}

// settle ends the stream and what is under way with the exchange, and waits for that.
// The runner may not be listening any more.
func (s *sent) settle() {
	s.drop()
	s.stop()
	s.wg.Wait()
}

// send sends m. When the run was cancelled, a cancel goes first: what m says may come of
// that, and the runner must not take it for a failure.
func (s *sent) send(m any) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	if s.caller.Err() != nil && !s.told {
		s.told = true
		if err := s.stream.SendMsg(&request{Cancel: true}); err != nil {
			return err
		}
	}
	if m == nil {
		return nil
	}
	return s.stream.SendMsg(m)
}

// cancel sends a cancel if none was. It fails only when the stream is over.
func (s *sent) cancel() { _ = s.send(nil) }

// receive does what the runner asks for until the answer comes.
func (s *sent) receive(op string) (writ.Result, error) {
	for {
		var m reply
		if err := s.stream.RecvMsg(&m); err != nil {
			if given := fromStatus(op, err, s.stream.Trailer()); given != nil {
				return writ.Result{}, s.because(given)
			}
			return interrupted(err), nil
		}
		if m.Result == nil {
			if err := s.take(m); err != nil {
				return interrupted(err), nil
			}
			continue
		}
		s.settle()
		s.rules.kept(s.out)
		if err := s.rules.result(m.Result); err != nil {
			return interrupted(err), nil
		}
		return *m.Result, nil
	}
}

// because is given, with the gateway's own error when that was the cause.
func (s *sent) because(given *writ.Error) error {
	s.settle()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil && given.Kind == writ.KindOf(s.failed) {
		given.Err = errors.Join(given.Err, s.failed)
	}
	return given
}

// take does what m asks for, and reports what it may not.
func (s *sent) take(m reply) error {
	switch {
	case m.Data != nil:
		return s.data(m.Data)
	case m.End != nil:
		return s.end(m.End)
	case m.More:
		return s.more()
	case m.Close:
		s.closeInput()
		return nil
	}
	if err := s.idle(m.Chunk != nil); err != nil {
		return err
	}
	switch {
	case m.Chunk != nil && (m.Chunk.Stream == writ.Stdout || m.Chunk.Stream == writ.Stderr):
		if s.x.Emit != nil {
			s.x.Emit(*m.Chunk)
		}
		return nil
	case m.Open != "":
		return s.open(m.Open)
	case m.Keep != nil:
		return s.keep(*m.Keep)
	}
	return errors.New("it sent a message that is none of the protocol")
}

// idle reports what a func of the exchange is busy with, and settles the last output. A
// chunk may come while an output is on its way: then the runner has given that up.
func (s *sent) idle(chunk bool) error {
	s.mu.Lock()
	busy := s.in != nil
	s.mu.Unlock()
	if busy {
		return errors.New("it did not wait for an input to end")
	}
	if s.out == nil {
		return nil
	}
	if chunk {
		s.out.stop()
		<-s.out.done
		s.out.ended = true
	}
	select {
	case <-s.out.done:
	default:
		return errors.New("it did not wait for an output to be kept")
	}
	if !s.out.ended {
		return errors.New("it did not end an output")
	}
	s.rules.kept(s.out)
	s.out = nil
	return nil
}

func unsent() writ.Result {
	none := writ.NewOutput(nil, 0)
	return writ.Result{Outcome: writ.Killed, Reason: "cancelled before it started", Stdout: none, Stderr: none}
}

func interrupted(err error) writ.Result {
	none := writ.NewOutput(nil, 0)
	return writ.Result{
		Outcome: writ.Interrupted, Started: true, Stdout: none, Stderr: none,
		Reason: "contact with the runner was lost before it said how the run ended: " + status.Convert(err).Message(),
	}
}
