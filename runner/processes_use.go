package runner

import (
	"context"
	"fmt"
	"strings"
	"time"

	"writ"
	"writ/sandbox"
)

// inputWait bounds how long Input waits for room.
const inputWait = 5 * time.Second

// Input gives data to the process as its standard input, or types it at its terminal, and
// says how much of it went in. What two calls give does not mix. It waits until the
// process has read enough, five seconds at most. With an error it may be that some went
// in:
//   - PROCESS_NOT_FOUND, Conflict: the input is closed, or the process has ended;
//   - TIMEOUT, Exhausted: there was no room for the rest; ctx or the time was over;
//   - INVALID_COMMAND: data has more than writ.MaxInputChunk bytes.
func (m *Processes) Input(ctx context.Context, id writ.ProcessID, data []byte) (n int, err error) {
	if len(data) > writ.MaxInputChunk {
		return 0, &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "write to process", Msg: fmt.Sprintf("the data has %d bytes, the most is %d: send it in parts", len(data), writ.MaxInputChunk)}
	}
	p, err := m.find(ctx, id)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, inputWait)
	defer cancel()
	n, err = p.run.Input(ctx, data)
	return n, p.inputError(err, fmt.Sprintf("%d of %d bytes were taken, and for the rest there was no room in time: the program does not read its input", n, len(data)))
}

// CloseInput makes the process see the end of its input: for good, or in a terminal as
// if its end-of-file character was typed. Closing what is closed is no error. Errors are
// those of Input.
func (m *Processes) CloseInput(ctx context.Context, id writ.ProcessID) error {
	p, err := m.find(ctx, id)
	if err != nil {
		return err
	}
	return p.inputError(p.run.CloseInput(), "there was no room for the end of the input: the program does not read it")
}

