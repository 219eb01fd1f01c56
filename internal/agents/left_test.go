package agents

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ/internal/testkit"
)

// watcher sees what a host's server holds, and what it leaves.
type watcher struct {
	t       testing.TB
	h       *host
	runners map[string]bool // "pid-start", as control groups are named after them
}

func watch(t testing.TB, h *host) *watcher {
	return &watcher{t, h, map[string]bool{}}
}

// held is what server and runner hold.
type held struct {
	files  [2]int // descriptors
	memory [2]int // KiB of their own
}

func (h held) String() string {
	return fmt.Sprintf("server %d descriptors, %d MiB; runner %d descriptors, %d MiB", h.files[0], h.memory[0]>>10, h.files[1], h.memory[1]>>10)
}

// growth is how much memory either may have more than before: what the collector leaves
// lying differs from one moment to the next.
const growth = 64 << 10 // KiB

// spareFiles is how many descriptors either may have more: the store opens its readers as they
// are needed, and keeps them.
const spareFiles = 8

// within fails t when h is more than was held before.
func (h held) within(t testing.TB, before held) {
	t.Helper()
	for i, who := range []string{"server", "runner"} {
		if h.files[i] > before.files[i]+spareFiles {
			t.Errorf("the %s has %d descriptors, and had %d", who, h.files[i], before.files[i])
		}
		if h.memory[i] > before.memory[i]+growth {
			t.Errorf("the %s has %d KiB, and had %d", who, h.memory[i], before.memory[i])
		}
	}
}

// atRest is what they hold once no program runs and it does not change any more.
func (w *watcher) atRest() held {
	w.t.Helper()
	runner := w.runner()
	var last held
	same := 0
	testkit.Eventually(w.t, "nothing runs, and the descriptors stay as they are", func() bool {
		pause(w.t.Context(), 50*time.Millisecond)
		now := held{
			files:  [2]int{openFiles(w.t, w.h.cmd.Process.Pid), openFiles(w.t, runner)},
			memory: [2]int{memoryOf(w.t, w.h.cmd.Process.Pid), memoryOf(w.t, runner)},
		}
		if now.files == last.files && len(testkit.Alive(w.t, w.h.mark())) == 0 {
			same++
		} else {
			same = 0
		}
		last = now
		return same >= 10
	}, func() string { return last.String() })
	return last
}

// runner is the process of the server's runner.
func (w *watcher) runner() int {
	w.t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", w.h.cmd.Process.Pid))
	pids := strings.Fields(string(children))
	if err != nil || len(pids) == 0 {
		pids = w.childrenOf(w.h.cmd.Process.Pid)
	}
	for _, p := range pids {
		pid, err := strconv.Atoi(p)
		if err == nil && slices.Contains(arguments(pid), "runner") {
			w.runners[p+"-"+started(pid)] = true
			return pid
		}
	}
	w.t.Fatalf("the server has no runner among its children %q", pids)
	return 0
}

