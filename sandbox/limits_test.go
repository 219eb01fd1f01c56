package sandbox

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/sandbox/jail"
)

func TestScenario18_EX26_ForkBombIsContained(t *testing.T) {
	b := newProvider(t, Options{})
	bomb := shell("for i in $(seq 20000); do sleep " + asleep(4790) + " & done 2>/dev/null; echo n=$(jobs -p | wc -l)")
	bomb.Limits.Processes, bomb.Limits.WallMS = 40, 5000
	run, box := start(t, b, t.Context(), bomb)
	r := runIn(t, b, shell("echo hi")) // the neighbour, meanwhile
	wantExit(t, r, 0)
	if r.Stdout.Text != "hi\n" {
		t.Errorf("the neighbour: %s", show(r))
	}
	r = run.Wait()
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	if r.Outcome != writ.Failed && r.Outcome != writ.TimedOut {
		t.Errorf("the bomb: %s", show(r))
	}
	if left := sleeping(t, asleep(4790)); left != nil {
		t.Errorf("still alive: %d", len(left))
	}
	wantExit(t, runIn(t, b, program("/bin/true")), 0)
}

func TestProcessLimitCounts(t *testing.T) {
	cmd := python(t, `
import os, time
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            time.sleep(100)
        n += 1
except OSError as e:
    print(n, e.errno)
`)
	cmd.Limits.Processes = 20
	r := runIn(t, newProvider(t, Options{}), cmd)
	wantExit(t, r, 0)
	var n, errno int
	if _, err := fmt.Sscan(r.Stdout.Text, &n, &errno); err != nil || errno != int(syscall.EAGAIN) || n < 19 || n > 20+initThreads {
		t.Errorf("result: %s", show(r))
	}
}

func TestScenario18_MemoryBomb(t *testing.T) {
	b := newProvider(t, Options{})
	counted := b.groups.tree != nil && b.groups.tree.has(LayerMemoryCgroup)
	cmd := python(t, "b = []\nwhile True: b.append(bytearray(1 << 20))")
	cmd.Limits.MemoryBytes = 96 << 20
	r := runIn(t, b, cmd)
	if counted {
		wantOutcome(t, r, writ.OutOfMemory)
		if !strings.Contains(r.Reason, "100663296 bytes") || r.PeakBytes > 128<<20 {
			t.Errorf("result: %s", show(r))
		}
	} else { // the kernel refuses memory instead, and Python says so
		wantExit(t, r, 1)
		if !strings.Contains(r.Stderr.Text, "MemoryError") {
			t.Errorf("result: %s", show(r))
		}
	}
	wantExit(t, runIn(t, b, program("/bin/true")), 0)
}

// Memory file systems are memory: they cannot be used to get around its limit.
func TestRS02_MemoryFileSystemsAreCounted(t *testing.T) {
	b := newProvider(t, Options{})
	if b.groups.tree == nil || !b.groups.tree.has(LayerMemoryCgroup) {
		missing(t, "cgroup-memory", "this user has no memory group")
	}
	cmd := shell("head -c 60000000 /dev/zero > /dev/shm/a; head -c 60000000 /dev/zero > /tmp/b; head -c 60000000 /dev/zero > /workspace/c; echo done")
	cmd.Limits.MemoryBytes = 96 << 20
	wantOutcome(t, runIn(t, b, cmd), writ.OutOfMemory)
}

func TestScenario18_DiskFill(t *testing.T) {
	b := newProvider(t, Options{})
	cmd := shell(`for d in /workspace /tmp /dev/shm ~; do
		for i in 1 2 3 4 5; do head -c 3000000 /dev/zero > $d/f$i 2>/dev/null || break; done; du -sb $d | cut -f1
	done; head -c 9000000 /dev/zero > /workspace/f9`)
	cmd.Limits.WorkspaceBytes, cmd.Limits.TmpBytes = 8<<20, 4<<20
	r := runIn(t, b, cmd)
	wantOutcome(t, r, writ.Failed)
	if !strings.Contains(r.Stderr.Text, "No space left on device") {
		t.Errorf("result: %s", show(r))
	}
	for i, most := range []int64{8 << 20, 4 << 20, 4 << 20, 4 << 20} {
		var got int64
		lines := strings.Split(r.Stdout.Text, "\n")
		if _, err := fmt.Sscan(lines[i], &got); err != nil || got > most+4096 || got < most/2 {
			t.Errorf("%s held %s bytes, the limit is %d", jail.Dirs[i], lines[i], most)
		}
	}
	wantExit(t, runIn(t, b, program("/bin/true")), 0)
}

