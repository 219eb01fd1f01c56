package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// cutter is a unix socket before another. It ends its first connection when so many bytes
// went one way, and passes those after it on as they are.
type cutter struct {
	socket string
	toward atomic.Int64 // bytes that went to the server on the first connection
	back   atomic.Int64 // and from it
}

// newCutter cuts after toward bytes, or after back; a negative number means never.
func newCutter(t *testing.T, server string, toward, back int64) *cutter {
	t.Helper()
	c := &cutter{socket: filepath.Join(socketDir(t), "p")}
	ln, err := net.Listen("unix", c.socket)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	wg.Go(func() {
		for first := true; ; first = false {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", server)
			if err != nil {
				_ = near.Close()
				return
			}
			mu.Lock()
			open = append(open, near, far)
			mu.Unlock()
			end := func() { _ = near.Close(); _ = far.Close() }
			pass := func(to, from net.Conn, limit int64, count *atomic.Int64) {
				defer end()
				if !first {
					limit, count = -1, new(atomic.Int64)
				}
				buf := make([]byte, 4096)
				for limit != 0 {
					n := len(buf)
					if limit > 0 {
						n = int(min(int64(n), limit))
					}
					n, err := from.Read(buf[:n])
					count.Add(int64(n)) // before anybody can act on it
					if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
						return
					}
					if limit > 0 {
						limit -= int64(n)
					}
				}
			}
			wg.Go(func() { pass(far, near, toward, &c.toward) })
			wg.Go(func() { pass(near, far, back, &c.back) })
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return c
}

// counted is processes that count what they are told.
type counted struct {
	noProcesses
	mu     sync.Mutex
	orders map[writ.ProcessID]int // guarded by mu
}

func (c *counted) add(id writ.ProcessID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.orders[id]++
}

func (c *counted) count(id writ.ProcessID) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orders[id]
}

func (c *counted) Start(_ context.Context, o writ.ProcessOrder) error {
	c.add(o.ID)
	return nil
}

func (c *counted) Input(_ context.Context, id writ.ProcessID, data []byte) (int, error) {
	c.add(id)
	return len(data), nil
}

func (c *counted) Terminate(_ context.Context, id writ.ProcessID, _ writ.Kill) error {
	c.add(id)
	return nil
}

// Scenarios 102 and 103, spec/02 §12: at whatever byte the socket is cut, an order is done
// once or not at all, what is said not to be done is not, and what may have been is said
// to be unknown.
func TestScenario102And103_ASocketThatIsCutAnywhere(t *testing.T) {
	for name, order := range map[string]func(ctx context.Context, p *ProcessesClient, id writ.ProcessID) error{
		"start": func(ctx context.Context, p *ProcessesClient, id writ.ProcessID) error {
			return p.Start(ctx, writ.ProcessOrder{ID: id, Command: []string{"true"}, Workspace: testkit.WorkspaceAt("/srv"), Limits: writ.DefaultLimits})
		},
		"input": func(ctx context.Context, p *ProcessesClient, id writ.ProcessID) error {
			_, err := p.Input(ctx, id, []byte("some text\n"))
			return err
		},
		"terminate": func(ctx context.Context, p *ProcessesClient, id writ.ProcessID) error {
			return p.Terminate(ctx, id, writ.Kill{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := &counted{orders: map[writ.ProcessID]int{}}
			socket, stop := listenParts(t, Parts{Runner: idle{}, Processes: got}, ownUID())
			// try is one order over a connection that is cut.
			try := func(toward, back int64) (id writ.ProcessID, c *cutter, err error) {
				c = newCutter(t, socket, toward, back)
				client, err := dial(c.socket)
				if err != nil {
					t.Fatal(err)
				}
				defer client.Close()
				id = writ.NewProcessID()
				return id, c, order(t.Context(), client.Processes(), id)
			}
			id, whole, err := try(-1, -1)
			if err != nil || got.count(id) != 1 {
				t.Fatalf("uncut: %v, done %d times", err, got.count(id))
			}
			type outcome struct {
				id  writ.ProcessID
				err error
			}
			var all []outcome
			step := int64(11)
			for n := int64(0); n <= whole.toward.Load()+step; n += step {
				id, _, err := try(n, -1)
				all = append(all, outcome{id, err})
			}
			for n := int64(0); n <= whole.back.Load()+step; n += step {
				id, _, err := try(-1, n)
				all = append(all, outcome{id, err})
			}
			stop() // whatever is under way is over
			said := map[string]int{}
			for _, o := range all {
				n := got.count(o.id)
				unknown := errors.Is(o.err, writ.ErrDispatchUnknown)
				switch {
				case n > 1, o.err == nil && n != 1, o.err != nil && !unknown && n != 0:
					t.Errorf("done %d times, and the answer is %v", n, o.err)
				case o.err != nil && (writ.KindOf(o.err) != writ.Unavailable || writ.CodeOf(o.err) != "TIMEOUT"):
					t.Errorf("the error is %v of kind %v with code %q", o.err, writ.KindOf(o.err), writ.CodeOf(o.err))
				case o.err == nil:
					said["done"]++
				case unknown && n == 1:
					said["unknown, done"]++
				case unknown:
					said["unknown, not done"]++
				default:
					said["not sent"]++
				}
			}
			t.Logf("%v", said)
			for _, what := range []string{"done", "unknown, done", "not sent"} {
				if said[what] == 0 {
					t.Errorf("no cut led to: %s", what)
				}
			}
		})
	}
}

// At whatever byte the socket is cut, a run that gets and gives files is executed once or
// not at all, what is said not to be started is not, and no part of a file is taken for
// the whole.
func TestRunsWithFilesOnASocketThatIsCutAnywhere(t *testing.T) {
	in, out := random(t, 700), random(t, 800)
	var mu sync.Mutex
	begun := map[string]int{} // guarded by mu: runs that had their files, by id
	count := func(id string) int {
		mu.Lock()
		defer mu.Unlock()
		return begun[id]
	}
	socket, stop := listenParts(t, Parts{Runner: fake{run: func(ctx context.Context, id string, spec writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
		r, err := x.Open(ctx, spec.Files[0].Digest)
		if err != nil {
			return writ.Result{}, err
		}
		b, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return writ.Result{}, err
		}
		if !bytes.Equal(b, in) {
			t.Errorf("%d bytes of the input were taken for all", len(b))
		}
		mu.Lock()
		begun[id]++
		mu.Unlock()
		x.Emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("output")})
		f, err := give(ctx, x, "out", out)
		if err != nil {
			return writ.Result{Outcome: writ.Succeeded, Started: true, DroppedFiles: 1}, nil
		}
		return writ.Result{Outcome: writ.Succeeded, Started: true, Files: []writ.OutputFile{f}}, nil
	}}}, ownUID())
	spec := specWith(in)
	type outcome struct {
		id  string
		res writ.Result
		err error
	}
	try := func(toward, back int64) (outcome, *cutter) {
		cut := newCutter(t, socket, toward, back)
		client, err := dial(cut.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		s, id := newShelf(in), writ.NewID("run")
		res, err := client.Run(t.Context(), id, spec, spec.Digest(), s.exchange())
		for _, f := range s.kept {
			if f.Digest != writ.DigestOf(out) {
				t.Errorf("a part of an output was taken for all: %+v", f)
			}
		}
		if len(res.Files) > 0 && len(s.kept) == 0 {
			t.Error("the result has a file that was not kept")
		}
		return outcome{id, res, err}, cut
	}
	first, whole := try(-1, -1)
	if first.err != nil || first.res.Outcome != writ.Succeeded || count(first.id) != 1 {
		t.Fatalf("uncut: %+v", first)
	}
	var all []outcome
	const step = 23
	for n := int64(0); n <= whole.toward.Load()+step; n += step {
		o, _ := try(n, -1)
		all = append(all, o)
	}
	for n := int64(0); n <= whole.back.Load()+step; n += step {
		o, _ := try(-1, n)
		all = append(all, o)
	}
	stop() // whatever is under way is over
	said := map[string]int{}
	for _, o := range all {
		n := count(o.id)
		lost := o.err == nil && o.res.Outcome == writ.Interrupted && o.res.Started
		switch {
		case n > 1, o.err != nil && (n != 0 || writ.KindOf(o.err) != writ.Unavailable), o.err == nil && !lost && (n != 1 || o.res.Outcome != writ.Succeeded):
			t.Errorf("executed %d times, and the answer is %+v, %v", n, o.res, o.err)
		case o.err != nil:
			said["not sent"]++
		case !lost:
			said["done"]++
		case n == 1:
			said["interrupted, executed"]++
		default:
			said["interrupted, not executed"]++
		}
	}
	t.Logf("%v", said)
	for _, what := range []string{"done", "interrupted, executed", "interrupted, not executed", "not sent"} {
		if said[what] == 0 {
			t.Errorf("no cut led to: %s", what)
		}
	}
}
