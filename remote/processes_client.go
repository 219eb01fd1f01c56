package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"google.golang.org/grpc"

	"writ"
)

// ProcessesClient is the processes that a runner in another process serves. It is part of
// a Client and is used and closed with it; processes outlive both. Beside the errors of
// package runner each call has one more, of kind writ.Unavailable with code TIMEOUT
// (spec/02 §5.14): the runner cannot be reached.
//
// Start, Input, CloseInput, Resize and Terminate are orders. Where an order was sent and
// contact was lost before an answer came, that error has writ.ErrDispatchUnknown in its
// chain, since it may have been carried out; without it nothing was done (spec/02 §12). No
// order is ever repeated. One that was sent is waited for when ctx ends, ten seconds more.
type ProcessesClient struct{ c *Client }

// Processes is the way to the processes that the runner serves.
func (c *Client) Processes() *ProcessesClient { return &ProcessesClient{c} }

// Start is runner.Processes.Start. After an error with writ.ErrDispatchUnknown, Status
// says, once the runner is reached, whether the process is there.
func (p *ProcessesClient) Start(ctx context.Context, o writ.ProcessOrder) error {
	const op = "start process"
	texts := append([]string{string(o.ID), o.Dir, o.Workspace.Root}, o.Command...)
	for _, rules := range [][]string{o.Workspace.Rules.Read, o.Workspace.Rules.Write, o.Workspace.Rules.DenyRead, o.Workspace.Rules.DenyWrite} {
		texts = append(texts, rules...)
	}
	if err := onlyText(codeInvalidCommand, "the order", texts...); err != nil {
		return err
	}
	if n := len(o.Command); n > writ.MaxCommandArgs {
		return &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: op, Msg: fmt.Sprintf("the command has %d elements, the most is %d", n, writ.MaxCommandArgs)}
	}
	return orderOf(ctx, p.c, op, methodProcessStart, &startOrder{o})
}

// Input is runner.Processes.Input.
func (p *ProcessesClient) Input(ctx context.Context, id writ.ProcessID, data []byte) (int, error) {
	const op = "write to process"
	if len(data) > writ.MaxInputChunk {
		return 0, &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: op, Msg: fmt.Sprintf("the data has %d bytes, the most is %d: send it in parts", len(data), writ.MaxInputChunk)}
	}
	if err := onlyID(id); err != nil {
		return 0, err
	}
	out, trailer, lost, err := once[inputTaken](ctx, p.c, op, methodProcessInput, &inputOrder{id, data})
	if lost != nil {
		return 0, unknown(op, lost)
	}
	if taken := trailer.Get(takenTrailer); err != nil && len(taken) == 1 {
		out.Taken, _ = strconv.Atoi(taken[0]) // nonsense is nothing
	}
	if out.Taken < 0 || out.Taken > len(data) {
		return 0, unknown(op, fmt.Errorf("it says that %d of %d bytes went in", out.Taken, len(data)))
	}
	return out.Taken, err
}

// CloseInput is runner.Processes.CloseInput.
func (p *ProcessesClient) CloseInput(ctx context.Context, id writ.ProcessID) error {
	if err := onlyID(id); err != nil {
		return err
	}
	return orderOf(ctx, p.c, "close input of process", methodProcessCloseInput, &processOrder{id})
}

// Output is runner.Processes.Output.
func (p *ProcessesClient) Output(ctx context.Context, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error) {
	if err := onlyID(id); err != nil {
		return writ.ProcessOutput{}, err
	}
	return filesCall[writ.ProcessOutput](ctx, p.c, methodProcessOutput, &outputOrder{id, q})
}

// Status is runner.Processes.Status.
func (p *ProcessesClient) Status(ctx context.Context, id writ.ProcessID) (writ.ProcessStatus, error) {
	if err := onlyID(id); err != nil {
		return writ.ProcessStatus{}, err
	}
	return filesCall[writ.ProcessStatus](ctx, p.c, methodProcessStatus, &processOrder{id})
}

// Resize is runner.Processes.Resize.
func (p *ProcessesClient) Resize(ctx context.Context, id writ.ProcessID, size writ.TerminalSize) error {
	if err := onlyID(id); err != nil {
		return err
	}
	return orderOf(ctx, p.c, "resize terminal", methodProcessResize, &resizeOrder{id, size})
}

// Terminate is runner.Processes.Terminate.
func (p *ProcessesClient) Terminate(ctx context.Context, id writ.ProcessID, k writ.Kill) error {
	if err := onlyID(id); err != nil {
		return err
	}
	return orderOf(ctx, p.c, "terminate process", methodProcessTerminate, &terminateOrder{id, k})
}

// Processes is runner.Processes.Processes.
func (p *ProcessesClient) Processes(ctx context.Context) ([]writ.ProcessStatus, error) {
	return filesCall[[]writ.ProcessStatus](ctx, p.c, methodProcessList, &empty{})
}

// Exits is runner.Processes.Exits. It ends with contact, too.
func (p *ProcessesClient) Exits(ctx context.Context, fn func(writ.ProcessStatus) error) error {
	const op = "follow processes"
	streamCtx, drop := context.WithCancel(ctx)
	defer drop()
	stream, err := p.c.conn.NewStream(streamCtx, &grpc.StreamDesc{ServerStreams: true}, "/"+service+"/"+methodProcessExits)
	if err == nil {
		err = errors.Join(stream.SendMsg(&empty{}), stream.CloseSend()) // io.EOF: receiving says why
	}
	for err == nil {
		var s writ.ProcessStatus
		if err = stream.RecvMsg(&s); err != nil {
			break
		}
		if err := fn(s); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if stream != nil {
		if given := fromStatus(op, err, stream.Trailer()); given != nil {
			return given
		}
	}
	return &writ.Error{Kind: writ.Unavailable, Code: codeTimeout, Op: op, Msg: "contact with the runner was lost", Err: err}
}

// The codes of errors (spec/02 §5.14) that are made here.
const (
	codeTimeout        = "TIMEOUT"
	codeInvalidCommand = "INVALID_COMMAND"
)

// orderOf is an order that is answered by nothing, or an error.
func orderOf(ctx context.Context, c *Client, op, method string, req any) error {
	_, _, lost, err := once[empty](ctx, c, op, method, req)
	if lost != nil {
		return unknown(op, lost)
	}
	return err
}

// onlyID refuses a handle that JSON would turn into another.
func onlyID(id writ.ProcessID) error {
	if onlyText("", "the id", string(id)) == nil {
		return nil
	}
	return &writ.Error{Kind: writ.NotFound, Code: "PROCESS_NOT_FOUND", Op: "find process", Msg: "there is no process whose id is not UTF-8"}
}