func TestFileSizeLimit(t *testing.T) {
	cmd := shell("trap '' XFSZ; head -c 2000000 /dev/zero > f; stat -c %s f; truncate -s 1T sparse; echo $?")
	cmd.Limits.FileBytes = 1 << 20
	r := runIn(t, newProvider(t, Options{}), cmd)
	wantExit(t, r, 0)
	if !strings.HasPrefix(r.Stdout.Text, "1048576\n") || strings.HasSuffix(r.Stdout.Text, "\n0\n") {
		t.Errorf("result: %s", show(r))
	}
}

func TestRS05_NumberOfFiles(t *testing.T) {
	b := newProvider(t, Options{})
	for _, dir := range jail.Dirs {
		cmd := python(t, "import sys\ni = 0\nwhile True:\n    open(sys.argv[1] + '/' + str(i), 'w').close(); i += 1", dir)
		cmd.Limits.Files = 500
		r := runIn(t, b, cmd)
		if r.Outcome != writ.Killed || r.Reason != "limit of files reached: more than 500 files and folders in "+dir {
			t.Errorf("%s: %s", dir, show(r))
		}
	}
}

func TestOpenFilesLimit(t *testing.T) {
	cmd := python(t, "l = []\ntry:\n    while True: l.append(open('/dev/null'))\nexcept OSError as e: print(e.errno, len(l) < 16)")
	cmd.Limits.OpenFiles = 16
	r := runIn(t, newProvider(t, Options{}), cmd)
	wantExit(t, r, 0)
	if r.Stdout.Text != "24 True\n" {
		t.Errorf("result: %s", show(r))
	}
}

func TestCPUTimeIsATimeOut(t *testing.T) {
	b := newProvider(t, Options{})
	counted := b.groups.tree != nil && b.groups.tree.has(LayerCPUCgroup)
	for name, script := range map[string]string{
		"one process":         "while True: pass",
		"deaf to the warning": "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass",
		"many processes":      "import os\nfor i in range(3): os.fork()\nwhile True: pass",
	} {
		t.Run(name, func(t *testing.T) {
			if name == "many processes" && !counted {
				missing(t, "cgroup-cpu", "without it time is counted per process")
			}
			cmd := python(t, script)
			cmd.Limits.CPUMS = 1000
			r := runIn(t, b, cmd)
			wantOutcome(t, r, writ.TimedOut)
			if r.Reason != "cpu time limit of 1s reached" || r.CPUMS < 750 {
				t.Errorf("result: %s", show(r))
			}
		})
	}
}

// Death by the signal of the CPU limit is no evidence of time used.
func TestSIGXCPUOfItsOwnIsNotATimeOut(t *testing.T) {
	r := runIn(t, newProvider(t, Options{}), shell("kill -XCPU $$"))
	if r.Outcome != writ.Failed || r.Signal != "SIGXCPU" {
		t.Errorf("result: %s", show(r))
	}
}

func TestRS07_SleepAndFIFOTimeOut(t *testing.T) {
	b := newProvider(t, Options{})
	for _, script := range []string{"sleep " + asleep(4791), "mkfifo p; cat p", "trap '' TERM INT HUP; while :; do sleep " + asleep(4791) + "; done"} {
		intoTimeout(t, b, shell(script), 300, "")
	}
	if left := sleeping(t, asleep(4791)); left != nil {
		t.Errorf("still alive: %v", left)
	}
}

func TestRS13_NoCoreDump(t *testing.T) {
	b := newProvider(t, Options{})
	r := runIn(t, b, shell("ulimit -c; ulimit -c unlimited 2>/dev/null && echo raised; sh -c 'kill -SEGV $$'; ls -A"))
	if r.Stdout.Text != "0\n" {
		t.Errorf("result: %s", show(r))
	}
	// One byte, and it stays: at zero a kernel.core_pattern that names a program starts it.
	r = runIn(t, b, python(t, `
import resource
print(resource.getrlimit(resource.RLIMIT_CORE))
try:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
except (OSError, ValueError) as e:
    print("refused")
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
`))
	wantExit(t, r, 0)
	if want := "(1, 1)\nrefused\n"; r.Stdout.Text != want && (coresAllowed || r.Stdout.Text != "(0, 0)\nrefused\n") {
		t.Errorf("result: %s", show(r))
	}
}

