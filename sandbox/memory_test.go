package sandbox

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"writ"
)

// uncounted is a provider on a host without control groups.
func uncounted(t *testing.T) *Bubblewrap {
	b := newProvider(t, Options{})
	b.groups = &cgroups{}
	return b
}

// Without a memory group, all of a box together is still held near its limit.
func TestRS02_MemoryIsWatchedWhereNothingCountsIt(t *testing.T) {
	b := uncounted(t)
	for name, script := range map[string]string{
		"shared memory": `
import mmap, time
m = mmap.mmap(-1, 256 << 20)
for i in range(0, len(m), 4096): m[i] = 1
time.sleep(20)`,
		"many processes": `
import os, time
for i in range(8):
    if os.fork() == 0:
        b = bytearray(b"x") * (30 << 20)
        time.sleep(20)
time.sleep(20)`,
		"memory file systems": `
import time
for d in "/workspace", "/dev/shm", "/tmp":
    open(d + "/f", "wb").write(bytes(40 << 20))
time.sleep(20)`,
		"where code lies": `
import time
for d in "/workspace", "/dev/shm", "/run/writ":
    open(d + "/f", "wb").write(bytes(18 << 20 if d == "/run/writ" else 35 << 20))
time.sleep(20)`,
	} {
		t.Run(name, func(t *testing.T) {
			cmd := python(t, script)
			cmd.Limits.MemoryBytes = 64 << 20
			r := runIn(t, b, cmd)
			wantOutcome(t, r, writ.OutOfMemory)
			if !strings.HasPrefix(r.Reason, "memory limit of 67108864 bytes reached: the processes and files of the run held ") || r.Signal != "SIGKILL" {
				t.Errorf("result: %s", show(r))
			}
			for _, l := range r.Sandbox.Active {
				if strings.Contains(l, "memory") {
					t.Errorf("a watch is no wall, and the result names %s", l)
				}
			}
		})
	}
	wantExit(t, runIn(t, b, program("/bin/true")), 0)
}

// What processes share is counted once: no run is ended that is within its limit.
func TestMemoryThatIsSharedIsCountedOnce(t *testing.T) {
	b := uncounted(t)
	for name, script := range map[string]string{
		"copies on write": `
import os, time
b = bytearray(b"x") * (40 << 20)
for i in range(6):
    if os.fork() == 0:
        time.sleep(1)
        os._exit(0)
for i in range(6): os.wait()`,
		"a mapped file": `
import mmap, os, time
f = open("/dev/shm/f", "w+b")
f.write(bytes(40 << 20))
f.flush()
m = mmap.mmap(f.fileno(), 0)
for i in range(0, len(m), 4096): m[i] = 1
time.sleep(1)`,
		"between vfork and exec": `
import subprocess
b = bytearray(b"x") * (45 << 20)
for i in range(150): subprocess.run(["/bin/true"], close_fds=False)`,
	} {
		t.Run(name, func(t *testing.T) {
			cmd := python(t, script)
			cmd.Limits.MemoryBytes = 64 << 20
			wantExit(t, runIn(t, b, cmd), 0)
		})
	}
}

func TestSharesMemory(t *testing.T) {
	us := boxProcess{os.Getpid(), os.Getpid()}
	if !us.sharesMemory() {
		t.Error("we do not share our own memory")
	}
	if two := (boxProcess{os.Getpid(), os.Getppid()}); os.Geteuid() == 0 && two.sharesMemory() {
		t.Error("we share the memory of our parent")
	}
}

// Whatever the outcome, the program is what the kernel kills for memory, and the jail
// is left to report it.
func TestTheProgramDiesForMemoryAndNotTheJail(t *testing.T) {
	b := newProvider(t, Options{})
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	waits := shell("cat /proc/self/oom_score_adj; read x; cat /proc/$$/oom_score_adj")
	waits.Input = true
	run, box := start(t, b, t.Context(), waits)
	jail, err := readFileOf(box.(*bubblewrapBox).process.pid, "oom_score_adj")
	if err != nil || jail != string(own) {
		t.Errorf("the jail has %q, the server %q: %v", jail, own, err)
	}
	if err := run.CloseInput(); err != nil {
		t.Fatal(err)
	}
	r := run.Wait()
	wantExit(t, r, 0)
	if r.Stdout.Text != "1000\n1000\n" {
		t.Errorf("the program: %s", show(r))
	}
	if b.groups.tree == nil || !b.groups.tree.has(LayerMemoryCgroup) {
		return
	}
	// The memory is in files: the largest process is the jail.
	cmd := shell("exec 3>/dev/shm/a; while :; do printf '%65536s' >&3; done")
	cmd.Limits.MemoryBytes, cmd.Limits.TmpBytes = 32<<20, 64<<20
	r = runIn(t, b, cmd)
	wantOutcome(t, r, writ.OutOfMemory)
	if r.Signal != "SIGKILL" {
		t.Errorf("nobody was left to report: %s", show(r))
	}
}

func readFileOf(pid int, name string) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	return string(b), err
}