func (w *watcher) childrenOf(parent int) (pids []string) {
	for _, pid := range allProcesses() {
		if f := statFields(pid); len(f) > 1 && f[1] == strconv.Itoa(parent) {
			pids = append(pids, strconv.Itoa(pid))
		}
	}
	return pids
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ `)

// goroutines ends server and runner by SIGQUIT, and counts what the Go runtime then
// lists of each.
func (w *watcher) goroutines() (n [2]int) {
	w.t.Helper()
	runner := w.runner()
	said := w.h.saysTo(runner)
	defer said.Close()
	// The server stands still: it would take what its runner says, and end when that does.
	_ = w.h.cmd.Process.Signal(syscall.SIGSTOP)
	testkit.Eventually(w.t, "the server stands still", func() bool { f := statFields(w.h.cmd.Process.Pid); return len(f) > 0 && f[0] == "T" })
	_ = syscall.Kill(runner, syscall.SIGQUIT)
	dump, err := io.ReadAll(said)
	if err != nil {
		w.t.Errorf("what the runner said: %v", err)
	}
	n[1] = len(goroutine.FindAll(dump, -1))
	log := func() int {
		b, err := os.ReadFile(w.h.log())
		if err != nil {
			w.t.Fatal(err)
		}
		return len(goroutine.FindAll(b, -1))
	}
	before := log()
	_ = w.h.cmd.Process.Signal(syscall.SIGQUIT)
	_ = w.h.cmd.Process.Signal(syscall.SIGCONT)
	_ = w.h.cmd.Wait()
	n[0] = log() - before
	if n[0] == 0 || n[1] == 0 {
		w.t.Errorf("goroutines of server and runner: %v, nothing was listed", n)
	}
	return n
}

// saysTo is the server's end of the pipe that a child of it has for its standard error.
func (h *host) saysTo(child int) *os.File {
	h.t.Helper()
	pipe, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/2", child))
	if err != nil {
		h.t.Fatal(err)
	}
	ends, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", h.cmd.Process.Pid))
	if err != nil {
		h.t.Fatal(err)
	}
	for _, end := range ends {
		if to, err := os.Readlink(end); err == nil && to == pipe {
			f, err := os.OpenFile(end, os.O_RDONLY, 0)
			if err != nil {
				h.t.Fatal(err)
			}
			return f
		}
	}
	h.t.Fatalf("the server does not read %s, which is its runner's standard error", pipe)
	return nil
}

// empty waits until nothing of any server, runner or program is left on the host: no
// process, no control group, no temporary file, no socket.
func (w *watcher) empty() {
	w.t.Helper()
	var left []string
	testkit.Eventually(w.t, "nothing is left on the host", func() bool {
		left = slices.Concat(w.processesLeft(), w.groupsLeft(), w.filesLeft())
		return len(left) == 0
	}, func() string { return strings.Join(left, "\n") })
}

func (w *watcher) processesLeft() (left []string) {
	for _, pid := range allProcesses() {
		info, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
		if err != nil {
			continue // it ended
		}
		uid := int(info.Sys().(*syscall.Stat_t).Uid)
		args := arguments(pid)
		ours := uid >= w.h.uids && uid < w.h.uids+uidsEach
		for _, a := range args {
			ours = ours || strings.Contains(a, w.h.dir)
		}
		if ours {
			left = append(left, fmt.Sprintf("process %d of user %d: %q", pid, uid, args))
		}
	}
	return left
}

// groupsLeft are the control groups of the runners that were met.
func (w *watcher) groupsLeft() (left []string) {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it went away
		}
		if f := strings.Split(d.Name(), "-"); d.IsDir() && len(f) > 3 && f[0] == "writ" {
			if w.runners[f[1]+"-"+f[2]] {
				left = append(left, "control group "+path)
			}
			return fs.SkipDir
		}
		return nil
	})
	return left
}

func (w *watcher) filesLeft() (left []string) {
	entries, err := os.ReadDir(w.h.tmp)
	if err != nil {
		return []string{err.Error()}
	}
	for _, e := range entries {
		left = append(left, "temporary file "+e.Name())
	}
	_ = filepath.WalkDir(w.h.data(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeSocket {
			left = append(left, "socket "+path)
		}
		return err
	})
	return left
}

// mounts are those of the host's namespace that have to do with h.
func (h *host) mounts() (found []string) {
	h.t.Helper()
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, h.dir) || strings.Contains(line, "bwrap") || strings.Contains(line, "newroot") {
			found = append(found, line)
		}
	}
	return found
}

func allProcesses() (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// arguments are those of a process, none when it is gone.
func arguments(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return nil
	}
	return strings.Split(string(b), "\x00")
}

// statFields are the fields of /proc/PID/stat from the state on, none when it is gone.
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	// The name, in parentheses, may hold anything.
	return strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
}

// started is when a process was, in clock ticks after boot.
func started(pid int) string {
	if f := statFields(pid); len(f) > 19 {
		return f[19]
	}
	return ""
}

func openFiles(t testing.TB, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

var anonymous = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB$`)

// memoryOf is the memory that is a process's own, in KiB.
func memoryOf(t testing.TB, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	m := anonymous.FindSubmatch(b)
	if m == nil {
		t.Fatalf("no memory in %s", b)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
