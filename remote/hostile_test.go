package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"writ"
	"writ/internal/testkit"
)

// raw is a server of Run that says what it likes.
func raw(t *testing.T, run func(s grpc.ServerStream) error) *Client {
	t.Helper()
	ln, err := net.Listen("unix", filepath.Join(socketDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(grpc.ForceServerCodecV2(codec{}), grpc.WaitForHandlers(true))
	srv.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil),
		Streams: []grpc.StreamDesc{{StreamName: methodRun, Handler: func(_ any, s grpc.ServerStream) error { return run(s) }, ServerStreams: true, ClientStreams: true}}}, nil)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }()
	c, err := dial(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		srv.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return c
}

// bytesOf is a message of n bytes of a file.
func bytesOf(n int) *frame {
	b := make([]byte, 1+n)
	return &frame{buf: &b, n: n, pool: make(frames)}
}

// A runner is not trusted with the bytes of others, nor with the gateway's memory.
func TestHostileRunner(t *testing.T) {
	mine, other := random(t, 2<<20), random(t, 10)
	spec := specWith(mine)
	spec.Collect.Files, spec.Collect.FileBytes, spec.Collect.TotalBytes = 3, 1000, 2000
	spec.Inputs = []writ.Input{{Path: "in", Content: []byte("in")}}
	file := func(path string, size int64) *writ.OutputFile {
		return &writ.OutputFile{Path: path, Size: size, State: writ.OutputNew}
	}
	whole, cut := &verdict{}, &verdict{&fault{Kind: "internal", Message: "it went away"}}
	result := func(files ...writ.OutputFile) *reply {
		return &reply{Result: &writ.Result{Outcome: writ.Succeeded, Started: true, Files: files}}
	}
	// kept is a file that is given as it should be, and answered.
	kept := func(path string, n int) []any {
		return []any{&reply{Keep: file(path, int64(n))}, bytesOf(n), &reply{End: whole}, answered}
	}
	zeros := func(path string, n int) writ.OutputFile {
		f := *file(path, int64(n))
		f.Digest = writ.DigestOf(make([]byte, n))
		return f
	}
	link := func(size int64, change func(*writ.OutputFile)) *reply {
		f := file("f", size)
		f.Link = true
		change(f)
		return &reply{Keep: f}
	}
	asIs := func(*writ.OutputFile) {}
	links := func(s *writ.RunSpec) {
		s.Collect.Links, s.Collect.FileBytes, s.Collect.TotalBytes = true, 10_000, 10_000
	}
	with := func(f writ.OutputFile, change func(*writ.OutputFile)) writ.OutputFile { change(&f); return f }
	same := writ.OutputFile{Path: "a", Digest: writ.DigestOf(mine), Size: int64(len(mine)), State: writ.OutputSame}
	said := func(steps ...any) (all []any) {
		for _, s := range steps {
			if list, ok := s.([]any); ok {
				all = append(all, list...)
			} else {
				all = append(all, s)
			}
		}
		return all
	}

	for name, tt := range map[string]struct {
		steps []any
		want  string // in the reason; "" means that it is all right
		spec  func(*writ.RunSpec)
	}{
		"as it should": {steps: said(kept("f", 1000), kept("g", 999), kept("h", 1),
			result(zeros("f", 1000), zeros("g", 999), zeros("h", 1), same, writ.OutputFile{Path: "in", Digest: writ.DigestOf([]byte("in")), Size: 2, State: writ.OutputSame}))},
		"one that was cut":            {steps: said(&reply{Keep: file("f", 9)}, bytesOf(3), &reply{End: cut}, answered, kept("f", 9), result(zeros("f", 9)))},
		"a result amid a file":        {steps: said(&reply{Keep: file("f", 9)}, bytesOf(3), result())},
		"bytes of another":            {steps: said(&reply{Open: writ.DigestOf(other)}), want: "not the run's"},
		"bytes of an inline input":    {steps: said(&reply{Open: writ.DigestOf([]byte("in"))}), want: "not the run's"},
		"two inputs at once":          {steps: said(&reply{Open: same.Digest}, &reply{Open: same.Digest}), want: "wait for an input"},
		"a chunk amid an input":       {steps: said(&reply{Open: same.Digest}, &reply{Chunk: &writ.Chunk{Stream: writ.Stdout}}), want: "wait for an input"},
		"a file amid an input":        {steps: said(&reply{Open: same.Digest}, &reply{Keep: file("f", 1)}), want: "wait for an input"},
		"more than was sent":          {steps: said(&reply{Open: same.Digest}, &reply{More: true}, &reply{More: true}, &reply{More: true}, &reply{More: true}, &reply{More: true}, &reply{More: true}, &reply{More: true}, &reply{More: true}, &reply{More: true}, &reply{More: true}), want: "more of a file than was sent"},
		"bytes of no file":            {steps: said(bytesOf(1)), want: "none of a file"},
		"an end of no file":           {steps: said(&reply{End: whole}), want: "not whole"},
		"no bytes":                    {steps: said(&reply{Keep: file("f", 1)}, bytesOf(0)), want: "none of a file"},
		"too many at once":            {steps: said(&reply{Keep: file("f", 2<<20)}, bytesOf(frameBytes+1)), want: "none of a file", spec: func(s *writ.RunSpec) { s.Collect.FileBytes, s.Collect.TotalBytes = 2<<20, 2<<20 }},
		"more than its size":          {steps: said(&reply{Keep: file("f", 10)}, bytesOf(11)), want: "more than it said"},
		"more than its size in parts": {steps: said(&reply{Keep: file("f", 10)}, bytesOf(10), bytesOf(1)), want: "more than it said"},
		"less than its size":          {steps: said(&reply{Keep: file("f", 10)}, bytesOf(9), &reply{End: whole}), want: "not whole"},
		"ended twice":                 {steps: said(kept("f", 1), &reply{End: whole}), want: "not whole"},
		"bytes after the end":         {steps: said(&reply{Keep: file("f", 10)}, bytesOf(9), &reply{End: cut}, bytesOf(1)), want: "none of a file"},
		"nobody collects":             {steps: said(&reply{Keep: file("f", 1)}), want: "nobody asked for", spec: func(s *writ.RunSpec) { s.Collect = nil }},
		"too large":                   {steps: said(&reply{Keep: file("f", 1001)}), want: "more bytes"},
		"too large together":          {steps: said(kept("f", 1000), kept("g", 999), &reply{Keep: file("h", 2)}), want: "more bytes"},
		"too many":                    {steps: said(kept("f", 1), kept("g", 1), kept("h", 1), &reply{Keep: file("i", 1)}), want: "more files"},
		"a size below nothing":        {steps: said(&reply{Keep: file("f", -1)}), want: "is none"},
		"out of the workspace":        {steps: said(&reply{Keep: file("../f", 1)}), want: "is none"},
		"from the root":               {steps: said(&reply{Keep: file("/etc/passwd", 1)}), want: "is none"},
		"the same again":              {steps: said(kept("f", 1), &reply{Keep: file("f", 1)}), want: "is none"},
		"with a digest":               {steps: said(&reply{Keep: &writ.OutputFile{Path: "f", State: writ.OutputNew, Digest: writ.DigestOf(other)}}), want: "is none"},
		"that did not change":         {steps: said(&reply{Keep: &writ.OutputFile{Path: "f", State: writ.OutputSame}}), want: "is none"},
		"a link":                      {steps: said(link(1000, asIs), bytesOf(1000), &reply{End: whole}, answered, result(with(zeros("f", 1000), func(f *writ.OutputFile) { f.Link = true }))), spec: links},
		"a link nobody asked for":     {steps: said(link(1, asIs)), want: "symlink"},
		"a link to nowhere":           {steps: said(link(0, asIs)), want: "symlink", spec: links},
		"a link too long":             {steps: said(link(writ.MaxLinkBytes+1, asIs)), want: "symlink", spec: links},
		"a link to execute":           {steps: said(link(1, func(f *writ.OutputFile) { f.Exec = true })), want: "symlink", spec: links},
		"a link as an empty folder":   {steps: said(link(1, func(f *writ.OutputFile) { f.Path = "d/" + writ.KeepName })), want: "symlink", spec: links},
		"two files at once":           {steps: said(&reply{Keep: file("f", 1)}, bytesOf(1), &reply{Keep: file("g", 1)}), want: "an output"},
		"an input amid a file":        {steps: said(&reply{Keep: file("f", 1)}, &reply{Open: same.Digest}), want: "an output"},

		"a result with a file that was not given": {steps: said(kept("f", 1), result(zeros("g", 1))), want: "did not give"},
		"with one that was cut":                   {steps: said(&reply{Keep: file("f", 3)}, bytesOf(3), &reply{End: cut}, answered, result(zeros("f", 3))), want: "did not give"},
		"with one that is not ended":              {steps: said(&reply{Keep: file("f", 3)}, bytesOf(3), result(zeros("f", 3))), want: "did not give"},
		"with no digest":                          {steps: said(kept("f", 10), result(with(zeros("f", 10), func(f *writ.OutputFile) { f.Digest = "../x" }))), want: "did not give"},
		"with another size":                       {steps: said(kept("f", 10), result(with(zeros("f", 10), func(f *writ.OutputFile) { f.Size = 9 }))), want: "did not give"},
		"with a file as a link":                   {steps: said(kept("f", 10), result(with(zeros("f", 10), func(f *writ.OutputFile) { f.Link = true }))), want: "did not give", spec: links},
		"with one file twice":                     {steps: said(kept("f", 10), result(zeros("f", 10), zeros("f", 10))), want: "did not give"},
		"with an input that is none":              {steps: said(result(with(same, func(f *writ.OutputFile) { f.Path = "b" }))), want: "did not give"},
		"with an input of another digest":         {steps: said(result(with(same, func(f *writ.OutputFile) { f.Digest = writ.DigestOf(other) }))), want: "did not give"},
		"with an input twice":                     {steps: said(result(same, same)), want: "did not give"},
		"with files that nobody collects":         {steps: said(result(same)), want: "did not give", spec: func(s *writ.RunSpec) { s.Collect = nil }},
		"with a state that is none":               {steps: said(kept("f", 1), result(with(zeros("f", 1), func(f *writ.OutputFile) { f.State = "fine" }))), want: "did not give"},
		"with too many that were dropped":         {steps: said(&reply{Result: &writ.Result{Outcome: writ.Succeeded, Dropped: make([]writ.DroppedFile, writ.MaxDropped+1), DroppedFiles: 1000}}), want: "dropped"},
		"with more dropped than it counts":        {steps: said(&reply{Result: &writ.Result{Outcome: writ.Succeeded, Dropped: make([]writ.DroppedFile, 2), DroppedFiles: 1}}), want: "dropped"},
	} {
		t.Run(name, func(t *testing.T) {
			c := raw(t, func(s grpc.ServerStream) error {
				if err := s.RecvMsg(&request{}); err != nil {
					return err
				}
				for _, step := range tt.steps {
					if step == answered {
						m := request{More: true}
						var err error
						for err == nil && m.More {
							m = request{}
							err = s.RecvMsg(&m)
						}
						if err != nil || m.Kept == nil {
							return fmt.Errorf("no answer but %+v, %w", m, err)
						}
						continue
					}
					if err := s.SendMsg(step); err != nil {
						return err
					}
				}
				<-s.Context().Done() // the gateway has seen enough
				return nil
			})
			spec := spec
			collect := *spec.Collect
			spec.Collect = &collect
			if tt.spec != nil {
				tt.spec(&spec)
			}
			shelf := newShelf(mine, other)
			x := shelf.exchange()
			x.Open = func(ctx context.Context, d writ.Digest) (io.ReadCloser, error) {
				if d != same.Digest {
					t.Errorf("%s is opened", d)
				}
				r, err := shelf.open(ctx, d)
				return io.NopCloser(io.MultiReader(r, readerFunc(func([]byte) (int, error) { <-ctx.Done(); return 0, ctx.Err() }))), err // it does not end
			}
			res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
			switch {
			case err != nil:
				t.Errorf("%v", err)
			case tt.want == "" && res.Outcome != writ.Succeeded, tt.want != "" && (res.Outcome != writ.Interrupted || !res.Started || !strings.Contains(res.Reason, tt.want)):
				t.Errorf("%+v, want %q", res, tt.want)
			}
			for _, f := range shelf.kept {
				if f.Digest != writ.DigestOf(make([]byte, f.Size)) {
					t.Errorf("%+v was kept with other bytes", f)
				}
			}
		})
	}
}

