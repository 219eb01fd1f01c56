package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"writ"
)

// once is an order of one message each way that is never repeated. When ctx ends once that
// is being sent, once waits for the answer for the client's cancelWait, and gives up then.
//
// err is of the runner, or says that nothing was sent: of ctx, or of kind
// writ.Unavailable with code TIMEOUT. lost says that the order was sent, and why there is
// no answer. Trailer is what came with err, if it is of the runner.
func once[T any](ctx context.Context, c *Client, op, method string, req any) (out T, trailer metadata.MD, lost, err error) {
	var none T
	streamCtx, drop := context.WithCancel(context.WithoutCancel(ctx))
	defer drop()
	stop := context.AfterFunc(ctx, drop) // until the order is sent
	// A call of one message each way, in its parts: only so can be told whether the order
	// was sent.
	stream, err := c.conn.NewStream(streamCtx, &grpc.StreamDesc{}, "/"+service+"/"+method)
	if !stop() {
		return none, nil, nil, fmt.Errorf("call %s of the runner: %w", method, ctx.Err())
	}
	if err != nil {
		return none, nil, nil, unanswered(op, err)
	}
	defer c.dropLate(ctx, streamCtx, drop)() // also when nobody takes it
	if err := stream.SendMsg(req); err != nil && !errors.Is(err, io.EOF) {
		// io.EOF: the stream is over, and receiving says why.
		return none, nil, err, nil
	}
	if err := stream.RecvMsg(&out); err != nil {
		if given := fromStatus(op, err, stream.Trailer()); given != nil {
			return none, stream.Trailer(), nil, given
		}
		return none, nil, err, nil
	}
	return out, nil, nil, nil
}

// dropLate calls drop, which ends the stream, when ctx has been over for the client's
// cancelWait and the stream is not, until forget is called.
func (c *Client) dropLate(ctx, stream context.Context, drop func()) (forget func() bool) {
	return context.AfterFunc(ctx, func() {
		late := time.NewTimer(c.cancelWait)
		defer late.Stop()
		select {
		case <-stream.Done():
		case <-late.C:
			drop()
		}
	})
}

// unknown is the error of an order that was sent and not answered.
func unknown(op string, lost error) error {
	return &writ.Error{
		Kind: writ.Unavailable, Code: codeTimeout, Op: op, Err: fmt.Errorf("%w: %w", writ.ErrDispatchUnknown, lost),
		Msg: "contact with the runner was lost before it answered: it may have been done, or not",
	}
}
