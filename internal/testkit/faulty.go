package testkit

import (
	"context"
	"sync"

	"writ"
)

// faults are what a test asks for around the calls of something real, by their names.
type faults struct {
	mu     sync.Mutex
	before map[string]func(context.Context) error // guarded by mu
	calls  map[string]int                         // guarded by mu
}

// Before has do called at each call of that name ("Patch", "Start", ...) before what is
// real is. Its error, if there is one, is the answer, and nothing else is called.
func (f *faults) Before(call string, do func(context.Context) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before == nil {
		f.before = map[string]func(context.Context) error{}
	}
	f.before[call] = do
}

// Calls is how often what is real was called by that name since it was opened, or would
// have been but for a fault.
func (f *faults) Calls(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// Hangs holds every call of that name up until release is called or its context ends.
// arrived gets one value for each.
func (f *faults) Hangs(call string) (arrived <-chan struct{}, release func()) {
	at, open := make(chan struct{}, 1000), make(chan struct{})
	f.Before(call, func(ctx context.Context) error {
		at <- struct{}{}
		select {
		case <-open:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return at, sync.OnceFunc(func() { close(open) })
}

// FaultyFiles are the files of workspaces with the faults that a test asks for around
// them: a call can be held up, fail before it reaches them, or have another answer than
// theirs. The files themselves are real.
type FaultyFiles struct {
	faults
	real   AnyFiles                                                // guarded by mu
	answer func(writ.PatchResult, error) (writ.PatchResult, error) // guarded by mu
}

func (f *FaultyFiles) put(real AnyFiles) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.real, f.calls = real, map[string]int{}
}

// Mend ends all faults.
func (f *FaultyFiles) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.answer = nil, nil
}

// Answer has do make the answer of Patch out of what the files have answered, after they
// have done what they were told.
func (f *FaultyFiles) Answer(do func(writ.PatchResult, error) (writ.PatchResult, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = do
}

// enter is the files, unless the fault of that call has an error.
func (f *FaultyFiles) enter(ctx context.Context, call string) (AnyFiles, error) {
	f.mu.Lock()
	f.calls[call]++
	real, do := f.real, f.before[call]
	f.mu.Unlock()
	if do != nil {
		return real, do(ctx)
	}
	return real, nil
}

// Read is what a gateway calls, as are the methods below.
func (f *FaultyFiles) Read(ctx context.Context, w writ.Workspace, path string, offset, limit int64) (writ.FileWindow, error) {
	real, err := f.enter(ctx, "Read")
	if err != nil {
		return writ.FileWindow{}, err
	}
	return real.Read(ctx, w, path, offset, limit)
}

func (f *FaultyFiles) Find(ctx context.Context, w writ.Workspace, q writ.FileQuery) (writ.FileListing, error) {
	real, err := f.enter(ctx, "Find")
	if err != nil {
		return writ.FileListing{}, err
	}
	return real.Find(ctx, w, q)
}

func (f *FaultyFiles) Plan(ctx context.Context, w writ.Workspace, req writ.PatchRequest) (writ.PatchPlan, error) {
	real, err := f.enter(ctx, "Plan")
	if err != nil {
		return writ.PatchPlan{}, err
	}
	return real.Plan(ctx, w, req)
}

func (f *FaultyFiles) Patch(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error) {
	real, err := f.enter(ctx, "Patch")
	if err != nil {
		return writ.PatchResult{}, err
	}
	result, err := real.Patch(ctx, w, id, req, bound)
	f.mu.Lock()
	answer := f.answer
	f.mu.Unlock()
	if answer != nil {
		return answer(result, err)
	}
	return result, err
}

func (f *FaultyFiles) Recover(ctx context.Context) ([]writ.Settlement, error) {
	real, err := f.enter(ctx, "Recover")
	if err != nil {
		return nil, err
	}
	return real.Recover(ctx)
}

func (f *FaultyFiles) Forget(ctx context.Context, id writ.OperationID) error {
	real, err := f.enter(ctx, "Forget")
	if err != nil {
		return err
	}
	return real.Forget(ctx, id)
}