// Runs side by side get their own limits and outputs.
func TestManyAtOnce(t *testing.T) {
	b := newProvider(t, Options{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			box, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
			if err != nil {
				t.Error(err)
				return
			}
			defer box.Close()
			cmd := shell("echo $0; exit $0")
			cmd.Argv = append(cmd.Argv, string(rune('0'+i)))
			run, err := box.Start(t.Context(), cmd)
			if err != nil {
				t.Error(err)
				return
			}
			if r := run.Wait(); *r.ExitCode != i || r.Stdout.Text != string(rune('0'+i))+"\n" {
				t.Errorf("%d: %s", i, show(r))
			}
		})
	}
	wg.Wait()
}

func TestOutcomeRestsOnEvidence(t *testing.T) {
	exit := func(code int) *jail.Record {
		return &jail.Record{Kind: jail.Exited, Status: syscall.WaitStatus(code << 8)}
	}
	signal := func(s syscall.Signal, cpu time.Duration) *jail.Record {
		return &jail.Record{Kind: jail.Exited, Status: syscall.WaitStatus(s), Values: [8]uint64{uint64(cpu)}}
	}
	cancelled, timer, files := end{causeCancelled, "cancelled"}, end{causeTime, "time"}, end{causeLimit, "files"}
	memory := end{causeMemory, "memory"}
	for _, c := range []struct {
		name   string
		e      evidence
		want   writ.Outcome
		signal string
	}{
		{"exit 0", evidence{exited: exit(0)}, writ.Succeeded, ""},
		{"exit 1", evidence{exited: exit(1)}, writ.Failed, ""},
		{"exit 137", evidence{exited: exit(137)}, writ.Failed, ""},
		{"own SIGKILL", evidence{exited: signal(syscall.SIGKILL, 0)}, writ.Failed, "SIGKILL"},
		{"cancelled beats the timer's evidence of memory", evidence{end: cancelled, oomKills: 1}, writ.Killed, "SIGKILL"},
		{"cancelled too late still tells the exit", evidence{end: cancelled, exited: exit(0)}, writ.Killed, ""},
		{"timer beats memory", evidence{end: timer, oomKills: 1}, writ.TimedOut, "SIGKILL"},
		{"memory beats files", evidence{end: files, oomKills: 1}, writ.OutOfMemory, "SIGKILL"},
		{"memory beats the exit", evidence{oomKills: 1, exited: exit(0)}, writ.OutOfMemory, ""},
		{"our count of memory", evidence{end: memory}, writ.OutOfMemory, "SIGKILL"},
		{"files", evidence{end: files}, writ.Killed, "SIGKILL"},
		{"nothing is known", evidence{}, writ.Interrupted, ""},
		{"cpu limit", evidence{exited: signal(syscall.SIGXCPU, time.Second)}, writ.TimedOut, "SIGXCPU"},
		{"cpu limit, hard", evidence{exited: signal(syscall.SIGKILL, 2*time.Second)}, writ.TimedOut, "SIGKILL"},
		{"cpu limit, by ticks", evidence{exited: signal(syscall.SIGXCPU, 950*time.Millisecond)}, writ.TimedOut, "SIGXCPU"},
		{"SIGXCPU without the time", evidence{exited: signal(syscall.SIGXCPU, 500*time.Millisecond)}, writ.Failed, "SIGXCPU"},
		{"SIGTERM with the time", evidence{exited: signal(syscall.SIGTERM, time.Minute)}, writ.Failed, "SIGTERM"},
	} {
		c.e.limits = writ.Limits{CPUMS: 1000}
		var r writ.Result
		c.e.judge(&r)
		exited := c.e.exited != nil && c.e.exited.Status.Exited()
		if r.Outcome != c.want || r.Signal != c.signal || (r.ExitCode != nil) != exited {
			t.Errorf("%s: got %s", c.name, show(r))
		}
		if r.Reason == "" && r.Outcome != writ.Succeeded && !exited {
			t.Errorf("%s: no reason", c.name)
		}
	}
}
