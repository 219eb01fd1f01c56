package librechat

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"writ/internal/testkit"
)

// process is one of the machine.
type process struct {
	pid, parent, uid int
	args             []string
}

func processes() (all []process) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it ended
		}
		line, err1 := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		stat, err2 := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err1 != nil || err2 != nil {
			continue
		}
		// The name, in parentheses, may hold anything. State and parent follow it.
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(f) < 2 || f[0] == "Z" || f[0] == "X" {
			continue
		}
		parent, _ := strconv.Atoi(f[1])
		all = append(all, process{pid, parent, int(info.Sys().(*syscall.Stat_t).Uid), strings.Split(string(line), "\x00")})
	}
	return all
}

// seconds is an argument of sleep that no other test of the machine has.
func seconds(n int) string { return fmt.Sprintf("%d.0%d", n, os.Getpid()) }

// running waits until a process has an argument, which nothing else on the machine has.
func running(t testing.TB, arg string) {
	t.Helper()
	testkit.Eventually(t, "a process has the argument "+arg, func() bool { return runs(arg) })
}

// ended waits until no process has an argument.
func ended(t testing.TB, arg string) {
	t.Helper()
	testkit.Eventually(t, "no process has the argument "+arg, func() bool { return !runs(arg) })
}

func runs(arg string) bool {
	return slices.ContainsFunc(processes(), func(p process) bool { return slices.Contains(p.args, arg) })
}

// runner is the process id of the runner that the server started, 0 while there is none.
func (s *server) runner() int {
	for _, p := range processes() {
		if p.parent == s.cmd.Process.Pid && slices.Contains(p.args, "runner") {
			return p.pid
		}
	}
	return 0
}

// left names what runs have on the host: processes of their users, and temporary files of
// the server.
func (s *server) left() (left []string) {
	for _, p := range processes() {
		if p.uid >= s.uids && p.uid < s.uids+uidsEach {
			left = append(left, fmt.Sprintf("process %d of user %d: %q", p.pid, p.uid, p.args))
		}
	}
	entries, err := os.ReadDir(s.tmp())
	if err != nil {
		return append(left, err.Error())
	}
	for _, e := range entries {
		left = append(left, "temporary file "+e.Name())
	}
	return left
}

// gone waits until no process of a server that ended is there, nor one of a run.
func (s *server) gone() {
	s.t.Helper()
	var left []string
	testkit.Eventually(s.t, "nothing is left of a server that ended", func() bool {
		left = s.left()
		for _, p := range processes() {
			if slices.ContainsFunc(p.args, func(a string) bool { return strings.HasPrefix(a, s.data()) }) {
				left = append(left, fmt.Sprintf("process %d: %q", p.pid, p.args))
			}
		}
		return len(left) == 0
	}, func() string { return strings.Join(left, "\n") })
}

// held is what the server and its runner hold.
type held struct {
	files  [2]int // descriptors
	memory [2]int // KiB of their own
}

func (h held) String() string {
	return fmt.Sprintf("server %d descriptors, %d MiB; runner %d descriptors, %d MiB", h.files[0], h.memory[0]>>10, h.files[1], h.memory[1]>>10)
}

// atRest is what they hold once no program runs and it does not change any more.
func (s *server) atRest() held {
	s.t.Helper()
	s.http.CloseIdleConnections()
	pids := [2]int{s.cmd.Process.Pid, s.runner()}
	var last held
	same := 0
	testkit.Eventually(s.t, "nothing runs, and the descriptors stay as they are", func() bool {
		var now held
		for i, pid := range pids {
			now.files[i], now.memory[i] = openFiles(s.t, pid), memoryOf(s.t, pid)
		}
		if now.files == last.files && len(s.left()) == 0 {
			same++
		} else {
			same = 0
		}
		last = now
		return same >= 20
	}, func() string { return last.String() + "\n" + strings.Join(s.left(), "\n") })
	return last
}

func openFiles(t testing.TB, pid int) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// memoryOf is how many KiB a process has of its own.
func memoryOf(t testing.TB, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(v), "kB")))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no RssAnon of %d", pid)
	return 0
}

// blobs are the digests of the bytes in the data folder.
func (s *server) blobs() (digests []string) {
	s.t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.data(), "blobs", "blobs"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range entries {
		digests = append(digests, e.Name())
	}
	return digests
}
