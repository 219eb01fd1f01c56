package remote

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

// The same suite as in one process, over the wire.
func TestProcessesOverTheWire(t *testing.T) {
	needBubblewrap(t)
	testkit.Processes(t, func(t *testing.T, opt runner.ProcessesOptions) (testkit.AnyProcesses, func()) {
		p, err := sandbox.New(sandbox.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := runner.NewProcesses(p, opt)
		c, stopServer := serveParts(t, Parts{Runner: fake{}, Processes: m}, ownUID())
		stop := func() {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(func() {
			stop()
			_ = c.Close()
			stopServer()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return c.Processes(), stop
	})
}

// fakeProcesses are Processes of functions; those that are nil refuse.
type fakeProcesses struct {
	noProcesses
	start  func(ctx context.Context, o writ.ProcessOrder) error
	input  func(ctx context.Context, data []byte) (int, error)
	output func(ctx context.Context, q writ.OutputQuery) (writ.ProcessOutput, error)
	status func() (writ.ProcessStatus, error)
	exits  func(ctx context.Context, fn func(writ.ProcessStatus) error) error
}

func (f fakeProcesses) Start(ctx context.Context, o writ.ProcessOrder) error { return f.start(ctx, o) }

func (f fakeProcesses) Input(ctx context.Context, _ writ.ProcessID, data []byte) (int, error) {
	return f.input(ctx, data)
}

func (f fakeProcesses) Output(ctx context.Context, _ writ.ProcessID, q writ.OutputQuery) (writ.ProcessOutput, error) {
	return f.output(ctx, q)
}

func (f fakeProcesses) Status(context.Context, writ.ProcessID) (writ.ProcessStatus, error) {
	return f.status()
}

func (f fakeProcesses) Exits(ctx context.Context, fn func(writ.ProcessStatus) error) error {
	return f.exits(ctx, fn)
}

func serveProcesses(t *testing.T, p Processes) *ProcessesClient {
	t.Helper()
	c, _ := serveParts(t, Parts{Runner: fake{}, Processes: p}, ownUID())
	return c.Processes()
}

// TestProcessWireIsAsSpecified pins doc.go, "The wire".
func TestProcessWireIsAsSpecified(t *testing.T) {
	for _, tt := range []struct {
		msg  any
		want string
	}{
		{&startOrder{writ.ProcessOrder{ID: "proc-1", Workspace: writ.Workspace{ID: "w"}, Command: []string{"a", "<b>"}, TTY: true, Dir: "d", Limits: writ.Limits{WallMS: 1}}},
			`{"order":{"id":"proc-1","workspace":{"id":"w","tenant":"","root":"","profile":"","environment":"","environment_kind":"","network":"","approvals":""},"command":["a","<b>"],"tty":true,"dir":"d","limits":{"wall_ms":1}}}`},
		{&inputOrder{"proc-1", []byte{255}}, `{"process_id":"proc-1","data":"/w=="}`},
		{&inputTaken{3}, `{"taken":3}`},
		{&processOrder{"proc-1"}, `{"process_id":"proc-1"}`},
		{&outputOrder{"proc-1", writ.OutputQuery{Cursor: 1, Limit: 2, Wait: 3, Stream: writ.Stderr}}, `{"process_id":"proc-1","query":{"cursor":1,"limit":2,"wait":3,"stream":"stderr"}}`},
		{&resizeOrder{"proc-1", writ.FirstTerminalSize}, `{"process_id":"proc-1","size":{"rows":24,"cols":80}}`},
		{&terminateOrder{"proc-1", writ.Kill{Signal: "TERM", Grace: 5}}, `{"process_id":"proc-1","kill":{"signal":"TERM","grace":5}}`},
	} {
		b, err := encoded(tt.msg)
		if got := strings.TrimSpace(string(b)); err != nil || got != tt.want {
			t.Errorf("message %s, %v\nwant    %s", got, err, tt.want)
		}
	}
}

func TestErrorsOfProcessesKeepKindCodeAndText(t *testing.T) {
	var next error
	p := serveProcesses(t, fakeProcesses{
		start:  func(context.Context, writ.ProcessOrder) error { return next },
		input:  func(context.Context, []byte) (int, error) { return 3, next },
		status: func() (writ.ProcessStatus, error) { return writ.ProcessStatus{}, next },
		exits:  func(context.Context, func(writ.ProcessStatus) error) error { return next },
	})
	for _, kind := range writ.Kinds {
		next = &writ.Error{Kind: kind, Code: "PROCESS_SPAWN_FAILED", Op: "x", Msg: "naïve \"words\"\nline two"}
		n, input := p.Input(t.Context(), "p", []byte("12345"))
		if n != 3 {
			t.Errorf("%v: %d bytes went in, want 3", kind, n)
		}
		_, status := p.Status(t.Context(), "p")
		for what, err := range map[string]error{
			"start": p.Start(t.Context(), writ.ProcessOrder{}), "input": input, "status": status,
			"exits": p.Exits(t.Context(), func(writ.ProcessStatus) error { return nil }),
		} {
			if writ.KindOf(err) != kind || writ.CodeOf(err) != "PROCESS_SPAWN_FAILED" || writ.Message(err) != writ.Message(next) || errors.Is(err, writ.ErrDispatchUnknown) {
				t.Errorf("%s: %v of kind %v became %v of kind %v with code %q", what, next, kind, err, writ.KindOf(err), writ.CodeOf(err))
			}
		}
	}
}

func TestProcessOrdersCrossWhole(t *testing.T) {
	var got writ.ProcessOrder
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	code := 3
	want := writ.ProcessStatus{ID: "proc-<1>", State: writ.ProcessExited, Termination: writ.TerminationExited, ExitCode: &code, Reason: "r", Total: 9, Retained: 1, EOF: true, Started: at, Ended: &at}
	signaled := writ.ProcessStatus{ID: "proc-2", State: writ.ProcessExited, Termination: writ.TerminationSignaled, Signal: &writ.Signal{Number: 9, Name: "SIGKILL"}, Started: at, Ended: &at, EOF: true}
	output := writ.ProcessOutput{Chunk: []byte{0, 255, '<'}, Cursor: 4, EOF: true, Lost: true, Retained: 1, Total: 4, State: writ.ProcessExited, Termination: writ.TerminationTimeout}
	var query writ.OutputQuery
	p := serveProcesses(t, fakeProcesses{
		start:  func(_ context.Context, o writ.ProcessOrder) error { got = o; return nil },
		status: func() (writ.ProcessStatus, error) { return want, nil },
		output: func(_ context.Context, q writ.OutputQuery) (writ.ProcessOutput, error) { query = q; return output, nil },
		exits: func(_ context.Context, fn func(writ.ProcessStatus) error) error {
			return errors.Join(fn(want), fn(signaled), &writ.Error{Kind: writ.Unavailable, Msg: "over"})
		},
		input: func(_ context.Context, data []byte) (int, error) { return len(data), nil },
	})
	o := testkit.Order(testkit.WorkspaceAt("/srv/<w>"), "bash", "-c", strings.Repeat("\u2028\x01", writ.MaxCommandBytes/5))
	o.TTY, o.Dir, o.Workspace.Rules = true, "a/b", writ.PathRules{DenyRead: []string{"<.env>"}}
	if err := p.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(o, got); d != "" {
		t.Errorf("order (-sent +came):\n%s", d)
	}
	s, err := p.Status(t.Context(), "p")
	if d := cmp.Diff(want, s); err != nil || d != "" {
		t.Errorf("status %v (-sent +came):\n%s", err, d)
	}
	q := writ.OutputQuery{Cursor: 1 << 50, Limit: 7, Wait: time.Minute, Stream: writ.Stdout}
	out, err := p.Output(t.Context(), "p", q)
	if d := cmp.Diff(output, out); err != nil || d != "" || query != q {
		t.Errorf("output of %+v: %v (-sent +came):\n%s", query, err, d)
	}
	var told []writ.ProcessStatus
	err = p.Exits(t.Context(), func(s writ.ProcessStatus) error { told = append(told, s); return nil })
	if d := cmp.Diff([]writ.ProcessStatus{want, signaled}, told); writ.KindOf(err) != writ.Unavailable || d != "" {
		t.Errorf("ends %v (-sent +came):\n%s", err, d)
	}
	if n, err := p.Input(t.Context(), "p", make([]byte, writ.MaxInputChunk)); n != writ.MaxInputChunk || err != nil {
		t.Errorf("the largest input: %d, %v", n, err)
	}
	// What JSON would change is refused here as it is there.
	bad := o
	bad.Command = []string{"echo", "\xff"}
	if err := p.Start(t.Context(), bad); writ.CodeOf(err) != "INVALID_COMMAND" {
		t.Errorf("an order that is not UTF-8: %v", err)
	}
	if _, err := p.Status(t.Context(), "\xff"); writ.CodeOf(err) != "PROCESS_NOT_FOUND" {
		t.Errorf("an id that is not UTF-8: %v", err)
	}
}

func TestNonsenseAboutInputIsUnknown(t *testing.T) {
	n := 0
	var fails error
	p := serveProcesses(t, fakeProcesses{input: func(context.Context, []byte) (int, error) { return n, fails }})
	for _, n = range []int{-1, 6} {
		for _, fails = range []error{nil, &writ.Error{Kind: writ.Exhausted, Msg: "full"}} {
			if got, err := p.Input(t.Context(), "p", []byte("12345")); got != 0 || !errors.Is(err, writ.ErrDispatchUnknown) {
				t.Errorf("%d of 5 bytes, %v: %d, %v", n, fails, got, err)
			}
		}
	}
}

// Scenario 102, at the wire: once the order was sent, loss is not a refusal.
func TestScenario102_AStartWhoseAnswerIsLostIsUnknown(t *testing.T) {
	there := make(chan struct{}, 1)
	c, _ := serveParts(t, Parts{Runner: fake{}, Processes: fakeProcesses{start: func(ctx context.Context, _ writ.ProcessOrder) error {
		there <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}}, ownUID())
	begin := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() { done <- c.Processes().Start(ctx, writ.ProcessOrder{}) }() // ends with its call
		testkit.Receive(t, "the runner has the order", there)
		return done
	}
	c.cancelWait = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	given := begin(ctx)
	cancel()
	lost := begin(t.Context())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for what, done := range map[string]<-chan error{"given up": given, "lost": lost} {
		err := testkit.Receive(t, "the call ends", done)
		if !errors.Is(err, writ.ErrDispatchUnknown) || writ.KindOf(err) != writ.Unavailable || writ.CodeOf(err) != "TIMEOUT" {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Scenario 103: what is not sent is nothing.
	if err := c.Processes().Start(t.Context(), writ.ProcessOrder{}); errors.Is(err, writ.ErrDispatchUnknown) || writ.CodeOf(err) != "TIMEOUT" {
		t.Errorf("on a closed socket: %v", err)
	}
}

// Spec/02 §16 weakness 19: slow calls, as many as there are, hold up no other.
func TestASlowCallBlocksNoOther(t *testing.T) {
	full := writ.ProcessOutput{Chunk: make([]byte, 256<<10)}
	p := serveProcesses(t, fakeProcesses{
		output: func(ctx context.Context, q writ.OutputQuery) (writ.ProcessOutput, error) {
			if q.Wait > 0 {
				<-ctx.Done()
			}
			return full, ctx.Err()
		},
		exits: func(ctx context.Context, fn func(writ.ProcessStatus) error) error {
			for range 10_000 { // more than all windows take that nobody reads
				if err := fn(writ.ProcessStatus{Reason: strings.Repeat("x", 1000)}); err != nil {
					return err
				}
			}
			return nil
		},
		status: func() (writ.ProcessStatus, error) { return writ.ProcessStatus{ID: "p"}, nil },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	for range 200 {
		wg.Go(func() { _, _ = p.Output(ctx, "p", writ.OutputQuery{Wait: time.Minute}) })
	}
	reading := make(chan struct{})
	wg.Go(func() {
		_ = p.Exits(ctx, func(writ.ProcessStatus) error {
			close(reading)
			<-ctx.Done()
			return ctx.Err()
		})
	})
	testkit.Receive(t, "somebody who does not read on", errOnClose(reading))
	for range 50 {
		if out, err := p.Output(t.Context(), "p", writ.OutputQuery{}); err != nil || len(out.Chunk) != len(full.Chunk) {
			t.Fatalf("output: %d bytes, %v", len(out.Chunk), err)
		}
		if _, err := p.Status(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARunnerWithoutStateStartsNoProcesses(t *testing.T) {
	p := serveProcesses(t, nil)
	_, input := p.Input(t.Context(), "p", nil)
	_, output := p.Output(t.Context(), "p", writ.OutputQuery{})
	_, status := p.Status(t.Context(), "p")
	_, list := p.Processes(t.Context())
	for what, err := range map[string]error{
		"start": p.Start(t.Context(), writ.ProcessOrder{}), "input": input, "close": p.CloseInput(t.Context(), "p"), "output": output, "status": status,
		"resize": p.Resize(t.Context(), "p", writ.FirstTerminalSize), "terminate": p.Terminate(t.Context(), "p", writ.Kill{}), "list": list,
		"exits": p.Exits(t.Context(), func(writ.ProcessStatus) error { return nil }),
	} {
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "--state") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
