package crashtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ/internal/testkit"
)

// host is what a server leaves on the machine, as the machine tells it.
type host struct {
	s    *server
	mark string // every program that a task runs has an argument that begins with it

	stopped chan struct{}
	over    sync.WaitGroup

	mu      sync.Mutex
	starts  map[string]map[process]bool // guarded by mu; argument -> the processes that were started with it
	runners map[process]bool            // guarded by mu; all that were met
}

// process is one for as long as the machine is up.
type process struct {
	pid   int
	start string // clock ticks after boot
}

// watch scans the machine's processes until t ends.
func watch(t testing.TB, s *server, mark string) *host {
	h := &host{s: s, mark: mark, stopped: make(chan struct{}), starts: map[string]map[process]bool{}, runners: map[process]bool{}}
	h.over.Go(func() {
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-h.stopped:
				return
			case <-tick.C:
				h.scan()
			}
		}
	})
	t.Cleanup(func() { close(h.stopped); h.over.Wait() })
	return h
}

// scan notes who runs now. A process whose parent has the same argument is a part of the
// same execution, and so is one that was forked and has executed nothing yet, whose parent
// may be killed before it is looked at.
func (h *host) scan() {
	found := map[int]string{}
	for _, p := range processes() {
		for _, a := range p.args {
			if strings.HasPrefix(a, h.mark) {
				found[p.pid] = a
			}
		}
		if _, start, ok := stat(p.pid); ok && p.has(filepath.Join(h.s.data, "runner", "runner.sock")) {
			h.mu.Lock()
			h.runners[process{p.pid, start}] = true
			h.mu.Unlock()
		}
	}
	for pid, arg := range found {
		ppid, start, ok := stat(pid)
		if !ok || found[ppid] == arg || forked(pid) {
			continue
		}
		h.mu.Lock()
		if h.starts[arg] == nil {
			h.starts[arg] = map[process]bool{}
		}
		h.starts[arg][process{pid, start}] = true
		h.mu.Unlock()
	}
}

// started is how often a program with this argument was seen to be started.
func (h *host) started(arg string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.starts[arg])
}

// runner is the process id of the runner that the server started, 0 while there is
// none.
func (h *host) runner() int {
	for _, p := range processes() {
		if ppid, _, ok := stat(p.pid); ok && ppid == h.s.cmd.Process.Pid && p.has("runner") {
			return p.pid
		}
	}
	return 0
}

// empty waits until nothing of any run or runner is left: no process, no control
// group, no file among the temporary ones.
func (h *host) empty(t testing.TB) {
	t.Helper()
	var left []string
	testkit.Eventually(t, "nothing of a run is left on the host", func() bool {
		left = append(append(h.processesLeft(), h.groupsLeft()...), h.filesLeft()...)
		return len(left) == 0
	}, func() string { return strings.Join(left, "\n") })
}

// processesLeft names the processes of server, runner and boxes.
func (h *host) processesLeft() (left []string) {
	for _, p := range processes() {
		ours := p.uid >= h.s.uids && p.uid < h.s.uids+uidsEach
		for _, a := range p.args {
			ours = ours || strings.HasPrefix(a, h.mark) || strings.HasPrefix(a, h.s.data)
		}
		if ours {
			left = append(left, fmt.Sprintf("process %d of user %d: %q", p.pid, p.uid, p.args))
		}
	}
	return left
}

// died waits until every process of a server that was killed is gone, so that the
// next one finds only what dead ones leave.
func (h *host) died(t testing.TB) {
	t.Helper()
	var left []string
	testkit.Eventually(t, "no process of a killed server is left", func() bool {
		left = h.processesLeft()
		h.mu.Lock()
		defer h.mu.Unlock()
		for r := range h.runners {
			if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.pid)); err == nil && strings.Contains(string(b), " "+r.start+" ") {
				left = append(left, fmt.Sprintf("runner %d: %s", r.pid, b)) // it may wait for its parent
			}
		}
		return len(left) == 0
	}, func() string { return strings.Join(left, "\n") })
}

// groupsLeft are the control groups that our runners made, which are named after
// the runner's process id and start.
func (h *host) groupsLeft() (left []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away
		}
		if f := strings.Split(d.Name(), "-"); d.IsDir() && len(f) > 3 && f[0] == "writ" {
			if pid, err := strconv.Atoi(f[1]); err == nil && h.runners[process{pid, f[2]}] {
				left = append(left, "control group "+path)
			}
			return fs.SkipDir
		}
		return nil
	})
	return left
}

func (h *host) filesLeft() (left []string) {
	entries, err := os.ReadDir(h.s.tmp)
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		left = append(left, "temporary file "+e.Name())
	}
	return left
}

// sockets are the socket files in the data folder.
func (h *host) sockets(t testing.TB) (found []string) {
	t.Helper()
	err := filepath.WalkDir(h.s.data, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSocket {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// running is one process of the machine.
type running struct {
	pid, uid int
	args     []string
}

func (r running) has(arg string) bool {
	for _, a := range r.args {
		if a == arg {
			return true
		}
	}
	return false
}

func processes() (all []running) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it ended
		}
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil {
			continue
		}
		all = append(all, running{pid: pid, uid: int(info.Sys().(*syscall.Stat_t).Uid), args: strings.Split(string(line), "\x00")})
	}
	return all
}

// stat is the parent of a process and when it was started. ok is false when it is
// gone, or waits to be.
func stat(pid int) (ppid int, start string, ok bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false
	}
	// The name, in parentheses, may hold anything. The state follows it.
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return 0, "", false
	}
	ppid, err = strconv.Atoi(f[1])
	return ppid, f[19], err == nil
}

// forked reports whether a process is a copy of its parent still, which has not executed a
// program of its own (PF_FORKNOEXEC of the kernel's flags).
func forked(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(f[6], 10, 64)
	return err == nil && flags&0x40 != 0
}

// openFiles is how many descriptors a process has.
func openFiles(t testing.TB, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
