package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"

	"writ"
)

// heap is what the heap holds now, garbage included.
func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// metered is a reader that notes the most that the heap held.
type metered struct {
	r    io.Reader
	most *uint64
}

func (m metered) Read(p []byte) (int, error) {
	*m.most = max(*m.most, heap())
	return m.r.Read(p)
}

// 200 MB go in and come out, and neither end holds more than a few messages of them.
func TestFilesAreNotHeldInMemory(t *testing.T) {
	size := int64(200_000_000)
	if raced {
		size = 20_000_000
	}
	const room = 12 << 20 // of both ends, with what gRPC holds and garbage
	// Else garbage may grow to as much as other tests of this process left alive.
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(zeros{}, size)); err != nil {
		t.Fatal(err)
	}
	digest := writ.Digest(hex.EncodeToString(hash.Sum(nil)))
	var runner, gateway uint64
	c, _ := serve(t, doing(func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
		r, err := x.Open(ctx, digest)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		n, err := io.Copy(io.Discard, metered{r, &runner})
		if n != size || err != nil {
			t.Errorf("%d bytes came in, %v", n, err)
		}
		f := writ.OutputFile{Path: "out", Size: size, State: writ.OutputNew}
		err = errors.Join(err, x.Keep(ctx, f, metered{io.LimitReader(zeros{}, size), &runner}))
		f.Digest = digest
		return []writ.OutputFile{f}, err
	}), ownUID())
	spec := specWith()
	spec.Files = []writ.FileInput{{Path: "in", Digest: digest, Size: size}}
	x := &writ.Exchange{
		Open: func(context.Context, writ.Digest) (io.ReadCloser, error) {
			return io.NopCloser(metered{io.LimitReader(zeros{}, size), &gateway}), nil
		},
		Keep: func(_ context.Context, _ writ.OutputFile, r io.Reader) error {
			_, err := io.Copy(io.Discard, metered{r, &gateway})
			return err
		},
	}
	if _, err := c.Languages(t.Context()); err != nil { // there is a connection
		t.Fatal(err)
	}
	runtime.GC()
	floor := heap()
	res, err := c.Run(t.Context(), "r", spec, spec.Digest(), x)
	if err != nil || res.Outcome != writ.Succeeded {
		t.Errorf("%+v, %v", res, err)
	}
	most := max(runner, gateway)
	t.Logf("%d KiB above the floor of %d KiB", (most-floor)>>10, floor>>10)
	if most > floor+room {
		t.Errorf("the heap had %d bytes, %d at the beginning", most, floor)
	}
}
