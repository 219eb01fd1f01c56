package task_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"writ"
	"writ/internal/testkit"
	"writ/store"
	"writ/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// heard is what a watcher was told, in order: states, and output by stream.
type heard struct {
	mu     sync.Mutex
	states []writ.TaskState
	out    map[writ.Stream]string
	last   *writ.Task
	after  bool // output came after the terminal state
}

func (h *heard) emit(e writ.TaskEvent) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if e.Task != nil {
		h.states = append(h.states, e.Task.State)
		h.last = e.Task
		return nil
	}
	if h.out == nil {
		h.out = map[writ.Stream]string{}
	}
	h.out[e.Output.Stream] += string(e.Output.Data)
	h.after = h.after || h.last != nil && h.last.State.Terminal()
	return nil
}

func (h *heard) seen(state writ.TaskState) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.states, state)
}

func (h *heard) text(s writ.Stream) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.out[s]
}

// watch starts a watcher of id and answers what it hears and how it ends.
func watch(t *testing.T, s *testkit.System, who writ.Principal, id writ.TaskID) (*heard, <-chan error) {
	t.Helper()
	h, done := &heard{}, make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); done <- s.Tasks.Watch(ctx, who, id, h.emit) }()
	t.Cleanup(func() { cancel(); <-ended })
	return h, done
}

func wantKind(t *testing.T, what string, err error, want writ.Kind) {
	t.Helper()
	if err == nil || writ.KindOf(err) != want {
		t.Errorf("%s: got error %v, want one of kind %v", what, err, want)
	}
}

// wantIdle fails unless nothing is kept of any task, soon.
func wantIdle(t *testing.T, h *task.Hub) {
	t.Helper()
	testkit.Eventually(t, "the hub keeps nothing", func() bool { return h.Feeds() == 0 })
}

func TestWatchSeesEveryStateAndAllOutput(t *testing.T) {
	s := testkit.Gateway(t)
	s.Runner.Does(func(_ context.Context, _ writ.RunSpec, emit func(writ.Chunk)) (writ.Result, error) {
		for i := range 100 {
			emit(writ.Chunk{Stream: writ.Stdout, Data: fmt.Appendf(nil, "%d,", i)})
			emit(writ.Chunk{Stream: writ.Stderr, Data: []byte("!")})
		}
		return testkit.Ran(3, "what is stored", "is not asked for"), nil
	})
	want := ""
	for i := range 100 {
		want += fmt.Sprint(i, ",")
	}
	for range 10 {
		held := s.MustSubmit(testkit.Run("bash", "1"))
		var hs []*heard
		var ends []<-chan error
		for range 3 {
			h, done := watch(t, s, s.Agent("coder"), held.ID)
			hs, ends = append(hs, h), append(ends, done)
			testkit.Eventually(t, "it is told of the hold", func() bool { return h.seen(writ.TaskHeld) })
		}
		s.MustGrant(held)
		for i, done := range ends {
			if err := testkit.Receive(t, "a watch ends", done); err != nil {
				t.Fatal(err)
			}
			h := hs[i]
			states := []writ.TaskState{writ.TaskHeld, writ.TaskQueued, writ.TaskRunning, writ.TaskFailed}
			if d := cmp.Diff(states, h.states); d != "" {
				t.Errorf("states (-want +got):\n%s", d)
			}
			if h.text(writ.Stdout) != want || h.text(writ.Stderr) != strings.Repeat("!", 100) || h.after {
				t.Errorf("heard %q and %q, output after the end %v", h.text(writ.Stdout), h.text(writ.Stderr), h.after)
			}
			if h.last.Result == nil || *h.last.Result.ExitCode != 3 || h.last.Finished == nil {
				t.Errorf("last %+v", h.last)
			}
		}
	}
	wantIdle(t, s.Hub)
}

