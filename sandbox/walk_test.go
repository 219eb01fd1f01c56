package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// walkOf visits what is in a folder of the host, in which others may be at work, unlike in
// that of a box.
func walkOf(t *testing.T, dir string, room int64, visit func(Entry) error) error {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := walk{visit: visit, room: room, interrupted: func() error { return nil }}
	return w.run(fd)
}

// A file that is replaced, grows or shrinks between the look and the read.
func TestIO03_FileThatChangesWhileItIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		want   string
		err    error
	}{
		"replaced by a symlink": {func(p string) error {
			return errors.Join(os.Remove(p), os.Symlink("/etc/passwd", p))
		}, "0123456789", nil},
		"replaced by a FIFO": {func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o600)) }, "0123456789", nil},
		"grown":              {func(p string) error { return os.Truncate(p, 1<<40) }, "0123456789", nil},
		"cut":                {func(p string) error { return os.Truncate(p, 4) }, "0123", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := filepath.Join(dir, "f")
			if err := os.WriteFile(p, []byte("0123456789"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := walkOf(t, dir, 10, func(e Entry) error {
				if e.Kind != EntryFile || e.Size != 10 {
					return fmt.Errorf("got %+v", e)
				}
				if err := c.change(p); err != nil {
					return err
				}
				r, err := e.Open()
				if err != nil {
					return err
				}
				defer r.Close()
				got, err := io.ReadAll(r)
				if string(got) != c.want || !errors.Is(err, c.err) {
					t.Errorf("read %q, %v", got, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Names that mean something else by the time they are looked at.
func TestWalkOfAFolderThatChanges(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, p := range []string{filepath.Join(outside, "secret"), filepath.Join(dir, "a")} {
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"b", "c", "d"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "in"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := walkOf(t, dir, 100, func(e Entry) error {
		got = append(got, fmt.Sprint(e.Path, e.Kind))
		if e.Path != "a" {
			return nil
		}
		return errors.Join(
			os.RemoveAll(filepath.Join(dir, "b")), os.Symlink(outside, filepath.Join(dir, "b")),
			os.RemoveAll(filepath.Join(dir, "c")),
			os.Rename(filepath.Join(dir, "d"), filepath.Join(outside, "d")), os.WriteFile(filepath.Join(dir, "d"), nil, 0o600))
	})
	if want := []string{fmt.Sprint("a", EntryFile), fmt.Sprint("b", EntryLink), fmt.Sprint("d", EntryFile)}; err != nil || !slices.Equal(got, want) {
		t.Errorf("visited %v, want %v: %v", got, want, err)
	}
}

// A folder with more names than may be is not read, and the others are.
func TestWalkReadsSoManyNames(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		if err := os.MkdirAll(filepath.Join(dir, "big", fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err := walkOf(t, dir, 10, func(e Entry) error {
		got = append(got, fmt.Sprint(e.Path, e.Kind))
		return nil
	})
	if want := []string{fmt.Sprint("big", EntryUnreadable)}; err != nil || !slices.Equal(got, want) {
		t.Errorf("visited %v, want %v: %v", got, want, err)
	}
	if err := walkOf(t, filepath.Join(dir, "big"), 10, func(Entry) error { return nil }); !errors.Is(err, errTooMany) {
		t.Errorf("the folder itself: %v", err)
	}
}

// What is mounted beneath is not a part of it.
func TestWalkStaysOnItsFileSystem(t *testing.T) {
	saw := false
	err := walkOf(t, "/dev", 1<<20, func(e Entry) error {
		if e.Path == "pts" {
			saw = true
			if e.Kind != EntryUnreadable {
				t.Errorf("%+v", e)
			}
		}
		if e.Kind == EntryOther {
			if _, err := e.Open(); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%s was opened: %v", e.Path, err)
			}
		}
		return nil
	})
	if err != nil || !saw {
		t.Errorf("saw the mount: %v; %v", saw, err)
	}
}
