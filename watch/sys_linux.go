package watch

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// strict is how names beneath the root are resolved: not out of it, through no symlink,
// and not into another mount, in which a folder could be at two places.
const strict = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// maxAgain bounds how often an open is tried again that a rename disturbed.
const maxAgain = 128

// inode names a folder, whatever its path.
type inode struct{ dev, ino uint64 }

// descriptor is one that a goroutine may use while another closes it.
type descriptor struct {
	file *os.File
	conn interface {
		Control(f func(fd uintptr)) error
	}
}

func newDescriptor(fd int, name string) (*descriptor, error) {
	file := os.NewFile(uintptr(fd), name)
	conn, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &descriptor{file: file, conn: conn}, nil
}

// use calls f, during which the descriptor is not closed, unless it is closed already.
func (d *descriptor) use(f func(fd int)) error {
	return d.conn.Control(func(fd uintptr) { f(int(fd)) })
}

// close ends a read under way. It may be called more than once.
func (d *descriptor) close() { _ = d.file.Close() } // of what is only read, no error matters

// openRoot opens a canonical path, which the caller closes.
func openRoot(path string) (*descriptor, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return newDescriptor(fd, path)
}

// openFolder opens a folder beneath another one, strictly.
func openFolder(dir int, name string) (fd int, err error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: strict}
	for again := 0; ; again++ {
		fd, err = unix.Openat2(dir, name, &how)
		if (err == unix.EINTR || err == unix.EAGAIN) && again < maxAgain {
			continue
		}
		return fd, err
	}
}

// nothing reports whether an error of openFolder says that there is no folder of that
// name, or that it is a symlink.
func nothing(err error) bool {
	return err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP
}

// folderFile is a descriptor as a file to list, which owns it. Where the file system does
// not say what an entry is, Go looks at it by this name.
func folderFile(fd int) *os.File {
	return os.NewFile(uintptr(fd), "/proc/self/fd/"+strconv.Itoa(fd))
}

func closeFolder(fd int) { _ = unix.Close(fd) } // opened for reading

func inodeOf(fd int) (inode, error) {
	var st unix.Stat_t
	for {
		switch err := unix.Fstat(fd, &st); err {
		case nil:
			return inode{st.Dev, st.Ino}, nil
		case unix.EINTR:
		default:
			return inode{}, err
		}
	}
}

// exists reports whether a name is in a folder, whatever it is.
func exists(fd int, name string) bool {
	var st unix.Stat_t
	return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil
}

// watched is what a folder's watch tells. EXCL_UNLINK: not of files that have no name any
// more. CLOSE_WRITE: a file written through a mapping shows no other event.
const watched = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF |
	unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// inotify is one instance of it. Its descriptor is in Go's poller: closing ends a read.
type inotify struct{ *descriptor }

func newInotify() (*inotify, error) {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	d, err := newDescriptor(fd, "inotify")
	if err != nil {
		return nil, err
	}
	return &inotify{d}, nil
}

// add watches the folder that fd is. The answer is the same for the same folder.
func (i *inotify) add(fd int) (wd int32, err error) {
	var n int
	gone := i.use(func(in int) {
		// The link of a descriptor is not a name that is looked up: it leads to what is open.
		n, err = unix.InotifyAddWatch(in, "/proc/self/fd/"+strconv.Itoa(fd), watched)
	})
	return int32(n), cmp.Or(gone, err)
}

// remove ends a watch. One that the kernel has ended itself is no matter.
func (i *inotify) remove(wd int32) {
	_ = i.use(func(in int) { _, _ = unix.InotifyRmWatch(in, uint32(wd)) })
}

// record is one event as the kernel tells it.
type record struct {
	wd     int32
	mask   uint32
	cookie uint32
	name   string // in the folder of the watch; empty: the folder itself
}

func (r record) is(bits uint32) bool { return r.mask&bits != 0 }

// folder reports whether what is named is a folder.
func (r record) folder() bool { return r.is(unix.IN_ISDIR) }

// valid reports whether a name from the kernel is one.
func valid(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/")
}

// parseRecords reads what one read gave, and appends it to out.
func parseRecords(out []record, b []byte) ([]record, error) {
	for len(b) > 0 {
		if len(b) < unix.SizeofInotifyEvent {
			return out, fmt.Errorf("an event of inotify has %d bytes", len(b))
		}
		size := uint64(binary.NativeEndian.Uint32(b[12:]))
		if size > uint64(len(b)-unix.SizeofInotifyEvent) {
			return out, fmt.Errorf("a name of inotify has %d bytes, more than were read", size)
		}
		end := unix.SizeofInotifyEvent + int(size)
		name, _, _ := strings.Cut(string(b[unix.SizeofInotifyEvent:end]), "\x00")
		out = append(out, record{
			wd:     int32(binary.NativeEndian.Uint32(b)),
			mask:   binary.NativeEndian.Uint32(b[4:]),
			cookie: binary.NativeEndian.Uint32(b[8:]),
			name:   name,
		})
		b = b[end:]
	}
	return out, nil
}

// userWatches is how many watches the host lets one user have; 0 when it does not say.
func userWatches() int {
	b, err := os.ReadFile("/proc/sys/fs/inotify/max_user_watches")
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return n
}
