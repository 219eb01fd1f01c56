package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// shelf is files by their digest, and what is kept; it is the funcs of an exchange.
type shelf struct {
	files map[writ.Digest][]byte
	kept  []writ.OutputFile // with digests
	lines []string          // what happened, in order
}

func newShelf(contents ...[]byte) *shelf {
	s := &shelf{files: map[writ.Digest][]byte{}}
	for _, c := range contents {
		s.files[writ.DigestOf(c)] = c
	}
	return s
}

func (s *shelf) exchange() *writ.Exchange {
	return &writ.Exchange{Emit: s.emit, Open: s.open, Keep: s.keep}
}

func (s *shelf) emit(c writ.Chunk) { s.lines = append(s.lines, "chunk "+string(c.Data)) }

func (s *shelf) open(_ context.Context, d writ.Digest) (io.ReadCloser, error) {
	b, ok := s.files[d]
	s.lines = append(s.lines, fmt.Sprintf("open %d", len(b)))
	if !ok {
		return nil, &writ.Error{Kind: writ.NotFound, Code: "GONE", Msg: "there is no such file", Err: errGone}
	}
	return io.NopCloser(bytes.NewReader(b)), nil
}

var errGone = errors.New("the disk says so")

func (s *shelf) keep(_ context.Context, f writ.OutputFile, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		s.lines = append(s.lines, "cut "+f.Path)
		return err
	}
	s.lines = append(s.lines, "keep "+f.Path)
	f.Digest = writ.DigestOf(b)
	s.files[f.Digest] = b
	s.kept = append(s.kept, f)
	return nil
}

// random is n bytes, of which each message begins with some that look like others.
func random(t testing.TB, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		t.Fatal(err)
	}
	return b
}

// specWith is a spec with files of those contents, named a, b and so on, that collects.
func specWith(contents ...[]byte) writ.RunSpec {
	s := writ.RunSpec{Language: "python", Kind: writ.RunInterpreter, Limits: writ.DefaultLimits,
		Collect: &writ.Collect{Files: 50, FileBytes: 300 << 20, TotalBytes: 500 << 20, Depth: 10, PathLength: 256}}
	for i, c := range contents {
		s.Files = append(s.Files, writ.FileInput{Path: string(rune('a' + i)), Digest: writ.DigestOf(c), Size: int64(len(c))})
	}
	return s
}

// doing is a runner that does what do says, and succeeds.
func doing(do func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error)) fake {
	return fake{run: func(ctx context.Context, _ string, spec writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
		files, err := do(ctx, spec, x)
		return writ.Result{Outcome: writ.Succeeded, Started: true, Files: files}, err
	}}
}

// took is a digest and size of what is read from r.
func took(r io.Reader) (writ.OutputFile, error) {
	b, err := io.ReadAll(r)
	return writ.OutputFile{Digest: writ.DigestOf(b), Size: int64(len(b))}, err
}

// give keeps b as a new file.
func give(ctx context.Context, x *writ.Exchange, path string, b []byte) (writ.OutputFile, error) {
	f := writ.OutputFile{Path: path, Size: int64(len(b)), State: writ.OutputNew}
	err := x.Keep(ctx, f, bytes.NewReader(b))
	f.Digest = writ.DigestOf(b)
	return f, err
}

// What a runner is given and gives is what crosses, of every size about a frame's.
func TestFilesCross(t *testing.T) {
	var contents [][]byte
	for _, n := range []int{0, 1, frameBytes - 1, frameBytes, frameBytes + 1, frameWindow * frameBytes, 3*frameWindow*frameBytes + 7} {
		contents = append(contents, random(t, n), bytes.Repeat([]byte{frameMark}, n), bytes.Repeat([]byte("{"), n))
	}
	c, _ := serve(t, doing(func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) (out []writ.OutputFile, err error) {
		for _, f := range spec.Files {
			r, err := x.Open(ctx, f.Digest)
			if err != nil {
				return nil, err
			}
			b, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil || writ.DigestOf(b) != f.Digest {
				return nil, fmt.Errorf("%s came as %d bytes of another digest, %w", f.Path, len(b), err)
			}
			x.Emit(writ.Chunk{Stream: writ.Stdout, Data: []byte(f.Path)})
			kept, err := give(ctx, x, "out/"+f.Path, b)
			if err != nil {
				return nil, err
			}
			out = append(out, kept)
		}
		out = append(out, writ.OutputFile{Path: "a", Digest: spec.Files[0].Digest, State: writ.OutputSame})
		return out, nil
	}), ownUID())
	spec, s := specWith(contents...), newShelf(contents...)
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), s.exchange())
	if err != nil || res.Outcome != writ.Succeeded {
		t.Fatalf("%+v, %v", res, err)
	}
	var want []string
	for i, f := range spec.Files {
		want = append(want, fmt.Sprintf("open %d", len(contents[i])), "chunk "+f.Path, "keep out/"+f.Path)
	}
	if diff := cmp.Diff(want, s.lines); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(s.kept, res.Files[:len(res.Files)-1]); diff != "" {
		t.Error(diff)
	}
}

