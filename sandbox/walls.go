package sandbox

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"writ/sandbox/jail"
)

// What hidden paths show: a file and a folder that nobody can read. They are in the
// root of the box, which is read-only.
const (
	coverFile   = "/run/hidden/file"
	coverFolder = "/run/hidden/folder"
)

// boxDevices are what bwrap binds of the host's /dev. They are of the host, so their
// modes and times are the host's to change, also where the box's user owns them.
var boxDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// addWorkspace binds the workspace, and gives the arguments with which the jail puts up
// the walls that need more than bwrap can do (jail.Walls).
func (p boxPlan) addWorkspace(a *argList, files *fileList) (argv []string) {
	root := p.workspace.Root
	if within(root, "/var/tmp") {
		a.tmpfs("/var/tmp", p.limits.TmpBytes, "1777")
	} else {
		a.add("--symlink", "/tmp", "/var/tmp")
	}
	// git refuses folders of other users. What is in the workspace is its own business.
	a.add("--perms", "0444", "--file", files.pipe([]byte(gitConfig(root))), "/etc/gitconfig")
	a.add("--perms", "0000", "--file", files.pipe(nil), coverFile, "--perms", "0000", "--dir", coverFolder)
	// By a descriptor: what is bound is what was opened, whatever has its name now.
	bind := "--ro-bind-fd"
	if p.workspace.Writable {
		bind = "--bind-fd"
	}
	a.add(bind, files.lend(p.root), root)
	// In the box's own user namespace: to mount, to enter folders that are closed to
	// their own owner, and to give these three up.
	a.add("--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_DAC_READ_SEARCH", "--cap-add", "CAP_SETPCAP")
	w := jail.Walls{Root: root, ReadOnly: boxDevices, CoverFile: coverFile, CoverFolder: coverFolder, Holds: p.workspace.holds(), Filter: p.filter}
	return append([]string{jail.HoldArg, files.memory("writ walls", w.Append(nil))}, p.dirs()...)
}

// gitConfig lets git work in root and beneath it, whoever owns what is there.
func gitConfig(root string) string {
	quoted := strings.NewReplacer("\\", "\\\\", "\"", "\\\"", "\n", "\\n", "\t", "\\t").Replace(root)
	return fmt.Sprintf("[safe]\n\tdirectory = \"%[1]s\"\n\tdirectory = \"%[1]s/*\"\n", quoted)
}

// holds are what the jail must hold, folders before what is beneath them. Folders above
// a held path are pinned: who could move one away could put another in its place.
func (w Workspace) holds() []jail.Hold {
	kinds := map[string]jail.HoldKind{}
	want := func(p string, k jail.HoldKind) { kinds[p] = max(kinds[p], k) }
	for _, p := range w.Hidden {
		want(p, jail.Hide)
	}
	if w.Writable {
		for _, p := range w.Protected {
			want(p, jail.Protect)
		}
		for _, p := range slices.Collect(maps.Keys(kinds)) {
			for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
				want(dir, jail.Pin)
			}
		}
	}
	var list []jail.Hold
	for p, k := range kinds {
		over := jail.HoldKind(0) // the strongest hold above it
		for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
			over = max(over, kinds[dir])
		}
		// What is in a hidden folder is gone; what is in a protected one is protected.
		if over < jail.Hide && (k > over || k == jail.Pin && over == jail.Pin) {
			list = append(list, jail.Hold{Kind: k, Path: p})
		}
	}
	slices.SortFunc(list, func(a, b jail.Hold) int { return cmp.Compare(a.Path, b.Path) })
	return list
}

// unheld looks from outside at what the box holds, and gives the paths that it does
// not, sorted. root is its workspace, as it is in the box.
func (w Workspace) unheld(root int) ([]string, error) {
	held := map[string]jail.HoldKind{}
	for _, h := range w.holds() {
		if h.Kind == jail.Pin {
			continue
		}
		ok, err := isHeld(root, h.Path)
		if err != nil {
			return nil, err
		}
		if ok {
			held[h.Path] = h.Kind
		}
	}
	var list []string
	check := func(paths []string, kind jail.HoldKind) {
		for _, p := range paths {
			at := p // or a folder above that is held
			for at != "." && held[at] < kind {
				at = path.Dir(at)
			}
			if at == "." {
				list = append(list, p)
			}
		}
	}
	check(w.Hidden, jail.Hide)
	if w.Writable {
		check(w.Protected, jail.Protect)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// isHeld reports whether what has that path is a mount of its own, read-only, and no
// symlink.
func isHeld(root int, p string) (bool, error) {
	fd, err := unix.Openat2(root, p, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES:
		return false, nil
	default:
		return false, fmt.Errorf("looking at %s in the box: %w", p, err)
	}
	defer unix.Close(fd)
	var x unix.Statx_t
	var f unix.Statfs_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_TYPE, &x)
	if err == nil {
		err = unix.Fstatfs(fd, &f)
	}
	if err != nil {
		return false, fmt.Errorf("looking at %s in the box: %w", p, err)
	}
	return x.Mode&unix.S_IFMT != unix.S_IFLNK && x.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0 && f.Flags&unix.ST_RDONLY != 0, nil
}
