package sandbox

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

const (
	// boxMemory is what a box needs for itself, beside its program: bwrap and the jail.
	boxMemory = 16 << 20
	stackSize = 8 << 20
)

// groupLimits are the limits of a box's control group: a program may use all of its
// own, so what the box itself needs comes on top.
func groupLimits(l writ.Limits) writ.Limits {
	l.MemoryBytes += boxMemory
	return l
}

// rlimits are the limits that the kernel holds for each process. They are all there
// is on a host without control groups, and a second line elsewhere.
func rlimits(l writ.Limits, g *cgroup) []jail.Limit {
	// With a control group the address space only needs to be sane: runtimes map much
	// more than they use.
	data := l.MemoryBytes
	if g.counts(LayerMemoryCgroup) {
		data *= 4
	}
	cpu := cpuSeconds(l)
	if g.counts(LayerCPUCgroup) {
		cpu++ // our own count of all processes together, which is precise, comes first
	}
	list := []jail.Limit{
		// A second more before SIGKILL, for a program that wants to say something.
		{Resource: unix.RLIMIT_CPU, Soft: cpu, Hard: cpu + 1},
	}
	for _, r := range []struct {
		resource int
		value    int64
	}{
		{unix.RLIMIT_DATA, data},
		{unix.RLIMIT_FSIZE, l.FileBytes},
		{unix.RLIMIT_NOFILE, l.OpenFiles},
		// Counted in the box's own user namespace, where the jail's threads are too.
		{unix.RLIMIT_NPROC, l.Processes + initThreads},
		{unix.RLIMIT_STACK, stackSize},
		{unix.RLIMIT_CORE, 0},
		{unix.RLIMIT_MEMLOCK, 64 << 10},
		{unix.RLIMIT_MSGQUEUE, 128 << 10},
		{unix.RLIMIT_SIGPENDING, 1024},
		{unix.RLIMIT_NICE, 0},
		{unix.RLIMIT_RTPRIO, 0},
	} {
		list = append(list, jail.Limit{Resource: r.resource, Soft: uint64(r.value), Hard: uint64(r.value)})
	}
	return list
}

// cpuSeconds is the limit of CPU time as the kernel takes it, in whole seconds.
func cpuSeconds(l writ.Limits) uint64 { return uint64((l.CPUMS + 999) / 1000) }

// overLimit looks at what nothing stops by itself: the number of files, and the CPU
// time of all processes together. It says which limit was exceeded, if one was.
func (r *run) overLimit() (end, bool) {
	for i, dir := range r.box.process.dirs {
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
			continue // cannot happen for an open folder of a memory file system
		}
		if used := int64(st.Files) - int64(st.Ffree); used > r.limits.Files {
			return end{cause: causeLimit, reason: fmt.Sprintf("limit of files reached: more than %d files and folders in %s", r.limits.Files, jail.Dirs[i])}, true
		}
	}
	if cpu, _, _, err := r.box.group.usage(); err == nil && cpu-r.cpuBefore > time.Duration(r.limits.CPUMS)*time.Millisecond {
		return end{cause: causeTime, reason: cpuReason(r.limits)}, true
	}
	return end{}, false
}

func cpuReason(l writ.Limits) string {
	return fmt.Sprintf("cpu time limit of %v reached", time.Duration(l.CPUMS)*time.Millisecond)
}
