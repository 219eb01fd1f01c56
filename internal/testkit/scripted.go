package testkit

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"

	"writ"
)

// Script says what becomes of a run. It stands where the sandbox would be.
type Script func(ctx context.Context, spec writ.RunSpec, emit func(writ.Chunk)) (writ.Result, error)

// Trade is a script that also takes the run's files, and gives some.
type Trade func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) (writ.Result, error)

// ScriptedRunner is a runner at the process boundary: it executes nothing and does
// what its script says. Its zero value lets every run succeed without output.
type ScriptedRunner struct {
	mu     sync.Mutex
	script Trade                   // guarded by mu
	calls  []string                // guarded by mu; ids, in order
	specs  map[string]writ.RunSpec // guarded by mu; by id
}

// Does sets the script of the runs to come.
func (r *ScriptedRunner) Does(s Script) {
	r.Trades(func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) (writ.Result, error) {
		return s(ctx, spec, x.Emit)
	})
}

// Trades sets the script of the runs to come.
func (r *ScriptedRunner) Trades(s Trade) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = s
}

// Blocks makes runs wait until release is called or they are cancelled, which ends
// them killed. started gets one value for each run that began.
func (r *ScriptedRunner) Blocks() (started <-chan struct{}, release func()) {
	began, open := make(chan struct{}, 1000), make(chan struct{})
	r.Does(func(ctx context.Context, _ writ.RunSpec, _ func(writ.Chunk)) (writ.Result, error) {
		began <- struct{}{}
		select {
		case <-open:
			return Ran(0, "done\n", ""), nil
		case <-ctx.Done():
			return writ.Result{Outcome: writ.Killed, Started: true, Signal: "SIGKILL"}, nil
		}
	})
	return began, sync.OnceFunc(func() { close(open) })
}

// Run is what a gateway calls.
func (r *ScriptedRunner) Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error) {
	r.mu.Lock()
	r.calls = append(r.calls, id)
	if r.specs == nil {
		r.specs = map[string]writ.RunSpec{}
	}
	r.specs[id] = spec
	script := r.script
	r.mu.Unlock()
	if d := spec.Digest(); d != digest {
		return writ.Result{}, &writ.Error{Kind: writ.Conflict, Op: "run", Msg: "the spec is not what the digest says"}
	}
	if script == nil {
		return Ran(0, "", ""), nil
	}
	return script(ctx, spec, x)
}

// Probe enforces nothing.
func (*ScriptedRunner) Probe(context.Context) (writ.Enforcement, error) {
	return writ.Enforcement{Provider: "scripted"}, nil
}

// Calls is how often anything was run.
func (r *ScriptedRunner) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// CallsOf is how often the task was run.
func (r *ScriptedRunner) CallsOf(id writ.TaskID) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.calls {
		if c == string(id) {
			n++
		}
	}
	return n
}

// SpecOf is what the task was run with.
func (r *ScriptedRunner) SpecOf(id writ.TaskID) writ.RunSpec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.specs[string(id)]
}

// Order is the ids of all runs in the order in which they began.
func (r *ScriptedRunner) Order() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Ran is the result of a program that ended by itself.
func Ran(exit int, stdout, stderr string) writ.Result {
	res := writ.Result{
		Outcome: writ.Succeeded, Started: true, ExitCode: &exit, WallMS: 5, CPUMS: 3, PeakBytes: 1 << 20,
		Stdout:  writ.NewOutput([]byte(stdout), int64(len(stdout))),
		Stderr:  writ.NewOutput([]byte(stderr), int64(len(stderr))),
		Sandbox: writ.Enforcement{Provider: "scripted", Active: []string{"nothing"}},
	}
	if exit != 0 {
		res.Outcome = writ.Failed
	}
	return res
}

// LogText is what was logged.
type LogText struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

// Write appends to the text.
func (l *LogText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *LogText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Count is how many lines hold all of words.
func (l *LogText) Count(words ...string) (n int) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
			n++
		}
	}
	return n
}
