package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"writ"
)

// defaultCancelWait is how long a runner may take to end a run that was cancelled.
const defaultCancelWait = 10 * time.Second

// Client is a runner in another process. It is safe for concurrent use. It
// connects when it is first used, and again after the connection was lost.
type Client struct {
	conn       *grpc.ClientConn
	cancelWait time.Duration // after that a run or an order that was cancelled is given up
}

// Dial makes a client of a runner that somebody else has started, as "writ runner --socket
// PATH" does, and returns when that has answered a Probe, be it with an error of its
// sandbox. What such a runner does goes on when the client is closed or gone: the next
// client finds its processes by their ids.
//
// The runner must be of this process's uid, which is checked at each connection, as the
// runner checks it of its clients. An error is a *writ.Error of kind writ.Unavailable that
// says what is wrong with the socket or the runner, also when it gives no answer until ctx
// ends or 30 s have passed. Otherwise the caller must close the client.
func Dial(ctx context.Context, socket string) (*Client, error) {
	const op = "reach runner"
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	conn, err := dialOwn(ctx, socket)
	if err != nil {
		return nil, &writ.Error{Kind: writ.Unavailable, Op: op, Err: err, Msg: fmt.Sprintf("no runner can be reached at %s: %v; start one with writ runner --socket %s", socket, err, socket)}
	}
	_ = conn.Close()
	c, err := dial(socket)
	if err != nil {
		return nil, err
	}
	_, lost, err := invoke[writ.Enforcement](ctx, c, methodProbe, &empty{}, grpc.WaitForReady(true))
	if ctx.Err() != nil {
		lost = ctx.Err()
	}
	if lost != nil {
		return nil, errors.Join(&writ.Error{Kind: writ.Unavailable, Op: op, Err: errors.Join(lost, err), Msg: fmt.Sprintf("what serves %s does not answer as a runner", socket)}, c.Close())
	}
	return c, nil
}

// dial makes a client of the runner on a unix socket, which need not be there yet. The
// caller must close it.
func dial(socket string) (*Client, error) {
	conn, err := grpc.NewClient("passthrough:///runner",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return dialOwn(ctx, socket)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), // the socket's folder and peer credentials, of both ends, guard it
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec{}),
			grpc.MaxCallRecvMsgSize(MaxMessage),
			grpc.MaxCallSendMsgSize(MaxMessage),
		),
		grpc.WithInitialWindowSize(callWindow),
		grpc.WithInitialConnWindowSize(connWindow),
		grpc.WithReadBufferSize(ioBuffer),
		grpc.WithWriteBufferSize(ioBuffer),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1.5, Jitter: 0.2, MaxDelay: 500 * time.Millisecond},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingAfter, Timeout: pingWait, PermitWithoutStream: true}),
	)
	if err != nil {
		return nil, fmt.Errorf("dial runner at %s: %w", socket, err)
	}
	return &Client{conn: conn, cancelWait: defaultCancelWait}, nil
}

// ready returns when there is a connection on which the runner has begun to speak, or with
// the error of ctx.
func (c *Client) ready(ctx context.Context) error {
	for {
		s := c.conn.GetState()
		if s == connectivity.Ready {
			return nil
		}
		// After the look, so that a state which waits for this is not waited for; and after
		// each attempt that failed: the socket may not be there yet.
		c.conn.Connect()
		if !c.conn.WaitForStateChange(ctx, s) {
			return ctx.Err()
		}
	}
}

// Close ends the connection. Runs that are under way on it end as interrupted here
// and as killed there.
func (c *Client) Close() error { return c.conn.Close() }

// Probe is the runner's Probe. When the runner cannot be reached the error is of
// kind writ.Unavailable.
func (c *Client) Probe(ctx context.Context) (writ.Enforcement, error) {
	return call[writ.Enforcement](ctx, c, methodProbe, &empty{})
}

// Languages is the runner's Languages. When the runner cannot be reached the error
// is of kind writ.Unavailable.
func (c *Client) Languages(ctx context.Context) ([]writ.LanguageStatus, error) {
	return call[[]writ.LanguageStatus](ctx, c, methodLanguages, &empty{})
}

// call is a method with one request and one answer.
func call[T any](ctx context.Context, c *Client, method string, req any, opts ...grpc.CallOption) (T, error) {
	out, lost, err := invoke[T](ctx, c, method, req, opts...)
	if lost != nil {
		return out, unreachable(method, lost)
	}
	return out, err
}

// invoke is call, with the transport's own error apart from those of the runner and of
// ctx.
func invoke[T any](ctx context.Context, c *Client, method string, req any, opts ...grpc.CallOption) (out T, lost, err error) {
	var none T
	var trailer metadata.MD
	err = c.conn.Invoke(ctx, "/"+service+"/"+method, req, &out, append(opts, grpc.Trailer(&trailer))...)
	if err == nil {
		return out, nil, nil
	}
	given := fromStatus(method, err, trailer)
	switch {
	case ctx.Err() != nil && (given == nil || given.Kind == writ.Internal): // that may be what the runner says, too
		return none, nil, fmt.Errorf("call %s of the runner: %w", method, ctx.Err())
	case given != nil:
		return none, nil, given
	case status.Code(err) == codes.DeadlineExceeded: // which gRPC may notice before ctx does
		return none, nil, fmt.Errorf("call %s of the runner: %w", method, context.DeadlineExceeded)
	}
	return none, err, nil
}

func unreachable(op string, err error) error {
	return &writ.Error{Kind: writ.Unavailable, Op: op, Msg: "the runner cannot be reached, so nothing was executed; try again later", Err: err}
}
