package watch

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 60 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// memoryDir is a folder on a file system in memory where the host has one.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "writ-watch-")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	dir, err = filepath.EvalSymlinks(dir)
	must(t, err)
	return dir
}

// listener is a watcher over root with one subscription, and what that has told.
type listener struct {
	t *testing.T
	*Watcher
	sub  *Subscription
	root string
	seen []Event
}

// listen watches a new folder, which holds these folders and beside which is "outside".
func listen(t *testing.T, opt Options, folders ...string) *listener {
	t.Helper()
	base := memoryDir(t)
	root := filepath.Join(base, "root")
	must(t, os.MkdirAll(filepath.Join(base, "outside"), 0o755))
	must(t, os.MkdirAll(root, 0o755))
	for _, f := range folders {
		must(t, os.MkdirAll(filepath.Join(root, f), 0o755))
	}
	w, err := Open(t.Context(), root, opt)
	must(t, err)
	return attach(t, w)
}

func attach(t *testing.T, w *Watcher) *listener {
	l := &listener{t: t, Watcher: w, sub: w.Subscribe(), root: w.root}
	t.Cleanup(func() {
		w.Close()
		l.sub.Close()
	})
	return l
}

func (l *listener) in(path string) string { return filepath.Join(l.root, path) }

func (l *listener) mkdir(path string) { l.t.Helper(); must(l.t, os.MkdirAll(l.in(path), 0o755)) }

func (l *listener) write(path string) {
	l.t.Helper()
	must(l.t, os.WriteFile(l.in(path), []byte(path), 0o644))
}

func (l *listener) rename(from, to string) { l.t.Helper(); must(l.t, os.Rename(l.in(from), l.in(to))) }

func (l *listener) exchange(a, b string) {
	l.t.Helper()
	must(l.t, unix.Renameat2(unix.AT_FDCWD, l.in(a), unix.AT_FDCWD, l.in(b), unix.RENAME_EXCHANGE))
}

// short is an event without its numbers.
func short(e Event) string {
	switch e.Kind {
	case Rename:
		return fmt.Sprintf("rename %s -> %s", e.From, e.To)
	case ResyncRequired:
		return "resync"
	}
	return fmt.Sprintf("%s %s", e.Kind, e.Path)
}

func (l *listener) told() (all []string) {
	for _, e := range l.seen {
		all = append(all, short(e))
	}
	return all
}

// next takes one event. Their numbers follow one another, whatever they are.
func (l *listener) next() Event {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	defer cancel()
	e, err := l.sub.Next(ctx)
	if err != nil {
		l.t.Fatalf("%v; told so far: %s", err, strings.Join(last(l.told(), 50), ", "))
	}
	if n := len(l.seen); n > 0 && e.Kind != ResyncRequired && (e.Epoch != l.seen[n-1].Epoch || e.Seq != l.seen[n-1].Seq+1) {
		l.t.Errorf("event %+v follows %+v", e, l.seen[n-1])
	}
	l.seen = append(l.seen, e)
	return e
}

func last[T any](s []T, n int) []T { return s[max(len(s)-n, 0):] }

// until takes events up to one that is this, and gives all that were taken.
func (l *listener) until(what string) (all []Event) {
	l.t.Helper()
	for {
		e := l.next()
		all = append(all, e)
		if short(e) == what {
			return all
		}
	}
}

// flush takes all events of what was done before, which end with that of a new file, and
// forgets them. The file is removed.
func (l *listener) flush() (all []Event) {
	l.t.Helper()
	const name = "flush-marker"
	l.write(name)
	must(l.t, os.Remove(l.in(name)))
	all = l.until("remove " + name)
	all = slices.DeleteFunc(all, func(e Event) bool { return e.Path == name })
	l.seen = l.seen[len(l.seen)-1:]
	return all
}

// wantOnly fails unless these are all the events, in order, but for repeated ones.
func wantOnly(t *testing.T, what string, got []Event, want ...string) {
	t.Helper()
	var all []string
	for _, e := range got {
		all = append(all, short(e))
	}
	if all = slices.Compact(all); !slices.Equal(all, want) {
		t.Errorf("%s: told %q, want %q", what, all, want)
	}
}

// names is everything beneath dir.
func names(dir string) map[string]bool {
	out := map[string]bool{}
	_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(dir, path); err == nil && rel != "." {
			out[rel] = true
		}
		return nil // what goes away meanwhile is not there
	})
	return out
}

// gate stops the reading of events.
type gate struct {
	mu   sync.Mutex
	stop chan struct{} // guarded by mu; nil: open
	held chan struct{} // guarded by mu; gets a token when a reader stands at it
}

func (g *gate) pass() {
	g.mu.Lock()
	stop, held := g.stop, g.held
	g.mu.Unlock()
	if stop == nil {
		return
	}
	select {
	case held <- struct{}{}:
	default:
	}
	<-stop
}

// shut stops the next read. After the next event the reader stands there, as held tells.
func (g *gate) shut() (held <-chan struct{}, open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	stop := make(chan struct{})
	g.stop, g.held = stop, make(chan struct{}, 1)
	return g.held, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.stop = nil
		close(stop)
	}
}
