package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// maxDepth is how many names a path may have beneath a folder that is visited. Every
// level costs a descriptor.
const maxDepth = 64

// walk visits what is beneath a folder. What is there belongs to hostile code, whose
// processes are gone; it relies on neither.
//
// Each thing is opened once, by one name in a folder that is open, as a descriptor that
// can only be looked at (O_PATH). What it is, is asked of that descriptor, and what is
// read is opened from that descriptor: no name means one thing first and another later.
type walk struct {
	visit       func(Entry) error
	interrupted func() error
	room        int64 // for names: how many may yet be read
	levels      []level
}

// level is a folder that is open.
type level struct {
	fd    int
	path  string   // with a slash behind it; empty for the first
	names []string // not yet visited, in order; those of folders end in a slash
}

// run visits all that is in root, which it closes.
func (w *walk) run(root int) error {
	defer func() {
		for _, l := range w.levels {
			_ = unix.Close(l.fd) // only looked at
		}
	}()
	names, err := w.enter(root)
	w.levels = append(w.levels, level{fd: root, names: names})
	if err != nil {
		return fmt.Errorf("reading a folder of a box: %w", err)
	}
	for len(w.levels) > 0 {
		if err := w.interrupted(); err != nil {
			return err
		}
		l := &w.levels[len(w.levels)-1]
		if len(l.names) == 0 {
			_ = unix.Close(l.fd)
			w.levels = w.levels[:len(w.levels)-1]
			continue
		}
		name := strings.TrimSuffix(l.names[0], "/")
		l.names = l.names[1:]
		if err := w.look(*l, name); err != nil {
			return err
		}
	}
	return nil
}

// look visits what has that name in l, or goes into it.
func (w *walk) look(l level, name string) error {
	e := Entry{Path: l.path + name, Kind: EntryUnreadable, Open: notAFile}
	fd, err := unix.Openat2(l.fd, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	switch {
	case err == unix.ENOENT:
		return nil // it is gone
	case closedToUs(err):
		return w.visit(e)
	case err != nil:
		return fmt.Errorf("looking at %q in a box: %w", e.Path, err)
	}
	entered := false
	defer func() {
		if !entered {
			_ = unix.Close(fd)
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at %q in a box: %w", e.Path, err)
	}
	e.Mode = fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		e.Kind, e.Size = EntryFile, st.Size
		over := false
		e.Open = func() (io.ReadCloser, error) {
			if over {
				return nil, fmt.Errorf("opening a file that is not visited any more: %w", fs.ErrClosed)
			}
			return openFile(fd, st)
		}
		defer func() { over = true }()
	case unix.S_IFDIR:
		if len(w.levels) >= maxDepth {
			return w.visit(e)
		}
		names, err := w.enter(fd)
		switch {
		case closedToUs(err) || err == errTooMany:
			return w.visit(e)
		case err != nil:
			return fmt.Errorf("reading folder %q in a box: %w", e.Path, err)
		case len(names) > 0:
			entered = true
			w.levels = append(w.levels, level{fd: fd, path: e.Path + "/", names: names})
			return nil
		}
		e.Kind = EntryFolder
	case unix.S_IFLNK:
		to, err := readLink(fd)
		if err != nil {
			return fmt.Errorf("reading symlink %q in a box: %w", e.Path, err)
		}
		e.Kind, e.Size = EntryLink, int64(len(to))
		e.Open = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(to)), nil }
	default:
		e.Kind = EntryOther
	}
	return w.visit(e)
}

// readLink is where the symlink that fd was opened on leads.
func readLink(fd int) (string, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

// closedToUs reports whether err says something of what is in the box, and nothing of us.
func closedToUs(err error) bool {
	return errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV)
}

// errTooMany are more names than any limit of files lets there be.
var errTooMany = errors.New("more files than may be")

// enter reads the names in the folder, in order. The folder is then one that we may
// enter, too.
func (w *walk) enter(fd int) ([]string, error) {
	opened, err := reopen(fd, unix.O_RDONLY|unix.O_DIRECTORY, 0o500)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	var names []string
	for {
		list, err := opened.ReadDir(1024)
		for _, d := range list {
			name := d.Name()
			if d.IsDir() {
				name += "/" // as in the paths of what is in it, so that their order is right
			}
			names = append(names, name)
		}
		if w.room -= int64(len(list)); w.room < 0 {
			return nil, errTooMany
		}
		if err == io.EOF {
			slices.Sort(names)
			return names, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// reopen opens what the descriptor fd is of, without any name. Where we are not root, and
// its mode lacks any of need for its owner, who is then us, it gets them.
func reopen(fd, flags int, need uint32) (*os.File, error) {
	self := fmt.Sprintf("/proc/self/fd/%d", fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if os.Geteuid() != 0 && st.Mode&need != need {
		if err := unix.Chmod(self, st.Mode&0o7777|need); err != nil {
			return nil, err
		}
	}
	// O_NONBLOCK for what is not what it is taken for.
	opened, err := unix.Open(self, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(opened), self), nil // a name by which ReadDir finds what is in it
}

func notAFile() (io.ReadCloser, error) {
	return nil, fmt.Errorf("opening what is no file: %w", fs.ErrInvalid)
}

// openFile opens the regular file that fd was opened on and st tells of.
func openFile(fd int, st unix.Stat_t) (io.ReadCloser, error) {
	f, err := reopen(fd, unix.O_RDONLY, 0o400)
	if err != nil {
		return nil, fmt.Errorf("opening a file of a box: %w", err)
	}
	return &wholeFile{f: f, left: st.Size}, nil
}

// wholeFile reads as many bytes as the file had, or fails.
type wholeFile struct {
	f    *os.File
	left int64
}

func (w *wholeFile) Read(b []byte) (int, error) {
	if w.left == 0 {
		return 0, io.EOF
	}
	n, err := w.f.Read(b[:min(int64(len(b)), w.left)])
	if w.left -= int64(n); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (w *wholeFile) Close() error { return w.f.Close() }
