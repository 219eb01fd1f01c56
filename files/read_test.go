package files

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/patch"
)

func read(t testing.TB, tree *Tree, name string, offset, limit int64) Window {
	t.Helper()
	w, err := tree.Read(t.Context(), name, offset, limit)
	must(t, err)
	return w
}

func TestScenario67_VersionIsStableAcrossReads(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "hello\n"})
	first := read(t, tree, "a.txt", 0, MaxReadBytes)
	second := read(t, tree, "./x/../a.txt", 0, MaxReadBytes)
	if first.Version != second.Version || first.Version != patch.Version([]byte("hello\n")) {
		t.Errorf("versions %s and %s", first.Version, second.Version)
	}
	if second.Path != "a.txt" {
		t.Errorf("path %q, want it clean", second.Path)
	}
}

func TestScenario68To70_Windows(t *testing.T) {
	tree := newTree(t, layout{"a.txt": "abcdef", "empty": ""})
	whole := read(t, tree, "a.txt", 0, MaxReadBytes)
	for _, c := range []struct {
		name          string
		offset, limit int64
		content       string
		next          int64
	}{
		{"a.txt", 0, 3, "abc", 3},
		{"a.txt", 3, 3, "def", 0},
		{"a.txt", 3, 2, "de", 5},
		{"a.txt", 5, 100, "f", 0},
		{"a.txt", 6, 3, "", 0},
		{"a.txt", 1 << 40, 3, "", 0},
		{"empty", 0, 1, "", 0},
	} {
		w := read(t, tree, c.name, c.offset, c.limit)
		if string(w.Content) != c.content || w.Next != c.next || w.Offset != c.offset {
			t.Errorf("%s from %d, %d bytes: %q, next %d, want %q, %d", c.name, c.offset, c.limit, w.Content, w.Next, c.content, c.next)
		}
		if c.name == "a.txt" && w.Version != whole.Version {
			t.Errorf("version of the window from %d is not the file's", c.offset)
		}
	}
	for _, bad := range [][2]int64{{0, 0}, {0, MaxReadBytes + 1}, {0, -1}, {-1, 1}} {
		_, err := tree.Read(t.Context(), "a.txt", bad[0], bad[1])
		wantCode(t, "bad window", err, CodeOutputLimit)
	}
}

func TestScenario71_BadBytesAreReplacedAndSaid(t *testing.T) {
	tree := newTree(t, layout{"x": "a\xffb", "euro": "€"})
	w := read(t, tree, "x", 0, 2)
	text, lossy := w.Text()
	if len(w.Content) != 2 || text != "a\uFFFD" || !lossy || w.Next != 2 {
		t.Errorf("%d bytes, text %q, lossy %v, next %d", len(w.Content), text, lossy, w.Next)
	}
	if text, lossy := read(t, tree, "euro", 0, 2).Text(); !lossy || text != "\uFFFD\uFFFD" {
		t.Errorf("a cut letter gives %q, lossy %v", text, lossy)
	}
	if text, lossy := read(t, tree, "euro", 0, 3).Text(); lossy || text != "€" {
		t.Errorf("a whole letter gives %q, lossy %v", text, lossy)
	}
}

func TestMCP29_LettersAtBufferEndsStayWhole(t *testing.T) {
	for _, n := range []int{510, 511, 512, 513, 514, 1022, 1023, 1024, 1025, 1026, 4094, 4095, 4096, 4097, 4098, 8190, 8191, 8192, 8193, 8194, hashChunk - 1} {
		want := strings.Repeat("a", n) + "\u011f\n"
		tree := newTree(t, layout{"f": want})
		if text, lossy := read(t, tree, "f", 0, MaxReadBytes).Text(); text != want || lossy {
			t.Errorf("after %d letters: lossy %v", n, lossy)
		}
	}
}

