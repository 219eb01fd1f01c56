package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"writ"
)

// EntryKind says what an Entry is.
type EntryKind int

const (
	EntryFile       EntryKind = iota + 1 // a regular file
	EntryFolder                          // a folder with nothing in it
	EntryLink                            // a symlink, which is not followed
	EntryOther                           // a FIFO, a socket or a device
	EntryUnreadable                      // a folder that cannot be read, or lies deeper than maxDepth; or what cannot be looked at
)

// Entry is something that a program left.
type Entry struct {
	// Path is relative to the folder that is visited, with slashes. Its bytes are those
	// that the program chose: any but NUL, and no name is "." or "..".
	Path string
	Kind EntryKind
	Size int64       // bytes, of a file, which may have holes; of a symlink, of where it leads
	Mode fs.FileMode // permission bits, as the program left them

	// Open opens a file, which the caller closes, while it is visited; after that, and for
	// what is neither file nor symlink, it is an error. The bytes of a symlink are where it
	// leads, as the program wrote it. What is read is the very file that was looked at,
	// exactly Size bytes of it: one that became shorter ends with io.ErrUnexpectedEOF.
	Open func() (io.ReadCloser, error)
}

// Files implements Box.
func (b *bubblewrapBox) Files(ctx context.Context, dir string, visit func(Entry) error) error {
	e := &writ.Error{Kind: writ.Conflict, Op: "read files of a box"}
	root, err := b.borrow(dir)
	switch {
	case errors.Is(err, errRunning):
		e.Msg = "the run is not over: what it leaves can be read when it is"
		return e
	case errors.Is(err, os.ErrClosed):
		e.Msg = "the box is closed: what its run left is gone"
		return e
	case errors.Is(err, fs.ErrNotExist):
		e.Kind, e.Msg = writ.Invalid, fmt.Sprintf("the files in %q cannot be read: a box keeps what is in the folder in which it works in memory, and in %s", dir, codeDir)
		return e
	case err != nil:
		return fmt.Errorf("opening %s of a box: %w", dir, err)
	}
	w := walk{
		visit: visit,
		room:  2*min(b.limits.Files, writ.MaxLimits.Files) + 1<<16,
		interrupted: func() error {
			if b.closed.Load() {
				e.Msg = "the box was closed while its files were read"
				return e
			}
			return context.Cause(ctx)
		},
	}
	return w.run(root)
}

// errRunning is a run that is not over, or was none.
var errRunning = errors.New("the run is not over")

// borrow is a descriptor of dir, which the caller closes: so a Close of the box waits
// for nobody who reads. The error is errRunning, os.ErrClosed, or fs.ErrNotExist when
// dir is no folder of which files are given.
func (b *bubblewrapBox) borrow(dir string) (fd int, err error) {
	b.mu.Lock()
	r := b.run
	b.mu.Unlock()
	if b.closed.Load() {
		return -1, os.ErrClosed
	}
	if r == nil {
		return -1, errRunning
	}
	select {
	case <-r.finished:
	default:
		return -1, errRunning
	}
	i := slices.Index(b.process.names, dir)
	if i < 0 || dir != codeDir && (b.dir == "" || dir != b.dir) {
		return -1, fs.ErrNotExist
	}
	err = control(b.process.dirs[i], func(from int) (err error) {
		fd, err = unix.FcntlInt(uintptr(from), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return fd, err
}
