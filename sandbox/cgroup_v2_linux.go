package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"writ"
)

// cgroupV2 is the one tree of version 2. Boxes get a group each beneath parent.
type cgroupV2 struct {
	parent      string
	controllers []string // those that a group beneath parent has
}

// selfLeaf is the group that we move our own processes into where boxes get
// theirs beside it: a group that gives controllers to others may have no
// processes itself (cgroup-v2.rst, "no internal process constraint").
const selfLeaf = "writ-self"

// openV2 finds where boxes may have groups: beneath our own group when it was
// delegated to us, else, for root on a host, beneath the top. It returns nil when
// neither can be had.
func openV2(mounts []cgroupMount) *cgroupV2 {
	i := slices.IndexFunc(mounts, func(m cgroupMount) bool { return m.version == 2 })
	if i < 0 {
		return nil
	}
	m := mounts[i]
	own := m.dir
	if filepath.Base(own) == selfLeaf {
		own = filepath.Dir(own) // we, or whoever started us, moved there before
	}
	for _, parent := range []string{own, m.point} {
		if !writable(parent) || !writable(filepath.Join(parent, "cgroup.procs")) || !writable(filepath.Join(parent, "cgroup.subtree_control")) {
			continue
		}
		top := isTop(parent)
		if !top && !delegated(parent, parent == m.point) {
			continue
		}
		// Controllers that cannot be had here may be had further up.
		got, err := enable(parent, top)
		if err == nil && (slices.Contains(got, "memory") || slices.Contains(got, "pids")) {
			return &cgroupV2{parent: parent, controllers: got}
		}
	}
	return nil
}

// isTop reports whether dir is the group of the whole host, the only one without
// events, which may have processes and give controllers at once.
func isTop(dir string) bool { return !exists(filepath.Join(dir, "cgroup.events")) }

// delegated reports whether the group is ours to divide: systemd marks those of
// units with Delegate=yes, and the top of what a container sees is its own. That
// we may write a group does not say that nobody else manages it.
func delegated(dir string, topOfNamespace bool) bool {
	if topOfNamespace {
		return true
	}
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		b := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, b); err == nil && string(b[:n]) == "1" {
			return true
		}
	}
	return false
}

// enable gives groups beneath parent the controllers that it has, as far as boxes
// use them, and returns those that they then have.
func enable(parent string, top bool) ([]string, error) {
	offered, err := readControl(parent, "cgroup.controllers")
	if err != nil {
		return nil, err
	}
	given, err := readControl(parent, "cgroup.subtree_control")
	if err != nil {
		return nil, err
	}
	var got []string
	moved := false
	for _, c := range []string{"memory", "pids", "cpu"} {
		if !slices.Contains(strings.Fields(offered), c) {
			continue
		}
		if !slices.Contains(strings.Fields(given), c) {
			if !top && !moved {
				if err := emptyInto(parent, filepath.Join(parent, selfLeaf)); err != nil {
					return nil, err
				}
				moved = true
			}
			// One at a time: one that cannot be had must not keep the others away.
			if err := writeControl(parent, "cgroup.subtree_control", "+"+c); err != nil {
				continue
			}
		}
		got = append(got, c)
	}
	return got, nil
}

// emptyInto moves all processes of a delegated group into a leaf beneath it. All:
// a delegated group is that of our service, so they are our own, and the
// controllers can be given only when none is left.
func emptyInto(group, leaf string) error {
	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a control group for ourselves: %w", err)
	}
	s, err := readControl(group, "cgroup.procs")
	if err != nil {
		return err
	}
	for line := range strings.Lines(s) {
		err := writeControl(leaf, "cgroup.procs", strings.TrimSpace(line))
		if err != nil && !errors.Is(err, unix.ESRCH) { // it ended meanwhile
			return err
		}
	}
	return nil
}

func (t *cgroupV2) has(layer string) bool {
	switch layer {
	case layerMemory:
		return slices.Contains(t.controllers, "memory")
	case layerPids:
		return slices.Contains(t.controllers, "pids")
	case layerCPU:
		return true // every group counts its CPU time, also without the controller
	}
	return false
}

func (t *cgroupV2) parents() []string { return []string{t.parent} }

func (t *cgroupV2) limit(name string, l writ.Limits) error {
	dir := filepath.Join(t.parent, name)
	if t.has(layerMemory) {
		if err := writeControl(dir, "memory.max", strconv.FormatInt(l.MemoryBytes, 10)); err != nil {
			return err
		}
		// A kernel without swap accounting has no such file, and then counts no swap.
		if exists(filepath.Join(dir, "memory.swap.max")) {
			if err := writeControl(dir, "memory.swap.max", "0"); err != nil {
				return err
			}
		}
		// The kernel kills the process that grew, not the init that reports on it.
		if err := writeControl(dir, "memory.oom.group", "0"); err != nil {
			return err
		}
	}
	if t.has(layerPids) {
		return writeControl(dir, "pids.max", strconv.FormatInt(l.Processes+initThreads, 10))
	}
	return nil
}

func (t *cgroupV2) usage(name string) (cpu time.Duration, peak, oomKills int64, err error) {
	dir := filepath.Join(t.parent, name)
	us, err := readKey(dir, "cpu.stat", "usage_usec")
	errs := []error{err}
	if t.has(layerMemory) {
		file := "memory.peak"
		if !exists(filepath.Join(dir, file)) { // before Linux 5.19
			file = "memory.current"
		}
		var e1, e2 error
		peak, e1 = readNumber(dir, file)
		oomKills, e2 = readKey(dir, "memory.events", "oom_kill")
		errs = append(errs, e1, e2)
	}
	return time.Duration(us) * time.Microsecond, peak, oomKills, errors.Join(errs...)
}

// kill needs Linux 5.14, which the provider needs anyway for its limit of
// processes.
func (t *cgroupV2) kill(name string) error {
	return writeControl(filepath.Join(t.parent, name), "cgroup.kill", "1")
}
