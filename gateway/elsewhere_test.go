package gateway_test

import (
	"fmt"
	"testing"

	"writ"
	"writ/gateway"
	"writ/internal/testkit"
	"writ/store"
)

// TestUsersRunIsLeftToWhoHasItsFiles: of two gateways on one store one does not serve the
// code interpreter. What it is asked to run of a user's it leaves queued, and neither denies
// it nor runs it without its files.
func TestUsersRunIsLeftToWhoHasItsFiles(t *testing.T) {
	s, _ := interpreting(t)
	started, release := s.Runner.Blocks()
	other := s.Sibling("gw_other", func(o *gateway.Options) { o.Blobs, o.Users = nil, nil })
	for i := range s.Setup.Options.Slots { // none is left for what follows
		if _, err := s.Interpret(t.Context(), user(fmt.Sprint("u", i)), interpret("python", "1")); err != nil {
			t.Fatal(err)
		}
		testkit.Receive(t, "a run begins", started)
	}
	task, err := s.Interpret(t.Context(), user("ada"), interpret("python", "2"))
	if err != nil || task.State != writ.TaskQueued {
		t.Fatalf("%+v, %v", task, err)
	}
	if err := other.Do(t.Context(), store.Job{Kind: store.JobDispatch, Task: task.ID}); err != nil {
		t.Fatal(err)
	}
	if err := other.Sweep(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the other has it in hand no more", func() bool { return other.Carrying() == 0 })
	if got := s.Stored(task.ID); got.State != writ.TaskQueued || other.Runner.CallsOf(task.ID) != 0 {
		t.Errorf("it is %s (%s), and the other ran it %d times", got.State, got.Reason, other.Runner.CallsOf(task.ID))
	}
	release()
	s.Until(task.ID, writ.TaskSucceeded)
}
