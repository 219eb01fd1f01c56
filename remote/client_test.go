package remote

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

func needBubblewrap(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.Missing(t, "bwrap", "bwrap is not installed")
	}
}

func TestClientConforms(t *testing.T) {
	needBubblewrap(t)
	testkit.Runner(t, startReal)
}

func TestClientConformsForInterpreter(t *testing.T) {
	needBubblewrap(t)
	testkit.Interpreter(t, startReal)
}

// startReal is a client of a real runner.
func startReal(t *testing.T, opt runner.Options) testkit.AnyRunner {
	p, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	r := runner.New(p, opt)
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c, _ := serve(t, r, ownUID())
	return c
}

func TestNobodyThere(t *testing.T) {
	c, err := dial(filepath.Join(socketDir(t), "none"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	spec, d := specOf("x")
	if res, err := c.Run(t.Context(), "r", spec, d, nil); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Run = %+v, %v; want unavailable", res, err)
	}
	if _, err := c.Probe(t.Context()); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Probe = %v, want unavailable", err)
	}
	if _, err := c.Languages(t.Context()); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Languages = %v, want unavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res, err := c.Run(ctx, "r", spec, d, nil); err != nil || res.Outcome != writ.Killed || res.Started {
		t.Errorf("cancelled Run = %+v, %v; want killed and not started", res, err)
	}
	if _, err := c.Probe(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled Probe = %v, want its context's error", err)
	}
}

func TestPeerOfAnotherUserIsRefused(t *testing.T) {
	c, _ := serve(t, fake{}, ownUID()+1) // its methods would panic
	spec, d := specOf("x")
	if _, err := c.Probe(t.Context()); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Probe = %v, want unavailable", err)
	}
	// The connection is closed as soon as it is up, so it may break before or after
	// the order: never with an answer.
	res, err := c.Run(t.Context(), "r", spec, d, nil)
	if writ.KindOf(err) != writ.Unavailable && res.Outcome != writ.Interrupted {
		t.Errorf("Run = %+v, %v", res, err)
	}
}

func TestOnlyUnixSocketsHaveAPeer(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	tcp, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	for _, conn := range []net.Conn{a, tcp} {
		if isOf(conn, ownUID()) {
			t.Errorf("a connection of %T counts as ours", conn)
		}
	}
}

// TestLostContactIsInterrupted: the server breaks the connection under a run.
func TestLostContactIsInterrupted(t *testing.T) {
	gone := make(chan struct{})
	c, stop := serve(t, fake{run: func(ctx context.Context, _ string, _ writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
		x.Emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("ready")})
		<-ctx.Done() // the end of the connection cancels the run
		close(gone)
		return writ.Result{Outcome: writ.Killed, Started: true}, nil
	}}, ownUID())
	up := testkit.NewFlag("ready")
	spec, d := specOf("x")
	type answer struct {
		res writ.Result
		err error
	}
	done := make(chan answer, 1)
	go func() {
		res, err := c.Run(context.Background(), "r", spec, d, &writ.Exchange{Emit: up.Emit})
		done <- answer{res, err}
	}()
	up.Wait(t)
	stop()
	testkit.Receive(t, "the end of the run in the runner", errOnClose(gone))
	a := testkit.Receive(t, "the answer", done)
	if a.err != nil || a.res.Outcome != writ.Interrupted || !a.res.Started || !strings.Contains(a.res.Reason, "lost") {
		t.Errorf("Run = %+v, %v; want interrupted", a.res, a.err)
	}
	if _, err := c.Run(t.Context(), "r2", spec, d, nil); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Run afterwards = %v, want unavailable", err)
	}
}

// errOnClose sends one value when c is closed.
func errOnClose(c <-chan struct{}) <-chan struct{} {
	out := make(chan struct{}, 1)
	go func() { // ends with c
		<-c
		out <- struct{}{}
	}()
	return out
}

func TestClosingTheClientEndsItsRuns(t *testing.T) {
	gone := make(chan struct{}, 1)
	c, _ := serve(t, fake{run: func(ctx context.Context, _ string, _ writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
		x.Emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("ready")})
		<-ctx.Done()
		gone <- struct{}{}
		return writ.Result{}, io.ErrUnexpectedEOF
	}}, ownUID())
	up := testkit.NewFlag("ready")
	spec, d := specOf("x")
	done := make(chan writ.Result, 1)
	go func() {
		res, err := c.Run(context.Background(), "r", spec, d, &writ.Exchange{Emit: up.Emit})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	up.Wait(t)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, "the end of the run in the runner", gone)
	if res := testkit.Receive(t, "the result", done); res.Outcome != writ.Interrupted {
		t.Errorf("result %+v, want interrupted", res)
	}
}

// TestRunnerThatDoesNotCancelIsGivenUp: cancelling is bounded on this side too.
func TestRunnerThatDoesNotCancelIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	c, _ := serve(t, fake{run: func(_ context.Context, _ string, _ writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
		x.Emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("ready")})
		<-release
		return writ.Result{Outcome: writ.Succeeded, Started: true}, nil
	}}, ownUID())
	t.Cleanup(func() { close(release) })
	c.cancelWait = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	up := testkit.NewFlag("ready")
	spec, d := specOf("x")
	done := make(chan writ.Result, 1)
	go func() {
		res, err := c.Run(ctx, "r", spec, d, &writ.Exchange{Emit: up.Emit})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	up.Wait(t)
	cancel()
	if res := testkit.Receive(t, "the result", done); res.Outcome != writ.Interrupted || !res.Started {
		t.Errorf("result %+v, want interrupted", res)
	}
}

// One that does not take an order, or a large one not whole, is given up as well.
func TestRunnerThatDoesNotTakeTheOrderIsGivenUp(t *testing.T) {
	there := make(chan struct{}, 1)
	c := raw(t, func(s grpc.ServerStream) error {
		there <- struct{}{}
		<-s.Context().Done()
		return nil
	})
	c.cancelWait = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec, _ := specOf(strings.Repeat("x", writ.MaxCodeBytes)) // more than is sent before it is taken
	done := make(chan writ.Result, 1)
	go func() {
		res, err := c.Run(ctx, "r", spec, spec.Digest(), nil)
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	testkit.Receive(t, "the stream", there)
	cancel()
	if res := testkit.Receive(t, "the result", done); res.Outcome != writ.Interrupted || !res.Started {
		t.Errorf("result %+v, want interrupted", res)
	}
}
