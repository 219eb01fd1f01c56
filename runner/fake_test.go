package runner

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"writ"
	"writ/sandbox"
)

// fake is a provider whose programs are Go functions. It checks the rules of the
// sandbox contract that a runner could break.
type fake struct {
	t       *testing.T
	program func(ctx context.Context, cmd sandbox.Command) writ.Result

	mu       sync.Mutex
	prepErr  error              // guarded by mu; the answer of Prepare when set
	startErr error              // guarded by mu; the answer of the next Start when set, once
	made     []sandbox.Template // guarded by mu
	started  []sandbox.Command  // guarded by mu
	open     int                // guarded by mu; boxes that were not closed
	unheld   [][]string         // guarded by mu; of the next boxes
	left     []sandbox.Entry    // what programs leave, in order; set before the first run
	leftErr  error              // after that
}

func (p *fake) Probe(context.Context) (writ.Enforcement, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return writ.Enforcement{Provider: "fake", Active: []string{"nothing"}}, p.prepErr
}

func (p *fake) Prepare(ctx context.Context, t sandbox.Template) (sandbox.Box, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.prepErr != nil {
		return nil, p.prepErr
	}
	p.made = append(p.made, t)
	p.open++
	b := &fakeBox{p: p}
	if len(p.unheld) > 0 {
		b.unheld, p.unheld = p.unheld[0], p.unheld[1:]
	}
	return b, nil
}

func (p *fake) fail(prep, start error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prepErr, p.startErr = prep, start
}

func (p *fake) counts() (made, started, open int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.made), len(p.started), p.open
}

type fakeBox struct {
	sandbox.Run // nil: nobody types, resizes or signals here

	p      *fake
	unheld []string
	ran    bool
	closed bool
	res    chan writ.Result
}

func (b *fakeBox) Start(ctx context.Context, cmd sandbox.Command) (sandbox.Run, error) {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if b.ran || b.closed {
		b.p.t.Error("a box was started that ran before or is closed")
		return nil, errors.New("used box")
	}
	b.ran = true
	if err := b.p.startErr; err != nil {
		b.p.startErr = nil
		return nil, err
	}
	b.p.started = append(b.p.started, cmd)
	b.res = make(chan writ.Result, 1)
	go func() { b.res <- b.p.program(ctx, cmd) }()
	return b, nil
}

func (b *fakeBox) Wait() writ.Result { return <-b.res }

func (b *fakeBox) Unheld() []string { return b.unheld }

func (b *fakeBox) Files(ctx context.Context, _ string, visit func(sandbox.Entry) error) error {
	for _, e := range b.p.left {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := visit(e); err != nil {
			return err
		}
	}
	return b.p.leftErr
}

func (b *fakeBox) Close() error {
	b.p.mu.Lock()
	defer b.p.mu.Unlock()
	if !b.closed {
		b.closed = true
		b.p.open--
	}
	return nil
}

// newFake is a runner over a fake whose program prints its first argument, and
// waits to be cancelled when that is "wait".
func newFake(t *testing.T, opt Options) (*Runner, *fake) {
	t.Helper()
	p := &fake{t: t, program: printOrWait}
	r := New(p, opt)
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if _, _, open := p.counts(); open != 0 {
			t.Errorf("%d boxes were left open", open)
		}
	})
	return r, p
}

func printOrWait(ctx context.Context, cmd sandbox.Command) writ.Result {
	arg := []byte(cmd.Argv[len(cmd.Argv)-1])
	zero := 0
	res := writ.Result{Outcome: writ.Succeeded, Started: true, ExitCode: &zero, Stderr: writ.NewOutput(nil, 0)}
	if bytes.Equal(arg, []byte("wait")) {
		<-ctx.Done()
		res.Outcome, res.ExitCode, res.Signal, res.Reason = writ.Killed, nil, "SIGKILL", "cancelled"
	}
	_, _ = io.Copy(cmd.Stdout, bytes.NewReader(arg))
	res.Stdout = writ.NewOutput(arg, int64(len(arg)))
	return res
}

// specOf is a normalised spec, with its digest.
func specOf(args ...string) (writ.RunSpec, writ.Digest) {
	s := writ.RunSpec{Language: "sh", Code: "echo", Args: args, Limits: writ.DefaultLimits}
	return s, s.Digest()
}

// collect is an emit that keeps what it gets.
type collect struct {
	mu     sync.Mutex
	chunks []writ.Chunk
}

func (c *collect) emit(chunk writ.Chunk) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chunks = append(c.chunks, chunk)
}

func (c *collect) text(s writ.Stream) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b bytes.Buffer
	for _, chunk := range c.chunks {
		if chunk.Stream == s {
			b.Write(chunk.Data)
		}
	}
	return b.String()
}