func TestScenario72_EachRefusalHasItsCode(t *testing.T) {
	tree := newTree(t, layout{
		"foo": "x", "dir/in": "x", "link": "-> foo", "dirlink": "-> dir", "out": "-> /etc/passwd",
		"outdir": "-> /etc", "dangling": "-> nowhere", "chain": "-> link",
	})
	must(t, unix.Mkfifo(filepath.Join(tree.Root(), "fifo"), 0o644))
	sock, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	must(t, err)
	defer closeAll(sock)
	t.Chdir(tree.Root()) // a socket's path must be short
	must(t, unix.Bind(sock, &unix.SockaddrUnix{Name: "sock"}))
	for name, code := range map[string]string{
		"missing":                CodeFileNotFound,
		"missing/x":              CodeFileNotFound,
		"foo/bar":                CodeNotDirectory,
		"..":                     CodePathEscape,
		"../x":                   CodePathEscape,
		"dir/../../x":            CodePathEscape,
		"":                       CodePathEscape,
		"a\x00b":                 CodePathEscape,
		"a\xffb":                 CodePathEscape,
		"/etc/passwd":            CodePathEscape,
		tree.Root() + "/foo":     CodePathEscape,
		"link":                   CodeSymlink,
		"chain":                  CodeSymlink,
		"out":                    CodeSymlink,
		"dangling":               CodeSymlink,
		"dirlink/in":             CodeSymlink,
		"outdir/passwd":          CodeSymlink,
		"fifo":                   CodeSpecialFile,
		"sock":                   CodeSpecialFile,
		"dir":                    CodeSpecialFile,
		".":                      CodeSpecialFile,
		strings.Repeat("n", 300): CodeOperationFailed,
	} {
		_, err := tree.Read(t.Context(), name, 0, 10)
		wantCode(t, "read "+quoted(name), err, code)
		if strings.Contains(writ.Message(err), "root:") {
			t.Errorf("read %q: the message has content: %v", name, err)
		}
		version, err := tree.Version(t.Context(), name)
		if code == CodeFileNotFound {
			if version != patch.Absent || err != nil {
				t.Errorf("version of %q: %q, %v, want absent", name, version, err)
			}
			continue
		}
		wantCode(t, "version "+quoted(name), err, code)
	}
	if os.Geteuid() != 0 {
		must(t, os.Chmod(filepath.Join(tree.Root(), "foo"), 0))
		_, err := tree.Read(t.Context(), "foo", 0, 10)
		wantCode(t, "read without permission", err, CodeOperationFailed)
	}
}

func TestFS11_NamesAreTakenLiterally(t *testing.T) {
	names := []string{"%2e%2e", "..%2f", "a ", "a.", "~", "C:", "..\u2215etc", "\uff0e\uff0e", "a\\b", "...", "-rf", "con", "new\nline", "\u202egnp", "<script>", strings.Repeat("x", 255)}
	tree := newTree(t, nil)
	for _, name := range names {
		must(t, os.WriteFile(filepath.Join(tree.Root(), name), []byte(name), 0o644))
	}
	for _, name := range names {
		if got := read(t, tree, name, 0, 1000); string(got.Content) != name {
			t.Errorf("read %q gave %q", name, got.Content)
		}
	}
	for _, name := range []string{"..\\x", "%2e%2e/x", "~/x", "..%2fx"} {
		if _, err := tree.Read(t.Context(), name, 0, 10); writ.CodeOf(err) != CodeFileNotFound && writ.CodeOf(err) != CodeNotDirectory {
			t.Errorf("read %q: %v, want nothing there", name, err)
		}
	}
}

func TestIO03_ReadingIsBounded(t *testing.T) {
	tree := newTree(t, layout{"f": "x"})
	full := filepath.Join(tree.Root(), "f")
	must(t, os.Truncate(full, 1<<40))
	_, err := tree.Read(t.Context(), "f", 0, 10)
	wantCode(t, "read a sparse terabyte", err, CodeOperationFailed)
	must(t, os.Truncate(full, MaxFileBytes))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tree.Read(ctx, "f", 0, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A file that grows all the time is read, or refused; the window is always of the
// version that comes with it.
func TestIO03_GrowingFile(t *testing.T) {
	tree := newTree(t, layout{"log": ""})
	full := filepath.Join(tree.Root(), "log")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 20_000 { // a megabyte
			select {
			case <-stop:
				return
			default:
			}
			f, err := os.OpenFile(full, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return
			}
			_, _ = f.WriteString(strings.Repeat("line\n", 10))
			_ = f.Close()
		}
	})
	good := 0
	for range 300 {
		w, err := tree.Read(t.Context(), "log", 0, MaxReadBytes)
		if err != nil {
			wantCode(t, "growing file", err, CodeOperationFailed)
			continue
		}
		if good++; w.Next == 0 && w.Version != patch.Version(w.Content) {
			t.Errorf("version is not of the %d bytes that came with it", len(w.Content))
		}
	}
	close(stop)
	wg.Wait()
	if good == 0 {
		t.Error("no read of a growing file succeeded")
	}
}