func TestWatchThatBeginsLate(t *testing.T) {
	s := testkit.Gateway(t)
	coder := s.Agent("coder")
	spoke, open := make(chan struct{}, 1), make(chan struct{})
	big := strings.Repeat("x", 100_000)
	s.Runner.Does(func(_ context.Context, _ writ.RunSpec, emit func(writ.Chunk)) (writ.Result, error) {
		emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("early ")})
		spoke <- struct{}{}
		<-open
		emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("late")})
		return testkit.Ran(0, big, "\xff\xfe"), nil
	})
	tk := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run speaks", spoke)
	h, done := watch(t, s, coder, tk.ID)
	testkit.Eventually(t, "it hears what was said before", func() bool { return h.text(writ.Stdout) == "early " })
	close(open)
	if err := testkit.Receive(t, "the watch ends", done); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]writ.TaskState{writ.TaskRunning, writ.TaskSucceeded}, h.states); d != "" || h.text(writ.Stdout) != "early late" {
		t.Errorf("heard %q, states %s", h.text(writ.Stdout), d)
	}
	// After the end: from the store, in chunks within their bound, then the state.
	var events []writ.TaskEvent
	if err := s.Tasks.Watch(t.Context(), coder, tk.ID, func(e writ.TaskEvent) error { events = append(events, e); return nil }); err != nil {
		t.Fatal(err)
	}
	var out, errs []byte
	for i, e := range events {
		switch {
		case e.Task != nil && (i != len(events)-1 || e.Task.State != writ.TaskSucceeded):
			t.Errorf("event %d of %d is state %s", i, len(events), e.Task.State)
		case e.Task != nil:
		case len(e.Output.Data) > 32<<10 || len(e.Output.Data) == 0:
			t.Errorf("a chunk of %d bytes", len(e.Output.Data))
		case e.Output.Stream == writ.Stdout:
			out = append(out, e.Output.Data...)
		default:
			errs = append(errs, e.Output.Data...)
		}
	}
	if string(out) != big || string(errs) != "\xff\xfe" {
		t.Errorf("stdout of %d bytes, stderr %q", len(out), errs)
	}
	// Deleted output is not there for anybody.
	if err := s.Tasks.DeleteBodies(t.Context(), s.Operator("ann"), tk.ID); err != nil {
		t.Fatal(err)
	}
	h, done = watch(t, s, coder, tk.ID)
	if err := testkit.Receive(t, "the watch ends", done); err != nil || len(h.out) != 0 || !h.seen(writ.TaskSucceeded) {
		t.Errorf("%v, heard %v", err, h.out)
	}
	wantIdle(t, s.Hub)
}

