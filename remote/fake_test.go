package remote

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc/mem"

	"writ"
)

// fake is a Runner of functions.
type fake struct {
	run       func(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error)
	probe     func(ctx context.Context) (writ.Enforcement, error)
	languages []writ.LanguageStatus
}

func (f fake) Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error) {
	return f.run(ctx, id, spec, digest, x)
}

func (f fake) Probe(ctx context.Context) (writ.Enforcement, error) { return f.probe(ctx) }

func (f fake) Languages(context.Context) ([]writ.LanguageStatus, error) { return f.languages, nil }

// socketDir is a private folder with a short path: a socket's has 107 bytes.
func socketDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "writ")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// serve serves r to uid and returns a client of it, and what ends the server.
func serve(t testing.TB, r Runner, uid uint32) (c *Client, stop func()) {
	t.Helper()
	return serveFiles(t, r, nil, uid)
}

// serveFiles is serve, with files.
func serveFiles(t testing.TB, r Runner, files Files, uid uint32) (c *Client, stop func()) {
	t.Helper()
	return serveParts(t, Parts{Runner: r, Files: files}, uid)
}

// serveParts is serve, with all parts.
func serveParts(t testing.TB, parts Parts, uid uint32) (c *Client, stop func()) {
	t.Helper()
	socket, stop := listenParts(t, parts, uid)
	c, err := dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return c, stop
}

// listenParts serves parts to uid on a new socket until stop is called, or t ends.
func listenParts(t testing.TB, parts Parts, uid uint32) (socket string, stop func()) {
	t.Helper()
	socket = filepath.Join(socketDir(t), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, ln, parts, uid) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
	}
	t.Cleanup(stop)
	return socket, stop
}

// encoded is v as it crosses the wire.
func encoded(v any) ([]byte, error) {
	b, err := codec{}.Marshal(v)
	return b.Materialize(), err
}

// decoded is the inverse.
func decoded(b []byte, v any) error {
	return codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, v)
}

func ownUID() uint32 { return uint32(os.Getuid()) }

func specOf(code string) (writ.RunSpec, writ.Digest) {
	s := writ.RunSpec{Language: "sh", Code: code, Limits: writ.DefaultLimits}
	return s, s.Digest()
}
