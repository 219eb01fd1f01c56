package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"writ"
)

func open(t testing.TB, dir string) *Folder {
	t.Helper()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func put(t testing.TB, f *Folder, text string) writ.Digest {
	t.Helper()
	d, n, err := f.Put(context.Background(), strings.NewReader(text), int64(len(text)))
	if err != nil || n != int64(len(text)) || d != writ.DigestOf([]byte(text)) {
		t.Fatalf("put %d bytes: %s, %d, %v", len(text), d, n, err)
	}
	return d
}

func read(f *Folder, d writ.Digest, from, n int64) (string, error) {
	r, err := f.Open(context.Background(), d, from, n)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(r)
	return string(b), errors.Join(err, r.Close())
}

// names are the files of a folder within the folder of blobs.
func names(t testing.TB, dir, folder string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(dir, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func nobody(context.Context, []writ.Digest) ([]writ.Digest, error) { return nil, nil }

func later() time.Time { return time.Now().Add(time.Hour) }

func TestPutAndOpen(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	for _, text := range []string{"", "a", strings.Repeat("0123456789", 100_000)} {
		d := put(t, f, text)
		put(t, f, text) // again is the same
		size := int64(len(text))
		for _, c := range []struct{ from, n int64 }{{0, -1}, {0, size}, {0, 0}, {size, -1}, {size, 0}, {size / 2, -1}, {size / 3, size / 3}} {
			n := c.n
			if n < 0 {
				n = size - c.from
			}
			if got, err := read(f, d, c.from, c.n); err != nil || got != text[c.from:c.from+n] {
				t.Errorf("%d bytes from %d, %d: got %d bytes, %v", size, c.from, c.n, len(got), err)
			}
		}
		for _, c := range []struct{ from, n int64 }{{size + 1, -1}, {size + 1, 0}, {0, size + 1}, {-1, 1}, {1, 1<<63 - 1}} {
			if _, err := read(f, d, c.from, c.n); writ.KindOf(err) != writ.Invalid {
				t.Errorf("%d bytes from %d, %d: %v, want Invalid", size, c.from, c.n, err)
			}
		}
	}
	if got := names(t, dir, blobs); len(got) != 3 || len(names(t, dir, drafts)) != 0 {
		t.Errorf("blobs %v, drafts %v", got, names(t, dir, drafts))
	}
	for _, d := range []writ.Digest{"", "../drafts", writ.DigestOf([]byte("none")), writ.Digest(strings.Repeat("A", 64)), writ.Digest(strings.Repeat("/", 64))} {
		if _, err := read(f, d, 0, -1); writ.KindOf(err) != writ.NotFound {
			t.Errorf("open %q: %v, want NotFound", d, err)
		}
	}
}

// TestLC15_IO03_LimitIsEnforcedOnTheWay counts what is taken of a stream that is too long.
func TestLC15_IO03_LimitIsEnforcedOnTheWay(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	for _, limit := range []int64{0, 1, 100_000} {
		src := &endless{}
		_, _, err := f.Put(context.Background(), src, limit)
		if writ.KindOf(err) != writ.Invalid || writ.CodeOf(err) != writ.CodeFileTooLarge || src.n != limit+1 {
			t.Errorf("limit %d: %v after %d bytes, want %s after one more", limit, err, src.n, writ.CodeFileTooLarge)
		}
		if _, n, err := f.Put(context.Background(), io.LimitReader(&endless{}, limit), limit); err != nil || n != limit {
			t.Errorf("exactly %d bytes: %d, %v", limit, n, err)
		}
	}
	if got := names(t, dir, drafts); len(got) != 0 {
		t.Errorf("drafts are left: %v", got)
	}
}

type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	e.n += int64(len(p))
	return len(p), nil
}

func TestPutFailsWhole(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	broken := errors.New("the connection broke")
	_, _, err := f.Put(context.Background(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 100)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, want the reader's own error", err)
	}
	_, _, err = f.Put(context.Background(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)), 4)
	if !errors.Is(err, broken) {
		t.Errorf("after the limit: got %v, want the reader's own error", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, _, err = f.Put(ctx, io.MultiReader(strings.NewReader("half"), readFunc(func(p []byte) (int, error) { cancel(); return copy(p, "more"), nil }), &endless{}), 1<<40)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
	if b, d := names(t, dir, blobs), names(t, dir, drafts); len(b)+len(d) != 0 {
		t.Errorf("left are %v, %v", b, d)
	}
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TestOpenNoticesDamage changes a blob as a failing disk does.
func TestOpenNoticesDamage(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	d := put(t, f, "what was put")
	at := filepath.Join(dir, blobs, string(d))
	r, err := f.Open(context.Background(), d, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := os.Truncate(at, 5); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut while it is read: %q, %v", b, err)
	}
	if err := os.WriteFile(at, []byte("what was pUt"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := read(f, d, 0, -1); err == nil {
		t.Errorf("other bytes were read without an error: %q", got)
	}
	put(t, f, "what was put") // mends it
	if got, err := read(f, d, 0, -1); err != nil || got != "what was put" {
		t.Errorf("put again: %q, %v", got, err)
	}
}

func TestFolderIsPrivateAndHasNoLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	d := put(t, f, "text")
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", p, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, blobs, string(d))
	for _, target := range []string{outside, "../drafts/x"} {
		if err := errors.Join(os.WriteFile(filepath.Join(dir, drafts, "x"), []byte("text"), 0o600), os.RemoveAll(at), os.Symlink(target, at)); err != nil {
			t.Fatal(err)
		}
		if got, err := read(f, d, 0, -1); err == nil {
			t.Errorf("a link to %s was followed: %q", target, got)
		}
	}
	if _, _, err := f.Sweep(context.Background(), later(), nobody, false); err != nil {
		t.Error(err)
	}
	put(t, f, "text") // replaces the link, not what it leads to
	if got, err := os.ReadFile(outside); err != nil || string(got) != "text" {
		t.Errorf("outside: %q, %v", got, err)
	}
	if info, err := os.Lstat(at); err != nil || !info.Mode().IsRegular() {
		t.Errorf("blob is %v, %v", info, err)
	}

	// A folder of somebody else's, named by mistake, stays as it is.
	theirs := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(theirs, "theirs"), nil, 0o644), os.Chmod(theirs, 0o755)); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenFolder(theirs); err == nil {
		f.Close()
		t.Error("a folder of others was opened")
	}
	if info, err := os.Stat(theirs); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("it is %v, %v", info, err)
	}
	if entries, err := os.ReadDir(theirs); len(entries) != 1 || err != nil {
		t.Errorf("it holds %v, %v", entries, err)
	}

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenFolder(link); err == nil {
		f.Close()
		t.Error("a link to a folder was opened")
	}
}

func TestSweep(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	f := open(t, dir)
	var all, used []writ.Digest
	for i := range 2*sweepPage + 10 {
		d := writ.DigestOf([]byte{byte(i), byte(i >> 8)})
		if err := os.WriteFile(filepath.Join(dir, blobs, string(d)), []byte{byte(i), byte(i >> 8)}, 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
		if i%3 == 0 {
			used = append(used, d)
		}
	}
	for _, name := range []string{"drafts/old", "blobs/notes.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var asked int
	inUse := func(_ context.Context, of []writ.Digest) (out []writ.Digest, err error) {
		asked += len(of)
		for _, d := range of {
			if slices.Contains(used, d) {
				out = append(out, d)
			}
		}
		return out, nil
	}
	sweep := func(what string, before time.Time, inUse func(context.Context, []writ.Digest) ([]writ.Digest, error), dry bool, wantN int) {
		t.Helper()
		if n, size, err := f.Sweep(ctx, before, inUse, dry); err != nil || n != wantN || size != int64(2*wantN) {
			t.Errorf("%s: %d blobs, %d bytes, %v; want %d", what, n, size, err, wantN)
		}
	}
	free := len(all) - len(used)
	sweep("of before they were put", time.Now().Add(-time.Hour), inUse, false, 0)
	if asked != 0 {
		t.Errorf("asked for %d blobs that are young", asked)
	}
	sweep("dry", later(), inUse, true, free)
	if len(names(t, dir, blobs)) != len(all)+1 || len(names(t, dir, drafts)) != 1 {
		t.Error("a dry sweep removed something")
	}
	down := errors.New("the database is gone")
	if n, _, err := f.Sweep(ctx, later(), func(context.Context, []writ.Digest) ([]writ.Digest, error) { return nil, down }, false); !errors.Is(err, down) || n != 0 {
		t.Errorf("nobody knows what is used: %d removed, %v", n, err)
	}
	sweep("", later(), inUse, false, free)
	sweep("again", later(), inUse, false, 0)
	if left := names(t, dir, blobs); len(left) != len(used)+1 || !slices.Contains(left, "notes.txt") {
		t.Errorf("left are %d, want the %d used ones and what is no blob", len(left), len(used))
	}
	if left := names(t, dir, drafts); len(left) != 0 {
		t.Errorf("drafts are left: %v", left)
	}
}

// TestSweepKeepsWhatIsPutMeanwhile puts old, unused bytes again after the sweep was told
// that nobody uses them.
func TestSweepKeepsWhatIsPutMeanwhile(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	f := open(t, dir)
	d := put(t, f, "again")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, blobs, string(d)), old, old); err != nil {
		t.Fatal(err)
	}
	asked := false
	n, _, err := f.Sweep(ctx, time.Now().Add(-time.Minute), func(context.Context, []writ.Digest) ([]writ.Digest, error) {
		asked = true
		put(t, f, "again")
		return nil, nil
	}, false)
	if n != 0 || err != nil || !asked {
		t.Errorf("swept %d, %v, asked %v", n, err, asked)
	}
	if got, err := read(f, d, 0, -1); err != nil || got != "again" {
		t.Errorf("what was put meanwhile: %q, %v", got, err)
	}
}

// TestPutAgeBeginsWithItsName gives the last byte long before the end.
func TestPutAgeBeginsWithItsName(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	f := open(t, dir)
	text := []byte("slow")
	f.step = func(step string) {
		if step == "synced" {
			old := time.Now().Add(-time.Hour)
			for _, name := range names(t, dir, drafts) {
				if err := os.Chtimes(filepath.Join(dir, drafts, name), old, old); err != nil {
					t.Error(err)
				}
			}
		}
	}
	d, _, err := f.Put(ctx, bytes.NewReader(text), 4)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, err := f.Sweep(ctx, time.Now().Add(-time.Minute), nobody, false); n != 0 || err != nil {
		t.Errorf("swept %d, %v: it has a name only since now", n, err)
	}
	if _, err := read(f, d, 0, -1); err != nil {
		t.Error(err)
	}
}

// TestRenewedIsAsPutNow: a sweep leaves what was renewed since its time, and takes the rest.
func TestRenewedIsAsPutNow(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	f := open(t, dir)
	kept, gone := put(t, f, "kept"), put(t, f, "gone")
	for _, d := range []writ.Digest{kept, gone} {
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(dir, blobs, string(d)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := f.Renew(ctx, kept); n != 4 || err != nil {
		t.Errorf("renewed %d bytes, %v", n, err)
	}
	none := func(context.Context, []writ.Digest) ([]writ.Digest, error) { return nil, nil }
	if n, bytes, err := f.Sweep(ctx, time.Now().Add(-time.Minute), none, false); n != 1 || bytes != 4 || err != nil {
		t.Errorf("swept %d of %d bytes, %v", n, bytes, err)
	}
	if got, err := read(f, kept, 0, -1); got != "kept" || err != nil {
		t.Errorf("what was renewed: %q, %v", got, err)
	}
	for _, d := range []writ.Digest{gone, "", "../" + kept, writ.Digest(strings.ToUpper(string(kept)))} {
		if _, err := f.Renew(ctx, d); writ.KindOf(err) != writ.NotFound {
			t.Errorf("renew %q: %v", d, err)
		}
	}
	// A link is no blob, and what it leads to stays as it was.
	link := writ.DigestOf([]byte("link"))
	if err := os.Symlink(string(kept), filepath.Join(dir, blobs, string(link))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Renew(ctx, link); err == nil || writ.KindOf(err) == writ.NotFound {
		t.Errorf("renew a link: %v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := f.Renew(ended, kept); !errors.Is(err, context.Canceled) {
		t.Errorf("renew for nobody: %v", err)
	}
}
