package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"writ/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests. Nothing waits it out but a failure.
const patience = 2 * time.Minute

func newServer(t *testing.T, d *desk) *mcp.Server {
	t.Helper()
	return newServerWith(t, d, mcp.Options{Version: "1.2.3"})
}

func newServerWith(t *testing.T, d *desk, opt mcp.Options) *mcp.Server {
	t.Helper()
	s := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Processes: d, Sandbox: d, Works: noWorks{}}, opt)
	t.Cleanup(s.Close)
	return s
}

// connection is one way to reach a server.
type connection struct {
	name     string
	revision string
	http     bool
}

var connections = []connection{
	{"stdio 2026-07-28", "2026-07-28", false},
	{"stdio 2025-11-25", "2025-11-25", false},
	{"stdio 2025-03-26", "2025-03-26", false},
	{"http 2026-07-28", "2026-07-28", true},
	{"http 2025-11-25", "2025-11-25", true},
	{"http 2025-06-18", "2025-06-18", true},
}

// client connects the SDK's own client to s. asked answers its user's forms; nil means
// that it cannot ask.
func (c connection) client(t *testing.T, s *mcp.Server, asked func(*sdk.ElicitRequest) string) *sdk.ClientSession {
	t.Helper()
	var opt sdk.ClientOptions
	if asked != nil {
		opt.ElicitationHandler = func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			res := &sdk.ElicitResult{Action: asked(req)}
			if res.Action == "accept" {
				res.Content = map[string]any{}
			}
			return res, nil
		}
	}
	var transport sdk.Transport
	if c.http {
		url := serveHTTP(t, s, mcp.HTTPOptions{})
		transport = &sdk.StreamableClientTransport{Endpoint: url + mcp.Path, HTTPClient: &http.Client{Transport: bearer("alice-key")}}
	} else {
		in, out := serveStdio(t, s)
		transport = &sdk.IOTransport{Reader: out, Writer: in}
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &opt).
		Connect(t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: c.revision})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(func() { session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != c.revision {
		t.Fatalf("revision %s, want %s", got, c.revision)
	}
	return session
}

// everywhere runs f over each connection.
func everywhere(t *testing.T, f func(*testing.T, connection)) {
	for _, c := range connections {
		t.Run(c.name, func(t *testing.T) { f(t, c) })
	}
}

// bearer is a round tripper that sends a key.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func serveHTTP(t *testing.T, s *mcp.Server, opt mcp.HTTPOptions) (url string) {
	t.Helper()
	h := s.HTTP(someKeys, opt)
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		s.Close()
		h.Close(context.Background())
		srv.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return srv.URL
}

// serveStdio serves alice on two pipes and gives their other ends.
func serveStdio(t *testing.T, s *mcp.Server) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	clientOut, serverIn := io.Pipe()
	serverOut, clientIn := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := s.Stdio(t.Context(), serverOut, serverIn, agent("alice"))
		serverIn.Close()
		done <- err
	}()
	t.Cleanup(func() {
		s.Close()
		clientIn.Close()
		clientOut.Close()
		select {
		case err := <-done:
			if err != nil && t.Context().Err() == nil {
				t.Errorf("Stdio: %v", err)
			}
		case <-time.After(patience):
			t.Error("Stdio did not return after its input ended")
		}
	})
	return clientIn, clientOut
}

// pipe is a raw client on stdio.
type pipe struct {
	t     *testing.T
	in    io.WriteCloser
	lines chan string // closed at the end of the server's output
}

func newPipe(t *testing.T, s *mcp.Server) *pipe {
	in, out := serveStdio(t, s)
	p := &pipe{t: t, in: in, lines: make(chan string, 100)}
	go func() {
		defer close(p.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			p.lines <- line
		}
	}()
	return p
}

func (p *pipe) send(lines ...string) {
	p.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(p.in, l+"\n"); err != nil {
			p.t.Fatalf("write: %v", err)
		}
	}
}

// next is the next message of the server. Every line must be one.
func (p *pipe) next() reply {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("the server closed its output")
		}
		return parse(p.t, []byte(line))
	case <-time.After(patience):
		p.t.Fatal("no message came")
	}
	return reply{}
}

// initialize opens a session of 2025-11-25.
func (p *pipe) initialize() {
	p.t.Helper()
	p.send(initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if r := p.next(); r.Error != nil {
		p.t.Fatalf("initialize: %+v", r.Error)
	}
}

const initialize = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// reply is a message of the server.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Result struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		Structured      json.RawMessage `json:"structuredContent"`
		IsError         bool            `json:"isError"`
		ResultType      string          `json:"resultType"`
		RequestState    string          `json:"requestState"`
		InputRequests   json.RawMessage `json:"inputRequests"`
		ProtocolVersion string          `json:"protocolVersion"`
		Supported       []string        `json:"supportedVersions"`
		Instructions    string          `json:"instructions"`
		Tools           []any           `json:"tools"`
	} `json:"result"`
	Error *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

func (r reply) code() int {
	if r.Error == nil {
		return 0
	}
	return r.Error.Code
}

func parse(t *testing.T, data []byte) reply {
	t.Helper()
	var r reply
	d := json.NewDecoder(strings.NewReader(string(data)))
	if err := d.Decode(&r); err != nil || d.More() {
		t.Fatalf("not one JSON message: %v: %.300s", err, data)
	}
	return r
}

// web is a raw client over HTTP.
type web struct {
	t       *testing.T
	url     string
	session string
	header  map[string]string // beside the usual ones; empty removes one
}

func newWeb(t *testing.T, s *mcp.Server) *web {
	return &web{t: t, url: serveHTTP(t, s, mcp.HTTPOptions{}), header: map[string]string{}}
}

func (w *web) with(pairs ...string) *web {
	c := *w
	c.header = map[string]string{}
	for k, v := range w.header {
		c.header[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		c.header[pairs[i]] = pairs[i+1]
	}
	return &c
}

func (w *web) do(method, body string) (*http.Response, string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, w.url+mcp.Path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice-key")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
	}
	for k, v := range w.header {
		switch {
		case k == "Host":
			r.Host = v
		case v == "":
			r.Header.Del(k)
		default:
			r.Header.Set(k, v)
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return res, string(text)
}

// post sends one message and wants status.
func (w *web) post(status int, body string) reply {
	w.t.Helper()
	res, text := w.do(http.MethodPost, body)
	if res.StatusCode != status {
		w.t.Fatalf("status %d, want %d: %s", res.StatusCode, status, text)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return reply{}
	}
	return parse(w.t, []byte(text))
}

// initialize opens a session of 2025-11-25.
func (w *web) initialize() {
	w.t.Helper()
	res, text := w.do(http.MethodPost, initialize)
	if w.session = res.Header.Get("Mcp-Session-Id"); w.session == "" {
		w.t.Fatalf("no session: %d %s", res.StatusCode, text)
	}
	w.post(http.StatusAccepted, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// syncBuffer is a buffer that several goroutines write to.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
