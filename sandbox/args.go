package sandbox

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"writ"
	"writ/sandbox/jail"
)

// argList is the arguments of bwrap that make a view and its walls. The numbers of
// descriptors in it are those of the child (launch.go).
type argList []string

func (a *argList) add(args ...string) { *a = append(*a, args...) }

// bytes is the form that --args reads: each ended by a NUL.
func (a argList) bytes() []byte { return []byte(strings.Join(a, "\x00") + "\x00") }

// boxPlan is all that decides how a box is made.
type boxPlan struct {
	limits   writ.Limits
	filter   []byte // the seccomp program
	uid, gid int    // of its processes outside, when we are root
	dir      string // where a box works that works in memory; empty for one with a workspace
	links    []Link
	// workspace is nil for a box that works in memory; root is the workspace's folder.
	workspace *Workspace
	root      *os.File
}

// hostRoot reports whether the processes of the box are the host's root, without its
// capabilities: files of /proc and devices that root owns are then theirs.
func (p boxPlan) hostRoot() bool { return p.workspace != nil && p.uid == 0 && os.Geteuid() == 0 }

// dirs are the folders of which the jail sends descriptors.
func (p boxPlan) dirs() []string {
	if p.workspace == nil {
		return append([]string{p.dir}, jail.Dirs[1:]...)
	}
	return append(slices.Clone(jail.Dirs[1:]), p.workspace.Root)
}

// assemble gives the arguments of bwrap, and those of the jail after its first. It
// adds the descriptors that they name to files.
func (p boxPlan) assemble(files *fileList) (a argList, argv []string) {
	a.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup",
		"--disable-userns", "--assert-userns-disabled",
		"--new-session", "--as-pid-1",
		"--hostname", "writ", "--cap-drop", "ALL", "--clearenv",
		// For the jail alone, a Go program: it runs one thing at a time and allocates
		// little, so it shall not need a thread or memory when the limits are in force.
		"--setenv", "GOMAXPROCS", "1", "--setenv", "GOGC", "off",
		"--uid", strconv.Itoa(boxUID), "--gid", strconv.Itoa(boxUID))
	a.addSystem()
	a.addDev(p.limits)
	a.addProc(p.hostRoot())
	for _, f := range syntheticFiles {
		a.add("--perms", "0444", "--file", files.pipe([]byte(f.content)), f.path)
	}
	a.addEtc()
	a.addWritable(p.limits)
	if p.workspace == nil {
		a.tmpfs(p.dir, p.limits.WorkspaceBytes, "0700")
		a.add("--symlink", "/tmp", "/var/tmp", "--seccomp", files.pipe(p.filter))
		if p.dir != jail.Dirs[0] {
			argv = p.dirs()
		}
	} else {
		argv = p.addWorkspace(&a, files)
	}
	for _, l := range p.links {
		a.add("--symlink", l.To, l.Path)
	}
	// Last: the root itself is a memory file system without a size.
	a.add("--remount-ro", "/", "--chdir", "/")
	return a, argv
}

// addSystem adds /usr and the names that lead into it, as the host has them.
func (a *argList) addSystem() {
	a.add("--ro-bind", "/usr", "/usr")
	for _, name := range []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(name)
		switch {
		case err != nil:
		case info.Mode()&os.ModeSymlink != 0:
			if target, err := os.Readlink(name); err == nil {
				a.add("--symlink", target, name)
			}
		case info.IsDir():
			a.add("--ro-bind", name, name)
		}
	}
}

// addDev adds a /dev of the harmless devices, in which nothing can be made.
func (a *argList) addDev(l writ.Limits) {
	a.add("--dev", "/dev")
	a.tmpfs("/dev/shm", l.TmpBytes, "1777")
	a.add("--remount-ro", "/dev")
}

// addProc adds the /proc of the box's own pid namespace. The box's kernel is the
// host's: what the host's /proc has, the box's has, and bwrap fails on what it has not.
//
// Of a box whose user is the host's root (hostRoot), what root may read or write there
// is masked as well: without a capability, it is root that owns those files.
func (a *argList) addProc(hostRoot bool) {
	a.add("--proc", "/proc")
	// What a box reads there is of its own namespaces, whoever's /proc it is bound
	// from; bwrap leaves it writable where the box's user owns a namespace's settings.
	a.add("--ro-bind", "/proc/sys", "/proc/sys")
	if hostRoot {
		a.addRootProc()
	}
	for _, p := range maskedProc {
		if info, err := os.Stat(p); err == nil && (hostRoot || info.Mode().Perm()&0o007 != 0) {
			a.add("--ro-bind", "/dev/null", p)
		}
	}
	for _, p := range maskedProcDirs {
		if exists(p) {
			a.add("--perms", "0555", "--size", "4096", "--tmpfs", p, "--remount-ro", p)
		}
	}
}

// addRootProc makes read-only what /proc has beside processes, and masks the files
// there that root alone may read, and those that it may write.
func (a *argList) addRootProc() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // the walls are verified
	}
	for _, e := range entries {
		info, err := e.Info()
		name := "/proc/" + e.Name()
		switch {
		case err != nil, e.Name()[0] >= '0' && e.Name()[0] <= '9', name == "/proc/sys",
			slices.Contains(maskedProc[:], name), slices.Contains(maskedProcDirs[:], name):
		case info.IsDir():
			a.add("--ro-bind", name, name)
		case info.Mode().IsRegular() && (info.Mode().Perm()&0o222 != 0 || info.Mode().Perm()&0o004 == 0):
			a.add("--ro-bind", "/dev/null", name)
		}
	}
}

func (a *argList) addEtc() {
	for _, p := range hostEtc {
		// Looked at through links, as a dangling one cannot be bound. What vanishes in
		// between is no failure either.
		if _, err := os.Stat(p); err == nil {
			a.add("--ro-bind-try", p, p)
		}
	}
	a.add("--symlink", "/proc/mounts", "/etc/mtab")
}

// addWritable adds all that a program can write to: memory file systems, without
// devices and set-user-id, charged to its memory limit.
func (a *argList) addWritable(l writ.Limits) {
	a.tmpfs("/tmp", l.TmpBytes, "1777") // executable: builds and JITs need it
	a.tmpfs(boxHome, l.TmpBytes, "0700")
	a.tmpfs(codeDir, codeBytes, "0700") // the program's own code, outside of its workspace
}

// codeDir is where code lies that is apart from the workspace.
const codeDir = "/run/writ"

// codeBytes is the size of /run/writ: code, and what a compile step makes of it.
const codeBytes = 2 * writ.MaxCodeBytes

func (a *argList) tmpfs(at string, size int64, perms string) {
	a.add("--perms", perms, "--size", strconv.FormatInt(size, 10), "--tmpfs", at)
}
