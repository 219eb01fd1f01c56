package crashtest

import (
	"fmt"
	"regexp"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/client"
	"writ/internal/testkit"
)

// TestLoadOfSixteenClients sends 200 runs from 16 clients to a server that has room
// for 12. Each succeeds, at once or after it was refused as exhausted, which leaves
// no task. What the server and its runner hold is then what they held before.
func TestLoadOfSixteenClients(t *testing.T) {
	const clients, runs, slots, queue = 16, 200, 2, 10
	mark := fmt.Sprintf("load-%x-", testkit.NewDice(t).Next())
	s := newServer(t, setup{slots: slots, queue: queue})
	h := watch(t, s, mark)
	s.start()
	s.ready()
	s.needSandbox()

	runOne := func(c *client.Client, key string) (writ.Task, error) {
		req := python("")
		req.Key, req.Spec.Args = key, []string{mark + key}
		task, _, err := c.Submit(t.Context(), req)
		if err != nil {
			return task, err
		}
		return c.Wait(t.Context(), task.ID, patience)
	}
	const few = 4
	fewRuns := func(life string) { // so that whatever is made once is there
		c := s.client()
		defer c.Close()
		for i := range few {
			if task, err := runOne(c, fmt.Sprint(life, "-", i)); err != nil || task.State != writ.TaskSucceeded {
				t.Fatalf("%+v, %v", task, err)
			}
		}
		var all sync.WaitGroup
		for range clients { // the store's readers are opened as they are needed, and kept
			all.Go(func() {
				for range 20 {
					if _, _, err := c.Tasks(t.Context(), writ.TaskFilter{}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	fewRuns("first")
	idle := goroutines(t, s)
	s.start()
	s.ready()
	fewRuns("second")
	before := heldAtRest(t, s, h)

	var refused atomic.Int64
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() {
			c := s.client()
			defer c.Close()
			for i := n; i < runs; i += clients {
				task, err := runOne(c, fmt.Sprint(i))
				for ; writ.KindOf(err) == writ.Exhausted; task, err = runOne(c, fmt.Sprint(i)) {
					refused.Add(1)
					pause(t.Context(), 20*time.Millisecond)
				}
				if err != nil || task.State != writ.TaskSucceeded {
					t.Errorf("run %d is %s: %s, %v", i, task.State, task.Reason, err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d runs of %d clients, refused as exhausted %d times", runs, clients, refused.Load())
	if refused.Load() == 0 {
		t.Error("nothing was refused: the load is too small for what it is to show")
	}

	// Refused means refused: no more tasks than were answered.
	l := newLoad(t, s.client(), mark)
	tasks, err := l.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := runs + 2*few; len(tasks) != want {
		t.Errorf("there are %d tasks, want %d", len(tasks), want)
	}
	l.c.Close()

	var after [2]int
	testkit.Eventually(t, "the descriptors of server and runner are those from before", func() bool {
		after = held(t, s, h)
		return after[0] <= before[0]+2 && after[1] <= before[1]+2
	}, func() string { return fmt.Sprintf("before %v, after %v", before, after) })
	n := goroutines(t, s)
	t.Logf("descriptors of server and runner: %v, then %v; goroutines of the server: %d, then %d", before, after, idle, n)
	const slack = 20 // River's own come and go
	if n > idle+slack {
		t.Errorf("the server has %d goroutines after the load, and had %d after %d runs", n, idle, few)
	}
	h.died(t)
}

// heldAtRest is held once it does not change any more: a runner makes boxes ready, and
// takes those that ran apart, a little after the answers.
func heldAtRest(t testing.TB, s *server, h *host) [2]int {
	t.Helper()
	last, same := held(t, s, h), 0
	testkit.Eventually(t, "the descriptors of server and runner stay as they are", func() bool {
		pause(t.Context(), 100*time.Millisecond)
		now := held(t, s, h)
		if now == last {
			same++
		} else {
			last, same = now, 0
		}
		return same >= 10
	})
	return last
}

// held is how many descriptors the server and its runner have.
func held(t testing.TB, s *server, h *host) [2]int {
	return [2]int{openFiles(t, s.cmd.Process.Pid), openFiles(t, h.runner())}
}

var goroutine = regexp.MustCompile(`(?m)^goroutine \d+ `)

// goroutines ends the server with SIGQUIT and counts what the Go runtime then
// lists.
func goroutines(t testing.TB, s *server) int {
	t.Helper()
	before := len(goroutine.FindAllString(s.logged(4<<20), -1))
	s.signal(syscall.SIGQUIT)
	s.gone()
	return len(goroutine.FindAllString(s.logged(4<<20), -1)) - before
}
