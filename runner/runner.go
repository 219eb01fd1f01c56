package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"time"

	"writ"
	"writ/lang"
	"writ/sandbox"
)

// Options are a runner's settings. Zero fields mean what their comments say.
type Options struct {
	Slots     int           // runs at one time; 0 means as many as there are cores
	Queue     int           // runs that may wait for a slot; 0 means 64, less means none
	QueueWait time.Duration // how long one may wait; 0 means 30 s
	Warm      int           // boxes kept ready for specs with Limits; 0 means none
	Limits    writ.Limits   // what most specs will have; zero fields are those of writ.DefaultLimits
	Languages lang.Table    // of tasks; nil means lang.All()

	// The same for runs of the code interpreter.
	InterpreterWarm int         // boxes kept ready for specs with Interpreter; 0 means none
	Interpreter     writ.Limits // what most of them will have
	Interpreters    lang.Table  // nil means the table of their kind

	Log *slog.Logger // nil means none
}

const (
	defaultQueue     = 64
	defaultQueueWait = 30 * time.Second
)

func (o Options) filled() Options {
	o.Slots = max(cmp.Or(o.Slots, runtime.NumCPU()), 1)
	o.Queue = max(cmp.Or(o.Queue, defaultQueue), 0)
	o.QueueWait = cmp.Or(o.QueueWait, defaultQueueWait)
	o.Warm = max(o.Warm, 0)
	o.Limits, _ = o.Limits.Within(writ.DefaultLimits, writ.MaxLimits)
	o.InterpreterWarm = max(o.InterpreterWarm, 0)
	o.Interpreter, _ = o.Interpreter.Within(writ.DefaultLimits, writ.MaxLimits)
	if o.Languages == nil {
		o.Languages = lang.All()
	}
	if o.Interpreters == nil {
		o.Interpreters = lang.For(writ.RunInterpreter)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Runner runs specs in boxes of one provider. It is safe for concurrent use. It
// must be closed.
type Runner struct {
	provider sandbox.Provider
	opt      Options
	slots    *admission
	pools    map[writ.RunKind]*pool // set once
	ids      *ids

	// closing is done once Close was called; its cause ends every run.
	closing context.Context
	stop    context.CancelCauseFunc

	calls calls // of Run
}

// errClosed is why a run was ended by Close.
var errClosed = errors.New("the runner was shut down")

// New makes a runner and begins to prepare its warm boxes.
func New(p sandbox.Provider, opt Options) *Runner {
	opt = opt.filled()
	closing, stop := context.WithCancelCause(context.Background())
	return &Runner{
		provider: p,
		opt:      opt,
		slots:    newAdmission(opt.Slots, opt.Queue, opt.QueueWait),
		pools: map[writ.RunKind]*pool{
			writ.RunTask:        newPool(p, templateOf(writ.RunTask, opt.Limits), opt.Warm, opt.Log),
			writ.RunInterpreter: newPool(p, templateOf(writ.RunInterpreter, opt.Interpreter), opt.InterpreterWarm, opt.Log),
		},
		ids:     newIDs(),
		closing: closing,
		stop:    stop,
	}
}

// Probe says what this host enforces, by trying it. An error is the provider's, of
// kind writ.Unavailable: nothing can be run here.
func (r *Runner) Probe(ctx context.Context) (writ.Enforcement, error) {
	return r.provider.Probe(ctx)
}

// Close stops admitting, ends every run as killed, closes the warm boxes and waits
// until all of that is gone. When ctx ends before, Close returns its error and the
// rest goes on ending by itself. A second call waits as the first does.
func (r *Runner) Close(ctx context.Context) error {
	r.calls.close()
	r.stop(errClosed)

	gone := make(chan struct{})
	go func() { // ends with the last run, which has been cancelled
		defer close(gone)
		for _, p := range r.pools {
			p.close()
		}
		r.calls.wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
