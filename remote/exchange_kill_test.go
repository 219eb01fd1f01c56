package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// A runner that is killed while an input is on its way, or an output: the run is
// interrupted, and what of the output came is not taken for the whole.
func TestRunnerKilledAmidAFile(t *testing.T) {
	needBubblewrap(t)
	const size = 20 << 20
	var depot testkit.Depot
	in := depot.Put("in.txt", make([]byte, size))
	for name, change := range map[string]func(x *writ.Exchange, kill func()){
		"input": func(x *writ.Exchange, kill func()) {
			x.Open = func(context.Context, writ.Digest) (io.ReadCloser, error) {
				return io.NopCloser(io.MultiReader(bytes.NewReader(make([]byte, size/2)), readerFunc(func([]byte) (int, error) {
					kill()
					return 0, io.EOF
				}), bytes.NewReader(make([]byte, size/2)))), nil
			}
		},
		"output": func(x *writ.Exchange, kill func()) {
			x.Keep = func(_ context.Context, _ writ.OutputFile, r io.Reader) error {
				_, err := io.CopyN(io.Discard, r, size/2)
				kill()
				n, end := io.Copy(io.Discard, r)
				if err != nil || end == nil || n >= size/2 {
					t.Errorf("after %v came %d bytes more, %v", err, n, end)
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := startProcess(t)
			spec := testkit.Interpret("bash", "head -c 20971520 /dev/zero > out.txt", in)
			spec.Collect.FileBytes, spec.Collect.TotalBytes = size, size
			x := depot.Exchange()
			change(x, func() {
				if err := p.cmd.Process.Kill(); err != nil {
					t.Error(err)
				}
				testkit.Receive(t, "the end of the runner", errOnClose(p.Done()))
			})
			res, err := p.Client().Run(t.Context(), writ.NewID("run"), spec, spec.Digest(), x)
			if err != nil || res.Outcome != writ.Interrupted || !res.Started || len(res.Files) > 0 {
				t.Errorf("%+v, %v", res, err)
			}
			if _, err := p.Client().Run(t.Context(), "next", spec, spec.Digest(), x); writ.KindOf(err) != writ.Unavailable || errors.Is(err, writ.ErrDispatchUnknown) {
				t.Errorf("the next: %v", err)
			}
		})
	}
}