// answered is the step of a hostile runner that waits for the answer to a file.
const answered = "answered"

// A runner that gives files of which none can be kept is stopped when it has given as many
// as there may be in a workspace.
func TestHostileRunnerGivesForEver(t *testing.T) {
	var given int
	c := raw(t, func(s grpc.ServerStream) error {
		err := s.RecvMsg(&request{})
		for ; err == nil; given++ {
			err = s.SendMsg(&reply{Keep: &writ.OutputFile{Path: fmt.Sprint(given), State: writ.OutputNew}})
			if err == nil {
				err = s.SendMsg(&reply{End: &verdict{}})
			}
			if err == nil {
				err = s.RecvMsg(&request{})
			}
		}
		return nil
	})
	spec := specWith()
	spec.Limits.Files = 100
	x := &writ.Exchange{Keep: func(context.Context, writ.OutputFile, io.Reader) error { return io.ErrShortWrite }}
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
	if err != nil || res.Outcome != writ.Interrupted || !strings.Contains(res.Reason, "more files") {
		t.Errorf("%+v, %v after %d", res, err, given)
	}
}

// A runner that never ends a file, and is deaf to a cancel, is given up.
func TestHostileRunnerNeverEndsAFile(t *testing.T) {
	c := raw(t, func(s grpc.ServerStream) error {
		err := s.RecvMsg(&request{})
		if err == nil {
			err = s.SendMsg(&reply{Keep: &writ.OutputFile{Path: "f", Size: 100, State: writ.OutputNew}})
		}
		if err == nil {
			err = s.SendMsg(bytesOf(99))
		}
		<-s.Context().Done()
		return err
	})
	c.cancelWait = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec, s := specWith(), newShelf()
	x := s.exchange()
	x.Keep = func(ctx context.Context, f writ.OutputFile, r io.Reader) error {
		_, err := io.CopyN(io.Discard, r, 99)
		cancel()
		if err == nil {
			_, err = r.Read(make([]byte, 1))
		}
		if err == nil {
			t.Error("there was one more byte")
		}
		return nil
	}
	if res, err := c.Run(ctx, "r", spec, spec.Digest(), x); err != nil || res.Outcome != writ.Interrupted || !res.Started {
		t.Errorf("%+v, %v", res, err)
	}
}

