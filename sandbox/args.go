package sandbox

import (
	"os"
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

// boxArgs are the arguments for a box. firstData is the descriptor of the first of
// syntheticFiles; the others follow it.
func boxArgs(l writ.Limits, seccompFD, firstData int) argList {
	var a argList
	a.add("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup",
		"--disable-userns", "--assert-userns-disabled",
		"--new-session", "--as-pid-1",
		"--hostname", "writ", "--cap-drop", "ALL", "--clearenv",
		// For the jail alone, a Go program: it runs one thing at a time and allocates
		// little, so it shall not need a thread or memory when the limits are in force.
		"--setenv", "GOMAXPROCS", "1", "--setenv", "GOGC", "off",
		"--uid", strconv.Itoa(boxUID), "--gid", strconv.Itoa(boxUID),
		"--seccomp", strconv.Itoa(seccompFD))
	a.addSystem()
	a.addDev(l)
	a.addProc()
	a.addEtc(firstData)
	a.addWritable(l)
	// Last: the root itself is a memory file system without a size.
	a.add("--remount-ro", "/", "--chdir", "/")
	return a
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
func (a *argList) addProc() {
	a.add("--proc", "/proc")
	// What a box reads there is of its own namespaces, whoever's /proc it is bound
	// from; bwrap leaves it writable where the box's user owns a namespace's settings.
	a.add("--ro-bind", "/proc/sys", "/proc/sys")
	for _, p := range maskedProc {
		if info, err := os.Stat(p); err == nil && info.Mode().Perm()&0o007 != 0 {
			a.add("--ro-bind", "/dev/null", p)
		}
	}
	for _, p := range maskedProcDirs {
		if exists(p) {
			a.add("--perms", "0555", "--size", "4096", "--tmpfs", p, "--remount-ro", p)
		}
	}
}

func (a *argList) addEtc(firstData int) {
	for i, f := range syntheticFiles {
		a.add("--perms", "0444", "--file", strconv.Itoa(firstData+i), f.path)
	}
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
	a.tmpfs(jail.Dirs[0], l.WorkspaceBytes, "0700")
	a.tmpfs("/tmp", l.TmpBytes, "1777") // executable: builds and JITs need it
	a.tmpfs(boxHome, l.TmpBytes, "0700")
	a.tmpfs(jail.Dirs[4], codeBytes, "0700") // the program's own code, outside of its workspace
	a.add("--symlink", "/tmp", "/var/tmp")
}

// codeBytes is the size of /run/writ: code, and what a compile step makes of it.
const codeBytes = 2 * writ.MaxCodeBytes

func (a *argList) tmpfs(at string, size int64, perms string) {
	a.add("--perms", perms, "--size", strconv.FormatInt(size, 10), "--tmpfs", at)
}
