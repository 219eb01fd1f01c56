package testkit

import (
	"context"

	"writ"
)

// FaultyProcesses are processes with the faults that a test asks for around them, as
// FaultyFiles are: a call can be held up, fail before it reaches them, or have another
// answer than theirs. The processes themselves are real.
type FaultyProcesses struct {
	faults
	real  AnyProcesses                 // guarded by mu
	after map[string]func(error) error // guarded by mu; by the call's name
}

func (f *FaultyProcesses) put(real AnyProcesses) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.real, f.calls = real, map[string]int{}
}

// Real are the processes without faults.
func (f *FaultyProcesses) Real() AnyProcesses {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.real
}

// Mend ends all faults.
func (f *FaultyProcesses) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = nil, nil
}

// After has do make the error of each call of that name out of that which the processes
// have answered, after they have done what they were told.
func (f *FaultyProcesses) After(call string, do func(error) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.after == nil {
		f.after = map[string]func(error) error{}
	}
	f.after[call] = do
}

// order calls the processes with the faults around.
func (f *FaultyProcesses) order(ctx context.Context, call string, do func(AnyProcesses) error) error {
	f.mu.Lock()
	f.calls[call]++
	real, before, after := f.real, f.before[call], f.after[call]
	f.mu.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return err
		}
	}
	err := do(real)
	if after != nil {
		return after(err)
	}
	return err
}

// Start is what a gateway calls, as are the methods below.
func (f *FaultyProcesses) Start(ctx context.Context, o writ.ProcessOrder) error {
	return f.order(ctx, "Start", func(m AnyProcesses) error { return m.Start(ctx, o) })
}

func (f *FaultyProcesses) Input(ctx context.Context, id writ.ProcessID, data []byte) (n int, err error) {
	err = f.order(ctx, "Input", func(m AnyProcesses) (err error) { n, err = m.Input(ctx, id, data); return err })
	return n, err
}

func (f *FaultyProcesses) CloseInput(ctx context.Context, id writ.ProcessID) error {
	return f.order(ctx, "CloseInput", func(m AnyProcesses) error { return m.CloseInput(ctx, id) })
}

func (f *FaultyProcesses) Output(ctx context.Context, id writ.ProcessID, q writ.OutputQuery) (out writ.ProcessOutput, err error) {
	err = f.order(ctx, "Output", func(m AnyProcesses) (err error) { out, err = m.Output(ctx, id, q); return err })
	return out, err
}

func (f *FaultyProcesses) Status(ctx context.Context, id writ.ProcessID) (s writ.ProcessStatus, err error) {
	err = f.order(ctx, "Status", func(m AnyProcesses) (err error) { s, err = m.Status(ctx, id); return err })
	return s, err
}

func (f *FaultyProcesses) Resize(ctx context.Context, id writ.ProcessID, size writ.TerminalSize) error {
	return f.order(ctx, "Resize", func(m AnyProcesses) error { return m.Resize(ctx, id, size) })
}

func (f *FaultyProcesses) Terminate(ctx context.Context, id writ.ProcessID, k writ.Kill) error {
	return f.order(ctx, "Terminate", func(m AnyProcesses) error { return m.Terminate(ctx, id, k) })
}

func (f *FaultyProcesses) Processes(ctx context.Context) (all []writ.ProcessStatus, err error) {
	err = f.order(ctx, "Processes", func(m AnyProcesses) (err error) { all, err = m.Processes(ctx); return err })
	return all, err
}

func (f *FaultyProcesses) Exits(ctx context.Context, fn func(writ.ProcessStatus) error) error {
	return f.order(ctx, "Exits", func(m AnyProcesses) error { return m.Exits(ctx, fn) })
}
