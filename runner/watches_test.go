package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"writ"
	"writ/files"
	"writ/watch"
)

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// lines are the log's lines with this message.
func (b *logBuffer) lines(t *testing.T, msg string) (out []map[string]any) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range bytes.Lines(b.buf.Bytes()) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		if m["msg"] == msg {
			out = append(out, m)
		}
	}
	return out
}

func watchedFiles(t *testing.T) (*Files, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	f, err := OpenFiles(t.Context(), FilesOptions{
		State: filepath.Join(t.TempDir(), "state"),
		Log:   slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f, log
}

// watcherOf waits for the watcher of a root. Nil: it does not stand.
func watcherOf(t *testing.T, f *Files, root string) *watch.Watcher {
	t.Helper()
	f.trees.watches.mu.Lock()
	r := f.trees.watches.roots[root]
	f.trees.watches.mu.Unlock()
	if r == nil {
		t.Fatalf("%s is not watched", root)
	}
	<-r.up
	return r.watcher
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func readVersion(t *testing.T, f *Files, w writ.Workspace, path string) string {
	t.Helper()
	win, err := f.Read(t.Context(), w, path, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	return win.Version
}

// Spec/02 §14: one watcher for each canonical root, from its first use on.
func TestARootIsWatchedOnceWhileItIsOpen(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := makeRoots(t, dir, 1)[0]
	root := w.Root
	write(t, filepath.Join(root, "f"), "x")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(root, link); err != nil {
		t.Fatal(err)
	}
	f, log := watchedFiles(t)
	ruled, linked := hostWorkspace(root), hostWorkspace(link)
	ruled.Rules.DenyRead = []string{".env"}
	for _, w := range []writ.Workspace{w, ruled, linked} {
		readVersion(t, f, w, "f")
	}
	if n := len(f.trees.watches.roots); n != 1 {
		t.Errorf("%d watches of one root", n)
	}
	hints := watcherOf(t, f, root).Subscribe()
	defer hints.Close()
	write(t, filepath.Join(root, "g"), "x")
	if e, err := hints.Next(t.Context()); err != nil || e.Kind != watch.Create || e.Path != "g" || e.Epoch != 1 {
		t.Errorf("told %+v, %v", e, err)
	}

	// Replaced while another workspace's tree is open: the next epoch is of the new folder.
	if err := os.Rename(root, root+".old"); err != nil {
		t.Fatal(err)
	}
	makeRoots(t, dir, 1)
	write(t, filepath.Join(root, "f"), "new")
	readVersion(t, f, w, "f")
	for e := (watch.Event{}); e.Epoch < 2; {
		if e, err = hints.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(root, "after"), "x")
	for e := (watch.Event{}); e.Path != "after"; {
		if e, err = hints.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	lines := log.lines(t, "workspace was watched")
	if len(lines) != 1 || lines[0]["root"] != root || lines[0]["hints"].(float64) < 3 || lines[0]["epoch"].(float64) < 2 {
		t.Errorf("the log has %v", lines)
	}
}

// A watch ends with the last tree of its root.
func TestAWatchEndsWithItsTrees(t *testing.T) {
	dir := t.TempDir()
	all := makeRoots(t, dir, 3)
	log := &logBuffer{}
	trees := newTrees(1)
	trees.watches = newWatches(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	var hints []*watch.Subscription
	for _, w := range all {
		tree := lendTree(t, trees, w)
		r := trees.watches.roots[tree.Root()]
		<-r.up
		hints = append(hints, r.watcher.Subscribe())
		trees.put(tree)
	}
	if n := len(trees.watches.roots); n != 1 {
		t.Errorf("%d watches, want that of the tree that is kept", n)
	}
	for i, h := range hints[:2] {
		if _, err := h.Next(t.Context()); !errors.Is(err, watch.ErrClosed) {
			t.Errorf("watch %d of a tree that was closed: %v", i, err)
		}
	}
	trees.close()
	if n := len(log.lines(t, "workspace was watched")); n != 3 {
		t.Errorf("%d watches have ended, want 3", n)
	}
}

// Scenario 65: a version conflict is found whatever the watch saw, and whether there is
// one.
func TestScenario65_AConflictIsFoundWhateverTheWatchSaw(t *testing.T) {
	for _, how := range []string{"watched", "told", "lost", "none"} {
		t.Run(how, func(t *testing.T) {
			f, _ := watchedFiles(t)
			root, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			w := hostWorkspace(root)
			name := filepath.Join(root, "f")
			write(t, name, "one\n")
			if how == "none" {
				f.trees.watches = nil
			}
			before := readVersion(t, f, w, "f")
			switch how {
			case "watched":
				watcherOf(t, f, root)
				write(t, name, "two\n")
			case "told":
				hints := watcherOf(t, f, root).Subscribe()
				defer hints.Close()
				write(t, name, "two\n")
				if _, err := hints.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			case "lost":
				watcherOf(t, f, root).Close()
				write(t, name, "two\n")
			case "none":
				write(t, name, "two\n")
			}
			_, err = f.Patch(t.Context(), w, writ.NewOperationID(), writ.PatchRequest{
				Patch:    "*** Begin Patch\n*** Update File: f\n@@\n-two\n+three\n*** End Patch\n",
				Expected: map[string]string{"f": before},
			}, "")
			if writ.CodeOf(err) != files.CodeVersionConflict {
				t.Errorf("patch of a file that was changed: %v", err)
			}
			if b, err := os.ReadFile(name); err != nil || string(b) != "two\n" {
				t.Errorf("the file is %q, %v", b, err)
			}
		})
	}
}

// A root that cannot be watched is no error of a file call, and is said in the log.
func TestFilesWithoutAWatch(t *testing.T) {
	f, log := watchedFiles(t)
	root := t.TempDir()
	write(t, filepath.Join(root, "f"), "x")
	// What a host without inotify would give: a watch that ends before it begins.
	f.trees.watches.stop()
	readVersion(t, f, hostWorkspace(root), "f")
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		t.Fatal(err)
	}
	if watcherOf(t, f, real) != nil {
		t.Error("a watch stands that was ended before it began")
	}
	if _, err := f.Find(t.Context(), hostWorkspace(root), writ.FileQuery{Glob: "*", Limit: 10}); err != nil {
		t.Errorf("find: %v", err)
	}

	// A real failure: the root is gone when the watch begins.
	trees := newTrees(1)
	trees.watches = newWatches(slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	trees.watches.hold(filepath.Join(root, "missing"))
	<-trees.watches.roots[filepath.Join(root, "missing")].up
	trees.close()
	if n := len(log.lines(t, "workspace is not watched")); n != 1 {
		t.Errorf("%d lines in the log, want one", n)
	}
}