// A gateway without the file: nothing is executed, and both ends learn why.
func TestOpenThatFails(t *testing.T) {
	c, _ := serve(t, doing(func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
		_, err := x.Open(ctx, spec.Files[1].Digest)
		if writ.KindOf(err) != writ.NotFound || writ.CodeOf(err) != "GONE" || !strings.Contains(writ.Message(err), "no such file") {
			t.Errorf("the runner learns %v", err)
		}
		return nil, fmt.Errorf("place files: %w", err)
	}), ownUID())
	spec := specWith([]byte("one"), []byte("two"))
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), newShelf([]byte("one")).exchange())
	if writ.KindOf(err) != writ.NotFound || writ.CodeOf(err) != "GONE" || !errors.Is(err, errGone) {
		t.Errorf("%+v, %v", res, err)
	}
}

// A file that the gateway does not keep is dropped there and then, and the next is kept.
func TestKeepThatFails(t *testing.T) {
	big := random(t, 5<<20)
	for name, keep := range map[string]func(io.Reader) error{
		"at once": func(io.Reader) error { return &writ.Error{Kind: writ.Exhausted, Msg: "the disk is full"} },
		"midway": func(r io.Reader) error {
			_, _ = io.CopyN(io.Discard, r, 1<<20)
			return &writ.Error{Kind: writ.Exhausted, Msg: "the disk is full"}
		},
		"afterward": func(r io.Reader) error {
			_, _ = io.Copy(io.Discard, r)
			return &writ.Error{Kind: writ.Exhausted, Msg: "the disk is full"}
		},
		"unread": func(r io.Reader) error { _, _ = io.CopyN(io.Discard, r, 1<<20); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			var told error
			c, _ := serve(t, doing(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) (out []writ.OutputFile, err error) {
				_, told = give(ctx, x, "big", big)
				f, err := give(ctx, x, "small", []byte("small"))
				return []writ.OutputFile{f}, err
			}), ownUID())
			spec, s := specWith(), newShelf()
			x := s.exchange()
			x.Keep = func(ctx context.Context, f writ.OutputFile, r io.Reader) error {
				if f.Path == "big" {
					return keep(r)
				}
				return s.keep(ctx, f, r)
			}
			res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
			if err != nil || res.Outcome != writ.Succeeded || len(s.kept) != 1 {
				t.Errorf("%+v, %v; kept %+v", res, err, s.kept)
			}
			if told == nil || name != "unread" && (writ.KindOf(told) != writ.Exhausted || writ.Message(told) != "the disk is full") {
				t.Errorf("the runner learns %v", told)
			}
		})
	}
}

// A file that cannot be read to its end, or is not of its size, is not kept, whatever the
// gateway makes of it.
func TestOutputThatIsNotWhole(t *testing.T) {
	bad := errors.New("it went away")
	for name, r := range map[string]io.Reader{
		"fails":   io.MultiReader(bytes.NewReader(make([]byte, 1<<20)), iotest.ErrReader(bad)),
		"shorter": bytes.NewReader(make([]byte, 2<<20-1)),
		"longer":  bytes.NewReader(make([]byte, 2<<20+1)),
	} {
		t.Run(name, func(t *testing.T) {
			var told error
			c, _ := serve(t, doing(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
				told = x.Keep(ctx, writ.OutputFile{Path: "f", Size: 2 << 20, State: writ.OutputNew}, r)
				f, err := give(ctx, x, "f", []byte("another of that name"))
				return []writ.OutputFile{f}, err
			}), ownUID())
			spec, s := specWith(), newShelf()
			x := s.exchange()
			var seen error
			x.Keep = func(ctx context.Context, f writ.OutputFile, r io.Reader) error {
				if f.Size == 2<<20 {
					_, seen = io.Copy(io.Discard, r)
					return nil
				}
				return s.keep(ctx, f, r)
			}
			res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
			if err != nil || res.Outcome != writ.Succeeded {
				t.Errorf("%+v, %v", res, err)
			}
			if seen == nil || told == nil || name == "fails" && !errors.Is(told, bad) {
				t.Errorf("the gateway learns %v, the runner %v", seen, told)
			}
		})
	}
}

