package crashtest

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
)

// TestCP09_PA11_PA14_CrashesOnSQLite also covers scenarios 12 and 13 of spec/01 §5.
func TestCP09_PA11_PA14_CrashesOnSQLite(t *testing.T) {
	crashes(t, "", count(t, "WRIT_CRASHES", 50))
}

func TestCP09_PA11_PA14_CrashesOnPostgreSQL(t *testing.T) {
	fresh := testkit.Postgres(t)
	crashes(t, fresh(t), max(count(t, "WRIT_CRASHES", 50)/5, 1))
}

// crashes kills a server n times under a mixed load, lets it settle what is left,
// and checks that.
func crashes(t *testing.T, database string, n int) {
	d := testkit.NewDice(t)
	mark := fmt.Sprintf("crash-%x-", d.Next())
	s := newServer(t, setup{database: database, slots: 4, queue: 64})
	h := watch(t, s, mark)
	s.start()
	s.ready()
	s.needSandbox()

	loading, endLoad := context.WithCancel(t.Context())
	l := newLoad(t, s.client(), mark)
	var clients sync.WaitGroup
	for i := range 6 {
		d := d.Fork()
		clients.Go(func() { l.client(loading, fmt.Sprint(i), d) })
	}
	deciding, endDecisions := context.WithCancel(t.Context())
	operator := s.operator()
	var others sync.WaitGroup
	for _, run := range []func(*testkit.Dice){
		func(d *testkit.Dice) { l.approve(deciding, operator, d) },
		func(d *testkit.Dice) { l.lookAround(deciding, d) },
		func(*testkit.Dice) { l.checkpoints(deciding) },
	} {
		d := d.Fork()
		others.Go(func() { run(d) })
	}
	defer others.Wait()
	defer clients.Wait()
	defer endDecisions()
	defer endLoad()

	var started time.Duration
	for i := range n {
		crash(t, s, h, d)
		if t.Failed() {
			t.Fatalf("after crash %d", i+1)
		}
		if i == n-1 {
			h.died(t) // what the last start removes must be there for it to see
		}
		began := time.Now()
		s.start()
		if !d.OneIn(6) { // else the next crash may fall into the start
			s.ready()
			started += time.Since(began)
		}
	}
	s.ready()
	t.Logf("%d crashes; a start took %v on the average", n, (started / time.Duration(n)).Round(time.Millisecond))

	// Where starts take long, few crashes fell into a run.
	for until := time.Now().Add(patience); !l.has(t.Context(), writ.TaskInterrupted) && time.Now().Before(until); {
		crash(t, s, h, d)
		h.died(t)
		s.start()
		s.ready()
	}
	// Let the load go on for a little, and until it has tried the rest of what it is for: the
	// server must be as good as new.
	pause(t.Context(), time.Second)
	testkit.Eventually(t, "tasks have succeeded and were denied", func() bool {
		return l.has(t.Context(), writ.TaskSucceeded) && l.has(t.Context(), writ.TaskDenied)
	})
	endLoad()
	clients.Wait()
	testkit.Eventually(t, "every task is over", func() bool { _, ok := l.unsettled(t.Context()); return ok },
		func() string { left, _ := l.unsettled(t.Context()); return left })
	endDecisions()
	others.Wait()

	settled(t, t.Context(), l, h)
	outputs(t, t.Context(), l)
	report, err := l.c.Verify(t.Context(), l.kept(writ.MaxAnchors))
	if err != nil || !report.OK {
		t.Errorf("the log does not verify: %+v, %v", report, err)
	}
	l.c.Close()
	operator.Close()
	s.stop()
	h.empty(t)
	if left := h.sockets(t); len(left) > 0 {
		t.Errorf("sockets are left: %q", left)
	}
}

// crash ends what serves the folder, in one of the ways in which that happens.
func crash(t *testing.T, s *server, h *host, d *testkit.Dice) {
	t.Helper()
	pause(t.Context(), d.UpTo(700*time.Millisecond))
	switch d.Below(10) {
	case 0: // the runner, of which the server must make its own end
		if pid := h.runner(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			if st := s.gone(); st.Success() {
				t.Errorf("a server whose runner was killed ends with %v", st)
			}
			return
		}
	case 1: // both
		if pid := h.runner(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	case 2: // while it stops
		s.signal(syscall.SIGTERM)
		pause(t.Context(), d.UpTo(300*time.Millisecond))
	case 3: // and look, before the next one starts
		s.kill()
		h.died(t)
	}
	s.kill()
}
