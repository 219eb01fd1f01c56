package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// Whatever is asked in whatever order: a terminal state never changes and is what
// the task's last events say, no task is run twice, and none is run that was not
// granted where policy holds it.
func TestPropertyTerminalStatesMatchTheirEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := testkit.Gateway(t, func(g *testkit.GatewaySetup) {
			g.Options.Slots = rapid.IntRange(1, 3).Draw(rt, "slots")
			g.Options.ApprovalTTL = rapid.SampledFrom([]time.Duration{time.Millisecond, time.Hour}).Draw(rt, "ttl")
			g.Jobs = rapid.Bool().Draw(rt, "jobs")
		})
		defer s.End()
		outcome := rapid.SampledFrom(writ.Outcomes)
		s.Runner.Does(func(ctx context.Context, spec writ.RunSpec, emit func(writ.Chunk)) (writ.Result, error) {
			if spec.Stdin == "none" {
				return writ.Result{}, fmt.Errorf("no sandbox")
			}
			emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("x")})
			res := testkit.Ran(0, "x", "")
			res.Outcome = writ.Outcome(spec.Stdin)
			return res, nil
		})
		var tasks []writ.Task
		over := map[writ.TaskID]writ.TaskState{}
		pick := func(rt *rapid.T) (writ.Task, bool) {
			if len(tasks) == 0 {
				return writ.Task{}, false
			}
			return tasks[rapid.IntRange(0, len(tasks)-1).Draw(rt, "task")], true
		}
		ctx := context.Background()
		expect := func(err error, kinds ...writ.Kind) {
			if err != nil && !slices.Contains(kinds, writ.KindOf(err)) {
				rt.Fatalf("%v (%v)", err, writ.KindOf(err))
			}
		}
		policies := []string{testkit.GatewayPolicy, holdAll, allowAll, denyShell + allowAll}
		rt.Repeat(map[string]func(*rapid.T){
			"submit": func(rt *rapid.T) {
				req := testkit.Run(rapid.SampledFrom([]writ.Language{"python", "bash", "node"}).Draw(rt, "language"), "1")
				req.Spec.Stdin = string(outcome.Draw(rt, "outcome"))
				if rapid.IntRange(0, 9).Draw(rt, "sandbox") == 0 {
					req.Spec.Stdin = "none"
				}
				tasks = append(tasks, s.MustSubmit(req))
			},
			"vote": func(rt *rapid.T) {
				if task, ok := pick(rt); ok {
					task = s.Stored(task.ID)
					if task.Approval == "" {
						return
					}
					who := s.Operator(rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "who"))
					_, err := s.Decide(who, task, rapid.SampledFrom([]writ.Verdict{writ.Grant, writ.Grant, writ.Refuse}).Draw(rt, "verdict"), "")
					expect(err, writ.Conflict)
				}
			},
			"cancel": func(rt *rapid.T) {
				if task, ok := pick(rt); ok {
					_, err := s.Cancel(ctx, s.Agent("coder"), task.ID, "")
					expect(err, writ.Conflict)
				}
			},
			"expire": func(rt *rapid.T) {
				if task, ok := pick(rt); ok && s.Stored(task.ID).Approval != "" {
					expect(s.Expire(ctx, s.Stored(task.ID).Approval))
				}
			},
			"dispatch": func(rt *rapid.T) {
				if task, ok := pick(rt); ok {
					expect(s.Do(ctx, store.Job{Kind: store.JobDispatch, Task: task.ID}))
				}
			},
			"sweep":  func(rt *rapid.T) { expect(s.Sweep(ctx, rapid.Bool().Draw(rt, "first"))) },
			"policy": func(rt *rapid.T) { setPolicy(t, s, rapid.SampledFrom(policies).Draw(rt, "policy")) },
			"": func(rt *rapid.T) {
				for _, task := range tasks {
					got := s.Stored(task.ID)
					if was, ok := over[task.ID]; ok && got.State != was {
						rt.Fatalf("task was %s and is %s", was, got.State)
					}
					if got.State.Terminal() {
						over[task.ID] = got.State
						matches(rt, s, got)
					}
					if n := s.Runner.CallsOf(task.ID); n > 1 {
						rt.Fatalf("task was run %d times", n)
					}
				}
			},
		})
	})
}

// matches fails when the last events of a task that is over do not say how it ended.
func matches(rt *rapid.T, s *testkit.System, task writ.Task) {
	var states []writ.TaskState // that events gave it
	var approvals []writ.ApprovalState
	invoked, granted := false, false
	for _, e := range s.Events(task.ID) {
		if e.Data.State != "" {
			states = append(states, e.Data.State)
		}
		switch e.Type {
		case writ.EventApprovalDecided:
			approvals = append(approvals, e.Data.Status)
		case writ.EventToolInvoked:
			invoked, granted = true, e.Data.Binds != ""
		}
	}
	last := states[len(states)-1]
	ok := false
	switch task.State {
	case writ.TaskDenied: // by policy, or by a person
		ok = last == writ.TaskDenied || approvals[len(approvals)-1] == writ.ApprovalDenied
	case writ.TaskExpired:
		ok = approvals[len(approvals)-1] == writ.ApprovalExpired
	default:
		ok = last == task.State
	}
	if !ok {
		rt.Fatalf("task is %s, its events give states %v and approvals %v", task.State, states, approvals)
	}
	if ran := s.Runner.CallsOf(task.ID) == 1; ran != invoked || ran != (task.Result != nil) {
		rt.Fatalf("run %v, intent recorded %v, result %v", ran, invoked, task.Result)
	}
	if invoked && task.Approval != "" && !granted {
		rt.Fatalf("it ran without the grant that it was held for")
	}
}
