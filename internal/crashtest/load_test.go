package crashtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/client"
	"writ/internal/testkit"
)

// patience bounds every wait of a load for its server, which may be killed again and again
// meanwhile. Nothing waits it out but a failure.
const patience = 5 * time.Minute

// kind is one thing that the load asks for.
type kind struct {
	name     string
	request  writ.TaskRequest // without key; its spec, if any, gets one argument
	held     bool             // by policy
	outcome  writ.Outcome     // if it comes to its end
	exitCode int
}

// kinds is the mix. Each program says its argument and lives for a quarter of a
// second, so that a scan of the host meets it.
var kinds = []kind{
	{name: "short", request: python(`time.sleep(0.25)`), outcome: writ.Succeeded},
	{name: "slow", request: python(`time.sleep(1)`), outcome: writ.Succeeded},
	{name: "fails", request: python(`time.sleep(0.25); sys.exit(3)`), outcome: writ.Failed, exitCode: 3},
	{name: "endless", request: limited(python(`time.sleep(600)`), 600), outcome: writ.TimedOut},
	{name: "escapes", request: python(`subprocess.Popen(["/bin/sh", "-c", "sleep 600; :", sys.argv[1] + "-child"], start_new_session=True); time.sleep(0.25)`), outcome: writ.Succeeded},
	{name: "shell", request: shell(`printf '%s\n' "$1"; sleep 0.25`), held: true, outcome: writ.Succeeded},
	{name: "shell2", request: shell(`printf '%s\n' "$1"; sleep 0.25; exit 4`), held: true, outcome: writ.Failed, exitCode: 4},
	{name: "step", request: writ.TaskRequest{Identity: "bot", Step: "think"}},
}

func python(code string) writ.TaskRequest {
	return writ.TaskRequest{Identity: "bot", Spec: &writ.RunSpec{
		Language: "python", Code: "import subprocess, sys, time\nprint(sys.argv[1], flush=True)\n" + code + "\n",
	}}
}

func shell(code string) writ.TaskRequest {
	return writ.TaskRequest{Identity: "bot", Spec: &writ.RunSpec{Language: "sh", Code: code + "\n"}}
}

func limited(req writ.TaskRequest, wallMS int64) writ.TaskRequest {
	req.Spec.Limits.WallMS = wallMS
	return req
}

// sent is what the load knows of one request.
type sent struct {
	kind      kind
	key       string
	id        writ.TaskID // "" until the server has answered
	cancelled bool        // it was asked to cancel, answered or not
}

// load is many clients of one server that may be away for a while. It keeps what
// the server has answered: that is what must still hold at the end.
type load struct {
	t    testing.TB
	c    *client.Client
	mark string // of its programs' arguments

	mu      sync.Mutex
	sent    map[string]*sent                 // guarded by mu; by key
	votes   map[writ.ApprovalID]writ.Verdict // guarded by mu; those that the server took
	anchors []string                         // guarded by mu; checkpoints, oldest first
	size    int64                            // guarded by mu; of the last one
	order   []string                         // guarded by mu; keys, in the order in which they were answered
}

func newLoad(t testing.TB, c *client.Client, mark string) *load {
	return &load{t: t, c: c, mark: mark, sent: map[string]*sent{}, votes: map[writ.ApprovalID]writ.Verdict{}}
}

// away reports whether err is one that a server which is down, or starts, or is
// full may answer. It fails the test for any other.
func (l *load) away(ctx context.Context, op string, err error) bool {
	if err == nil {
		return false
	}
	if k := writ.KindOf(err); ctx.Err() == nil && k != writ.Unavailable && k != writ.Exhausted {
		l.t.Errorf("%s: %v (%v)", op, err, k)
	}
	return true
}

func (l *load) request(s *sent) writ.TaskRequest {
	req := s.kind.request
	req.Key = s.key
	if req.Spec != nil {
		spec := *req.Spec
		spec.Args = []string{l.mark + s.key}
		req.Spec = &spec
	}
	return req
}

// submit sends a request until it is answered, under one key. It is nil when ctx
// ended first.
func (l *load) submit(ctx context.Context, key string, k kind) *sent {
	s := &sent{kind: k, key: key}
	req := l.request(s)
	l.mu.Lock()
	l.sent[key] = s
	l.mu.Unlock()
	for {
		task, _, err := l.c.Submit(ctx, req)
		if !l.away(ctx, "submit", err) {
			l.mu.Lock()
			defer l.mu.Unlock()
			s.id = task.ID
			l.order = append(l.order, key)
			return s
		}
		if !pause(ctx, 20*time.Millisecond) {
			return nil
		}
	}
}

// client sends one request after the other until ctx ends.
func (l *load) client(ctx context.Context, name string, d *testkit.Dice) {
	for i := 0; ; i++ {
		s := l.submit(ctx, fmt.Sprintf("%s-%d", name, i), kinds[d.Below(len(kinds))])
		if s == nil {
			return
		}
		if d.OneIn(6) { // the answer may have been lost: ask again
			l.resend(ctx, s)
		}
		if d.OneIn(5) {
			if !pause(ctx, d.UpTo(500*time.Millisecond)) {
				return
			}
			l.cancel(ctx, s)
		}
		if d.OneIn(2) {
			_, err := l.c.Wait(ctx, s.id, d.UpTo(time.Second))
			l.away(ctx, "wait", err)
		}
		if !pause(ctx, d.UpTo(300*time.Millisecond)) {
			return
		}
	}
}

