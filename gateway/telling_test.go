package gateway_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// A job of the store can have a task launched before the call that made it ready to run has
// told so: how it stands is told in order all the same, or who watches it would miss a state.
func TestTheObserverHearsInOrder(t *testing.T) {
	type story struct {
		told    []writ.TaskState
		running chan struct{}
	}
	var mu sync.Mutex
	stories := map[writ.TaskID]*story{} // guarded by mu
	of := func(id writ.TaskID) *story {
		mu.Lock()
		defer mu.Unlock()
		if stories[id] == nil {
			stories[id] = &story{running: make(chan struct{})}
		}
		return stories[id]
	}
	var s *testkit.System
	s = testkit.Gateway(t, func(g *testkit.GatewaySetup) {
		g.Changed = func(task writ.Task) {
			story := of(task.ID)
			if task.State == writ.TaskQueued {
				if err := s.Do(context.Background(), store.Job{Kind: store.JobDispatch, Task: task.ID}); err != nil {
					t.Error(err)
				}
				select { // time for it to run before this is told
				case <-story.running:
				case <-time.After(300 * time.Millisecond):
				}
			}
			mu.Lock()
			defer mu.Unlock()
			if story.told = append(story.told, task.State); task.State == writ.TaskRunning {
				close(story.running)
			}
		}
	})
	allowed, held := s.MustSubmit(testkit.Run("python", "1")), s.MustSubmit(testkit.Run("bash", "1"))
	s.MustGrant(held)
	for id, want := range map[writ.TaskID][]writ.TaskState{
		allowed.ID: {writ.TaskQueued, writ.TaskRunning, writ.TaskSucceeded},
		held.ID:    {writ.TaskHeld, writ.TaskQueued, writ.TaskRunning, writ.TaskSucceeded},
	} {
		testkit.Eventually(t, "its end is told", func() bool {
			story := of(id)
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(story.told, writ.TaskSucceeded)
		})
		if got := of(id).told; !slices.Equal(got, want) {
			t.Errorf("told were %v, want %v", got, want)
		}
		if n := s.Runner.CallsOf(id); n != 1 {
			t.Errorf("%d runs", n)
		}
	}
}
