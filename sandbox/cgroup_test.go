package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// liveCgroups are the groups of this host, or the end of the test. An ordinary
// user has them only where somebody delegated some.
func liveCgroups(t *testing.T) *cgroups {
	t.Helper()
	c, err := openCgroups()
	if err != nil {
		t.Fatal(err)
	}
	if _, lacks := c.layers(); len(lacks) > 0 {
		if os.Geteuid() != 0 {
			t.Skipf("an ordinary user has no %v here", lacks)
		}
		missing(t, "cgroup", lacks)
	}
	return c
}

func liveGroup(t *testing.T, c *cgroups, l writ.Limits) *cgroup {
	t.Helper()
	return groupAs(t, c, strings.ToLower(strings.ReplaceAll(t.Name(), "/", "_")), l)
}

func groupAs(t *testing.T, c *cgroups, name string, l writ.Limits) *cgroup {
	t.Helper()
	g, err := c.make(name, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.kill(); err != nil {
			t.Error(err)
		}
		if err := g.remove(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// inGroup starts a command that is born in the group.
func inGroup(t *testing.T, g *cgroup, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	if fd := g.fd(); fd >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
	}
	if err := g.run(cmd.Start); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func signalOf(err error) syscall.Signal {
	if e, ok := err.(*exec.ExitError); ok {
		return e.Sys().(syscall.WaitStatus).Signal()
	}
	return 0
}

func TestCgroupMemory(t *testing.T) {
	l := writ.DefaultLimits
	l.MemoryBytes = 32 << 20
	g := liveGroup(t, liveCgroups(t), l)
	fits := inGroup(t, g, "/bin/sh", "-c", "head -c 4194304 /dev/zero | tail -c 4194304 >/dev/null")
	if err := fits.Wait(); err != nil {
		t.Fatal(err)
	}
	if _, peak, kills, err := g.usage(); err != nil || kills != 0 || peak == 0 || peak > l.MemoryBytes {
		t.Errorf("after a small program: peak %d, %d kills, %v", peak, kills, err)
	}
	bomb := inGroup(t, g, "/usr/bin/tail", "/dev/zero") // it keeps all until a line ends
	if sig := signalOf(bomb.Wait()); sig != syscall.SIGKILL {
		t.Errorf("a program of endless memory ended with signal %v, want SIGKILL", sig)
	}
	_, peak, kills, err := g.usage()
	if err != nil || kills == 0 || peak < l.MemoryBytes/2 || peak > l.MemoryBytes {
		t.Errorf("after a memory bomb: peak %d of %d, %d kills, %v", peak, l.MemoryBytes, kills, err)
	}
}

func TestCgroupLimitsChange(t *testing.T) {
	l := writ.DefaultLimits
	g := liveGroup(t, liveCgroups(t), l)
	for _, mem := range []int64{1 << 30, 32 << 20, 64 << 20} {
		l.MemoryBytes = mem
		if err := g.setLimits(l); err != nil {
			t.Errorf("to %d bytes: %v", mem, err)
		}
	}
}

func TestCgroupProcesses(t *testing.T) {
	l := writ.DefaultLimits
	l.Processes = 4
	g := liveGroup(t, liveCgroups(t), l)
	cmd := inGroup(t, g, "/bin/sh", "-c", "n=0; while [ $n -lt 40 ]; do sleep 60 & n=$((n+1)); done; wait")
	if err := cmd.Wait(); err == nil {
		t.Error("40 processes were started under a limit of 4")
	}
	pids := groupPids(t, g)
	if n := int64(len(pids)); n == 0 || n > l.Processes+initThreads {
		t.Errorf("%d processes, want some and at most %d", n, l.Processes+initThreads)
	}
}

func groupPids(t *testing.T, g *cgroup) []string {
	t.Helper()
	s, err := readControl(g.dirs()[0], "cgroup.procs")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(s)
}

func TestCgroupCPU(t *testing.T) {
	g := liveGroup(t, liveCgroups(t), writ.DefaultLimits)
	cmd := inGroup(t, g, "/bin/sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	cpu, _, _, err := g.usage()
	if own := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); err != nil || cpu < own/2 {
		t.Errorf("the group counts %v, the process itself %v: %v", cpu, own, err)
	}
}

// PR-22: the group ends what left its session and its parent.
func TestPR22_CgroupKillsAll(t *testing.T) {
	c := liveCgroups(t)
	g := liveGroup(t, c, writ.DefaultLimits)
	cmd := inGroup(t, g, "/bin/sh", "-c", "for i in 1 2 3; do setsid sh -c 'trap \"\" TERM HUP; (sleep 600 &) ; sleep 600' & done; echo up; wait")
	eventually(t, "seven processes are in the group", func() bool { return len(groupPids(t, g)) >= 7 })
	if err := g.kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	if err := g.remove(); err != nil {
		t.Errorf("it was not empty within a second: %v", err)
	}
	for _, dir := range g.dirs() {
		if exists(dir) {
			t.Errorf("%s is still there", dir)
		}
	}
	if err := g.kill(); err != nil {
		t.Errorf("killing a group that is gone: %v", err)
	}
}

// A process that is in the group of one tree alone is killed too.
func TestCgroupKillLooksInEveryTree(t *testing.T) {
	g := liveGroup(t, liveCgroups(t), writ.DefaultLimits)
	dirs := g.dirs()
	for _, dir := range dirs {
		cmd := exec.Command("/bin/sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := writeControl(dir, "cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
			t.Fatal(err)
		}
		if err := g.kill(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(longEnough, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		if sig := signalOf(cmd.Wait()); sig != syscall.SIGKILL {
			t.Errorf("in %s alone: ended by %v", dir, sig)
		}
		late.Stop()
	}
	// One that is gone does not hide the others.
	if len(dirs) > 1 {
		if err := os.Remove(dirs[0]); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/bin/sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last := dirs[len(dirs)-1]
		if err := errors.Join(writeControl(last, "cgroup.procs", strconv.Itoa(cmd.Process.Pid)), g.kill()); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(longEnough, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
		if sig := signalOf(cmd.Wait()); sig != syscall.SIGKILL {
			t.Errorf("with %s gone: ended by %v", dirs[0], sig)
		}
		late.Stop()
	}
}

// Running a program in a group leaves the provider where it was.
func TestCgroupRunComesBack(t *testing.T) {
	c := liveCgroups(t)
	before, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		g := liveGroup(t, c, writ.DefaultLimits)
		if err := inGroup(t, g, "/bin/true").Wait(); err != nil {
			t.Fatal(err)
		}
		for _, dir := range g.dirs() {
			if b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs")); err != nil || len(b) > 0 {
				t.Errorf("%s still holds %q, %v", dir, b, err)
			}
		}
		if err := g.remove(); err != nil {
			t.Fatal(err)
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil || len(threads) == 0 {
		t.Fatal(threads, err)
	}
	for _, f := range threads {
		after, err := os.ReadFile(f)
		if err == nil && string(after) != string(before) {
			t.Errorf("%s: %s", f, cmp.Diff(string(before), string(after)))
		}
	}
}

func TestCgroupAdd(t *testing.T) {
	g := liveGroup(t, liveCgroups(t), writ.DefaultLimits)
	cmd := exec.Command("/bin/sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := g.add(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if got, want := groupPids(t, g), []string{fmt.Sprint(cmd.Process.Pid)}; !slices.Equal(got, want) {
		t.Errorf("the group has %v, want %v", got, want)
	}
}

// CP-09: what a killed provider left is removed, what a living one has is not.
func TestCgroupSweep(t *testing.T) {
	c := liveCgroups(t)
	living := liveGroup(t, c, writ.DefaultLimits)
	gone := exec.Command("/bin/true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	dead, reused, foreign := c.owner, c.owner, c.owner
	dead.pid = gone.Process.Pid
	reused.start++
	foreign.pidns, foreign.pid = 1, dead.pid // no such process here, and there who knows
	var left []*cgroup
	orphan := exec.Command("/bin/sleep", "600")
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	// Other providers of this machine sweep as well, perhaps before all is made: then again.
	for i, o := range []owner{dead, reused} {
		var g *cgroup
		eventually(t, "a group of a provider that is gone", func() (made bool) {
			var err error
			if g, err = (&cgroups{tree: c.tree, prefix: o.prefix() + "abcdef-"}).make("left", writ.DefaultLimits); err == nil && i == 0 {
				for _, dir := range g.dirs() {
					err = errors.Join(err, writeControl(dir, "cgroup.procs", strconv.Itoa(orphan.Process.Pid)))
				}
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENODEV) && !errors.Is(err, syscall.ESRCH) {
				t.Fatal(err)
			}
			return err == nil || errors.Is(err, syscall.ESRCH) // ESRCH: the orphan was swept
		})
		left = append(left, g)
	}
	// Two of another pid namespace, one in use, and old ones with and without processes.
	others := &cgroups{tree: c.tree, prefix: foreign.prefix() + "abcdef-"}
	fresh, used, unused := liveGroup(t, others, writ.DefaultLimits), groupAs(t, others, "used", writ.DefaultLimits), groupAs(t, others, "unused", writ.DefaultLimits)
	neighbour := inGroup(t, used, "/bin/sleep", "600")
	defer neighbour.Wait()
	defer neighbour.Process.Kill()
	for _, g := range []*cgroup{used, unused} {
		for _, dir := range g.dirs() {
			hourAgo := time.Now().Add(-time.Hour)
			if err := os.Chtimes(dir, hourAgo, hourAgo); err != nil {
				t.Fatal(err)
			}
		}
	}
	left = append(left, unused)
	done := make(chan error, 1)
	go func() { done <- orphan.Wait() }() // else it would stay a zombie, in no group
	if err := c.sweep(); err != nil {
		t.Error(err)
	}
	if sig := signalOf(<-done); sig != syscall.SIGKILL {
		t.Errorf("the orphan ended with signal %v, want SIGKILL", sig)
	}
	for _, g := range left {
		for _, dir := range g.dirs() {
			if exists(dir) {
				t.Errorf("%s is still there", dir)
			}
		}
	}
	for _, dir := range slices.Concat(living.dirs(), fresh.dirs(), used.dirs()) {
		if !exists(dir) {
			t.Errorf("%s of a provider that may live is gone", dir)
		}
	}
	if err := neighbour.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("a process of another namespace's provider: %v", err)
	}
}

func TestCgroupNone(t *testing.T) {
	for _, c := range []*cgroups{nil, {}} {
		active, missing := c.layers()
		if len(active) != 0 || len(missing) != 3 {
			t.Errorf("layers: %v and %v", active, missing)
		}
		g, err := c.make("box", writ.DefaultLimits)
		if g != nil || err != nil {
			t.Fatalf("%v, %v, want nothing", g, err)
		}
		ran := false
		if err := g.run(func() error { ran = true; return nil }); err != nil || !ran {
			t.Errorf("ran: %v, %v", ran, err)
		}
		if cpu, peak, kills, err := g.usage(); cpu != 0 || peak != 0 || kills != 0 || err != nil {
			t.Error("a box without group uses something")
		}
		for _, err := range []error{c.sweep(), g.add(1), g.setLimits(writ.DefaultLimits), g.kill(), g.remove()} {
			if err != nil {
				t.Error(err)
			}
		}
		if g.fd() != -1 {
			t.Error("a box without group has a descriptor of it")
		}
	}
}
