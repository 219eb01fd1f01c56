package remote

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"writ"
)

// serveRun is the handler of Run.
func serveRun(srv any, stream grpc.ServerStream) error {
	var first request
	if err := stream.RecvMsg(&first); err != nil {
		return err
	}
	if first.Run == nil {
		return status.Error(codes.InvalidArgument, "the first message of Run must be the order")
	}
	ctx, cancel := context.WithCancel(stream.Context()) // ends with the connection
	defer cancel()
	r := newReceived(stream, first.Run.Spec, cancel)
	go r.listen() // ends with the stream, which ends when this handler returns

	res, err := srv.(served).Run(ctx, first.Run.ID, first.Run.Spec, first.Run.Digest, r.exchange(*first.Run))
	r.wg.Wait() // for what is sent in order
	switch {
	case r.fault() != nil:
		return status.Error(codes.InvalidArgument, r.fault().Error())
	case err != nil:
		trailer, st := toStatus(err)
		stream.SetTrailer(trailer)
		return st
	}
	return stream.SendMsg(&reply{Result: &res})
}

// received is a run at the runner's end.
type received struct {
	stream grpc.ServerStream
	sizes  map[writ.Digest]int64 // of the inputs
	frames frames
	cancel func()

	// turn is held by whoever uses the exchange, an input from Open to Close: the messages
	// of two never mix. sending serialises stream.SendMsg, and is taken after turn.
	turn, sending chan struct{}
	wg            sync.WaitGroup // of what is being sent

	arrivals chan arrival  // of the input; holds all that the gateway may send
	answers  chan *verdict // one at most: of the output

	mu      sync.Mutex
	opened  bool   // guarded by mu: an input was asked for, and has not come to its end
	keeping bool   // guarded by mu: an output was given, and is not answered
	more    window // guarded by mu: of that
	broken  error  // guarded by mu: an input or an output was given up, so that nothing is known of what comes
	wrong   error  // guarded by mu: what the gateway did
}

// arrival is bytes of an input, or its end.
type arrival struct {
	data mem.BufferSlice
	end  *verdict
}

func newReceived(stream grpc.ServerStream, spec writ.RunSpec, cancel func()) *received {
	return &received{
		stream: stream, sizes: sizesOf(spec), frames: newFrames(), cancel: cancel,
		turn: make(chan struct{}, 1), sending: make(chan struct{}, 1),
		arrivals: make(chan arrival, frameWindow+1), answers: make(chan *verdict, 1),
	}
}

// exchange is what the runner gets.
func (r *received) exchange(o order) *writ.Exchange {
	x := &writ.Exchange{Emit: r.emit}
	if o.Opens {
		x.Open = r.open
	}
	if o.Keeps {
		x.Keep = r.keep
	}
	return x
}

// listen takes what the gateway says until the stream ends. It never waits for anything
// else, so that a cancel gets through.
func (r *received) listen() {
	for {
		var m request
		err := r.stream.RecvMsg(&m)
		if errors.Is(err, io.EOF) {
			return // it has nothing more to say
		}
		if err == nil {
			err = r.take(m)
		}
		if err != nil {
			r.mu.Lock()
			r.wrong = err
			r.mu.Unlock()
			r.cancel()
			return
		}
	}
}

// fault is what the gateway did that is none of the protocol.
func (r *received) fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrong
}

func (r *received) take(m request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case m.Cancel:
		r.cancel()
		return nil
	case m.Data != nil && r.opened && m.Data.Len() > 0 && m.Data.Len() <= frameBytes:
		if len(r.arrivals) >= frameWindow { // nobody else adds to them
			return errors.New("more of an input came than was asked for")
		}
		r.arrivals <- arrival{data: m.Data}
		return nil
	case m.End != nil && r.opened:
		r.opened = false
		r.arrivals <- arrival{end: m.End} // the room that the case above leaves
		return nil
	case m.More && r.keeping:
		return r.more.open()
	case m.Kept != nil && r.keeping:
		r.keeping = false
		r.answers <- m.Kept
		return nil
	}
	return errors.New("a message came that is none of the protocol")
}

// send sends m, or gives up with ctx. Then m may still be sent, and nothing is sent
// before it.
func (r *received) send(ctx context.Context, m any) error {
	if err := acquire(ctx, r.sending); err != nil {
		return err
	}
	done := make(chan error, 1)
	r.wg.Go(func() {
		done <- r.stream.SendMsg(m)
		<-r.sending
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// emit fails only with the connection, which ends the run.
func (r *received) emit(c writ.Chunk) {
	ctx := r.stream.Context()
	if acquire(ctx, r.turn) != nil {
		return
	}
	defer release(r.turn)
	if acquire(ctx, r.sending) != nil {
		return
	}
	defer release(r.sending)
	_ = r.stream.SendMsg(&reply{Chunk: &c})
}

// give up says that nothing more can be exchanged but chunks, since err.
func (r *received) giveUp(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = err
	return err
}

// begin marks that an input is asked for, or an output given.
func (r *received) begin(which *bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return r.broken
	}
	*which = true
	return nil
}

func acquire(ctx context.Context, c chan struct{}) error {
	select {
	case c <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func release(c chan struct{}) { <-c }