func TestVersionIsNotRememberedTooLong(t *testing.T) {
	tree := newTree(t, layout{"f": "one"})
	full := filepath.Join(tree.Root(), "f")
	old := time.Now().Add(-time.Hour)
	for _, content := range []string{"two", "six", "ten"} { // of the same size, and with the same mtime
		must(t, os.WriteFile(full, []byte(content), 0o644))
		must(t, os.Chtimes(full, old, old))
		if w := read(t, tree, "f", 0, 10); w.Version != patch.Version([]byte(content)) || string(w.Content) != content {
			t.Errorf("after writing %q: content %q", content, w.Content)
		}
		if v, err := tree.Version(t.Context(), "f"); v != patch.Version([]byte(content)) || err != nil {
			t.Errorf("after writing %q: version %s, %v", content, v, err)
		}
	}
}

func TestVersionsForgetTheLeastRecentlyUsed(t *testing.T) {
	v := newVersions()
	st := func(ino uint64) *unix.Stat_t { return &unix.Stat_t{Dev: 1, Ino: ino, Size: 5} }
	for i := range uint64(maxVersions) {
		v.put(st(i), "v", time.Now())
	}
	v.get(st(0))
	v.put(st(maxVersions), "v", time.Now())
	if _, ok := v.get(st(0)); !ok {
		t.Error("what was just used is forgotten")
	}
	if _, ok := v.get(st(1)); ok {
		t.Error("more is remembered than the bound")
	}
	changed := st(2)
	changed.Ctim.Nsec++
	if _, ok := v.get(changed); ok {
		t.Error("a file that changed is remembered")
	}
	fresh := st(5000000)
	fresh.Ctim = unix.NsecToTimespec(time.Now().UnixNano())
	v.put(fresh, "v", time.Now())
	if _, ok := v.get(fresh); ok {
		t.Error("a file that has just changed is remembered")
	}
}

func TestRememberedVersionGivesTheSameWindow(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 100_000)
	tree := newTree(t, layout{"f": string(content)})
	full := filepath.Join(tree.Root(), "f")
	var st unix.Stat_t
	must(t, unix.Stat(full, &st))
	tree.versions.put(&st, patch.Version(content), time.Now().Add(time.Hour)) // as after settleTime
	for _, offset := range []int64{0, 5, hashChunk - 1, hashChunk, int64(len(content)) - 3, int64(len(content))} {
		w := read(t, tree, "f", offset, MaxReadBytes)
		want := content[offset:min(int64(len(content)), offset+MaxReadBytes)]
		if !bytes.Equal(w.Content, want) || w.Version != patch.Version(content) {
			t.Errorf("window from %d differs", offset)
		}
	}
}

func TestMCP27_RootMayBeASymlink(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, layout{"app/a.txt": "x", "link": "-> app"})
	tree := openTree(t, filepath.Join(dir, "link"))
	if want, _ := filepath.EvalSymlinks(filepath.Join(dir, "app")); tree.Root() != want {
		t.Errorf("root %s, want %s", tree.Root(), want)
	}
	if w := read(t, tree, "a.txt", 0, 1); string(w.Content) != "x" {
		t.Errorf("read %q", w.Content)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, layout{"file": "x", "loop": "-> loop"})
	for root, kind := range map[string]writ.Kind{
		"relative":                      writ.Invalid,
		filepath.Join(dir, "missing"):   writ.NotFound,
		filepath.Join(dir, "file"):      writ.Conflict,
		filepath.Join(dir, "file/deep"): writ.Conflict,
	} {
		if _, err := Open(root, Rules{}); writ.KindOf(err) != kind {
			t.Errorf("open %s: %v, want kind %v", root, err, kind)
		}
	}
	if _, err := Open(filepath.Join(dir, "loop"), Rules{}); err == nil {
		t.Error("a loop opened")
	}
}

func TestClosedTree(t *testing.T) {
	tree := newTree(t, layout{"a": "x"})
	must(t, tree.Close())
	must(t, tree.Close())
	_, err := tree.Read(t.Context(), "a", 0, 1)
	wantCode(t, "read", err, CodeOperationFailed)
	_, err = tree.Find(t.Context(), Query{Limit: 1})
	wantCode(t, "find", err, CodeOperationFailed)
	if !tree.Stale() {
		t.Error("a closed tree is not stale")
	}
}

func TestStaleTree(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, layout{"ws/a": "x", "other/a": "y"})
	tree := openTree(t, filepath.Join(dir, "ws"))
	if tree.Stale() {
		t.Error("stale at once")
	}
	must(t, os.Rename(filepath.Join(dir, "ws"), filepath.Join(dir, "moved")))
	must(t, os.Rename(filepath.Join(dir, "other"), filepath.Join(dir, "ws")))
	if !tree.Stale() {
		t.Error("another folder is at the root, and the tree is not stale")
	}
}
