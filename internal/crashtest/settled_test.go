package crashtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"writ"
)

// settled checks everything that must hold once the last task is over: what the
// clients were told, what the log says and what was seen on the host are one story.
func settled(t *testing.T, ctx context.Context, l *load, h *host) {
	t.Helper()
	tasks, err := l.all(ctx)
	if err != nil {
		t.Fatal(err)
	}
	events := eventsByTask(t, ctx, l)
	approvals := l.approvals(ctx)

	l.mu.Lock()
	defer l.mu.Unlock()
	states := map[writ.TaskState]int{}
	byKey := map[string]writ.Task{}
	for _, task := range tasks {
		states[task.State]++
		s := l.sent[task.Key]
		if s == nil {
			t.Errorf("task %s has key %q, which nobody sent", task.ID, task.Key)
			continue
		}
		if other, twice := byKey[task.Key]; twice {
			t.Errorf("key %s names two tasks: %s and %s", task.Key, other.ID, task.ID)
		}
		byKey[task.Key] = task
		c := checker{t: t, task: task, sent: s, events: events[task.ID]}
		c.check()
		c.checkApprovals(approvals[task.ID], l.votes)
		// The witness outside of the log.
		n := h.started(l.mark + s.key)
		if n > 1 {
			c.fault("its program was started %d times", n)
		}
		if n > 0 && c.count(writ.EventToolInvoked) == 0 {
			c.fault("its program was started without a record")
		}
	}
	for key, s := range l.sent {
		if got := byKey[key].ID; s.id != "" && got != s.id {
			t.Errorf("key %s was answered with task %s, and is task %q now", key, s.id, got)
		}
	}
	for id := range events {
		if id != "" && !known(tasks, id) {
			t.Errorf("the log has events of task %s, which is not there", id)
		}
	}
	t.Logf("%d tasks: %v; %d votes, %d checkpoints", len(tasks), states, len(l.votes), len(l.anchors))
	for _, must := range []writ.TaskState{writ.TaskSucceeded, writ.TaskInterrupted, writ.TaskDenied} {
		if states[must] == 0 {
			t.Errorf("not one task is %s: the load did not try what it is for", must)
		}
	}
}

func known(tasks []writ.Task, id writ.TaskID) bool {
	for _, t := range tasks {
		if t.ID == id {
			return true
		}
	}
	return false
}

// eventsByTask is the whole log, which must have no gap.
func eventsByTask(t *testing.T, ctx context.Context, l *load) map[writ.TaskID][]writ.Event {
	t.Helper()
	var all bytes.Buffer
	if err := l.c.Export(ctx, &all, "jsonl", writ.EventFilter{After: -1}); err != nil {
		t.Fatal(err)
	}
	byTask := map[writ.TaskID][]writ.Event{}
	seq := int64(0)
	for dec := json.NewDecoder(&all); dec.More(); seq++ {
		var e writ.Event
		if err := dec.Decode(&e); err != nil {
			t.Fatal(err)
		}
		if e.Seq != seq {
			t.Fatalf("event %d stands where %d belongs", e.Seq, seq)
		}
		byTask[e.Task] = append(byTask[e.Task], e)
	}
	return byTask
}

func (l *load) approvals(ctx context.Context) map[writ.TaskID][]writ.Approval {
	byTask := map[writ.TaskID][]writ.Approval{}
	f := writ.ApprovalFilter{Page: writ.Page{Limit: writ.MaxPage}}
	for {
		page, next, err := l.c.Approvals(ctx, f)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, a := range page {
			byTask[a.Task] = append(byTask[a.Task], a)
		}
		if next == "" {
			return byTask
		}
		f.Page.Cursor = next
	}
}

// checker compares one task with what is known of it.
type checker struct {
	t      *testing.T
	task   writ.Task
	sent   *sent
	events []writ.Event
}

func (c checker) fault(format string, args ...any) {
	c.t.Helper()
	var types []string
	for _, e := range c.events {
		types = append(types, string(e.Type))
	}
	c.t.Errorf("task %s (%s, %s): %s\n\tevents: %s\n\treason: %s\n\tresult: %+v", c.task.ID, c.sent.kind.name, c.task.State,
		fmt.Sprintf(format, args...), strings.Join(types, " "), c.task.Reason, c.task.Result)
}

