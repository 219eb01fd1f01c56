package task_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

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
		case len(e.Output.Data) > writ.MaxChunkBytes || len(e.Output.Data) == 0:
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

// With news in this process the store is read at the start, at the end and once a
// second: not for each piece of output, of which a chatty run has thousands.
func TestOutputDoesNotReadTheStore(t *testing.T) {
	s := testkit.Gateway(t)
	looks := s.Tasks.CountLooks()
	coder := s.Agent("coder")
	tk := s.MustSubmit(testkit.Run("bash", "1"))
	heard, done, waited := make(chan struct{}, 1), make(chan error, 1), make(chan error, 1)
	began := time.Now() // of whichever of them begins first
	go func() {
		done <- s.Tasks.Watch(context.Background(), coder, tk.ID, func(e writ.TaskEvent) error {
			if e.Output != nil {
				heard <- struct{}{}
			}
			return nil
		})
	}()
	go func() {
		got, err := s.Tasks.Wait(context.Background(), coder, tk.ID, time.Hour)
		if err == nil && got.State != writ.TaskSucceeded {
			err = fmt.Errorf("waited for %s", got.State)
		}
		waited <- err
	}()
	testkit.Eventually(t, "both wait", func() bool { return s.Hub.Watchers() == 2 && looks.Load() >= 2 })
	const chunks = 20_000 // some for each time that it takes to read the store
	s.Runner.Does(func(ctx context.Context, _ writ.RunSpec, emit func(writ.Chunk)) (writ.Result, error) {
		for range chunks {
			emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("x")})
			select { // each is news of its own
			case <-heard:
			case <-ctx.Done():
			}
		}
		return testkit.Ran(0, "x", ""), nil
	})
	s.MustGrant(tk)
	if err := testkit.Receive(t, "the watch ends", done); err != nil {
		t.Error(err)
	}
	if err := testkit.Receive(t, "the wait ends", waited); err != nil {
		t.Error(err)
	}
	// Two of them, each at its start, its end and, at most, once for each second between.
	if n, most := looks.Load(), 2*(2+1+int64(time.Since(began)/time.Second)); n > most {
		t.Errorf("the store was read %d times for %d pieces of output, want at most %d", n, chunks, most)
	}
	wantIdle(t, s.Hub)
}