// What the exchange does not have the runner does not have either.
func TestExchangeWithoutFuncs(t *testing.T) {
	c, _ := serve(t, doing(func(_ context.Context, _ writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
		if x.Emit == nil || x.Open != nil || x.Keep != nil {
			t.Errorf("the runner has %+v", x)
		}
		return nil, nil
	}), ownUID())
	for _, x := range []*writ.Exchange{nil, {}} {
		spec := specWith([]byte("a"))
		if res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x); err != nil || res.Outcome != writ.Succeeded {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

// An input that is left early is closed at the gateway before the runner gets on, and can
// be had again; there is one at a time, of the spec alone.
func TestInputsAreOneAtATime(t *testing.T) {
	big := random(t, 9<<20)
	c, _ := serve(t, doing(func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
		digest := spec.Files[0].Digest
		for _, n := range []int64{0, 1, frameBytes, 3 << 20, 9 << 20} {
			r, err := x.Open(ctx, digest)
			if err != nil {
				return nil, err
			}
			if n < 9<<20 {
				if _, err := x.Open(ctx, digest); err == nil {
					t.Error("a second input is open")
				}
			}
			_, err = io.CopyN(io.Discard, r, n)
			if err := errors.Join(err, r.Close(), r.Close()); err != nil {
				return nil, err
			}
			if _, err := r.Read(make([]byte, 1)); err == nil {
				t.Error("a closed input can be read")
			}
			x.Emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("next")})
		}
		if _, err := x.Open(ctx, writ.DigestOf([]byte("another"))); writ.KindOf(err) != writ.Invalid {
			t.Errorf("a digest of no file is answered by %v", err)
		}
		r, err := x.Open(ctx, digest)
		if err != nil {
			return nil, err
		}
		f, err := took(r)
		if f.Digest != digest {
			t.Errorf("in the end it came as %+v", f)
		}
		return nil, errors.Join(err, r.Close())
	}), ownUID())
	spec, s := specWith(big), newShelf(big)
	x := s.exchange()
	open := 0
	x.Open = func(ctx context.Context, d writ.Digest) (io.ReadCloser, error) {
		open++
		r, err := s.open(ctx, d)
		return closer{r, func() { open-- }}, err
	}
	x.Emit = func(writ.Chunk) {
		if open != 0 {
			t.Errorf("%d inputs are open when the runner gets on", open)
		}
	}
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
	if err != nil || res.Outcome != writ.Succeeded || open != 0 {
		t.Errorf("%+v, %v; %d open", res, err, open)
	}
}

// closer tells that it was closed.
type closer struct {
	io.Reader
	closed func()
}

func (c closer) Close() error { c.closed(); return nil }