func (c checker) count(typ writ.EventType) (n int) {
	for _, e := range c.events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

// check holds the state against the events.
func (c checker) check() {
	if len(c.events) < 2 || c.events[0].Type != writ.EventTaskReceived || c.events[1].Type != writ.EventTaskDecided {
		c.fault("its events do not begin with received and decided")
		return
	}
	last := c.events[len(c.events)-1]
	for _, typ := range []writ.EventType{
		writ.EventTaskReceived, writ.EventTaskDecided, writ.EventApprovalRequested, writ.EventApprovalDecided,
		writ.EventAgentStarted, writ.EventToolInvoked, writ.EventToolResult, writ.EventAgentFinished,
	} {
		// A grant can be decided once more: when its task is cancelled before it ran.
		if n := c.count(typ); n > 1 && !(n == 2 && typ == writ.EventApprovalDecided && last.Type == typ && last.Data.Status == writ.ApprovalCancelled) {
			c.fault("%d events %s", n, typ)
		}
	}
	ran := c.count(writ.EventToolInvoked) > 0
	switch s := c.task.State; s {
	case writ.TaskNoted:
		if len(c.events) != 2 || c.sent.kind.request.Spec != nil {
			c.fault("a plan step is what has no spec, and is only received and decided")
		}
	case writ.TaskDenied:
		if ran || last.Type != writ.EventApprovalDecided || last.Data.Status != writ.ApprovalDenied {
			c.fault("the last event does not say that it was denied: %+v", last.Data)
		}
	case writ.TaskCancelled:
		if ran || c.count(writ.EventTaskCancelled) != 1 || !c.sent.cancelled {
			c.fault("cancelled before it ran: want one event that says who asked")
		}
	case writ.TaskSucceeded, writ.TaskFailed, writ.TaskTimedOut, writ.TaskKilled, writ.TaskInterrupted:
		c.checkRun(last)
	default:
		c.fault("nothing in the load ends so")
	}
}

// checkRun checks a task that was given to the runner.
func (c checker) checkRun(last writ.Event) {
	for _, typ := range []writ.EventType{writ.EventAgentStarted, writ.EventToolInvoked, writ.EventToolResult, writ.EventAgentFinished} {
		if c.count(typ) != 1 {
			c.fault("%d events %s", c.count(typ), typ)
			return
		}
	}
	if last.Type != writ.EventAgentFinished || last.Data.State != c.task.State {
		c.fault("the last event is %s with state %q", last.Type, last.Data.State)
	}
	var result writ.EventData
	for _, e := range c.events {
		if e.Type == writ.EventToolResult {
			result = e.Data
		}
	}
	r := c.task.Result
	if r == nil || r.Outcome.State() != c.task.State || result.Outcome != r.Outcome || result.Started == nil || *result.Started != r.Started {
		c.fault("task and tool.result do not agree: %+v", result)
		return
	}
	k := c.sent.kind
	switch r.Outcome {
	case writ.Interrupted:
	case writ.Killed:
		if !c.sent.cancelled && !strings.Contains(r.Reason, "stopped") && !strings.Contains(r.Reason, "shut down") {
			c.fault("nobody asked for its end")
		}
	case writ.Failed:
		if r.Started && k.outcome != writ.Failed {
			c.fault("it must not fail")
		}
	default:
		if r.Outcome != k.outcome || !r.Started {
			c.fault("want %s", k.outcome)
		}
	}
	if r.Outcome == k.outcome && r.ExitCode != nil && *r.ExitCode != k.exitCode {
		c.fault("exit code %d, want %d", *r.ExitCode, k.exitCode)
	}
}

// checkApprovals holds votes that the server took against what came of them.
func (c checker) checkApprovals(of []writ.Approval, votes map[writ.ApprovalID]writ.Verdict) {
	if !c.sent.kind.held {
		if len(of) > 0 {
			c.fault("nothing holds it, and it has %d approvals", len(of))
		}
		return
	}
	if len(of) != 1 || of[0].ID != c.task.Approval {
		c.fault("want one approval: %+v", of)
		return
	}
	a := of[0]
	ran := c.count(writ.EventToolInvoked) == 1
	if !a.State.Terminal() || ran != (a.State == writ.ApprovalConsumed) {
		c.fault("its approval is %s", a.State)
	}
	switch votes[a.ID] {
	case writ.Refuse:
		if c.task.State != writ.TaskDenied {
			c.fault("a denial was answered as taken")
		}
	case writ.Grant:
		if !ran && c.task.State != writ.TaskCancelled {
			c.fault("a grant was answered as taken, and it never ran")
		}
	}
}

// outputs reads what tasks that succeeded have written: it is kept with the outcome.
func outputs(t *testing.T, ctx context.Context, l *load) {
	t.Helper()
	tasks, err := l.all(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.State != writ.TaskSucceeded {
			continue
		}
		got, err := l.c.Output(ctx, task.ID, writ.Stdout)
		if want := l.mark + task.Key + "\n"; err != nil || string(got) != want {
			t.Errorf("task %s wrote %q (%v), want %q", task.ID, got, err, want)
		}
	}
}
