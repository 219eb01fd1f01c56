package sandbox

import (
	"fmt"
	"math"
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
	l.MemoryBytes = min(l.MemoryBytes, maxMemory) + boxMemory
	return l
}

// maxMemory is more than any machine has, and leaves room to calculate.
const maxMemory = 1 << 56

// rlimits are the limits that the kernel holds for each process. With memoryWatch they
// are all there is on a host without control groups, and a second line elsewhere.
func rlimits(l writ.Limits, g *cgroup) []jail.Limit {
	// With a control group the address space only needs to be sane: runtimes map much
	// more than they use.
	data := min(l.MemoryBytes, maxMemory)
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

// forbidCores limits core dumps of this process, and so of all its boxes, to one byte:
// too little for a file, and the one value at which the kernel also starts no program
// of the host for a dump, which it does at zero where kernel.core_pattern begins with
// "|" (fs/coredump.c; core(5) says that the limit does not count there). Boxes inherit
// it, as the filter lets nobody inside change it, the jail included, and only root with
// CAP_SYS_RESOURCE could from outside.
//
// Where our hard limit is zero and we may not raise it, it stays zero.
func forbidCores() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return fmt.Errorf("reading the limit of core dumps: %w", err)
	}
	err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 1, Max: 1})
	if err != nil && l.Max > 0 {
		return fmt.Errorf("limiting core dumps: %w", err)
	}
	return nil
}

// cpuSeconds is the limit of CPU time as the kernel takes it, in whole seconds.
func cpuSeconds(l writ.Limits) uint64 { return uint64(l.CPUMS/1000 + (l.CPUMS%1000+999)/1000) }

// span is a limit of time; what is longer than a time.Duration can be is the longest.
func span(ms int64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
}

// overLimit looks at what nothing stops by itself: the number of files, the CPU time
// of all processes together, and their memory where no group limits it. It says which
// limit was exceeded, if one was.
func (r *run) overLimit() (end, bool) {
	var files int64 // bytes in memory file systems
	dirs := r.box.process.dirs
	if r.box.workspace != nil {
		dirs = dirs[:len(dirs)-1] // it is not in memory, and not the box's alone
	}
	for i, dir := range dirs {
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(dir.Fd()), &st); err != nil {
			continue // cannot happen for an open folder of a memory file system
		}
		if used := int64(st.Files) - int64(st.Ffree); used > r.limits.Files {
			return end{cause: causeLimit, reason: fmt.Sprintf("limit of files reached: more than %d files and folders in %s", r.limits.Files, r.box.process.names[i])}, true
		}
		files += int64(st.Blocks-st.Bfree) * st.Bsize
	}
	if cpu, _, _, err := r.box.group.usage(); err == nil && cpu-r.cpuBefore > span(r.limits.CPUMS) {
		return end{cause: causeTime, reason: cpuReason(r.limits)}, true
	}
	if !r.box.group.counts(LayerMemoryCgroup) {
		if used := r.memory.look(r.box.process.pid, files, groupLimits(r.limits).MemoryBytes); used > 0 {
			return end{cause: causeMemory, reason: fmt.Sprintf("memory limit of %d bytes reached: the processes and files of the run held %d bytes together", r.limits.MemoryBytes, used)}, true
		}
	}
	return end{}, false
}

func cpuReason(l writ.Limits) string {
	return fmt.Sprintf("cpu time limit of %v reached", span(l.CPUMS))
}