// inputError is an error of the box about the input, as the contract has it.
func (p *process) inputError(err error, full string) error {
	const op = "write to process"
	switch writ.KindOf(err) {
	case writ.Conflict:
		return &writ.Error{Kind: writ.Conflict, Code: codeNoProcess, Op: op, Msg: fmt.Sprintf("the input of process %s is closed, or it has ended", p.id), Err: err}
	case writ.Exhausted:
		return &writ.Error{Kind: writ.Exhausted, Code: codeTimeout, Op: op, Msg: full, Err: err}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return nil
}

// Output is what the process wrote from a cursor on, as far as it is kept, and waits for
// something to be there, or the end, as long as the query says. Cursors are bytes of the
// stream from its start; one before what is kept means the first that is. Who reads on
// from the cursor of each answer gets no character in two parts, but where what was
// written is none, or ends within one: so a limit of fewer than four bytes means four.
// In the merged stream too a character is whole; that of a terminal has no stderr.
//
// OUTPUT_LIMIT: the query has a negative number, or a stream that is none.
func (m *Processes) Output(ctx context.Context, id writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error) {
	none := writ.ProcessOutput{}
	if q.Cursor < 0 || q.Limit < 0 || q.Wait < 0 || q.Stream != "" && q.Stream != writ.Stdout && q.Stream != writ.Stderr {
		return none, &writ.Error{Kind: writ.Invalid, Code: codeOutputLimit, Op: "read process", Msg: fmt.Sprintf("cursor %d, limit %d, wait %v, stream %.20q: want numbers from 0, and stdout, stderr or both", q.Cursor, q.Limit, q.Wait, string(q.Stream))}
	}
	p, err := m.find(ctx, id)
	if err != nil {
		return none, err
	}
	timer := time.NewTimer(min(q.Wait, writ.MaxOutputWait))
	defer timer.Stop()
	for {
		p.mu.Lock()
		out := p.read(q)
		if len(out.Chunk) > 0 || out.EOF || q.Wait == 0 {
			p.mu.Unlock()
			return out, nil
		}
		more := p.next()
		p.mu.Unlock()
		select {
		case <-more:
		case <-timer.C:
			q.Wait = 0 // look once more
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// Resize sets the size of the process's terminal (spec/02 §5.10). INVALID_COMMAND: a
// number is zero, whatever process it is for, or the terminal does not take it;
// PROCESS_NOT_RUNNING: it has ended; PROCESS_NOT_TTY: it has no terminal.
func (m *Processes) Resize(ctx context.Context, id writ.ProcessID, size writ.TerminalSize) error {
	e := &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "resize terminal"}
	if size.Rows == 0 || size.Cols == 0 {
		e.Msg = fmt.Sprintf("a terminal of %d rows and %d columns: want both positive", size.Rows, size.Cols)
		return e
	}
	p, err := m.find(ctx, id)
	if err != nil {
		return err
	}
	notRunning := &writ.Error{Kind: writ.Conflict, Code: codeNotRunning, Op: e.Op, Msg: fmt.Sprintf("process %s has ended", id)}
	switch running := p.status().State == writ.ProcessRunning; {
	case !running:
		return notRunning
	case !p.tty:
		e.Kind, e.Code, e.Msg = writ.Conflict, codeNoTerminal, fmt.Sprintf("process %s has no terminal", id)
		return e
	}
	switch err := p.run.Resize(sandbox.Size{Rows: size.Rows, Cols: size.Cols}); {
	case err == nil:
		return nil
	case writ.KindOf(err) == writ.Conflict:
		return notRunning // its terminal went first
	default:
		e.Msg, e.Err = "the terminal does not take that size", err
		return e
	}
}

// Terminate ends the process (spec/02 §5.11), with everything that it started: at once,
// or by a signal to its group first. Its termination is then writ.TerminationTerminated,
// unless it had ended before. It returns before the process is gone. One that has ended
// is no error. INVALID_COMMAND: the signal or the grace is none that a writ.Kill may have.
func (m *Processes) Terminate(ctx context.Context, id writ.ProcessID, k writ.Kill) error {
	sig, grace, err := checkKill(k)
	if err != nil {
		return err
	}
	p, err := m.find(ctx, id)
	if err != nil {
		return err
	}
	if sig == sandbox.SIGKILL {
		p.kill(errTerminated)
		return nil
	}
	return p.interrupt(sig, grace)
}

// endSignals are those of a writ.Kill.
var endSignals = [...]string{"TERM", "INT", "HUP", "QUIT", "KILL"}

func checkKill(k writ.Kill) (sandbox.Signal, time.Duration, error) {
	e := &writ.Error{Kind: writ.Invalid, Code: codeInvalidCommand, Op: "terminate process"}
	name := strings.TrimPrefix(k.Signal, "SIG")
	if name == "" && k.Signal == "" {
		name = "KILL"
	}
	known := false
	for _, s := range endSignals {
		known = known || s == name
	}
	if !known {
		e.Msg = fmt.Sprintf("signal %.40q: want one of %s", k.Signal, strings.Join(endSignals[:], ", "))
		return 0, 0, e
	}
	if k.Grace < 0 || k.Grace > writ.MaxGrace {
		e.Msg = fmt.Sprintf("a grace of %v: want one from 0 to %v", k.Grace, writ.MaxGrace)
		return 0, 0, e
	}
	sig, err := sandbox.ParseSignal(name)
	if err != nil {
		return 0, 0, err
	}
	if k.Grace == 0 {
		k.Grace = writ.DefaultGrace
	}
	return sig, k.Grace, nil
}

// interrupt sends a signal that is to end the process, and kills it when it still runs
// after grace.
func (p *process) interrupt(sig sandbox.Signal, grace time.Duration) error {
	p.mu.Lock()
	if p.ended != nil {
		p.mu.Unlock()
		return nil
	}
	before := p.asked
	p.asked = true // first: its end may be seen before Signal has returned
	by := time.Now().Add(grace)
	switch {
	case p.killer == nil:
		p.deadline = by
		p.killer = time.AfterFunc(grace, func() { p.kill(errTerminated) })
	case by.Before(p.deadline):
		p.deadline = by
		p.killer.Reset(grace)
	}
	p.mu.Unlock()
	err := p.run.Signal(sig)
	if writ.KindOf(err) == writ.Conflict && err != nil { // it had ended by itself
		p.mu.Lock()
		p.asked = before
		p.mu.Unlock()
		return nil
	}
	if err != nil {
		return fmt.Errorf("terminate process: %w", err)
	}
	return nil
}
