package runner

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
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
	Languages lang.Table    // nil means lang.All()
	Log       *slog.Logger  // nil means none
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
	if o.Languages == nil {
		o.Languages = lang.All()
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
	pool     *pool
	ids      *ids

	// closing is done once Close was called; its cause ends every run.
	closing context.Context
	stop    context.CancelCauseFunc

	mu     sync.Mutex
	closed bool           // guarded by mu; once true, runs only falls
	runs   sync.WaitGroup // calls of Run; added to under mu while not closed
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
		pool:     newPool(p, sandbox.Template{Limits: opt.Limits}, opt.Warm, opt.Log),
		ids:      newIDs(),
		closing:  closing,
		stop:     stop,
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
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.stop(errClosed)

	gone := make(chan struct{})
	go func() { // ends with the last run, which has been cancelled
		defer close(gone)
		r.pool.close()
		r.runs.Wait()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter counts a call of Run, which must call leave. It refuses once Close was
// called.
func (r *Runner) enter() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &writ.Error{Kind: writ.Unavailable, Op: "run", Msg: "the runner is shutting down; send the request again later"}
	}
	r.runs.Add(1)
	return nil
}

func (r *Runner) leave() { r.runs.Done() }
