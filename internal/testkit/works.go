package testkit

import (
	"context"
	"slices"
	"sync"
	"testing"

	"writ"
	"writ/audit"
	"writ/store"
	"writ/work"
	"writ/workspace"
)

// Steering is the works of an empty store, for the workspaces of a registry, and what
// was stopped through them.
type Steering struct {
	*work.Service
	DB  *store.DB
	Log *audit.Log

	registry *workspace.Registry
	mu       sync.Mutex
	barred   []string // guarded by mu; ids of principals that may not read
	stopped  []string // guarded by mu; workspaces and roots
	stopErr  error    // guarded by mu
}

// NewSteering opens the store at url and closes it when t ends.
func NewSteering(t testing.TB, url string, spaces ...writ.Workspace) *Steering {
	t.Helper()
	registry, err := workspace.NewRegistry(spaces)
	if err != nil {
		t.Fatal(err)
	}
	private, _, err := audit.GenerateKey("works.test")
	if err != nil {
		t.Fatal(err)
	}
	s := &Steering{DB: OpenStore(t, url), registry: registry}
	if s.Log, err = audit.New(private); err != nil {
		t.Fatal(err)
	}
	s.Service = work.New(s.DB, s.Log, s, s)
	return s
}

// Workspace is that of work.Workspaces.
func (s *Steering) Workspace(who writ.Principal, id writ.WorkspaceID) (writ.Workspace, error) {
	return s.registry.Get(who, id)
}

// Readable is that of work.Workspaces.
func (s *Steering) Readable(_ context.Context, who writ.Principal, id writ.WorkspaceID, _ string) (writ.Workspace, error) {
	w, err := s.registry.Get(who, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && slices.Contains(s.barred, who.ID) {
		return writ.Workspace{}, &writ.Error{Kind: writ.Denied, Code: "UNAUTHORIZED", Msg: "a rule says no"}
	}
	return w, err
}

// Moved are the same workspaces after they were registered otherwise.
func (s *Steering) Moved(t testing.TB, spaces ...writ.Workspace) *Steering {
	t.Helper()
	registry, err := workspace.NewRegistry(spaces)
	if err != nil {
		t.Fatal(err)
	}
	return &Steering{Service: s.Service, DB: s.DB, Log: s.Log, registry: registry}
}

// Bar lets those principals read nothing from now on.
func (s *Steering) Bar(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.barred = ids
}

// StopWorkspace is that of work.Stopper: two processes were running.
func (s *Steering) StopWorkspace(_ context.Context, _ writ.Principal, id writ.WorkspaceID, root string) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = append(s.stopped, string(id)+" "+root)
	return 2, s.stopErr
}

// FailStops lets every stop answer err from now on.
func (s *Steering) FailStops(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopErr = err
}

// Stopped are the workspaces that were stopped, with their roots, in order.
func (s *Steering) Stopped() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stopped)
}

// Events are the recorded events of the types, in order.
func (s *Steering) Events(t testing.TB, types ...writ.EventType) []writ.Event {
	t.Helper()
	return view(t, s.DB, func(ctx context.Context, tx *store.Tx) ([]writ.Event, error) {
		return tx.Events(ctx, writ.EventFilter{Types: types, After: -1, Limit: 1000})
	})
}
