package runner

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"writ"
	"writ/sandbox"
)

// ProcessesOptions are the settings of Processes. Zero fields mean what their comments say.
type ProcessesOptions struct {
	Live    int           // processes at one time; 0 means 8
	Output  int           // the last bytes kept of what each writes, and of each of its two streams; 0 means 262,144
	Kept    int           // completed ones that are remembered; 0 means 64
	KeptFor time.Duration // how long one is; 0 means 15 minutes
	// Env are variables beside those of spec/02 §7.1, "NAME=value". They win.
	Env []string
	Log *slog.Logger // nil means none
}

func (o ProcessesOptions) filled() ProcessesOptions {
	o.Live = max(cmp.Or(o.Live, 8), 1)
	o.Output = max(cmp.Or(o.Output, 256<<10), 1)
	o.Kept = max(cmp.Or(o.Kept, 64), 1)
	o.KeptFor = max(cmp.Or(o.KeptFor, 15*time.Minute), 0)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Processes are the commands that run in workspaces, each in a box of its own and behind
// a handle, whoever started them and whatever became of that call (spec/02 §7). It is
// safe for concurrent use. It must be closed.
//
// A process that has ended is remembered for a while, with the last of its output: for
// KeptFor, and at most Kept of them. After that, and if it never was, each call about it
// answers NotFound with code PROCESS_NOT_FOUND. A call about one that is being started
// waits for that. Errors that a caller can act on are *writ.Error with the codes of
// spec/02 §5.14; a call whose ctx ends answers the error of ctx.
type Processes struct {
	provider sandbox.Provider
	opt      ProcessesOptions
	ids      *ids // of all that were started, also of those that are forgotten

	// closing is done once Close was called; its cause ends every process.
	closing context.Context
	stop    context.CancelCauseFunc
	gone    chan struct{} // closed when the last has ended after that

	mu     sync.Mutex
	closed bool                        // guarded by mu; once true, running only falls
	known  map[writ.ProcessID]*process // guarded by mu; being started, running, and remembered
	live   int                         // guarded by mu; of known, those that have not ended
	ended  []*process                  // guarded by mu; of known, those that have, in that order
	exits  map[*exits]struct{}         // guarded by mu; whoever wants to be told of ends
	boxes  sync.WaitGroup              // of processes, from before their start until their box is gone; added to under mu while not closed
	close  func()                      // once
}

// NewProcesses makes a manager of processes in boxes of p.
func NewProcesses(p sandbox.Provider, opt ProcessesOptions) *Processes {
	m := &Processes{
		provider: p, opt: opt.filled(), ids: newIDs(), gone: make(chan struct{}),
		known: map[writ.ProcessID]*process{}, exits: map[*exits]struct{}{},
	}
	m.closing, m.stop = context.WithCancelCause(context.Background())
	m.close = sync.OnceFunc(func() {
		go func() { // ends with the last process, all of which have been ended
			m.boxes.Wait()
			close(m.gone)
		}()
	})
	return m
}

// Close ends every process as terminated and waits until they and their boxes are gone.
// Nothing is started from then on, but what is known can still be asked for. When ctx ends
// before, Close returns its error and the rest goes on ending by itself. A second call
// waits as the first does.
func (m *Processes) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop(errClosed)
	m.close()
	select {
	case <-m.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Status says where a process stands.
func (m *Processes) Status(ctx context.Context, id writ.ProcessID) (writ.ProcessStatus, error) {
	p, err := m.find(ctx, id)
	if err != nil {
		return writ.ProcessStatus{}, err
	}
	return p.status(), nil
}

// Processes are all that are known, running and ended, in the order in which they were
// started.
func (m *Processes) Processes(ctx context.Context) ([]writ.ProcessStatus, error) {
	m.mu.Lock()
	m.evict(time.Now())
	all := make([]*process, 0, len(m.known))
	for _, p := range m.known {
		all = append(all, p)
	}
	m.mu.Unlock()
	list := make([]writ.ProcessStatus, 0, len(all))
	for _, p := range all {
		failed, err := p.awaitStart(ctx)
		if err != nil {
			return nil, err
		}
		if failed == nil {
			list = append(list, p.status())
		}
	}
	slices.SortFunc(list, func(a, b writ.ProcessStatus) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// find is a process that was started.
func (m *Processes) find(ctx context.Context, id writ.ProcessID) (*process, error) {
	m.mu.Lock()
	m.evict(time.Now())
	p := m.known[id]
	m.mu.Unlock()
	if p == nil {
		return nil, notFound(id)
	}
	failed, err := p.awaitStart(ctx)
	switch {
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, notFound(id)
	}
	return p, nil
}

// evict forgets what was completed too long ago, and the oldest beyond the bound. mu is
// held.
func (m *Processes) evict(now time.Time) {
	for len(m.ended) > 0 {
		oldest := m.ended[0]
		if len(m.ended) <= m.opt.Kept && now.Sub(oldest.endedAt()) <= m.opt.KeptFor {
			return
		}
		m.ended = slices.Delete(m.ended, 0, 1)
		delete(m.known, oldest.id)
	}
}

// The codes of errors (spec/02 §5.14) about processes.
const (
	codeInvalidCommand = "INVALID_COMMAND"
	codeSpawnFailed    = "PROCESS_SPAWN_FAILED"
	codeBusy           = "WORKSPACE_BUSY"
	codeNoProcess      = "PROCESS_NOT_FOUND"
	codeNoTerminal     = "PROCESS_NOT_TTY"
	codeNotRunning     = "PROCESS_NOT_RUNNING"
	codeOutputLimit    = "OUTPUT_LIMIT"
	codePathEscape     = "PATH_ESCAPE"
	codeTimeout        = "TIMEOUT"
)

func notFound(id writ.ProcessID) error {
	return &writ.Error{
		Kind: writ.NotFound, Code: codeNoProcess, Op: "find process",
		Msg: fmt.Sprintf("there is no process %.80q here: it never was, or ended too long ago", string(id)),
	}
}
