package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"writ"
)

// Layers that cgroups give to a box.
const (
	layerMemory = "memory-cgroup" // memory of all processes together is limited and its OOM kills are counted
	layerPids   = "pids-cgroup"   // processes and threads are limited
	layerCPU    = "cpu-cgroup"    // CPU time of all processes together is counted
)

// initThreads is how many processes and threads of a box are not the program's:
// bwrap itself and the init, which is a Go program. The limit of processes is
// raised by it.
const initThreads = 16

// maxControlBytes bounds what is read of a control file.
const maxControlBytes = 64 << 10

// cgroups makes one control group per box, in whatever form this host has them:
// version 2, version 1 with a tree for each controller, or none that we may
// write. It never has more than the host gave it; layers says what that is.
type cgroups struct {
	tree   cgroupTree // nil for none
	owner  owner      // we
	prefix string     // of the names of our groups: our owner and something random
}

// cgroupTree is what differs between the versions.
type cgroupTree interface {
	has(layer string) bool
	parents() []string // the folders in which every group gets one of its own
	limit(name string, l writ.Limits) error
	usage(name string) (cpu time.Duration, peak, oomKills int64, err error)
	kill(name string) error
}

// openCgroups finds what this process may use. That there is nothing, or nothing
// that can be made ready, is not an error: layers then names what is missing. An
// error means that /proc could not be read.
func openCgroups() (*cgroups, error) {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading our control groups: %w", err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("reading our mounts: %w", err)
	}
	we, err := ourselves()
	if err != nil {
		return nil, err
	}
	return &cgroups{
		tree:   findTree(cgroupMounts(mounts, self)),
		owner:  we,
		prefix: we.prefix() + strings.ToLower(rand.Text()[:6]) + "-",
	}, nil
}

// findTree prefers the version that has the controllers: in a hybrid set-up
// version 2 is mounted and has none.
func findTree(mounts []cgroupMount) cgroupTree {
	if t := openV1(mounts); t != nil {
		return t
	}
	if t := openV2(mounts); t != nil {
		return t
	}
	return nil
}

// layers says which layers boxes get of c, and which of the three they do not.
func (c *cgroups) layers() (active, missing []string) {
	for _, l := range []string{layerMemory, layerPids, layerCPU} {
		if c != nil && c.tree != nil && c.tree.has(l) {
			active = append(active, l)
		} else {
			missing = append(missing, l)
		}
	}
	return active, missing
}

// sweep ends and removes the groups of providers whose process is gone. Groups of
// living ones, other providers of this process too, are left alone. Of providers in
// another pid namespace, such as another container, nobody here can tell whether they
// live: of theirs only what has been empty and unused for a while is removed.
func (c *cgroups) sweep() error {
	if c == nil || c.tree == nil {
		return nil
	}
	var errs []error
	for _, parent := range c.tree.parents() {
		dirs, err := os.ReadDir(parent)
		if err != nil {
			errs = append(errs, fmt.Errorf("looking for leftover control groups: %w", err))
			continue
		}
		for _, d := range dirs {
			o, ok := ownerOf(d.Name())
			switch {
			case !ok || !d.IsDir():
			case o.pidns != c.owner.pidns:
				errs = append(errs, removeUnused(filepath.Join(parent, d.Name())))
			case o.gone():
				g := &cgroup{tree: c.tree, name: d.Name()}
				errs = append(errs, g.kill(), g.remove())
			}
		}
	}
	return errors.Join(errs...)
}

// make makes a group with limits, for a box of that name, which must be another
// for every box of the process. Without control groups it returns nil, on which
// every method is harmless.
func (c *cgroups) make(name string, l writ.Limits) (*cgroup, error) {
	if c == nil || c.tree == nil {
		return nil, nil
	}
	g := &cgroup{tree: c.tree, name: c.prefix + name}
	for _, dir := range g.dirs() {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("making a control group: %w", err), g.remove())
		}
	}
	if err := g.setLimits(l); err != nil {
		return nil, errors.Join(err, g.remove())
	}
	return g, nil
}

