package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"writ"
	"writ/lang"
)

// minKernel is where RLIMIT_NPROC began to count per user namespace, which the
// limit of processes rests on where there is no pids cgroup.
const minMajor, minMinor = 5, 14

func (e *exam) kernel() {
	const name = "kernel"
	release := e.read("/proc/sys/kernel/osrelease")
	major, rest, _ := strings.Cut(release, ".")
	minor, _, _ := strings.Cut(rest, ".")
	minor, _, _ = strings.Cut(minor, "-")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	switch {
	case errA != nil || errB != nil:
		e.warn(name, fmt.Sprintf("release %q is not understood", release), fmt.Sprintf("use Linux %d.%d or newer", minMajor, minMinor))
	case a < minMajor || a == minMajor && b < minMinor:
		e.warn(name, fmt.Sprintf("Linux %s: the limit of processes counts those of other boxes too", release), fmt.Sprintf("boot Linux %d.%d or newer", minMajor, minMinor))
	default:
		e.ok(name, "Linux "+release)
	}
}

// seen are the folders of the host that a box has.
var seen = []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"}

func (e *exam) languages() {
	for _, l := range e.host.Languages {
		e.language("language "+string(l.Name), l)
	}
}

// language is a check of that name: is the interpreter or compiler of l there, and where
// a box sees it?
func (e *exam) language(name string, l lang.Language) {
	path := ""
	for _, c := range l.Candidates {
		if path == "" && e.executable(c) {
			path = c
		}
	}
	if path == "" {
		what := "interpreter"
		if l.Compile != nil {
			what = "compiler"
		}
		e.warn(name, "no "+what+" at "+strings.Join(l.Candidates, " or "), l.Install())
		return
	}
	real := e.real(path)
	inside := false
	for _, dir := range seen {
		inside = inside || strings.HasPrefix(real, dir)
	}
	if !inside {
		e.warn(name, fmt.Sprintf("%s leads to %s, which a sandbox does not see", path, real), l.Install())
		return
	}
	if l.Prebuilt != "" && !e.folder(l.Prebuilt) {
		e.warn(name, path+" compiles its library anew in each run, which takes many seconds", l.Prebuild)
		return
	}
	e.ok(name, path)
}

func (e *exam) configuration() {
	const name = "configuration"
	if err := e.host.Config; err != nil {
		e.fail(name, writ.Message(err), "correct the file")
		return
	}
	e.ok(name, "no faults")
}

// Below these a record may not be written: no record, no run.
const (
	lowDisk  = 1 << 30
	fullDisk = 64 << 20
)

func (e *exam) data() {
	e.room("data folder", e.host.Data, e.fail, "nothing can be recorded, and what cannot be recorded does not run", "name another with --data DIR")
}

// room is a check of that name: can files be put into dir, which may be made yet? full is
// what comes of a full disk, lacks how bad that is, and other how to have another folder.
func (e *exam) room(name, dir string, lacks func(name, found, mend string), full, other string) {
	info, err := os.Stat(dir)
	exists := err == nil
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		e.fail(name, err.Error(), other)
		return
	case !info.IsDir():
		e.fail(name, dir+" is not a folder", other)
		return
	}
	// A folder that is still to be made takes its room from the nearest one above.
	at := dir
	for up := filepath.Dir(at); !exists && up != at; up = filepath.Dir(at) {
		at = up
		_, err := os.Stat(at)
		exists = err == nil
	}
	free, err := e.host.Free(at)
	switch {
	case err != nil:
		e.warn(name, fmt.Sprintf("how much room there is at %s cannot be told: %v", at, err), "df "+at)
	case free < fullDisk:
		lacks(name, fmt.Sprintf("%s free at %s: %s", size(free), at, full), "free some room, or "+other)
	case free < lowDisk:
		e.warn(name, fmt.Sprintf("%s free at %s", size(free), at), "free some room, or "+other)
	case info != nil && info.Mode().Perm()&0o077 != 0:
		e.warn(name, fmt.Sprintf("%s is open to other users (mode %04o)", dir, info.Mode().Perm()), "chmod 700 "+dir)
	case info == nil:
		e.ok(name, fmt.Sprintf("%s will be made; %s free", dir, size(free)))
	default:
		e.ok(name, fmt.Sprintf("%s, %s free", dir, size(free)))
	}
}

func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// writtenIn is a year that no right clock is before.
const writtenIn = 2026

// clock matters to expiry and to the times in the log, not to its order.
func (e *exam) clock() {
	const name, keep = "clock", "timedatectl set-ntp true, or install chrony"
	now := e.host.Now().UTC()
	synced, err := e.host.Synced()
	switch text := now.Format(time.RFC3339); {
	case now.Year() < writtenIn:
		e.warn(name, text+" is before this program was written: keys and approvals expire at wrong times", keep)
	case err != nil:
		e.warn(name, fmt.Sprintf("%s; whether it is kept right cannot be told: %v", text, err), keep)
	case !synced:
		e.warn(name, text+"; the kernel says that nothing keeps it right", keep)
	default:
		e.ok(name, text+", kept right")
	}
}
