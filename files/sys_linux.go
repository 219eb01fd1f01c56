package files

import (
	"encoding/binary"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// strict is how every name beneath the root is resolved: not out of it, and through
// no symlink, at no place of the path.
const strict = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS

// maxAgain bounds how often an open is tried again that a rename disturbed.
const maxAgain = 128

// openAt opens name beneath the folder dir, strictly. Mode counts for O_CREAT alone.
// The caller closes the descriptor, which no child inherits.
func openAt(dir int, name string, flags int, mode uint32) (int, error) {
	how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC), Mode: uint64(mode), Resolve: strict}
	for again := 0; ; again++ {
		fd, err := unix.Openat2(dir, name, &how)
		if (err == unix.EINTR || err == unix.EAGAIN) && again < maxAgain {
			continue
		}
		return fd, err
	}
}

// openRead opens what may be a regular file. It never waits for the other end of a
// pipe; the caller looks at what it got.
func openRead(dir int, name string) (int, error) {
	return openAt(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_NOFOLLOW, 0)
}

func openFolder(dir int, name string) (int, error) {
	return openAt(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
}

// createFile makes a file of mode 0600 at name, which must be new.
func createFile(dir int, name string) (int, error) {
	return openAt(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
}

func closeAll(fds ...int) {
	for _, fd := range fds {
		if fd >= 0 {
			_ = unix.Close(fd) // opened for reading, or synced before
		}
	}
}

// retry calls f again when a signal interrupted it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func statOf(fd int) (st unix.Stat_t, err error) {
	err = retry(func() error { return unix.Fstat(fd, &st) })
	return st, err
}

// statAt is what is at name itself, also when that is a symlink.
func statAt(dir int, name string) (st unix.Stat_t, err error) {
	err = retry(func() error { return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

func isKind(st *unix.Stat_t, kind uint32) bool { return st.Mode&unix.S_IFMT == kind }

func permOf(st *unix.Stat_t) fs.FileMode { return fs.FileMode(st.Mode & 0o777) }

// unchanged reports whether a file was not touched between two looks at it, as far
// as its inode tells.
func unchanged(a, b *unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// readAt fills buf from offset on and stops at the end of the file.
func readAt(fd int, buf []byte, offset int64) (n int, err error) {
	for n < len(buf) {
		m, err := unix.Pread(fd, buf[n:], offset+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return n, err
		case m == 0:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}

func writeAt(fd int, b []byte, offset int64) error {
	for len(b) > 0 {
		n, err := unix.Pwrite(fd, b, offset)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		b, offset = b[n:], offset+int64(n)
	}
	return nil
}

// beginSync begins to write a file out, so that several of them are on their way when
// the first is waited for. It promises nothing: syncFile does.
func beginSync(fd int) { _ = unix.SyncFileRange(fd, 0, 0, unix.SYNC_FILE_RANGE_WRITE) }

func syncFile(fd int) error { return retry(func() error { return unix.Fsync(fd) }) }

// without reports whether err says that a file system has not this way of renaming or
// linking.
func without(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

func exchange(dir int, a, b string) error {
	return retry(func() error { return unix.Renameat2(dir, a, dir, b, unix.RENAME_EXCHANGE) })
}

func rename(dir int, from, to string) error {
	return retry(func() error { return unix.Renameat(dir, from, dir, to) })
}

func link(dir int, from, to string) error {
	return retry(func() error { return unix.Linkat(dir, from, dir, to, 0) })
}

func unlink(dir int, name string) error {
	return retry(func() error { return unix.Unlinkat(dir, name, 0) })
}

// renameNew is rename that fails with EEXIST when something is at to.
func renameNew(dir int, from, to string) error {
	err := retry(func() error { return unix.Renameat2(dir, from, dir, to, unix.RENAME_NOREPLACE) })
	if !without(err) {
		return err
	}
	if err := link(dir, from, to); err != nil {
		return err
	}
	return unlink(dir, from)
}

// dirent is one name in a folder.
type dirent struct {
	path string // from the root
	ino  uint64
	kind uint8 // unix.DT_*; never DT_UNKNOWN
}

// direntHead is ino, off, reclen and type of a linux_dirent64.
const direntHead = 8 + 8 + 2 + 1

// readFolder lists the folder fd, whose path and a slash are prefix, but for . and
// .., in the order of the file system. More says that it stopped after max entries.
// Buf is room to read into.
func readFolder(fd int, prefix string, max int, buf []byte) (list []dirent, more bool, err error) {
	for {
		var n int
		err := retry(func() (err error) { n, err = unix.Getdents(fd, buf); return err })
		if err != nil {
			return nil, false, err
		}
		if n == 0 {
			return list, false, nil
		}
		for b := buf[:n]; len(b) >= direntHead; {
			size := int(binary.NativeEndian.Uint16(b[16:]))
			if size < direntHead || size > len(b) {
				return nil, false, unix.EIO
			}
			name := string(b[direntHead:size])
			if end := strings.IndexByte(name, 0); end >= 0 {
				name = name[:end]
			}
			e := dirent{path: prefix + name, ino: binary.NativeEndian.Uint64(b), kind: b[18]}
			b = b[size:]
			if name == "." || name == ".." {
				continue
			}
			if len(list) == max {
				return list, true, nil
			}
			if e.kind == unix.DT_UNKNOWN {
				st, err := statAt(fd, name)
				if err != nil {
					continue // gone since
				}
				e.kind = uint8(st.Mode & unix.S_IFMT >> 12)
			}
			list = append(list, e)
		}
	}
}