func TestWatchOfWhatNeverRuns(t *testing.T) {
	s := testkit.Gateway(t, func(g *testkit.GatewaySetup) { g.Options.ApprovalTTL = time.Hour })
	coder := s.Agent("coder")
	for _, tk := range []writ.Task{s.MustSubmit(testkit.Run("node", "1")), s.MustSubmit(writ.TaskRequest{Step: "x"})} {
		h, done := watch(t, s, coder, tk.ID)
		if err := testkit.Receive(t, "the watch ends", done); err != nil || len(h.states) != 1 || h.states[0] != tk.State || h.out != nil {
			t.Errorf("%v, states %v", err, h.states)
		}
	}
	denied, cancelled := s.MustSubmit(testkit.Run("bash", "1")), s.MustSubmit(testkit.Run("bash", "1"))
	h1, done1 := watch(t, s, coder, denied.ID)
	h2, done2 := watch(t, s, coder, cancelled.ID)
	testkit.Eventually(t, "both are watched", func() bool { return h1.seen(writ.TaskHeld) && h2.seen(writ.TaskHeld) })
	if _, err := s.Decide(s.Operator("ann"), denied, writ.Refuse, "no"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Cancel(t.Context(), coder, cancelled.ID, ""); err != nil {
		t.Fatal(err)
	}
	err1, err2 := testkit.Receive(t, "the denied one ends", done1), testkit.Receive(t, "the cancelled one ends", done2)
	if err1 != nil || err2 != nil || !h1.seen(writ.TaskDenied) || !h2.seen(writ.TaskCancelled) {
		t.Errorf("%v %v, states %v and %v", err1, err2, h1.states, h2.states)
	}
	wantIdle(t, s.Hub)
}

// What another gateway carries is seen by looking at the store.
func TestWatchOfAnotherGatewaysTask(t *testing.T) {
	s := testkit.Gateway(t)
	other := s.Sibling("gw_other")
	started, release := other.Runner.Blocks()
	tk := other.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	h, done := watch(t, s, s.Agent("coder"), tk.ID)
	testkit.Eventually(t, "it is seen to run", func() bool { return h.seen(writ.TaskRunning) })
	release()
	if err := testkit.Receive(t, "the watch ends", done); err != nil || h.text(writ.Stdout) != "done\n" {
		t.Errorf("%v, heard %q", err, h.text(writ.Stdout))
	}
	wantIdle(t, s.Hub)
	wantIdle(t, other.Hub)
}

// A run that another gateway called interrupted leaves nothing behind here.
func TestNoFeedOfARunThatAnotherSettled(t *testing.T) {
	s := testkit.Gateway(t)
	started, release := s.Runner.Blocks()
	tk := s.MustSubmit(testkit.Run("python", "1"))
	testkit.Receive(t, "the run begins", started)
	if s.Hub.Feeds() != 1 {
		t.Errorf("%d feeds while it runs", s.Hub.Feeds())
	}
	if err := s.DB.Update(t.Context(), func(tx *store.Tx) error { return tx.Leave(t.Context(), s.Setup.Options.Owner) }); err != nil {
		t.Fatal(err)
	}
	s.Sibling("gw_other")
	s.Until(tk.ID, writ.TaskInterrupted)
	release()
	wantIdle(t, s.Hub)
}

func TestWatchEnds(t *testing.T) {
	s := testkit.Gateway(t)
	coder := s.Agent("coder")
	tk := s.MustSubmit(testkit.Run("bash", "1"))
	stop := errors.New("the client is gone")
	if err := s.Tasks.Watch(t.Context(), coder, tk.ID, func(writ.TaskEvent) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("emit's error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Tasks.Watch(ctx, coder, tk.ID, func(writ.TaskEvent) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("its context's end: %v", err)
	}
	for _, who := range []writ.Principal{s.Agent("guest"), s.Agent("idle"), s.Operator("eve")} {
		err := s.Tasks.Watch(t.Context(), who, tk.ID, func(writ.TaskEvent) error { t.Errorf("%s heard something", who.ID); return nil })
		wantKind(t, who.ID, err, writ.NotFound)
	}
	for _, id := range []writ.TaskID{"", "task_none", "../x", "\x00", writ.TaskID(strings.Repeat("x", 1<<20))} {
		err := s.Tasks.Watch(t.Context(), coder, id, func(writ.TaskEvent) error { return nil })
		wantKind(t, "of none", err, writ.NotFound)
	}
	wantIdle(t, s.Hub)
}

func TestWait(t *testing.T) {
	s := testkit.Gateway(t)
	ctx, coder := t.Context(), s.Agent("coder")
	tk := s.MustSubmit(testkit.Run("bash", "1"))
	for _, d := range []time.Duration{-1, 0, time.Millisecond} {
		if got, err := s.Tasks.Wait(ctx, coder, tk.ID, d); err != nil || got.State != writ.TaskHeld {
			t.Errorf("for %v: %s, %v", d, got.State, err)
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if got, err := s.Tasks.Wait(over, coder, tk.ID, time.Hour); err != nil || got.State != writ.TaskHeld {
		t.Errorf("with a context that is over: %s, %v", got.State, err)
	}
	_, err := s.Tasks.Wait(ctx, s.Agent("guest"), tk.ID, time.Hour)
	wantKind(t, "of another's", err, writ.NotFound)

	type answer struct {
		task writ.Task
		err  error
	}
	answers := make(chan answer, 4)
	for range 4 {
		go func() {
			got, err := s.Tasks.Wait(context.Background(), coder, tk.ID, time.Hour)
			answers <- answer{got, err}
		}()
	}
	testkit.Eventually(t, "all wait", func() bool { return s.Hub.Watchers() == 4 })
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(0, "yes\n", ""), nil
	})
	s.MustGrant(tk)
	for range 4 {
		a := testkit.Receive(t, "a wait ends", answers)
		if a.err != nil || a.task.State != writ.TaskSucceeded || a.task.Result.Stdout.Text != "yes\n" {
			t.Errorf("%s, %v", a.task.State, a.err)
		}
	}
	if got, err := s.Tasks.Wait(ctx, coder, tk.ID, 0); err != nil || got.State != writ.TaskSucceeded {
		t.Errorf("%s, %v", got.State, err)
	}
	wantIdle(t, s.Hub)
}

func TestOutputAndSpec(t *testing.T) {
	s := testkit.Gateway(t)
	ctx, coder := t.Context(), s.Agent("coder")
	raw := []byte("a\xffb\x00c")
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(0, string(raw), ""), nil
	})
	req := testkit.Run("py", "print(1)")
	req.Spec.Inputs = []writ.Input{{Path: "a/b", Content: raw}}
	tk := s.MustSubmit(req)
	s.Until(tk.ID, writ.TaskSucceeded)

	out, err := s.Tasks.Output(ctx, coder, tk.ID, writ.Stdout)
	if err != nil || !bytes.Equal(out, raw) {
		t.Errorf("stdout %q, %v", out, err)
	}
	if out, err := s.Tasks.Output(ctx, coder, tk.ID, writ.Stderr); err != nil || len(out) != 0 {
		t.Errorf("stderr %q, %v", out, err)
	}
	got, err := s.Tasks.Get(ctx, coder, tk.ID)
	if err != nil || !bytes.Equal(got.Result.Stdout.Data(), raw) || !bytes.Equal(got.Result.Stdout.Raw, raw) || got.Result.Stderr.Text != "" {
		t.Errorf("%+v, %v", got.Result, err)
	}
	spec, err := s.Tasks.Spec(ctx, coder, tk.ID)
	if err != nil || spec.Digest() != tk.Digest || spec.Language != "python" || spec.Limits != writ.DefaultLimits {
		t.Errorf("%+v, %v", spec, err)
	}

	_, err = s.Tasks.Output(ctx, coder, tk.ID, "spec")
	wantKind(t, "a stream that is none", err, writ.Invalid)
	for _, who := range []writ.Principal{s.Agent("guest"), s.Agent("idle"), s.Operator("eve")} {
		_, err1 := s.Tasks.Output(ctx, who, tk.ID, writ.Stdout)
		_, err2 := s.Tasks.Spec(ctx, who, tk.ID)
		_, err3 := s.Tasks.Get(ctx, who, tk.ID)
		_, err4 := s.Tasks.Cancel(ctx, who, tk.ID, "")
		for _, err := range []error{err1, err2, err3, err4} {
			wantKind(t, who.ID, err, writ.NotFound)
		}
	}

	// Deleting needs an operator of the tenant and a task that is over; the log keeps
	// its digests and still verifies.
	held := s.MustSubmit(testkit.Run("bash", "1"))
	wantKind(t, "delete by the agent", s.Tasks.DeleteBodies(ctx, coder, tk.ID), writ.Denied)
	wantKind(t, "delete by another tenant", s.Tasks.DeleteBodies(ctx, s.Operator("eve"), tk.ID), writ.NotFound)
	wantKind(t, "delete before the end", s.Tasks.DeleteBodies(ctx, s.Operator("ann"), held.ID), writ.Conflict)
	if err := s.Tasks.DeleteBodies(ctx, s.Operator("ann"), tk.ID); err != nil {
		t.Fatal(err)
	}
	es := s.Events(tk.ID)
	if e := es[len(es)-1]; e.Type != writ.EventBodiesDeleted || e.Actor != s.Operator("ann").Ref() || e.Data.Count != 3 {
		t.Errorf("%+v", e)
	}
	_, err = s.Tasks.Output(ctx, coder, tk.ID, writ.Stdout)
	wantKind(t, "deleted output", err, writ.NotFound)
	_, err = s.Tasks.Spec(ctx, coder, tk.ID)
	wantKind(t, "deleted spec", err, writ.NotFound)
	after, err := s.Tasks.Get(ctx, coder, tk.ID)
	if err != nil || after.Result.Stdout.SHA256 != writ.DigestOf(raw) || after.Result.Stdout.Text != "" {
		t.Errorf("%+v, %v", after.Result, err)
	}
}

