package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"

	"writ"
)

// benchBytes are what is sent: a large upload of the code interpreter.
const benchBytes = 25 << 20

// BenchmarkFiles is a run that gets 25 MB, one that gives as much, and the same over a
// unix socket with nothing else, which is the floor.
func BenchmarkFiles(b *testing.B) {
	data := bytes.Repeat([]byte("0123456789abcdef"), benchBytes/16)
	spec := specWith(data)
	out := writ.OutputFile{Path: "out", Size: benchBytes, State: writ.OutputNew}
	x := &writ.Exchange{
		Open: func(context.Context, writ.Digest) (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		},
		Keep: func(_ context.Context, _ writ.OutputFile, r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		},
	}
	for _, bench := range []struct {
		name string
		do   func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error)
	}{
		{"open", func(ctx context.Context, spec writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
			r, err := x.Open(ctx, spec.Files[0].Digest)
			if err != nil {
				return nil, err
			}
			_, err = io.Copy(io.Discard, r)
			return nil, errors.Join(err, r.Close())
		}},
		{"keep", func(ctx context.Context, _ writ.RunSpec, x *writ.Exchange) ([]writ.OutputFile, error) {
			return nil, x.Keep(ctx, out, bytes.NewReader(data))
		}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c, _ := serve(b, doing(bench.do), ownUID())
			b.SetBytes(benchBytes)
			b.ReportAllocs()
			for b.Loop() {
				if res, err := c.Run(b.Context(), "r", spec, spec.Digest(), x); err != nil || res.Outcome != writ.Succeeded {
					b.Fatalf("%+v, %v", res, err)
				}
			}
		})
	}
	b.Run("floor", func(b *testing.B) {
		ln, err := net.Listen("unix", filepath.Join(socketDir(b), "s"))
		if err != nil {
			b.Fatal(err)
		}
		defer ln.Close()
		near, err := net.Dial("unix", ln.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		defer near.Close()
		far, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		defer far.Close()
		b.SetBytes(benchBytes)
		b.ReportAllocs()
		for b.Loop() {
			sent := make(chan error, 1)
			go func() {
				_, err := io.Copy(onlyWriter{far}, onlyReader{bytes.NewReader(data)})
				sent <- err
			}()
			if _, err := io.CopyN(io.Discard, onlyReader{near}, benchBytes); err != nil {
				b.Fatal(err)
			}
			if err := <-sent; err != nil {
				b.Fatal(err)
			}
		}
	})
}

// onlyReader and onlyWriter keep io.Copy from ways that no file could take.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)
