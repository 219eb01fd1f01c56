package crashtest

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// TestCP09_RunnerKilledMidRun kills the runner under runs that would go on for ever,
// again and again. The server says so and ends, for a supervisor to start both anew;
// each of the runs ends interrupted, once, and nothing of it survives.
func TestCP09_RunnerKilledMidRun(t *testing.T) {
	d := testkit.NewDice(t)
	mark := fmt.Sprintf("runner-%x-", d.Next())
	s := newServer(t, setup{slots: 3, queue: 8})
	h := watch(t, s, mark)
	s.start()
	s.ready()
	s.needSandbox()
	c := s.client()
	defer c.Close()

	var before []writ.TaskID
	for round := range max(count(t, "WRIT_CRASHES", 50)/5, 2) {
		var ids []writ.TaskID
		for i := range 3 {
			req := python(`subprocess.Popen(["/bin/sh", "-c", "sleep 600; :", sys.argv[1] + "-child"], start_new_session=True); time.sleep(600)`)
			req.Spec.Args = []string{fmt.Sprintf("%s%d-%d", mark, round, i)}
			task, _, err := c.Submit(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, task.ID)
			testkit.Eventually(t, "the program and its child run", func() bool {
				return len(testkit.Alive(t, req.Spec.Args[0])) > 0 && len(testkit.Alive(t, req.Spec.Args[0]+"-child")) > 0
			})
		}
		pid := h.runner()
		if pid == 0 {
			t.Fatal("the server has no runner")
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if st := s.gone(); st.Success() || st.ExitCode() < 0 {
			t.Errorf("a server without its runner ends with %v, want an exit code that is not 0", st)
		}
		if log := s.logged(4 << 10); !strings.Contains(log, "the runner process ended") {
			t.Errorf("the server does not say why it ended:\n%s", log)
		}
		h.died(t)

		s.start()
		s.ready()
		for _, id := range append(ids, before...) {
			task, err := c.Task(t.Context(), id)
			if err != nil || task.State != writ.TaskInterrupted || task.Reason == "" {
				t.Errorf("round %d: task %s is %s (%q), %v; want it interrupted", round, id, task.State, task.Reason, err)
			}
		}
		for i := range ids {
			// Once is what was waited for above. The watch looks now and then, and can miss
			// a program that is killed at once; a second start it would see.
			if n := h.started(fmt.Sprintf("%s%d-%d", mark, round, i)); n > 1 {
				t.Errorf("round %d: program %d was started %d times", round, i, n)
			}
		}
		before = ids
		req := python("")
		req.Spec.Args = []string{mark + "after"}
		if task := s.mustRun(t.Context(), c, req); task.State != writ.TaskSucceeded {
			t.Errorf("the next run is %s: %s", task.State, task.Reason)
		}
	}
	report, err := c.Verify(t.Context(), nil)
	if err != nil || !report.OK {
		t.Errorf("the log does not verify: %+v, %v", report, err)
	}
	s.stop()
	h.empty(t)
}

// TestCP09_RunnerOutlivesItsServer has a runner that takes its time to die after its
// server was killed. It must leave the socket of the next one alone.
func TestCP09_RunnerOutlivesItsServer(t *testing.T) {
	mark := fmt.Sprintf("late-%x-", testkit.NewDice(t).Next())
	s := newServer(t, setup{slots: 1, queue: 1})
	h := watch(t, s, mark)
	s.start()
	s.ready()
	s.needSandbox() // said last, when all sockets are there
	sockets := h.sockets(t)
	old := h.runner()
	if err := syscall.Kill(old, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the old runner stands still", func() bool { return testkit.Stopped(old) })
	s.kill()
	s.start()
	s.ready()
	if err := syscall.Kill(old, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the old runner is gone", func() bool { _, _, alive := stat(old); return !alive })
	// The server answers on one of its sockets before it has made the others anew.
	testkit.Eventually(t, "the next server has all sockets that the first had", func() bool { return slices.Equal(h.sockets(t), sockets) },
		func() string {
			return fmt.Sprintf("they were %q, and are %q since the old runner ended", sockets, h.sockets(t))
		})
	c := s.client()
	defer c.Close()
	req := python("")
	req.Spec.Args = []string{mark + "next"}
	if task := s.mustRun(t.Context(), c, req); task.State != writ.TaskSucceeded {
		t.Errorf("the next run is %s: %s", task.State, task.Reason)
	}
	s.stop()
	h.empty(t)
}
