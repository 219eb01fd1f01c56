package jail

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// HoldArg is the second argument of a process that first holds what its third says, a
// descriptor of Walls, and then becomes the jail with the arguments that follow.
const HoldArg = "hold"

// Walls are what a box with a workspace gets between bwrap and its jail: what needs
// mounts that are made on open files, and for that the one capability that this
// process has and gives up.
type Walls struct {
	Root     string   // of the workspace, in the box
	ReadOnly []string // mounts of the box that become read-only as they are
	// CoverFile and CoverFolder are what hidden paths show.
	CoverFile, CoverFolder string
	Holds                  []Hold // in this order: those of folders before those beneath them
	Filter                 []byte // the seccomp program, struct sock_filter each
}

// HoldKind says how a path is held.
type HoldKind uint32

const (
	Pin     HoldKind = 1 // it stays where it is
	Protect HoldKind = 2 // and cannot be written, with all that is beneath it
	Hide    HoldKind = 3 // and cannot be read
)

// Hold is one path of the workspace that is held. When there is nothing at it, or a
// symlink or a folder that the box may not enter on the way to it, nothing is.
type Hold struct {
	Kind HoldKind
	Path string // relative to the root
}

// Append appends the walls to b: the form that a descriptor of them holds.
func (w Walls) Append(b []byte) []byte {
	b = appendString(b, w.Root)
	b = appendStrings(b, w.ReadOnly)
	b = appendString(b, w.CoverFile)
	b = appendString(b, w.CoverFolder)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(w.Holds)))
	for _, h := range w.Holds {
		b = binary.LittleEndian.AppendUint32(b, uint32(h.Kind))
		b = appendString(b, h.Path)
	}
	return appendString(b, string(w.Filter))
}

// ParseWalls is the walls whose form is exactly b.
func ParseWalls(b []byte) (Walls, error) {
	d := decoder{rest: b}
	w := Walls{Root: d.string(), ReadOnly: d.strings(), CoverFile: d.string(), CoverFolder: d.string()}
	for range d.count(maxHolds) {
		h := Hold{Kind: HoldKind(d.uint32()), Path: d.string()}
		if d.err == nil && (h.Kind < Pin || h.Kind > Hide) {
			d.err = fmt.Errorf("walls: hold of unknown kind %d", h.Kind)
		}
		if d.err != nil {
			break
		}
		w.Holds = append(w.Holds, h)
	}
	w.Filter = []byte(d.string())
	switch {
	case d.err != nil:
		return Walls{}, d.err
	case len(d.rest) > 0:
		return Walls{}, fmt.Errorf("walls: %d bytes too many", len(d.rest))
	case len(w.Filter) == 0 || len(w.Filter)%8 != 0:
		return Walls{}, fmt.Errorf("walls: a filter of %d bytes", len(w.Filter))
	}
	return w, nil
}

// raise puts up the walls that are in the descriptor and becomes the jail. It returns
// only when it cannot. Namespaces, capabilities and filters are of a thread: this one
// executes the jail, and the others end with that.
func raise(descriptor string, dirs []string) error {
	runtime.LockOSThread()
	w, err := readWalls(descriptor)
	if err != nil {
		return fmt.Errorf("read the walls: %w", err)
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		// The mounts that bwrap made belong to a user namespace in which nobody is any
		// more. These are our own, and the walls in them cannot be taken away by anybody.
		{"make a mount namespace", func() error { return unix.Unshare(unix.CLONE_NEWNS) }},
		// What the host mounts from now on has no place in the box.
		{"make mounts private", func() error { return setMount("/", unix.AT_RECURSIVE, unix.MountAttr{Propagation: unix.MS_PRIVATE}) }},
		{"make mounts read-only", w.readOnly},
		{"hold paths", w.hold},
		{"drop capabilities", dropCapabilities},
		// Last: it forbids most of the above.
		{"load the filter", func() error { return loadFilter(w.Filter) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	exe := fmt.Sprintf("/proc/self/fd/%d", ExecutableFD)
	return fmt.Errorf("become the jail: %w", syscall.Exec(exe, append([]string{exe, Arg}, dirs...), os.Environ()))
}

// readWalls reads and closes the descriptor.
func readWalls(descriptor string) (Walls, error) {
	fd, err := strconv.Atoi(descriptor)
	if err != nil {
		return Walls{}, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return Walls{}, err
	}
	if st.Size > MaxHeaderBytes {
		return Walls{}, unix.EFBIG
	}
	b := make([]byte, st.Size)
	if err := errors.Join(readFull(fd, b, 0), unix.Close(fd)); err != nil {
		return Walls{}, err
	}
	return ParseWalls(b)
}

func setMount(at string, flags uint, attr unix.MountAttr) error {
	return unix.MountSetattr(unix.AT_FDCWD, at, flags, &attr)
}

func (w Walls) readOnly() error {
	for _, p := range w.ReadOnly {
		if err := setMount(p, 0, unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// hold holds every path. The files of a workspace may change while it does: each path
// is opened once, and what was opened is what is mounted, on itself or covered.
func (w Walls) hold() error {
	if len(w.Holds) == 0 {
		return nil
	}
	root, err := unix.Open(w.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", w.Root, err)
	}
	file, err := unix.Open(w.CoverFile, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", w.CoverFile, err)
	}
	folder, err := unix.Open(w.CoverFolder, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", w.CoverFolder, err)
	}
	for _, h := range w.Holds {
		if err := h.hold(root, file, folder); err != nil {
			return fmt.Errorf("%s: %w", path.Join(w.Root, h.Path), err)
		}
	}
	return closeAll(root, file, folder)
}

func (h Hold) hold(root, coverFile, coverFolder int) error {
	at, err := unix.Openat2(root, h.Path, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES:
		return nil // the server finds out that it is not held
	default:
		return err
	}
	from, attr := at, unix.MountAttr{}
	switch h.Kind {
	case Protect:
		attr.Attr_set = unix.MOUNT_ATTR_RDONLY
	case Hide:
		attr.Attr_set = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
		var st unix.Stat_t
		if err := unix.Fstat(at, &st); err != nil {
			return err
		}
		if from = coverFile; st.Mode&unix.S_IFMT == unix.S_IFDIR {
			from = coverFolder
		}
	}
	mount, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	if err != nil {
		return fmt.Errorf("make a mount: %w", err)
	}
	if attr != (unix.MountAttr{}) {
		err = unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	}
	if err == nil {
		err = unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	}
	return errors.Join(err, closeAll(mount, at))
}

// dropCapabilities leaves this thread, and what it executes, without any, for good.
func dropCapabilities() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	last, err := os.ReadFile("/proc/sys/kernel/cap_last_cap")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(last)))
	if err != nil {
		return err
	}
	for c := range n + 1 {
		if set, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err != nil || set == 0 {
			continue
		}
		// What this cannot drop is seen by the server.
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EPERM {
			return err
		}
	}
	none := [2]unix.CapUserData{}
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0])
}
