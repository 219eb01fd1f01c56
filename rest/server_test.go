package rest_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/client"
	"writ/rest"
)

// system is an API over a backend, on a TCP and a unix listener, with every answer
// held against openapi.yaml.
type system struct {
	*backend
	tcp, unix *httptest.Server
	overTCP   *client.Client // as agent()
	overUnix  *client.Client // as owner()
	log       *logBuffer
}

// start makes a system that beats every interval on quiet streams.
func start(t *testing.T, beat time.Duration) *system {
	t.Helper()
	b := &backend{}
	log := &logBuffer{}
	api := rest.New(slog.New(slog.NewJSONHandler(log, nil)), rest.Services{
		Auth: b, Tasks: b, Approvals: b, Workspaces: b, Inbox: b, Files: b, Audit: b, Access: b, Policy: b,
	}, rest.Options{Heartbeat: beat})
	socket := filepath.Join(t.TempDir(), "writ.sock")
	s := &system{
		backend: b, log: log,
		tcp:  listen(t, api.TCP("writ.example.org"), "tcp", "127.0.0.1:0"),
		unix: listen(t, api.Unix(func(net.Conn) (writ.Principal, error) { return owner(), nil }), "unix", socket),
	}
	var err error
	if s.overTCP, err = client.New(s.tcp.URL, token); err != nil {
		t.Fatal(err)
	}
	s.overUnix = client.Unix(socket)
	t.Cleanup(s.overTCP.Close)
	t.Cleanup(s.overUnix.Close)
	return s
}

func listen(t *testing.T, srv *http.Server, network, addr string) *httptest.Server {
	t.Helper()
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	srv.Handler = checked(t, srv.Handler)
	ts := &httptest.Server{Listener: ln, Config: srv}
	ts.Start()
	t.Cleanup(ts.Close)
	return ts
}

// logBuffer is a log that a test reads while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answer is what came back on the wire.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends one request over TCP with the agent's key. header are name, value
// pairs; an empty value removes one.
func (s *system) send(t *testing.T, method, path, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.tcp.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		switch {
		case header[i] == "Host":
			req.Host = header[i+1]
		case header[i+1] == "":
			req.Header.Del(header[i])
		default:
			req.Header.Add(header[i], header[i+1])
		}
	}
	resp, err := s.tcp.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// wantCalls checks what reached the backend, and forgets it.
func (s *system) wantCalls(t *testing.T, want ...call) {
	t.Helper()
	if diff := cmp.Diff(want, s.take()); diff != "" {
		t.Errorf("calls (want -, got +):\n%s", diff)
	}
}
