package gateway

import (
	"context"
	"path"
	"slices"
	"sync"
	"time"

	"writ"
)

// Read answers a window of a file (spec/02 §5.2). It takes no lease.
func (w *Workspaces) Read(ctx context.Context, who writ.Principal, id writ.WorkspaceID, name string, offset, limit int64) (writ.FileWindow, error) {
	// Rules know one spelling of a path. One that leads out is refused by the runner.
	ws, done, err := w.look(ctx, who, id, name, path.Clean(name))
	if err != nil {
		return writ.FileWindow{}, err
	}
	defer done()
	return w.files.Read(ctx, ws, name, offset, limit)
}

// Find answers one page of a listing (spec/02 §5.3). It takes no lease.
func (w *Workspaces) Find(ctx context.Context, who writ.Principal, id writ.WorkspaceID, q writ.FileQuery) (writ.FileListing, error) {
	ws, done, err := w.look(ctx, who, id, "find "+q.Glob)
	if err != nil {
		return writ.FileListing{}, err
	}
	defer done()
	return w.files.Find(ctx, ws, q)
}

// look decides about reading paths, and notes what is done for the record. done must be
// called.
func (w *Workspaces) look(ctx context.Context, who writ.Principal, id writ.WorkspaceID, what string, paths ...string) (ws writ.Workspace, done func(), err error) {
	if err := w.enter(); err != nil {
		return ws, nil, err
	}
	if ws, err = w.readable(ctx, who, id, what, paths); err != nil {
		w.leave()
		return ws, nil, err
	}
	w.reads.note(who, ws, what)
	return ws, w.leave, nil
}

// Bounds of what is not recorded yet.
const (
	readsEvery   = time.Second
	readsCallers = 1000
)

// readLog records who read what: one record for each caller and workspace in a second
// in which it read, with the first paths and how many calls there were. A record of its
// own for each call would cost more than the reading. What was read in the last second
// before a crash is not recorded.
type readLog struct {
	g *Gateway

	mu     sync.Mutex
	noted  map[readKey]*readNote // guarded by mu; waits for timer
	timer  *time.Timer           // guarded by mu; runs while something is noted
	closed bool                  // guarded by mu
	writes sync.WaitGroup
}

type readKey struct {
	who       writ.Ref
	tenant    writ.Tenant
	workspace writ.WorkspaceID
}

type readNote struct {
	paths []string
	calls int64
}

func (l *readLog) note(who writ.Principal, ws writ.Workspace, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := readKey{who.Ref(), ws.Tenant, ws.ID}
	n := l.noted[key]
	if n == nil {
		if len(l.noted) >= readsCallers {
			l.flushLocked()
		}
		if l.noted == nil {
			l.noted = map[readKey]*readNote{}
		}
		n = &readNote{}
		l.noted[key] = n
	}
	n.calls++
	if what = cut(what, maxPath); len(n.paths) < maxPaths && !slices.Contains(n.paths, what) {
		n.paths = append(n.paths, what)
	}
	switch {
	case l.closed:
		l.flushLocked()
	case l.timer == nil:
		l.timer = time.AfterFunc(readsEvery, l.flush)
	}
}

func (l *readLog) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushLocked()
}

// flushLocked records what is noted, in the background. mu is held.
func (l *readLog) flushLocked() {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	events := make([]writ.Event, 0, len(l.noted))
	for key, n := range l.noted {
		events = append(events, writ.Event{
			Type: writ.EventWorkspaceRead, Tenant: key.tenant, Actor: key.who,
			Data: writ.EventData{Workspace: key.workspace, Action: writ.ActionRead, Paths: n.paths, Count: n.calls},
		})
	}
	l.noted = nil
	if len(events) == 0 {
		return
	}
	l.writes.Go(func() {
		if err := l.g.recordAlone(context.Background(), events...); err != nil {
			l.g.slog.Error("reads were not recorded", "events", len(events), "err", err)
		}
	})
}

// close records what is noted and waits for it.
func (l *readLog) close() {
	l.mu.Lock()
	l.closed = true
	l.flushLocked()
	l.mu.Unlock()
	l.writes.Wait()
}