// A runner that does not wait to be asked for more fills no memory, whoever reads.
func TestHostileRunnerFillsNoMemory(t *testing.T) {
	c := raw(t, func(s grpc.ServerStream) error {
		err := s.RecvMsg(&request{})
		if err == nil {
			err = s.SendMsg(&reply{Keep: &writ.OutputFile{Path: "f", Size: 100, State: writ.OutputNew}})
		}
		for range frameWindow + 1 {
			if err == nil {
				err = s.SendMsg(bytesOf(1))
			}
		}
		<-s.Context().Done()
		return err
	})
	spec := specWith()
	x := &writ.Exchange{Keep: func(ctx context.Context, _ writ.OutputFile, _ io.Reader) error { <-ctx.Done(); return ctx.Err() }}
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
	if err != nil || res.Outcome != writ.Interrupted || !strings.Contains(res.Reason, "more of a file than was asked for") {
		t.Errorf("%+v, %v", res, err)
	}
}

// gateway is a stream of Run to c's server, over which a test says what it likes.
func gateway(t *testing.T, c *Client, spec writ.RunSpec) grpc.ClientStream {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	s, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/"+service+"/"+methodRun)
	if err == nil {
		err = s.SendMsg(&request{Run: &order{ID: "r", Digest: spec.Digest(), Spec: spec, Opens: true, Keeps: true}})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// mangled is a message that is no JSON.
type mangled struct{}

func (mangled) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

// A gateway that does what it may not ends its run, and has no answer of the runner.
func TestHostileGateway(t *testing.T) {
	data := make([]byte, 2*frameBytes)
	spec := specWith(data)
	small := specWith([]byte("small"))
	whole := &request{End: &verdict{}}
	frames := func(n int) (all []any) {
		for range n {
			all = append(all, bytesOf(10))
		}
		return all
	}
	mores := func(n int) (all []any) {
		for range n {
			all = append(all, &request{More: true})
		}
		return all
	}
	type runner func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) error
	reads := func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) error {
		r, err := x.Open(ctx, spec.Files[0].Digest)
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(io.Discard, r)
		return err
	}
	opens := func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) error {
		r, err := x.Open(ctx, spec.Files[0].Digest)
		if err != nil {
			return err
		}
		<-ctx.Done()
		return r.Close()
	}
	keeps := func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) error {
		size := int64(10 * callWindow)
		return x.Keep(ctx, writ.OutputFile{Path: "f", Size: size, State: writ.OutputNew}, io.LimitReader(zeros{}, size))
	}
	stays := func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) error { // has a file and sends none of it
		return x.Keep(ctx, writ.OutputFile{Path: "f", Size: 1, State: writ.OutputNew}, readerFunc(func([]byte) (int, error) { <-ctx.Done(); return 0, ctx.Err() }))
	}
	waits := func(ctx context.Context, _ writ.RunSpec, _ *writ.Exchange) error { <-ctx.Done(); return nil }
	for name, tt := range map[string]struct {
		runner runner
		asks   bool // it says something first
		spec   writ.RunSpec
		says   []any
		want   string // of what the runner learns; "" means that it is cancelled
	}{
		"more than its size":   {reads, true, small, []any{bytesOf(6)}, "more of an input than it has"},
		"less than its size":   {reads, true, small, []any{bytesOf(4), whole}, "unexpected EOF"},
		"more than is taken":   {opens, true, spec, frames(frameWindow + 2), ""},
		"too much at once":     {reads, true, spec, []any{bytesOf(frameBytes + 1)}, ""},
		"no bytes":             {reads, true, spec, []any{bytesOf(0)}, ""},
		"a second end":         {waits, false, spec, []any{whole}, ""},
		"bytes of no input":    {waits, false, spec, []any{bytesOf(1)}, ""},
		"an answer to nothing": {waits, false, spec, []any{&request{Kept: &verdict{}}}, ""},
		"two answers":          {keeps, true, spec, []any{&request{Kept: &verdict{&fault{Kind: "exhausted", Message: "full"}}}, &request{Kept: &verdict{}}}, ""},
		"kept too early":       {keeps, true, spec, []any{&request{Kept: &verdict{}}}, "does not want"},
		"more than was sent":   {stays, true, spec, mores(frameWindow + 2), ""},
		"more of nothing":      {waits, false, spec, mores(1), ""},
		"a second order":       {waits, false, spec, []any{&request{Run: &order{ID: "r"}}}, ""},
		"nothing":              {waits, false, spec, []any{&request{}}, ""},
		"what is no message":   {waits, false, spec, []any{mangled{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan error, 1)
			begun := make(chan struct{}, 1)
			c, _ := serve(t, fake{run: func(ctx context.Context, _ string, spec writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
				begun <- struct{}{}
				err := tt.runner(ctx, spec, x)
				if tt.want == "" {
					<-ctx.Done()
				}
				over <- err
				return writ.Result{Outcome: writ.Succeeded}, nil
			}}, ownUID())
			s := gateway(t, c, tt.spec)
			testkit.Receive(t, "the run", begun)
			if tt.asks {
				if err := s.RecvMsg(&reply{}); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range tt.says {
				if err := s.SendMsg(m); err != nil && !errors.Is(err, io.EOF) { // io.EOF: it was ended before all was said
					t.Fatal(err)
				}
			}
			if tt.want != "" {
				go func() { // ends with the stream
					for s.RecvMsg(&reply{}) == nil {
						continue
					}
				}()
				if name == "more than its size" {
					if err := s.SendMsg(whole); err != nil { // it waits for that
						t.Fatal(err)
					}
				}
				if err := testkit.Receive(t, "the end of the run", over); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the runner learns %v, want %q", err, tt.want)
				}
				return
			}
			testkit.Receive(t, "the end of the run", over)
			var m reply
			var err error
			for err == nil {
				m = reply{}
				err = s.RecvMsg(&m)
			}
			if len(s.Trailer().Get(answerTrailer)) != 0 || m.Result != nil {
				t.Errorf("it was answered by %+v, %v", m.Result, err)
			}
		})
	}
}

// A gateway that is silent, or does not listen, holds the runner up for no longer than the
// runner's own time for it.
func TestDeafGateway(t *testing.T) {
	spec := specWith(make([]byte, 100))
	for name, do := range map[string]func(ctx context.Context, x *writ.Exchange) error{
		"open": func(ctx context.Context, x *writ.Exchange) error {
			_, err := x.Open(ctx, spec.Files[0].Digest)
			return err
		},
		"keep": func(ctx context.Context, x *writ.Exchange) error {
			size := int64(10 * callWindow)
			return x.Keep(ctx, writ.OutputFile{Path: "f", Size: size, State: writ.OutputNew}, io.LimitReader(zeros{}, size))
		},
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan error, 1)
			c, _ := serve(t, fake{run: func(ctx context.Context, _ string, _ writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
				short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
				defer cancel()
				over <- do(short, x)
				return writ.Result{}, nil
			}}, ownUID())
			gateway(t, c, spec)
			if err := testkit.Receive(t, "the end", over); err == nil {
				t.Error("it went well")
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
