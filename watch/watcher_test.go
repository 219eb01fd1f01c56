package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestScenario77_ModifyCreateRenameRemove(t *testing.T) {
	l := listen(t, Options{}, "d/deep")
	l.write("d/deep/f")
	first := l.next()
	if first != (Event{Epoch: 1, Seq: 1, Kind: Create, Path: "d/deep/f"}) {
		t.Errorf("the first event is %+v", first)
	}
	l.until("modify d/deep/f")
	l.flush()

	f, err := os.OpenFile(l.in("d/deep/f"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString("more")
	must(t, err)
	wantOnly(t, "write", l.flush(), "modify d/deep/f")
	must(t, f.Close())
	wantOnly(t, "close", l.flush(), "modify d/deep/f")
	must(t, os.Chmod(l.in("d/deep/f"), 0o600))
	wantOnly(t, "chmod", l.flush(), "modify d/deep/f")
	l.rename("d/deep/f", "d/g")
	wantOnly(t, "rename", l.flush(), "rename d/deep/f -> d/g")
	must(t, os.Remove(l.in("d/g")))
	wantOnly(t, "remove", l.flush(), "remove d/g")
	must(t, os.RemoveAll(l.in("d")))
	wantOnly(t, "remove folders", l.flush(), "remove d/deep", "remove d")
	l.mkdir("d")
	wantOnly(t, "make again", l.flush(), "create d")
	l.write("d/x")
	l.until("modify d/x")
	if l.Partial() {
		t.Error("the watch is partial")
	}
}

func TestScenario77_FoldersThatMove(t *testing.T) {
	l := listen(t, Options{}, "a/sub", "b", "x/inx", "y/iny")
	l.rename("a", "b/moved")
	wantOnly(t, "rename of a folder", l.flush(), "rename a -> b/moved")
	l.mkdir("b/moved/sub/new")
	wantOnly(t, "what is made in a moved folder", l.flush(), "create b/moved/sub/new")
	l.write("b/moved/sub/new/f")
	l.until("create b/moved/sub/new/f")
	l.flush()

	l.exchange("x", "y")
	wantOnly(t, "exchange of folders", l.flush(), "rename x -> y", "create x", "resync")
	must(t, os.Mkdir(l.in("x/iny/p"), 0o755))
	must(t, os.Mkdir(l.in("y/inx/p"), 0o755))
	wantOnly(t, "what is made in exchanged folders", l.flush(), "create x/iny/p", "create y/inx/p")

	// Over an empty folder, and then its name is used again.
	l.mkdir("empty")
	l.flush()
	must(t, unix.Rename(l.in("x"), l.in("empty")))
	l.mkdir("x")
	l.write("x/f")
	l.until("create x/f")
	l.flush()
	l.write("empty/iny/f")
	l.until("create empty/iny/f")
}

// Files that change places are both there, also when one had been renamed to the other's
// name just before.
func TestScenario77_FilesThatChangePlaces(t *testing.T) {
	l := listen(t, Options{})
	l.write("a")
	l.rename("a", "b")
	l.write("a")
	l.flush()
	l.exchange("a", "b")
	known := picture{"a": true, "b": true}
	for _, e := range l.flush() {
		known.apply(e, l.root)
	}
	if !known["a"] || !known["b"] {
		t.Errorf("an exchange was told as %v, by which there is %v", l.told(), known)
	}
	l.exchange("b", "a")
	for _, e := range l.flush() {
		known.apply(e, l.root)
	}
	if !known["a"] || !known["b"] {
		t.Errorf("an exchange back was told so that there is %v", known)
	}
	l.rename("a", "c")
	l.rename("c", "a")
	wantOnly(t, "there and back", l.flush(), "rename a -> c", "rename c -> a")
}

// What is made in new folders, before a watch stands, is told.
func TestNewFoldersLoseNothing(t *testing.T) {
	l := listen(t, Options{})
	for i := range 300 {
		top := strconv.Itoa(i)
		l.mkdir(top + "/b/c/d")
		for _, name := range []string{"/f", "/b/f", "/b/c/f", "/b/c/d/f"} {
			l.write(top + name)
		}
		want := map[string]bool{top + "/f": true, top + "/b/f": true, top + "/b/c/f": true, top + "/b/c/d/f": true}
		for len(want) > 0 {
			e := l.next()
			if e.Kind == ResyncRequired {
				t.Fatal("resync for a few folders")
			}
			if e.Kind == Create {
				delete(want, e.Path)
			}
		}
	}
}

func TestScenario78_LagIsResync(t *testing.T) {
	l := listen(t, Options{})
	quick := attach(t, l.Watcher)
	const n = 2*bufferedEvents + 10
	for i := range n {
		must(t, os.Mkdir(l.in(strconv.Itoa(i)), 0o755))
		for short(quick.next()) != "create "+strconv.Itoa(i) {
		}
	}
	first := l.next()
	if first.Kind != ResyncRequired || first.Epoch != 1 || first.Seq <= bufferedEvents {
		t.Fatalf("the next event of one that lags is %+v", first)
	}
	// What came after it is there, without a gap: next checks.
	l.until("create " + strconv.Itoa(n-1))
	l.write("f")
	l.until("modify f")
	for _, e := range quick.seen {
		if e.Kind == ResyncRequired {
			t.Error("one subscriber's lag was told to another")
		}
	}
}

// maxQueued is how many events the host's kernel queues.
func maxQueued(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	must(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	must(t, err)
	return n
}

func TestScenario78_OverflowIsResyncInTheSameEpoch(t *testing.T) {
	root := memoryDir(t)
	g := &gate{}
	w, err := open(t.Context(), root, Options{}, g.pass)
	must(t, err)
	l := attach(t, w)
	l.mkdir("old/sub")
	l.write("a")
	l.write("b")
	l.flush()
	held, resume := g.shut()
	l.write("c")
	<-held
	for i := range maxQueued(t)/2 + 1000 { // by turns, since the kernel folds the same event
		must(t, os.Chmod(l.in("a"), 0o600+os.FileMode(i&1)))
		must(t, os.Chmod(l.in("b"), 0o600+os.FileMode(i&1)))
	}
	// The kernel tells of none of these.
	l.rename("old", "renamed")
	l.mkdir("made/in/between")
	must(t, os.WriteFile(l.in("lost"), nil, 0o644))
	resume()
	for {
		e := l.next()
		if e.Epoch != 1 || e.Path == "lost" || e.Kind == Rename {
			t.Fatalf("told %+v", e)
		}
		if e.Kind == ResyncRequired && l.watching(t, "made/in/between") {
			break // that of the overflow: others are of a lag, and come before it
		}
	}
	l.flush()
	for _, dir := range []string{"renamed/sub", "made/in/between"} {
		l.write(dir + "/f")
		l.until("create " + dir + "/f")
	}
	if l.Partial() || l.seen[len(l.seen)-1].Epoch != 1 {
		t.Errorf("partial %v, last event %+v", l.Partial(), l.seen[len(l.seen)-1])
	}
}

// watching reports whether the folder has a watch now, by what the kernel says of the
// descriptors of this process.
func (l *listener) watching(t *testing.T, path string) bool {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Stat(l.in(path), &st))
	return watchedInodes(t)[st.Ino] > 0
}

func TestScenario79_RestartBumpsTheEpoch(t *testing.T) {
	l := listen(t, Options{}, "d")
	l.write("f")
	l.until("modify f")
	for epoch := uint64(2); epoch <= 4; epoch++ {
		must(t, l.Restart())
		e := l.until("resync")
		if got := e[len(e)-1]; got.Epoch != epoch || got.Seq != 1 {
			t.Errorf("after restart the event is %+v", got)
		}
		l.write("d/f")
		l.until("modify d/f")
		l.flush()
	}
	if n := instances(t); n != 1 {
		t.Errorf("%d instances after three restarts", n)
	}
}

func TestScenario79_RestartLosesNothing(t *testing.T) {
	l := listen(t, Options{}, "d")
	done := make(chan error, 1)
	go func() {
		defer close(done)
		for range 20 {
			if err := l.Restart(); err != nil {
				done <- err
			}
		}
	}()
	for i := 0; ; i++ {
		name := "d/" + strconv.Itoa(i)
		must(t, os.WriteFile(l.in(name), nil, 0o644))
		for { // told itself, or covered by a resync that came after it was made
			e := l.next()
			if e.Kind == Create && e.Path == name || e.Kind == ResyncRequired {
				break
			}
		}
		select {
		case err, bad := <-done:
			if bad {
				t.Fatal(err)
			}
			return
		default:
		}
	}
}

func TestScenario79_AFailedRestartKeepsTheOldWatch(t *testing.T) {
	l := listen(t, Options{}, "d")
	l.write("f")
	l.until("modify f")
	l.flush()
	restore := noDescriptors(t)
	err := l.Restart()
	restore()
	if !errors.Is(err, unix.EMFILE) {
		t.Fatalf("restart without descriptors: %v", err)
	}
	all := l.flush()
	wantOnly(t, "failed restart", all, "resync")
	if all[0].Epoch != 1 {
		t.Errorf("failed restart: %+v", all[0])
	}
	l.write("d/g")
	l.until("modify d/g")
	if last := l.seen[len(l.seen)-1]; last.Epoch != 1 || l.Partial() {
		t.Errorf("after a failed restart: %+v, partial %v", last, l.Partial())
	}
}

// noDescriptors lets this process open nothing more until restore is called.
func noDescriptors(t *testing.T) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: old.Max}))
	return func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old)) }
}