func TestList(t *testing.T) {
	s := testkit.Gateway(t)
	ctx := t.Context()
	var mine []writ.TaskID
	for range 5 {
		mine = append(mine, s.MustSubmit(testkit.Run("bash", "1")).ID)
	}
	denied := s.MustSubmit(testkit.Run("node", "1")).ID
	foreign, _, err := s.Submit(ctx, s.Agent("guest"), testkit.Run("bash", "1"))
	if err != nil {
		t.Fatal(err)
	}
	idle, _, err := s.Submit(ctx, s.Agent("idle"), testkit.Run("bash", "1"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(mine)
	acme := append([]writ.TaskID{idle.ID, denied}, mine...)
	tests := []struct {
		name string
		who  writ.Principal
		f    writ.TaskFilter
		want []writ.TaskID
	}{
		{"an agent its own", s.Agent("coder"), writ.TaskFilter{}, append([]writ.TaskID{denied}, mine...)},
		{"an agent that names another", s.Agent("coder"), writ.TaskFilter{Identity: "guest", Tenant: "globex"}, append([]writ.TaskID{denied}, mine...)},
		{"an operator its tenant's", s.Operator("ann"), writ.TaskFilter{}, acme},
		{"an operator that names another tenant", s.Operator("ann"), writ.TaskFilter{Tenant: "globex"}, acme},
		{"an operator one identity's", s.Operator("ann"), writ.TaskFilter{Identity: "idle"}, []writ.TaskID{idle.ID}},
		{"an operator a foreign identity's", s.Operator("ann"), writ.TaskFilter{Identity: "guest"}, nil},
		{"the owner of the folder all", testkit.Local(), writ.TaskFilter{}, append([]writ.TaskID{idle.ID, foreign.ID, denied}, mine...)},
		{"the owner one tenant's", testkit.Local(), writ.TaskFilter{Tenant: "globex"}, []writ.TaskID{foreign.ID}},
		{"by state", s.Agent("coder"), writ.TaskFilter{States: []writ.TaskState{writ.TaskHeld}}, mine},
	}
	for _, tt := range tests {
		var got []writ.TaskID
		f := tt.f
		f.Page.Limit = 2
		for more := true; more; more = f.Page.Cursor != "" {
			page, next, err := s.Tasks.List(ctx, tt.who, f)
			if err != nil || len(page) > 2 {
				t.Fatalf("%s: %d tasks, %v", tt.name, len(page), err)
			}
			for _, tk := range page {
				got = append(got, tk.ID)
			}
			f.Page.Cursor = next
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
	}
}

// A resend answers the first task with its output.
func TestResendAnswersTheResult(t *testing.T) {
	s := testkit.Gateway(t)
	s.Runner.Does(func(context.Context, writ.RunSpec, func(writ.Chunk)) (writ.Result, error) {
		return testkit.Ran(0, "42\n", ""), nil
	})
	req := testkit.Run("python", "1")
	req.Key = "k"
	first, created, err := s.Tasks.Submit(t.Context(), s.Agent("coder"), req)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	s.Until(first.ID, writ.TaskSucceeded)
	again, created, err := s.Tasks.Submit(t.Context(), s.Agent("coder"), req)
	if err != nil || created || again.ID != first.ID || again.Result == nil || again.Result.Stdout.Text != "42\n" {
		t.Errorf("created %v, %v, %+v", created, err, again.Result)
	}
	if err := s.Tasks.Refuse(t.Context(), s.Agent("coder"), "a body that is no JSON"); err != nil {
		t.Fatal(err)
	}
	es := s.Events("")
	if e := es[len(es)-1]; e.Type != writ.EventTaskRefused || e.Data.Reason != "a body that is no JSON" {
		t.Errorf("%+v", e)
	}
}
