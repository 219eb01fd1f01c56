package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watchShare bounds the work: a look that took d is followed by none for watchShare
// times d, so that a box of thousands of processes does not keep a processor busy.
const watchShare = 9

// memoryWatch adds up the memory of a box on a host whose kernel does not: there
// RLIMIT_DATA holds each process by itself, and shared memory not at all.
//
// It is a watch and no wall, and no layer is named after it. It sees a box that is over
// its limit only at its next look. It counts what is mapped and what is in files, and
// of shared memory that is both mapped and in files the larger part, so that it never
// ends a run that is within its limit; what is neither (memory files that nobody maps,
// full sockets and pipes) it does not see.
type memoryWatch struct {
	next time.Time // no look before
}

// look returns how many bytes the processes below jail hold together with files, the
// bytes in the memory file systems of the box, if that is more than limit, else 0.
func (w *memoryWatch) look(jail int, files, limit int64) int64 {
	began := time.Now()
	if began.Before(w.next) {
		return 0
	}
	defer func() { w.next = time.Now().Add(watchShare * time.Since(began)) }()
	processes := below(jail)
	// Cheap, and never too little: what processes share is counted for each of them.
	most := files
	for _, p := range processes {
		s, err := readStatus(p.pid)
		if err == nil { // else it has ended
			most += kilobytes(s, "RssAnon") + kilobytes(s, "RssShmem") + kilobytes(s, "VmSwap")
		}
	}
	if most <= limit {
		return 0
	}
	// One process is looked at after the other, and what one gave up another may have
	// taken meanwhile: so two counts must agree.
	if used := min(count(processes, files), count(below(jail), files)); used > limit {
		return used
	}
	return 0
}

// count is exact, and slow, as the kernel walks through all pages of a process.
func count(processes []boxProcess, files int64) int64 {
	var own, shared int64
	for _, p := range processes {
		// Asked first: once it has memory of its own it never shares again.
		if p.sharesMemory() {
			continue
		}
		pages, err := readKeys(p.pid, "smaps_rollup")
		if err != nil {
			continue // it has ended
		}
		own += kilobytes(pages, "Pss_Anon")
		if s, err := readStatus(p.pid); err == nil {
			// The first knows of sharing, the second leaves out what files has.
			own += min(kilobytes(pages, "SwapPss"), kilobytes(s, "VmSwap"))
		}
		shared += kilobytes(pages, "Pss_Shmem")
	}
	return own + max(shared, files)
}

// boxProcess is a process of a box, in the numbers of our own pid namespace.
type boxProcess struct{ pid, parent int }

// below lists everything that descends from the first process of a box: everything in
// it. Processes that start or end meanwhile may be missing.
func below(jail int) []boxProcess {
	var list []boxProcess
	for i, parent := -1, jail; ; parent = list[i].pid {
		// Children are kept by the thread that made them.
		threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent)) // none: it has ended
		for _, t := range threads {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, t.Name()))
			if err != nil {
				continue
			}
			for word := range strings.FieldsSeq(string(text)) {
				if pid, err := strconv.Atoi(word); err == nil {
					list = append(list, boxProcess{pid, parent})
				}
			}
		}
		if i++; i == len(list) {
			return list
		}
	}
}

// sharesMemory reports whether a process has the very memory of its parent, as it has
// between vfork and exec, and would be counted twice. Where the kernel does not say,
// it is taken to.
func (p boxProcess) sharesMemory() bool {
	const kcmpVM = 1 // KCMP_VM of linux/kcmp.h
	differs, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(p.pid), uintptr(p.parent), kcmpVM, 0, 0, 0)
	return errno != 0 || differs == 0
}

// kilobytes is a number of a file like /proc/PID/status in bytes, 0 when there is none.
func kilobytes(m map[string]string, key string) int64 {
	n, err := strconv.ParseInt(strings.TrimSuffix(m[key], " kB"), 10, 64)
	if err != nil {
		return 0
	}
	return n << 10
}