func TestScenario79_ARootThatIsReplaced(t *testing.T) {
	l := listen(t, Options{}, "d")
	must(t, os.Rename(l.root, l.root+".old"))
	l.until("resync")
	if !l.Partial() {
		t.Error("a watch without a root is not partial")
	}
	must(t, os.WriteFile(l.root+".old/d/f", nil, 0o644)) // is outside now
	if err := l.Restart(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("restart without a root: %v", err)
	}
	if e := l.next(); e.Kind != ResyncRequired || e.Epoch != 1 {
		t.Errorf("restart without a root: %+v", e)
	}
	must(t, os.Mkdir(l.root, 0o755))
	must(t, l.Restart())
	if e := l.next(); e.Kind != ResyncRequired || e.Epoch != 2 || e.Seq != 1 {
		t.Errorf("restart with a new root: %+v", e)
	}
	l.write("f")
	l.until("modify f")
	if l.Partial() {
		t.Error("the new watch is partial")
	}
}

func TestLimitOfWatches(t *testing.T) {
	l := listen(t, Options{Watches: 3}, "a", "b")
	if l.Partial() {
		t.Fatal("three folders of three are too many")
	}
	l.mkdir("c/d")
	l.mkdir("e")
	l.write("a/f")
	l.until("modify a/f")
	resyncs := 0
	for _, e := range l.seen {
		if e.Kind == ResyncRequired {
			resyncs++
		}
	}
	if resyncs != 1 || !l.Partial() {
		t.Errorf("%d resyncs, partial %v; want one", resyncs, l.Partial())
	}
	l.rename("a", "moved") // what is watched stays so
	l.write("moved/g")
	l.until("create moved/g")

	many := listen(t, Options{Watches: 3}, "a", "b", "c")
	if !many.Partial() {
		t.Error("four folders of three are all watched")
	}
}