// resend sends a request once more: the answer must be the same task.
func (l *load) resend(ctx context.Context, s *sent) {
	task, created, err := l.c.Submit(ctx, l.request(s))
	if !l.away(ctx, "submit again", err) && (task.ID != s.id || created) {
		l.t.Errorf("key %s named task %s, and now %s (created %v)", s.key, s.id, task.ID, created)
	}
}

func (l *load) cancel(ctx context.Context, s *sent) {
	l.mu.Lock()
	s.cancelled = true
	l.mu.Unlock()
	_, err := l.c.Cancel(ctx, s.id, "the load changed its mind")
	if writ.KindOf(err) == writ.Conflict {
		return // it was over
	}
	l.away(ctx, "cancel", err)
}

// approve decides what is pending until ctx ends. c has an operator's key.
func (l *load) approve(ctx context.Context, c *client.Client, d *testkit.Dice) {
	for pause(ctx, 30*time.Millisecond+d.UpTo(50*time.Millisecond)) {
		pending, _, err := c.Approvals(ctx, writ.ApprovalFilter{States: []writ.ApprovalState{writ.ApprovalPending}})
		if l.away(ctx, "list approvals", err) {
			continue
		}
		for _, a := range pending {
			v := writ.VoteRequest{Verdict: writ.Grant}
			switch d.Below(10) {
			case 0, 1, 2, 3: // later
				continue
			case 4, 5:
				v = writ.VoteRequest{Verdict: writ.Refuse, Reason: "not today"}
			default:
				view, err := c.Approval(ctx, a.ID)
				if l.away(ctx, "show approval", err) {
					continue
				}
				v.Shown = view.Shown
			}
			got, err := c.Vote(ctx, a.ID, v)
			if writ.KindOf(err) == writ.Conflict { // cancelled meanwhile, or a vote whose answer was lost
				continue
			}
			if !l.away(ctx, "vote", err) {
				l.mu.Lock()
				l.votes[got.ID] = v.Verdict
				l.mu.Unlock()
			}
		}
	}
}

// checkpoints keeps signed heads until ctx ends, each larger than the one before.
func (l *load) checkpoints(ctx context.Context) {
	for pause(ctx, 150*time.Millisecond) {
		cp, err := l.c.Checkpoint(ctx)
		if l.away(ctx, "checkpoint", err) {
			continue
		}
		l.mu.Lock()
		if cp.Size < l.size {
			l.t.Errorf("the log had %d events and has %d now", l.size, cp.Size)
		}
		if cp.Size > l.size {
			l.anchors, l.size = append(l.anchors, cp.Note), cp.Size
		}
		l.mu.Unlock()
	}
}

// lookAround reads tasks that were answered, until ctx ends: none may be missing,
// and none that is over may change.
func (l *load) lookAround(ctx context.Context, d *testkit.Dice) {
	over := map[writ.TaskID]writ.TaskState{}
	for pause(ctx, d.UpTo(60*time.Millisecond)) {
		l.mu.Lock()
		var id writ.TaskID
		if n := len(l.order); n > 0 {
			id = l.sent[l.order[n-1-d.Below(min(n, 40))]].id
		}
		l.mu.Unlock()
		if id == "" {
			continue
		}
		task, err := l.c.Task(ctx, id)
		if l.away(ctx, "read task", err) {
			continue
		}
		if was, ok := over[id]; ok && was != task.State {
			l.t.Errorf("task %s was %s and is %s now", id, was, task.State)
		}
		if task.State.Terminal() {
			over[id] = task.State
		}
	}
}

// all lists every task that the server has.
func (l *load) all(ctx context.Context) (tasks []writ.Task, err error) {
	f := writ.TaskFilter{Page: writ.Page{Limit: writ.MaxPage}}
	for {
		page, next, err := l.c.Tasks(ctx, f)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, page...)
		if next == "" {
			return tasks, nil
		}
		f.Page.Cursor = next
	}
}

// unsettled names the tasks that are not over.
func (l *load) unsettled(ctx context.Context) (string, bool) {
	tasks, err := l.all(ctx)
	if err != nil {
		return err.Error(), false
	}
	var names []string
	for _, t := range tasks {
		if !t.State.Terminal() {
			names = append(names, fmt.Sprintf("%s (%s) is %s since %v", t.ID, t.Key, t.State, t.Updated))
		}
	}
	return strings.Join(names, "\n"), len(names) == 0
}

// has reports whether a task is in a state.
func (l *load) has(ctx context.Context, state writ.TaskState) bool {
	tasks, _, err := l.c.Tasks(ctx, writ.TaskFilter{States: []writ.TaskState{state}, Page: writ.Page{Limit: 1}})
	return !l.away(ctx, "look for a task", err) && len(tasks) > 0
}

// kept are at most n of the checkpoints, the oldest and the newest among them.
func (l *load) kept(n int) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.anchors) <= n {
		return slices.Clone(l.anchors)
	}
	var some []string
	for i := range n {
		some = append(some, l.anchors[i*(len(l.anchors)-1)/(n-1)])
	}
	return some
}

// pause waits for d; false means that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}
