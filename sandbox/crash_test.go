package sandbox

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ"
)

// helperEnv makes the test binary a helper process instead of a test.
const helperEnv = "WRIT_TEST_HELPER"

// helperUID is what the helper "lend" lends.
const helperUID = 872_000

// helper is one of those, each until it is killed: "lend" holds a user id, "prepare"
// prepares boxes without end, and any other name holds one box that waits and one that
// runs.
func helper(name string) int {
	err := func() error {
		if name == "lend" {
			if _, err := newUIDs(helperUID, 1, uidFile).acquire(); err != nil {
				return err
			}
			fmt.Println("lent")
			<-make(chan bool)
		}
		b, err := New(Options{})
		if err != nil {
			return err
		}
		if name == "prepare" {
			fmt.Println("preparing")
			for {
				if _, err := b.Prepare(context.Background(), Template{Limits: writ.DefaultLimits}); err != nil {
					return err
				}
			}
		}
		if _, err := b.Prepare(context.Background(), Template{Limits: writ.DefaultLimits}); err != nil {
			return err
		}
		box, err := b.Prepare(context.Background(), Template{Limits: writ.DefaultLimits})
		if err != nil {
			return err
		}
		if w, ok := strings.CutPrefix(name, "workspace:"); ok {
			return holdWorkspace(b, w)
		}
		cmd := shell("setsid sh -c 'sleep " + name + " & sleep " + name + " & wait' & sleep " + name)
		run, err := box.Start(context.Background(), cmd)
		if err != nil {
			return err
		}
		fmt.Println("holding")
		run.Wait()
		return fmt.Errorf("the run ended")
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// holdWorkspace holds two programs in a workspace, one with a terminal.
func holdWorkspace(b *Bubblewrap, root string) error {
	var runs []Run
	for _, terminal := range []*Size{nil, {24, 80}} {
		box, err := b.Prepare(context.Background(), Template{Limits: writ.DefaultLimits, Workspace: &Workspace{Root: root, Writable: true}})
		if err != nil {
			return err
		}
		forLong := asleepFor(4807, os.Getppid())
		cmd := shell("trap '' HUP TERM; setsid sleep " + forLong + " & sleep " + forLong + " & touch up$$; wait")
		cmd.Dir, cmd.Terminal = root, terminal
		run, err := box.Start(context.Background(), cmd)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	fmt.Println("holding")
	for _, r := range runs {
		r.Wait()
	}
	return fmt.Errorf("the runs ended")
}

// The programs in a workspace end with their server, however it ends.
func TestKilledServerLeavesNothingInAWorkspace(t *testing.T) {
	newProvider(t, Options{}) // or skip
	w := newWorkspace(t, nil)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"=workspace:"+w.Root)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "holding\n" {
		t.Fatalf("the helper said %q: %v", line, err)
	}
	eventually(t, "its programs run", func() bool { return len(sleeping(t, asleep(4807))) == 4 })
	children := descendants(t, cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "no process of the killed server is left", func() bool {
		return len(sleeping(t, asleep(4807))) == 0 && !slices.ContainsFunc(children, alive)
	})
}

func TestKilledServerLeavesNothing(t *testing.T) {
	b := newProvider(t, Options{})
	marker := asleep(48151623)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), helperEnv+"="+marker)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "holding\n" {
		t.Fatalf("the helper said %q: %v", line, err)
	}
	eventually(t, "its three programs run", func() bool { return len(sleeping(t, marker)) == 3 })
	children := descendants(t, cmd.Process.Pid)
	if len(children) < 5 {
		t.Fatalf("the helper has %d descendants, want two boxes full", len(children))
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "no process of the killed server is left", func() bool {
		for _, c := range children {
			if alive(c) {
				return false
			}
		}
		return len(sleeping(t, marker)) == 0
	})
	// Its control groups go at the next start, those of the living stay.
	mine := prepareBox(t, b, writ.DefaultLimits)
	again := newProvider(t, Options{})
	if again.groups.tree != nil {
		for _, parent := range again.groups.tree.parents() {
			left, err := filepath.Glob(filepath.Join(parent, fmt.Sprintf("writ-*-%d-*", cmd.Process.Pid)))
			if err != nil || len(left) > 0 {
				t.Errorf("control groups of the killed server: %v %v", left, err)
			}
		}
	}
	run, err := mine.Start(t.Context(), program("/bin/true"))
	if err != nil {
		t.Fatalf("a box of the living: %v", err)
	}
	wantExit(t, run.Wait(), 0)
}