// cgroup is the control group of one box. A nil *cgroup is that of a box on a
// host without control groups.
type cgroup struct {
	tree   cgroupTree
	name   string
	opened *os.File // by fd
}

func (g *cgroup) dirs() []string {
	var dirs []string
	for _, p := range g.tree.parents() {
		dirs = append(dirs, filepath.Join(p, g.name))
	}
	return dirs
}

// fd is a descriptor of the group for SysProcAttr.CgroupFD, so that a process is
// born in it, or -1: then run starts it. It is the group's, until remove.
func (g *cgroup) fd() int {
	if g == nil {
		return -1
	}
	if _, ok := g.tree.(*cgroupV2); !ok {
		return -1
	}
	if g.opened == nil {
		f, err := os.Open(g.dirs()[0])
		if err != nil {
			return -1
		}
		g.opened = f
	}
	return int(g.opened.Fd())
}

// add moves a process into the group. On version 1 it may wait some 15 ms for the
// kernel; run does not.
func (g *cgroup) add(pid int) error {
	if g == nil {
		return nil
	}
	for _, dir := range g.dirs() {
		if err := writeControl(dir, "cgroup.procs", strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// setLimits sets the limits of memory and processes, also of a group in use.
// Less memory than is in use, and cannot be reclaimed, is an error.
func (g *cgroup) setLimits(l writ.Limits) error {
	if g == nil {
		return nil
	}
	return g.tree.limit(g.name, l)
}

// usage is what the group's processes used so far, those that ended too: their
// CPU time, the most memory that they had at one time in bytes, and how many of
// them the kernel killed for memory. What no layer counts is zero.
func (g *cgroup) usage() (cpu time.Duration, peak, oomKills int64, err error) {
	if g == nil {
		return 0, 0, 0, nil
	}
	return g.tree.usage(g.name)
}

// kill sends SIGKILL to every process of the group. They may still be on their way
// out when it returns. A group that is gone has none.
func (g *cgroup) kill() error {
	if g == nil {
		return nil
	}
	if err := g.tree.kill(g.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// remove removes the group, and waits up to a second for its last process to be
// gone. It may be called again after an error, and when the group is gone.
func (g *cgroup) remove() error {
	if g == nil {
		return nil
	}
	if g.opened != nil {
		_ = g.opened.Close() // a folder: nothing is lost
		g.opened = nil
	}
	var errs []error
	deadline := time.Now().Add(time.Second)
	for _, dir := range g.dirs() {
		// unix.Rmdir: os.Remove would try to unlink first.
		err := unix.Rmdir(dir)
		for late := false; errors.Is(err, unix.EBUSY) && !late; {
			time.Sleep(2 * time.Millisecond) // there is no event for it on version 1
			late = time.Now().After(deadline)
			err = unix.Rmdir(dir) // once more when it is late: that may be our own doing
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("removing control group %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// writeControl writes one value to a control file, in one write, as the kernel
// wants it. The file must be there.
func writeControl(dir, file, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return fmt.Errorf("setting a control group: %w", err)
	}
	_, err = f.WriteString(value)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("setting %s of a control group to %s: %w", file, value, err)
	}
	return nil
}

func readControl(dir, file string) (string, error) {
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return "", fmt.Errorf("reading a control group: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxControlBytes))
	if err != nil {
		return "", fmt.Errorf("reading %s of a control group: %w", file, err)
	}
	return strings.TrimSpace(string(b)), nil
}

// readNumber reads a control file that holds one number.
func readNumber(dir, file string) (int64, error) {
	s, err := readControl(dir, file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading %s of a control group: %w", file, err)
	}
	return n, nil
}

// readKey reads the number of one key of a control file that holds "key number"
// lines. Kernels too old to have the key give zero.
func readKey(dir, file, key string) (int64, error) {
	s, err := readControl(dir, file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(s) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, nil
}

func writable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