func TestScenario75_DepthIsBounded(t *testing.T) {
	deep := strings.Repeat("d/", MaxDepth)
	l := listen(t, Options{}, deep)
	if l.Partial() {
		t.Error("a tree of the greatest depth is not whole")
	}
	l.write(deep + "f")
	l.until("create " + deep + "f")
	l.flush()
	l.mkdir(deep + "more")
	l.until("resync")
	if !l.Partial() {
		t.Error("a tree that is too deep is whole")
	}
	// Moving makes it deeper still, and is no way to get longer paths.
	l.mkdir("over/over")
	l.rename("d", "over/over/d")
	l.write("over/over/" + deep + "g")
	for _, e := range l.flush() {
		if strings.Count(e.Path, "/") > MaxDepth {
			t.Errorf("told %+v", e)
		}
	}
}

func TestCloseEndsEverything(t *testing.T) {
	l := listen(t, Options{}, "d")
	l.write("f")
	l.until("modify f")
	l.flush()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.sub.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("next of a call that is over: %v", err)
	}
	waiting := make(chan error)
	go func() {
		_, err := l.sub.Next(context.Background())
		waiting <- err
	}()
	l.Watcher.Close()
	if err := <-waiting; !errors.Is(err, ErrClosed) {
		t.Errorf("next after close: %v", err)
	}
	l.Watcher.Close()
	if err := l.Restart(); !errors.Is(err, ErrClosed) {
		t.Errorf("restart after close: %v", err)
	}
	if _, err := l.Subscribe().Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("subscription after close: %v", err)
	}
	if n := instances(t); n != 0 {
		t.Errorf("%d instances after close", n)
	}
}

func TestOpenFails(t *testing.T) {
	dir := memoryDir(t)
	must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o644))
	must(t, os.Symlink(dir, filepath.Join(dir, "link")))
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for what, try := range map[string]func() (*Watcher, error){
		"relative":  func() (*Watcher, error) { return Open(t.Context(), "x", Options{}) },
		"missing":   func() (*Watcher, error) { return Open(t.Context(), filepath.Join(dir, "no"), Options{}) },
		"file":      func() (*Watcher, error) { return Open(t.Context(), filepath.Join(dir, "f"), Options{}) },
		"symlink":   func() (*Watcher, error) { return Open(t.Context(), filepath.Join(dir, "link"), Options{}) },
		"cancelled": func() (*Watcher, error) { return Open(over, dir, Options{}) },
	} {
		if w, err := try(); err == nil {
			w.Close()
			t.Errorf("%s: a watch was opened", what)
		}
	}
	if n := instances(t); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

func TestMalformedRecords(t *testing.T) {
	for _, b := range [][]byte{make([]byte, 15), append(make([]byte, 12), 1, 0, 0, 0), append(make([]byte, 12), 0xff, 0xff, 0xff, 0xff)} {
		if got, err := parseRecords(nil, b); err == nil {
			t.Errorf("%d bytes are %+v", len(b), got)
		}
	}
}
