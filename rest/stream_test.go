package rest_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// life is a task's life as a watcher sees it.
func life() []writ.TaskEvent {
	held, running, over := someTasks()[1], someTasks()[1], someTask()
	running.State = writ.TaskRunning
	return []writ.TaskEvent{
		{Task: &held},
		{Task: &running},
		{Output: &writ.Chunk{Stream: writ.Stdout, Data: []byte("one\ndata: two\r\n\nevent: task\n\x00\xff")}},
		{Output: &writ.Chunk{Stream: writ.Stderr, Data: make([]byte, 32<<10)}},
		{Task: &over},
	}
}

func replay(events []writ.TaskEvent, end error) func(context.Context, func(writ.TaskEvent) error) error {
	return func(_ context.Context, emit func(writ.TaskEvent) error) error {
		for _, e := range events {
			if err := emit(e); err != nil {
				return err
			}
		}
		return end
	}
}

func TestWatch(t *testing.T) {
	s := start(t, time.Minute)
	s.watch = replay(life(), nil)
	var got []writ.TaskEvent
	err := s.overUnix.Watch(t.Context(), "task_1", func(e writ.TaskEvent) error { got = append(got, e); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(life(), got); diff != "" {
		t.Errorf("events (want -, got +):\n%s", diff)
	}
	s.wantCalls(t, call{"Watch", owner().Ref(), []any{writ.TaskID("task_1")}})
}

// TestWatchOnTheWire pins the names of the events and that each comes at once.
func TestWatchOnTheWire(t *testing.T) {
	s := start(t, time.Minute)
	seen := make(chan struct{})
	s.watch = func(ctx context.Context, emit func(writ.TaskEvent) error) error {
		for _, e := range life() {
			if err := emit(e); err != nil {
				return err
			}
			select {
			case <-seen: // the client has it before the next is sent
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
	resp := open(t, s, "/v1/tasks/task_1/events")
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("Content-Type %q", got)
	}
	var names []string
	for r := bufio.NewReader(resp.Body); ; {
		line, err := r.ReadString('\n')
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			names = append(names, strings.TrimSpace(name))
		} else if line == "\n" {
			seen <- struct{}{}
		}
	}
	if diff := cmp.Diff([]string{"task", "task", "output", "output", "task"}, names); diff != "" {
		t.Errorf("events (want -, got +):\n%s", diff)
	}
}

func open(t *testing.T, s *system, path string) *http.Response {
	t.Helper()
	// A stream that does not come is a failure, not a test that hangs.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.tcp.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := s.tcp.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// TestWatchBeats: a quiet stream has comments, and its handler ends when the
// client goes.
func TestWatchBeats(t *testing.T) {
	s := start(t, time.Millisecond)
	gone := make(chan struct{})
	s.watch = func(ctx context.Context, _ func(writ.TaskEvent) error) error {
		<-ctx.Done()
		close(gone)
		return ctx.Err()
	}
	resp := open(t, s, "/v1/tasks/task_1/events")
	r := bufio.NewReader(resp.Body)
	for range 3 {
		for _, want := range []string{":\n", "\n"} {
			if line, err := r.ReadString('\n'); line != want {
				t.Fatalf("line %q, %v; want %q", line, err, want)
			}
		}
	}
	resp.Body.Close()
	<-gone
}

// TestWatchErrors: before the first event an error is an answer, after it an event.
func TestWatchErrors(t *testing.T) {
	s := start(t, time.Minute)
	s.watch = replay(nil, &writ.Error{Kind: writ.NotFound, Msg: "there is no task task_1"})
	wantProblem(t, s.send(t, "GET", "/v1/tasks/task_1/events", ""), 404, "there is no task task_1")
	never := func(writ.TaskEvent) error { return errors.New("not reached") }
	wantError(t, "first", s.overTCP.Watch(t.Context(), "task_1", never), writ.NotFound, "there is no task task_1")

	s.watch = replay(life()[:2], &writ.Error{Kind: writ.Denied, Msg: "the key was revoked"})
	n := 0
	err := s.overTCP.Watch(t.Context(), "task_1", func(writ.TaskEvent) error { n++; return nil })
	wantError(t, "later", err, writ.Denied, "the key was revoked")
	if n != 2 {
		t.Errorf("%d events, want 2", n)
	}

	s.watch = replay(life(), nil)
	stop := errors.New("enough")
	if err := s.overTCP.Watch(t.Context(), "task_1", func(writ.TaskEvent) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("error of emit: %v", err)
	}
}

// TestWatchAsksAgain: a stream that ends before the task does is taken up again.
func TestWatchAsksAgain(t *testing.T) {
	s := start(t, time.Minute)
	var tries atomic.Int32
	s.watch = func(ctx context.Context, emit func(writ.TaskEvent) error) error {
		switch tries.Add(1) {
		case 1:
			return replay(life()[:2], &writ.Error{Kind: writ.Unavailable, Msg: "stopping"})(ctx, emit)
		case 2:
			return replay(life()[1:2], nil)(ctx, emit)
		}
		return replay(life()[1:], nil)(ctx, emit)
	}
	var states []writ.TaskState
	err := s.overTCP.Watch(t.Context(), "task_1", func(e writ.TaskEvent) error {
		if e.Task != nil {
			states = append(states, e.Task.State)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []writ.TaskState{writ.TaskHeld, writ.TaskRunning, writ.TaskRunning, writ.TaskRunning, writ.TaskFailed}
	if diff := cmp.Diff(want, states); diff != "" {
		t.Errorf("states (want -, got +):\n%s", diff)
	}
}

// shutdown stops the TCP server, which must not take long.
func shutdown(t *testing.T, s *system) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := s.tcp.Config.Shutdown(ctx); err != nil {
		s.tcp.CloseClientConnections() // what waits would wait on
		t.Fatal(err)
	}
}

// TestWaitEndsWithTheServer: so does one that waits.
func TestWaitEndsWithTheServer(t *testing.T) {
	s := start(t, time.Minute)
	begun := make(chan struct{})
	s.wait = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	failed := make(chan error, 1)
	go func() {
		_, err := s.overTCP.Wait(t.Context(), "task_1", time.Minute)
		failed <- err
	}()
	<-begun
	shutdown(t, s)
	wantError(t, "wait", <-failed, writ.Unavailable, "the server is stopping: ask again")
	for _, line := range s.lines(t) {
		if line["level"] != "INFO" || line["stopping"] != true {
			t.Errorf("logged as %v: a request that a stop cuts off is no fault", line)
		}
	}
}

// TestShutdownEndsStreams: a server that stops does not wait for the tasks that
// are watched, and says so.
func TestShutdownEndsStreams(t *testing.T) {
	s := start(t, time.Minute)
	begun := make(chan struct{})
	s.watch = func(ctx context.Context, emit func(writ.TaskEvent) error) error {
		if err := emit(life()[0]); err != nil {
			return err
		}
		close(begun)
		<-ctx.Done()
		return ctx.Err()
	}
	resp := open(t, s, "/v1/tasks/task_1/events")
	<-begun
	shutdown(t, s)
	b, _ := io.ReadAll(resp.Body) // ends with a broken connection, on purpose
	if !strings.Contains(string(b), "event: error\ndata: {") || !strings.Contains(string(b), `"kind":"unavailable"`) {
		t.Errorf("the stream ends with %q", b)
	}
}