// A cancel gets through at any moment, and the run has the runner's own result; nothing of
// the exchange is under way after it.
func TestCancelGetsThrough(t *testing.T) {
	big := make([]byte, 20<<20)
	spec := specWith(big)
	spec.Files[0].Path = "big"
	type exchange = writ.Exchange
	openAll := func(ctx context.Context, x *exchange) {
		if r, err := x.Open(ctx, spec.Files[0].Digest); err == nil {
			_, _ = io.Copy(io.Discard, r)
			_ = r.Close()
		}
	}
	keepAll := func(ctx context.Context, x *exchange) {
		_ = x.Keep(ctx, writ.OutputFile{Path: "out", Size: 20 << 20, State: writ.OutputNew}, bytes.NewReader(big))
	}
	for name, tt := range map[string]struct {
		runner func(ctx context.Context, x *exchange)                // until ctx ends
		change func(x *exchange, at func(ctx context.Context) error) // at says that it is time, and waits for ctx
	}{
		"Open does not answer": {openAll, func(x *exchange, at func(context.Context) error) {
			x.Open = func(ctx context.Context, _ writ.Digest) (io.ReadCloser, error) { return nil, at(ctx) }
		}},
		"an input does not come": {openAll, func(x *exchange, at func(context.Context) error) {
			x.Open = func(ctx context.Context, _ writ.Digest) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(bytes.NewReader(big[:1<<20]), readerFunc(func([]byte) (int, error) { return 0, at(ctx) }))), nil
			}
		}},
		"the runner does not take an input": {func(ctx context.Context, x *exchange) {
			r, err := x.Open(ctx, spec.Files[0].Digest)
			if err != nil {
				return
			}
			x.Open = nil
			<-ctx.Done()
			_ = r.Close()
		}, func(x *exchange, at func(context.Context) error) {
			open := x.Open
			x.Open = func(ctx context.Context, d writ.Digest) (io.ReadCloser, error) {
				r, err := open(ctx, d)
				n := 0
				return io.NopCloser(readerFunc(func(p []byte) (int, error) {
					if n += len(p); n > frameWindow*frameBytes { // all that is not taken
						go at(ctx)
					}
					return r.Read(p)
				})), err
			}
		}},
		"Keep does not begin": {keepAll, func(x *exchange, at func(context.Context) error) {
			x.Keep = func(ctx context.Context, _ writ.OutputFile, _ io.Reader) error { return at(ctx) }
		}},
		"Keep stands still": {keepAll, func(x *exchange, at func(context.Context) error) {
			x.Keep = func(ctx context.Context, _ writ.OutputFile, r io.Reader) error {
				_, _ = io.CopyN(io.Discard, r, 1<<20)
				return at(ctx)
			}
		}},
		"Keep does not end": {keepAll, func(x *exchange, at func(context.Context) error) {
			x.Keep = func(ctx context.Context, _ writ.OutputFile, r io.Reader) error {
				_, _ = io.Copy(io.Discard, r)
				return at(ctx)
			}
		}},
		"an output does not come": {func(ctx context.Context, x *exchange) {
			_ = x.Keep(ctx, writ.OutputFile{Path: "out", Size: 20 << 20, State: writ.OutputNew}, readerFunc(func(p []byte) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			}))
		}, func(x *exchange, at func(context.Context) error) {
			x.Keep = func(ctx context.Context, _ writ.OutputFile, r io.Reader) error {
				go at(ctx)
				_, err := io.Copy(io.Discard, r)
				return err
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := serve(t, fake{run: func(ctx context.Context, _ string, _ writ.RunSpec, _ writ.Digest, x *writ.Exchange) (writ.Result, error) {
				tt.runner(ctx, x)
				if ctx.Err() == nil {
					t.Error("the runner was not cancelled")
				}
				return writ.Result{Outcome: writ.Killed, Reason: "cancelled, says the runner"}, nil
			}}, ownUID())
			c.cancelWait = time.Hour // it need not be given up
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var under atomic.Int64
			x := newShelf(big).exchange()
			tt.change(x, func(ctx context.Context) error {
				cancel()
				<-ctx.Done()
				return ctx.Err()
			})
			open, keep := x.Open, x.Keep
			x.Open = func(ctx context.Context, d writ.Digest) (io.ReadCloser, error) {
				under.Add(1)
				defer under.Add(-1)
				return open(ctx, d)
			}
			x.Keep = func(ctx context.Context, f writ.OutputFile, r io.Reader) error {
				under.Add(1)
				defer under.Add(-1)
				return keep(ctx, f, r)
			}
			res, err := c.Run(ctx, "r", spec, spec.Digest(), x)
			if err != nil || res.Reason != "cancelled, says the runner" || under.Load() != 0 {
				t.Errorf("%+v, %v; %d under way", res, err, under.Load())
			}
		})
	}
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// A runner that gives an output up, since its own time for it is over, goes on: what
// it says then is heard, however much of the output came that nobody reads, and its result
// is the run's.
func TestOutputThatIsGivenUp(t *testing.T) {
	for n := range frameWindow + 2 {
		t.Run(fmt.Sprintf("after %d frames", n), func(t *testing.T) { givesUp(t, n) })
	}
}

// givesUp is a run whose runner gives an output up that it has read n frames of, or, when
// that is more than it may send, while it waits to be asked for more.
func givesUp(t *testing.T, n int) {
	c, _ := serve(t, doing(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
		f, err := give(ctx, x, "first", []byte("first"))
		short, cancel := context.WithCancel(ctx)
		if n > frameWindow {
			short, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		}
		defer cancel()
		read := 0
		body := readerFunc(func(p []byte) (int, error) {
			if read++; read >= n && n <= frameWindow {
				cancel()
			}
			return len(p), nil
		})
		if err := x.Keep(short, writ.OutputFile{Path: "endless", Size: 100 << 20, State: writ.OutputNew}, body); err == nil {
			t.Error("an output that was given up is kept")
		}
		if _, err := give(ctx, x, "after", nil); err == nil {
			t.Error("an output after one that was given up is kept")
		}
		x.Emit(writ.Chunk{Stream: writ.Stdout, Data: []byte("the last")})
		return []writ.OutputFile{f}, err
	}), ownUID())
	spec, s := specWith(), newShelf()
	x := s.exchange()
	x.Keep = func(ctx context.Context, f writ.OutputFile, r io.Reader) error {
		if f.Path == "endless" {
			<-ctx.Done()
			return nil
		}
		return s.keep(ctx, f, r)
	}
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
	if diff := cmp.Diff([]string{"keep first", "chunk the last"}, s.lines); diff != "" || err != nil || res.Outcome != writ.Succeeded {
		t.Errorf("%+v, %v %s", res, err, diff)
	}
}
