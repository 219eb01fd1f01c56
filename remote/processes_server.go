package remote

import (
	"context"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"writ"
)

// noProcesses are those of a runner that starts none.
type noProcesses struct{}

func (noProcesses) err() error {
	return &writ.Error{Kind: writ.Unavailable, Op: "call processes", Msg: "this runner starts no commands in workspaces: start it with --state"}
}

func (n noProcesses) Start(context.Context, writ.ProcessOrder) error { return n.err() }

func (n noProcesses) Input(context.Context, writ.ProcessID, []byte) (int, error) { return 0, n.err() }

func (n noProcesses) CloseInput(context.Context, writ.ProcessID) error { return n.err() }

func (n noProcesses) Output(context.Context, writ.ProcessID, writ.OutputQuery) (writ.ProcessOutput, error) {
	return writ.ProcessOutput{}, n.err()
}

func (n noProcesses) Status(context.Context, writ.ProcessID) (writ.ProcessStatus, error) {
	return writ.ProcessStatus{}, n.err()
}

func (n noProcesses) Resize(context.Context, writ.ProcessID, writ.TerminalSize) error { return n.err() }

func (n noProcesses) Terminate(context.Context, writ.ProcessID, writ.Kill) error { return n.err() }

func (n noProcesses) Processes(context.Context) ([]writ.ProcessStatus, error) { return nil, n.err() }

func (n noProcesses) Exits(context.Context, func(writ.ProcessStatus) error) error { return n.err() }

// processMethods are the calls to processes, but for Exits.
func processMethods() []grpc.MethodDesc {
	return []grpc.MethodDesc{
		{MethodName: methodProcessStart, Handler: unary(func(s served, ctx context.Context, o *startOrder) (empty, error) {
			return empty{}, s.processes.Start(ctx, o.Order)
		})},
		{MethodName: methodProcessInput, Handler: unary(serveInput)},
		{MethodName: methodProcessCloseInput, Handler: unary(func(s served, ctx context.Context, o *processOrder) (empty, error) {
			return empty{}, s.processes.CloseInput(ctx, o.Process)
		})},
		{MethodName: methodProcessOutput, Handler: unary(func(s served, ctx context.Context, o *outputOrder) (writ.ProcessOutput, error) {
			return s.processes.Output(ctx, o.Process, o.Query)
		})},
		{MethodName: methodProcessStatus, Handler: unary(func(s served, ctx context.Context, o *processOrder) (writ.ProcessStatus, error) {
			return s.processes.Status(ctx, o.Process)
		})},
		{MethodName: methodProcessResize, Handler: unary(func(s served, ctx context.Context, o *resizeOrder) (empty, error) {
			return empty{}, s.processes.Resize(ctx, o.Process, o.Size)
		})},
		{MethodName: methodProcessTerminate, Handler: unary(func(s served, ctx context.Context, o *terminateOrder) (empty, error) {
			return empty{}, s.processes.Terminate(ctx, o.Process, o.Kill)
		})},
		{MethodName: methodProcessList, Handler: unary(func(s served, ctx context.Context, _ *empty) ([]writ.ProcessStatus, error) {
			return s.processes.Processes(ctx)
		})},
	}
}

// serveInput is the handler of ProcessInput. What went in is told with an error, too.
func serveInput(s served, ctx context.Context, o *inputOrder) (inputTaken, error) {
	n, err := s.processes.Input(ctx, o.Process, o.Data)
	if err != nil {
		if failed := grpc.SetTrailer(ctx, metadata.Pairs(takenTrailer, strconv.Itoa(n))); failed != nil {
			return inputTaken{}, failed
		}
	}
	return inputTaken{n}, err
}

// serveExits is the handler of ProcessExits.
func serveExits(srv any, stream grpc.ServerStream) error {
	if err := stream.RecvMsg(&empty{}); err != nil {
		return err
	}
	err := srv.(served).processes.Exits(stream.Context(), func(s writ.ProcessStatus) error { return stream.SendMsg(&s) })
	if err != nil {
		trailer, st := toStatus(err)
		stream.SetTrailer(trailer)
		return st
	}
	return nil
}
