package interpreter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"writ"
	"writ/lang"
	"writ/session"
)

// Tasks is what carries runs; package task says what its methods do.
type Tasks interface {
	Interpret(ctx context.Context, who writ.Principal, spec writ.RunSpec) (writ.Task, error)
	Wait(ctx context.Context, who writ.Principal, id writ.TaskID, d time.Duration) (writ.Task, error)
	Cancel(ctx context.Context, who writ.Principal, id writ.TaskID, reason string) (writ.Task, error)
}

// Sessions is what holds files; package session says what its methods do.
type Sessions interface {
	Create(ctx context.Context, p writ.Principal, e session.Entity) (writ.Session, error)
	Get(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, id writ.ObjectID) (writ.Object, error)
	Adopt(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, kept []session.Kept) ([]writ.Object, error)
	Discard(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID) error
	ListKeep(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID) ([]writ.Object, error)
}

// Languages says what a host can run.
type Languages interface {
	Languages(ctx context.Context) ([]writ.LanguageStatus, error)
}

// Plan is what users of a plan get.
type Plan struct {
	MemoryBytes int64 // of the processes of a run, together
	FileBytes   int64 // of an upload, which must stay below
}

// Options are the settings of a service. All but Plans are required.
type Options struct {
	// Limits are those of a run. A box counts its files in memory as well, so a run gets
	// its plan's memory and Limits.WorkspaceBytes more; Limits.MemoryBytes is not used.
	// Limits.OutputBytes is not used either: OutputUnits says what is kept.
	Limits  writ.Limits
	Compile writ.Limits  // of a compile step
	Collect writ.Collect // what of a run's files an answer has
	// OutputUnits is how much of each output is kept, in UTF-16 code units (spec/03 §6.2).
	OutputUnits int64
	Inputs      int // files of one run
	Plans       map[string]Plan
	Plan        Plan // of who has none of Plans
	Mode        Mode
	LockWait    time.Duration // for a runtime session that is busy
	Deadline    time.Duration // of a job, from when it was asked for, held or waiting too
}

// Service runs code. It is safe for concurrent use.
type Service struct {
	tasks     Tasks
	sessions  Sessions
	runtimes  *session.Runtimes // nil in stateless mode
	languages Languages
	log       *slog.Logger
	opt       Options

	mu       sync.Mutex
	known    []writ.LanguageStatus // guarded by mu
	lookedAt time.Time             // guarded by mu; when known was asked for
	running  map[call]*underway    // guarded by mu
}

// call is how Cancel names a run: no tenant and no user names another's.
type call struct {
	tenant writ.Tenant
	owner  writ.IdentityID
	id     string
}

// underway is a run that can be cancelled.
type underway struct{ cancel context.CancelCauseFunc }

// New is a service. runtimes may be nil in stateless mode.
func New(tasks Tasks, sessions Sessions, runtimes *session.Runtimes, languages Languages, log *slog.Logger, opt Options) *Service {
	return &Service{tasks: tasks, sessions: sessions, runtimes: runtimes, languages: languages, log: log, opt: opt, running: map[call]*underway{}}
}

// Mode implements Runs.
func (s *Service) Mode() Mode { return s.opt.Mode }

// PlanOf is what who gets.
func (s *Service) PlanOf(who writ.Principal) Plan {
	p, ok := s.opt.Plans[who.Plan]
	if !ok {
		return s.opt.Plan
	}
	return Plan{cmp.Or(p.MemoryBytes, s.opt.Plan.MemoryBytes), cmp.Or(p.FileBytes, s.opt.Plan.FileBytes)}
}

// languagesFor is for how long an answer of the host counts: what was installed since is
// found then.
const languagesFor = 10 * time.Second

// Language implements Runs.
func (s *Service) Language(ctx context.Context, name writ.Language) error {
	e := &writ.Error{Op: "look up language", Kind: writ.Invalid, Msg: "Unsupported language: " + string(name)}
	l, err := lang.For(writ.RunInterpreter).Lookup(name)
	if err != nil {
		e.Err = err
		return e
	}
	s.mu.Lock()
	known := s.known
	if time.Since(s.lookedAt) > languagesFor {
		known = nil
	}
	s.mu.Unlock()
	if known == nil {
		if known, err = s.languages.Languages(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		s.known, s.lookedAt = known, time.Now()
		s.mu.Unlock()
	}
	for _, k := range known {
		if k.Kind == writ.RunInterpreter && k.Name == l.Name && k.Interpreter != "" {
			return nil
		}
	}
	e.Msg += fmt.Sprintf(" (not installed on this server: %s)", l.Install())
	return e
}

const maxHint = 128

// Hint implements Runs (spec/03 §12).
func (s *Service) Hint(hint string) error {
	e := &writ.Error{Op: "check hint", Kind: writ.Invalid}
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:-", r)
	}
	switch {
	case s.opt.Mode == Stateless:
		return nil
	case hint == "" && s.opt.Mode == Strict:
		e.Msg = "runtime_session_hint is required in strict mode"
	case len(hint) > maxHint:
		e.Msg = fmt.Sprintf("runtime_session_hint must be at most %d characters", maxHint)
	case strings.ContainsFunc(hint, func(r rune) bool { return !legal(r) }):
		e.Msg = `runtime_session_hint may only contain letters, digits, ".", "_", ":", and "-"`
	default:
		return nil
	}
	return e
}

// errCancelled is why a run ends that its caller asked to cancel.
var errCancelled = errors.New("its caller cancelled it")

// Cancel implements Runs. It knows the runs of this server, not those of others on the
// same store.
func (s *Service) Cancel(_ context.Context, who writ.Principal, id string) (bool, error) {
	s.mu.Lock()
	u := s.running[call{who.Tenant, who.Owner(), id}]
	s.mu.Unlock()
	if u == nil {
		return false, nil
	}
	u.cancel(errCancelled)
	return true, nil
}

// begin makes a run one that Cancel finds, until end is called. Of two with one id the
// later one is found.
func (s *Service) begin(ctx context.Context, who writ.Principal, id string) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if id == "" {
		return ctx, func() { cancel(nil) }
	}
	c, u := call{who.Tenant, who.Owner(), id}, &underway{cancel}
	s.mu.Lock()
	s.running[c] = u
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		if s.running[c] == u {
			delete(s.running, c)
		}
		s.mu.Unlock()
		cancel(nil)
	}
}
