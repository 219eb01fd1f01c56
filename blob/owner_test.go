package blob

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ"
)

func TestOwner(t *testing.T) {
	dir := t.TempDir()
	f, g := open(t, dir), open(t, dir)
	if owner, err := f.Owner(); owner != "" || err != nil {
		t.Errorf("a new folder is %q's, %v", owner, err)
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i, by := range []*Folder{f, g} {
		wg.Go(func() { errs[i] = by.Own([]string{"first", "second"}[i]) })
	}
	wg.Wait()
	owner, err := f.Owner()
	if err != nil || (errs[0] == nil) != (owner == "first") || (errs[1] == nil) != (owner == "second") {
		t.Errorf("it is %q's, %v: %v", owner, err, errs)
	}
	if err := g.Own(owner); err != nil {
		t.Errorf("again by its owner: %v", err)
	}
	if left := names(t, dir, drafts); len(left) != 0 {
		t.Errorf("drafts are left: %v", left)
	}
	for _, text := range []string{"", "\n"} {
		if err := os.WriteFile(filepath.Join(dir, ownerName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if owner, err := f.Owner(); err == nil {
			t.Errorf("a damaged name is %q", owner)
		}
	}
	if err := f.Own(" a"); err == nil {
		t.Error("a name with a space around it is none")
	}
}

// TestFolderIsSharedByProcesses: while another process looks at blobs for the last time,
// which stand for it by their lock, none gets a name, is renewed or removed.
func TestFolderIsSharedByProcesses(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	f, other := open(t, dir), open(t, dir)
	d := put(t, f, "there")
	want := writ.DigestOf([]byte("new"))
	for name, do := range map[string]func() error{
		"put":    func() error { _, _, err := f.Put(ctx, strings.NewReader("new"), 3); return err },
		"renew":  func() error { _, err := f.Renew(ctx, d); return err },
		"remove": func() error { _, err := f.remove(filepath.Join(blobs, string(want)), later()); return err },
	} {
		begun, done := make(chan struct{}), make(chan error, 1)
		err := other.alone(func() error {
			go func() {
				close(begun)
				done <- do()
			}()
			<-begun
			for range 100 { // it is to wait: whatever it did would be seen at one of these looks
				select {
				case err := <-done:
					t.Errorf("%s did not wait: %v", name, err)
					done <- err
					return nil
				default:
				}
				if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != syscall.EWOULDBLOCK {
					t.Errorf("the lock is free: %v", err)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("%s afterwards: %v", name, err)
		}
	}
}

// TestSweepOf removes blobs of some digests, as Sweep does, and no others.
func TestSweepOf(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	f := open(t, dir)
	gone, used, young, other := put(t, f, "gone"), put(t, f, "used"), put(t, f, "young"), put(t, f, "other")
	old := time.Now().Add(-time.Hour)
	for _, d := range []writ.Digest{gone, used, other} {
		if err := os.Chtimes(filepath.Join(dir, blobs, string(d)), old, old); err != nil {
			t.Fatal(err)
		}
	}
	n, bytes, err := f.SweepOf(ctx, []writ.Digest{gone, used, young, writ.DigestOf([]byte("none")), "../../x"}, time.Now().Add(-time.Minute),
		func(_ context.Context, of []writ.Digest) ([]writ.Digest, error) {
			if len(of) != 2 || of[0] != gone || of[1] != used {
				t.Errorf("asked about %v", of)
			}
			return []writ.Digest{used}, nil
		})
	if n != 1 || bytes != 4 || err != nil {
		t.Errorf("removed %d with %d bytes, %v", n, bytes, err)
	}
	if left := names(t, dir, blobs); len(left) != 3 {
		t.Errorf("left are %v", left)
	}
}
