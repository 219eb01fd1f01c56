package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"writ"
)

// maxHeld bounds Hidden and Protected together: the kernel allows a mount namespace
// 100,000 mounts (fs.mount-max), and a path may need several.
const maxHeld = 20_000

// Workspace is a folder of the host that a box works in: it is bound at its own path,
// and nothing else of the host is there but what every box has.
//
// Where the server runs as root, the programs of the box are the user and group that
// own the folder, else the server's own; so what they make is as if the owner had. No
// process in the box has a capability, whoever that is.
type Workspace struct {
	// Root is the absolute path of a folder, without symlinks, as a box can have it:
	// neither a folder in which the box has its own (/, /usr, /home/agent, /run/writ,
	// ...) nor one over it, nor beneath /proc, /sys, /dev (but /dev/shm), /etc,
	// /run/writ or /run/hidden. It may be beneath /tmp and a home folder, which the box
	// then has without anything else of the host's.
	Root     string
	Writable bool
	// Hidden paths can be neither read nor written, Protected ones not written, and
	// what is beneath either neither. They are relative to Root, and name what is there
	// when the box is made: a file, a folder or a symlink itself. Folders above them
	// cannot be moved or removed. Order does not matter, and Hidden wins.
	//
	// They are names, and a file that is reachable by another name, such as a second hard
	// link, is held only if that is named too. Box.Unheld says which are not held.
	Hidden, Protected []string
}

// ours are the folders that a box has of its own.
var ours = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/dev/shm", "/proc", "/sys", "/etc", "/tmp", "/var/tmp", boxHome, codeDir, path.Dir(coverFile),
}

// Validate reports every fault of the workspace at once. It looks at no disk.
func (w Workspace) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case !path.IsAbs(w.Root) || path.Clean(w.Root) != w.Root || strings.ContainsRune(w.Root, 0):
		fault("root %q is not an absolute, clean path", w.Root)
	case slices.ContainsFunc(ours, func(p string) bool { return within(p, w.Root) }):
		fault("root %q is a folder in which every box has its own files: use a folder beneath it", w.Root)
	case within(w.Root, "/dev") && !within(w.Root, "/dev/shm"),
		slices.ContainsFunc([]string{"/proc", "/sys", "/etc", "/run/writ", path.Dir(coverFile)}, func(p string) bool { return within(w.Root, p) }):
		fault("root %q is in a folder of the system, where no box can work", w.Root)
	}
	if n := len(w.Hidden) + len(w.Protected); n > maxHeld {
		fault("%d hidden and protected paths, the most is %d: hide or protect whole folders", n, maxHeld)
	}
	for _, list := range [][]string{w.Hidden, w.Protected} {
		if i := slices.IndexFunc(list, func(p string) bool { return !beneath(p) }); i >= 0 {
			fault("path %q is not one beneath the root", list[i])
		}
	}
	return errors.Join(errs...)
}

// within reports whether p is dir or beneath it. Both are clean and absolute.
func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// beneath reports whether p is a clean relative path of something beneath a folder.
func beneath(p string) bool {
	return fs.ValidPath(p) && p != "." && !strings.ContainsRune(p, 0) && len(p) < unix.PathMax
}

// openWorkspace makes p a plan for a box with w. The caller closes p.root, which is
// what is bound, whatever has its name later.
func (p *boxPlan) openWorkspace(w Workspace, filter []byte) error {
	e := &writ.Error{Kind: writ.Invalid, Op: "prepare sandbox"}
	fail := func(format string, args ...any) error {
		e.Msg = fmt.Sprintf(format, args...)
		return e
	}
	if e.Err = w.Validate(); e.Err != nil {
		return fail("no box can have this workspace: %v", e.Err)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, w.Root, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	e.Err = err
	switch {
	case err == nil:
	case errors.Is(err, unix.ENOENT):
		e.Kind = writ.NotFound
		return fail("there is no folder %s", w.Root)
	case errors.Is(err, unix.ENOTDIR):
		return fail("%s is not a folder", w.Root)
	case errors.Is(err, unix.ELOOP):
		return fail("the path %s leads through a symlink: name the folder by its real path", w.Root)
	default:
		e.Kind = writ.Unavailable
		return fail("the folder %s cannot be opened: %v", w.Root, err)
	}
	root := os.NewFile(uintptr(fd), w.Root)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return errors.Join(fmt.Errorf("looking at %s: %w", w.Root, err), root.Close())
	}
	w.Hidden, w.Protected = slices.Clone(w.Hidden), slices.Clone(w.Protected) // ours from here on
	p.workspace, p.root, p.filter = &w, root, filter
	p.uid, p.gid = int(st.Uid), int(st.Gid)
	return nil
}
