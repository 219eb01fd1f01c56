package sandbox

import (
	"errors"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"writ"
)

// cgroupV1 is a tree for each controller. A group has a folder of one name in
// each of them, beneath our own group there, so that what limits us limits our
// boxes too.
type cgroupV1 struct {
	memory, pids, cpuacct string // our own group's folder, or empty where we may not write
}

// openV1 returns nil when neither memory nor processes can be limited.
func openV1(mounts []cgroupMount) *cgroupV1 {
	find := func(controller string) string {
		for _, m := range mounts {
			if m.version == 1 && slices.Contains(m.controllers, controller) && writable(m.dir) {
				return m.dir
			}
		}
		return ""
	}
	t := &cgroupV1{memory: find("memory"), pids: find("pids"), cpuacct: find("cpuacct")}
	if t.memory == "" && t.pids == "" {
		return nil // cpuacct alone limits nothing
	}
	return t
}

func (t *cgroupV1) has(layer string) bool {
	switch layer {
	case layerMemory:
		return t.memory != ""
	case layerPids:
		return t.pids != ""
	case layerCPU:
		return t.cpuacct != ""
	}
	return false
}

func (t *cgroupV1) parents() []string {
	var dirs []string
	for _, d := range []string{t.memory, t.pids, t.cpuacct} {
		// Controllers may be mounted together.
		if d != "" && !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

func (t *cgroupV1) limit(name string, l writ.Limits) error {
	if t.memory != "" {
		dir, bytes := filepath.Join(t.memory, name), strconv.FormatInt(l.MemoryBytes, 10)
		swap := exists(filepath.Join(dir, "memory.memsw.limit_in_bytes"))
		// Memory and swap together may never be limited to less than memory alone: so
		// that goes out of the way first, and then leaves no swap.
		if swap {
			if err := writeControl(dir, "memory.memsw.limit_in_bytes", "-1"); err != nil {
				return err
			}
		}
		if err := writeControl(dir, "memory.limit_in_bytes", bytes); err != nil {
			return err
		}
		if swap {
			if err := writeControl(dir, "memory.memsw.limit_in_bytes", bytes); err != nil {
				return err
			}
		}
	}
	if t.pids != "" {
		return writeControl(filepath.Join(t.pids, name), "pids.max", strconv.FormatInt(l.Processes+initThreads, 10))
	}
	return nil
}

func (t *cgroupV1) usage(name string) (cpu time.Duration, peak, oomKills int64, err error) {
	var errs []error
	if t.memory != "" {
		dir := filepath.Join(t.memory, name)
		var e1, e2 error
		peak, e1 = readNumber(dir, "memory.max_usage_in_bytes")
		oomKills, e2 = readKey(dir, "memory.oom_control", "oom_kill")
		errs = append(errs, e1, e2)
	}
	if t.cpuacct != "" {
		ns, e := readNumber(filepath.Join(t.cpuacct, name), "cpuacct.usage")
		cpu = time.Duration(ns)
		errs = append(errs, e)
	}
	return cpu, peak, oomKills, errors.Join(errs...)
}

// kill looks in every tree: a process may have got into the group of one alone, and
// a group may be gone from one and not from another.
func (t *cgroupV1) kill(name string) error {
	var errs []error
	for _, parent := range t.parents() {
		if err := killAll(filepath.Join(parent, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// killAll goes over the list until nobody new is on it: a process that forks while
// it is read is caught the next time, and one that is killed forks no more.
func killAll(dir string) error {
	killed := map[int]bool{}
	for {
		s, err := readControl(dir, "cgroup.procs")
		if err != nil {
			return err
		}
		fresh := false
		for line := range strings.Lines(s) {
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil || killed[pid] {
				continue
			}
			killed[pid], fresh = true, true
			// ESRCH: it was faster.
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return err
			}
		}
		if !fresh {
			return nil
		}
	}
}

// run calls start on a thread that is in the group, so that a process which start
// makes is born in it. On version 1 that is some hundred times faster than add:
// the kernel moves the calling thread without waiting for any other. start must
// make the process on the goroutine it is called on. Where a process is born by
// fd, or there are no groups, run only calls start.
//
// An error that start did not return means that this thread could not enter the
// group, and start was not called, or could not leave it again: then what start
// made must be ended, and the thread stays locked to its goroutine, so that
// nothing else runs in the group.
func (g *cgroup) run(start func() error) error {
	if g == nil {
		return start()
	}
	t, ok := g.tree.(*cgroupV1)
	if !ok {
		return start()
	}
	runtime.LockOSThread() // leave unlocks
	for _, dir := range g.dirs() {
		if err := writeControl(dir, "tasks", "0"); err != nil {
			return errors.Join(err, t.leave())
		}
	}
	return errors.Join(start(), t.leave())
}

// leave takes the calling thread, which run locked, back to our own groups.
func (t *cgroupV1) leave() error {
	for _, dir := range t.parents() {
		if err := writeControl(dir, "tasks", "0"); err != nil {
			return err
		}
	}
	runtime.UnlockOSThread()
	return nil
}