// bwrap killed between its clone and the moment it lets its child go on would leave
// that child waiting for ever: a server that dies there must not kill it.
func TestServerKilledWhilePreparingLeavesNothing(t *testing.T) {
	newProvider(t, Options{}) // or skip
	for i := range 25 {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), helperEnv+"=prepare")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "preparing\n" {
			t.Fatalf("the helper said %q: %v", line, err)
		}
		<-time.After(time.Duration(i) * 500 * time.Microsecond) // another point of the preparation each time
		children := descendants(t, cmd.Process.Pid)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		eventually(t, "nothing of the killed server is left", func() bool { return !slices.ContainsFunc(children, alive) })
	}
}

// proc is a process by number and start time.
type proc struct {
	pid   int
	start uint64
}

// alive reports whether p still is and is not only waiting to be counted by its parent.
func alive(p proc) bool {
	start, err := startTime(p.pid)
	if err != nil || start != p.start {
		return false
	}
	status, err := readStatus(p.pid)
	return err == nil && !strings.HasPrefix(status["State"], "Z")
}

// descendants are all processes below root.
func descendants(t *testing.T, root int) []proc {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	parent := map[int]int{}
	for _, f := range dirs {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // it ended
		}
		var pid, ppid int
		s := string(b)
		_, _ = fmt.Sscan(s, &pid)
		fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
		_, _ = fmt.Sscan(fields[1], &ppid)
		parent[pid] = ppid
	}
	var found []proc
	for pid := range parent {
		for p := pid; p > 1; p = parent[p] {
			if parent[p] == root {
				if start, err := startTime(pid); err == nil {
					found = append(found, proc{pid, start})
				}
				break
			}
		}
	}
	return found
}

// Nothing piles up in the server: goroutines, descriptors, children, groups, ids.
func TestNothingPilesUp(t *testing.T) {
	b := newProvider(t, Options{})
	once := func(t *testing.T) {
		wantExit(t, runIn(t, b, program("/bin/true")), 0)
		if _, err := prepareBox(t, b, writ.DefaultLimits).Start(t.Context(), program("/no/such")); err == nil {
			t.Fatal("a missing program started")
		}
		unused, err := b.Prepare(t.Context(), Template{Limits: writ.DefaultLimits})
		if err != nil {
			t.Fatal(err)
		}
		if err := unused.Close(); err != nil {
			t.Fatal(err)
		}
		cmd := shell("sleep 4719")
		cmd.Limits.WallMS = 50
		wantOutcome(t, runIn(t, b, cmd), writ.TimedOut)
	}
	t.Run("first", once) // what is made once is made now
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 5 {
		t.Run("round", once)
	}
	eventually(t, fmt.Sprintf("no more than %d goroutines and %d descriptors", goroutines, files), func() bool {
		return runtime.NumGoroutine() <= goroutines && openFiles(t) <= files
	})
	if left := descendants(t, os.Getpid()); len(left) > 0 {
		t.Errorf("children left: %v", left)
	}
	if b.groups.tree != nil {
		for _, parent := range b.groups.tree.parents() {
			if left, _ := filepath.Glob(filepath.Join(parent, b.groups.prefix+"*")); len(left) > 0 {
				t.Errorf("control groups left: %v", left)
			}
		}
	}
	if b.uids != nil && len(b.uids.held) > 0 {
		t.Errorf("user ids left: %v", b.uids.held)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A box whose processes somebody kills is an error or a result, never a hang.
func TestBoxThatDiesBeforeAndDuringARun(t *testing.T) {
	b := newProvider(t, Options{})
	box := prepareBox(t, b, writ.DefaultLimits)
	p := box.(*bubblewrapBox).process
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.gone
	if _, err := box.Start(t.Context(), program("/bin/true")); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("start in a dead box: %v", err)
	}
	run, box := start(t, b, t.Context(), shell("sleep "+asleep(4721)))
	if err := box.(*bubblewrapBox).process.cmd.Process.Kill(); err != nil { // bwrap itself: its parent-death signal ends the rest
		t.Fatal(err)
	}
	began := time.Now()
	r := run.Wait()
	if r.Outcome != writ.Interrupted || !r.Started || !strings.HasPrefix(r.Reason, "the sandbox ended before") {
		t.Errorf("after %v: %s", time.Since(began), show(r))
	}
	if left := sleeping(t, asleep(4721)); left != nil {
		t.Errorf("still alive: %v", left)
	}
}
