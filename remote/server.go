package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"writ"
)

// drainWait is how long calls under way may take to end once a server stops.
const drainWait = 2 * time.Second

// Parts are what a server serves. Calls to those that are nil are refused; there must be
// a Runner.
type Parts struct {
	Runner    Runner
	Files     Files
	Processes Processes
}

// served are parts of which none is nil.
type served struct {
	Runner
	files     Files
	processes Processes
}

func (p Parts) filled() served {
	s := served{p.Runner, p.Files, p.Processes}
	if s.files == nil {
		s.files = noFiles{}
	}
	if s.processes == nil {
		s.processes = noProcesses{}
	}
	return s
}

// Serve answers calls to parts on ln, a unix listener, from processes of uid. It owns ln.
// When ctx ends it takes no more calls, gives those under way two seconds to end, cancels
// the rest, waits for all of them and returns nil; any other return is an error.
func Serve(ctx context.Context, ln net.Listener, parts Parts, uid uint32) error {
	srv := grpc.NewServer(
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.InitialWindowSize(callWindow),
		grpc.InitialConnWindowSize(connWindow),
		grpc.ReadBufferSize(ioBuffer),
		grpc.WriteBufferSize(ioBuffer),
		grpc.WaitForHandlers(true), // Stop returns when every run has ended
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingWait}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingAfter / 2, PermitWithoutStream: true}),
	)
	srv.RegisterService(description(), parts.filled())

	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ownListener{ln, uid}) }() // ends with Stop
	select {
	case err := <-failed:
		srv.Stop()
		return fmt.Errorf("serve runner: %w", err)
	case <-ctx.Done():
	}
	drained := make(chan struct{})
	go func() { defer close(drained); srv.GracefulStop() }() // ends with Stop
	select {
	case <-drained:
	case <-time.After(drainWait):
		srv.Stop()
		<-drained
	}
	<-failed
	return nil
}

// description is the service as doc.go specifies it.
func description() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: service,
		HandlerType: (*Runner)(nil),
		Methods: append([]grpc.MethodDesc{
			{MethodName: methodProbe, Handler: unary(func(s served, ctx context.Context, _ *empty) (writ.Enforcement, error) {
				return s.Probe(ctx)
			})},
			{MethodName: methodLanguages, Handler: unary(func(s served, ctx context.Context, _ *empty) ([]writ.LanguageStatus, error) {
				return s.Languages(ctx)
			})},
		}, append(fileMethods(), processMethods()...)...),
		Streams: []grpc.StreamDesc{
			{StreamName: methodRun, Handler: serveRun, ServerStreams: true, ClientStreams: true},
			{StreamName: methodProcessExits, Handler: serveExits, ServerStreams: true},
		},
	}
}

// unary is the handler of a method with one request and one answer.
func unary[Req, T any](call func(served, context.Context, *Req) (T, error)) grpc.MethodHandler {
	return func(srv any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var req Req
		if err := decode(&req); err != nil {
			return nil, err
		}
		out, err := call(srv.(served), ctx, &req)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
			// The client's own time, which may be over here before it is there: no answer.
			return nil, status.FromContextError(context.DeadlineExceeded).Err()
		}
		if err != nil {
			trailer, st := toStatus(err)
			if err := grpc.SetTrailer(ctx, trailer); err != nil {
				return nil, err
			}
			return nil, st
		}
		return &out, nil
	}
}
