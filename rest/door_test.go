package rest_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"log/slog"

	"writ"
	"writ/client"
	"writ/response"
	"writ/rest"
)

// TestProblems: what a client is told of each kind of error, and the header that
// goes with it. The operator's part never leaves.
func TestProblems(t *testing.T) {
	s := start(t, time.Minute)
	for _, k := range writ.Kinds {
		s.fail(fmt.Errorf("get: %w", &writ.Error{Kind: k, Op: "op", Msg: "words for the client", Err: errors.New("pq: secret detail")}))
		a := s.send(t, "GET", "/v1/tasks/task_1", "")
		words := "words for the client"
		if k == writ.Internal {
			words = "internal error"
		}
		wantProblem(t, a, response.Status(k), words)
		if strings.Contains(a.body, "pq:") {
			t.Errorf("%s: the answer has the operator's part: %s", k, a.body)
		}
		if got, want := a.header.Get("WWW-Authenticate") != "", k == writ.Unauthenticated; got != want {
			t.Errorf("%s: WWW-Authenticate is there: %v", k, got)
		}
		if got, want := a.header.Get("Retry-After") != "", k == writ.Exhausted; got != want {
			t.Errorf("%s: Retry-After is there: %v", k, got)
		}
	}
	s.fail(errors.New("disk on fire"))
	a := s.send(t, "GET", "/v1/tasks/task_1", "")
	wantProblem(t, a, 500, "internal error")
	if strings.Contains(a.body, "disk") || !strings.Contains(s.log.String(), "disk on fire") {
		t.Errorf("answer %s, log %s: the cause belongs in the log alone", a.body, s.log)
	}
	s.fail(&writ.Error{Kind: writ.Conflict, Msg: strings.Repeat("é", 5000)})
	if a := s.send(t, "GET", "/v1/tasks/task_1", ""); len(a.body) > 1200 || !strings.Contains(a.body, "é…") {
		t.Errorf("a long message makes an answer of %d bytes", len(a.body))
	}
}

// TestPanicIsInternal: a fault of ours is one answer and one log line, and the
// server lives.
func TestPanicIsInternal(t *testing.T) {
	s := start(t, time.Minute)
	s.boom = true
	wantProblem(t, s.send(t, "GET", "/v1/tasks/task_1", ""), 500, "internal error")
	if log := s.log.String(); !strings.Contains(log, "a fault of ours") || !strings.Contains(log, "backend_test.go") {
		t.Errorf("the log has no stack: %s", log)
	}
	if a := s.send(t, "GET", "/v1/status", ""); a.status != 200 {
		t.Errorf("afterwards: %d", a.status)
	}
}

func TestCredentials(t *testing.T) {
	s := start(t, time.Minute)
	for name, header := range map[string][]string{
		"none":            {"Authorization", ""},
		"wrong key":       {"Authorization", "", "Authorization", "Bearer writ_k1_other"},
		"empty key":       {"Authorization", "", "Authorization", "Bearer "},
		"other scheme":    {"Authorization", "", "Authorization", "Basic " + token},
		"no scheme":       {"Authorization", "", "Authorization", token},
		"two keys":        {"Authorization", "Bearer " + token},
		"CP-02 identity":  {"Authorization", "", "X-User-Id", "root"},
		"key in a cookie": {"Authorization", "", "Cookie", "token=" + token},
	} {
		t.Run(name, func(t *testing.T) {
			for _, op := range rest.Operations() {
				method, path, _ := strings.Cut(op, " ")
				path = strings.NewReplacer("{id}", "x1", "{seq}", "1").Replace(path)
				a := s.send(t, method, path, "", header...)
				if path == "/healthz" || path == "/openapi.yaml" {
					if a.status != 200 {
						t.Errorf("%s answers %d", op, a.status)
					}
					continue
				}
				if strings.HasPrefix(path, "/inbox/") {
					wantFixed401(t, op, a)
					continue
				}
				wantProblem(t, a, 401)
				if a.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s: no WWW-Authenticate", op)
				}
			}
			s.wantCalls(t)
		})
	}
	// CP-03: a key in the URL is no credential.
	wantProblem(t, s.send(t, "GET", "/v1/keys?token="+token, "", "Authorization", ""), 401)
	if a := s.send(t, "GET", "/v1/status", "", "Authorization", "", "Authorization", "bearer  "+token); a.status != 200 {
		t.Errorf("the scheme is case-insensitive: %d", a.status)
	}
}

// TestUnixPeer: over the socket a key that is wrong is refused, though the peer
// would have been known, and so is a peer that is not known.
func TestUnixPeer(t *testing.T) {
	s := start(t, time.Minute)
	if _, err := s.overUnix.WithKey("writ_k1_other").Keys(t.Context()); writ.KindOf(err) != writ.Unauthenticated {
		t.Errorf("wrong key: %v", err)
	}
	s.wantCalls(t)

	b := &backend{}
	api := rest.New(slog.New(slog.DiscardHandler), rest.Services{Auth: b, Tasks: b, Approvals: b, Files: b, Audit: b, Access: b, Policy: b}, rest.Options{})
	socket := filepath.Join(t.TempDir(), "s")
	listen(t, api.Unix(func(net.Conn) (writ.Principal, error) {
		return writ.Principal{}, &writ.Error{Kind: writ.Denied, Msg: "uid 7 does not own this folder"}
	}), "unix", socket)
	c := client.Unix(socket)
	defer c.Close()
	_, err := c.Keys(t.Context())
	wantError(t, "unknown peer", err, writ.Denied, "uid 7 does not own this folder")
	if _, err := c.WithKey(token).Keys(t.Context()); err != nil {
		t.Errorf("unknown peer with a key: %v", err)
	}
}

// TestCP10_HostAndOrigin: a browser page of another site, or of a name that was
// rebound to us, reaches nothing, streams and open routes included.
func TestCP10_HostAndOrigin(t *testing.T) {
	s := start(t, time.Minute)
	s.watch = nil // would panic if it were reached
	for name, header := range map[string][]string{
		"foreign host":          {"Host", "evil.test"},
		"foreign host and port": {"Host", "evil.test:80"},
		"lookalike":             {"Host", "localhost.evil.test"},
		"other address":         {"Host", "10.0.0.1"},
		"trailing dot":          {"Host", "evil.test."},
		"foreign origin":        {"Origin", "https://evil.test"},
		"null origin":           {"Origin", "null"},
		"other local port":      {"Origin", "http://127.0.0.1:1"},
		"no origin":             {"Origin", "::"},
		"two origins":           {"Host", "localhost", "Origin", "http://localhost", "Origin", "http://evil.test"},
		"cross-site fetch":      {"Sec-Fetch-Site", "cross-site"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"/v1/tasks/task_1/events", "/v1/tasks", "/healthz", "/openapi.yaml", "/none"} {
				wantProblem(t, s.send(t, "GET", path, "", header...), 403)
			}
			s.wantCalls(t)
		})
	}
	for name, header := range map[string][]string{
		"localhost":           {"Host", "localhost:8080"},
		"upper case":          {"Host", "LocalHost"},
		"another loopback":    {"Host", "127.1.2.3:1"},
		"IPv6":                {"Host", "[::1]:8080"},
		"IPv6 without port":   {"Host", "[::1]"},
		"the configured name": {"Host", "writ.example.org:443"},
		"own origin":          {"Host", "localhost:8080", "Origin", "http://localhost:8080"},
		"same-origin fetch":   {"Sec-Fetch-Site", "same-origin"},
	} {
		if a := s.send(t, "GET", "/v1/status", "", header...); a.status != 200 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// TestHostsOfAServerOnEveryAddress: one that listens on 0.0.0.0 is known by any
// address, and by no name.
func TestHostsOfAServerOnEveryAddress(t *testing.T) {
	b := &backend{}
	api := rest.New(slog.New(slog.DiscardHandler), rest.Services{Auth: b, Tasks: b, Approvals: b, Files: b, Audit: b, Access: b, Policy: b}, rest.Options{})
	for listen, hosts := range map[string]map[string]int{
		"0.0.0.0": {"10.1.2.3:80": 200, "[fd00::1]": 200, "evil.test": 403},
		"::":      {"10.1.2.3": 200, "evil.test": 403},
		"":        {"10.1.2.3": 403, "evil.test": 403, "localhost": 200},
	} {
		for host, want := range hosts {
			r := httptest.NewRequest("GET", "/healthz", nil)
			r.Host = host
			w := httptest.NewRecorder()
			api.TCP(listen).Handler.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("listening on %q, Host %q: %d, want %d", listen, host, w.Code, want)
			}
		}
	}
}

// TestAnswerHeaders: nothing is cached, and output is nothing that a browser shows.
func TestAnswerHeaders(t *testing.T) {
	s := start(t, time.Minute)
	for path, want := range map[string]map[string]string{
		"/v1/tasks/task_1": {"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
		"/v1/tasks/task_1/output": {
			"Content-Type": "application/octet-stream", "X-Content-Type-Options": "nosniff",
			"Content-Disposition": `attachment; filename="task_1.stdout"`,
		},
		"/healthz":         {"Content-Type": "text/plain; charset=utf-8"},
		"/none":            {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
		"/v1/audit/export": {"Content-Type": "application/x-ndjson"},
	} {
		a := s.send(t, "GET", path, "")
		for name, v := range want {
			if got := a.header.Get(name); got != v {
				t.Errorf("%s: %s is %q, want %q", path, name, got, v)
			}
		}
	}
	if a := s.send(t, "GET", "/healthz", "", "Authorization", ""); a.body != "ok\n" {
		t.Errorf("/healthz says %q", a.body)
	}
	if a := s.send(t, "GET", "/openapi.yaml", ""); a.body != string(rest.Document()) {
		t.Errorf("/openapi.yaml is %d bytes, not the document", len(a.body))
	}
}

// TestExportBreaksWhenItFailsLate: a part of an export is not taken for all of it.
func TestExportBreaksWhenItFailsLate(t *testing.T) {
	s := start(t, time.Minute)
	s.late = true
	s.fail(errors.New("disk on fire"))
	var b strings.Builder
	err := s.overTCP.Export(t.Context(), &b, "jsonl", writ.EventFilter{After: -1})
	if err == nil {
		t.Errorf("no error, %q", b.String())
	}
	if log := s.log.String(); !strings.Contains(log, "disk on fire") {
		t.Errorf("log: %s", log)
	}
}

// TestServerLimits: the bounds that a server needs before a handler sees anything.
func TestServerLimits(t *testing.T) {
	s := start(t, time.Minute)
	for _, srv := range []*http.Server{s.tcp.Config, s.unix.Config} {
		if srv.ReadHeaderTimeout == 0 || srv.IdleTimeout == 0 || srv.MaxHeaderBytes == 0 {
			t.Errorf("a bound is missing: %+v", srv)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.tcp.URL+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Big", strings.Repeat("a", 100<<10))
	resp, err := s.tcp.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("100 KiB of headers: %s", resp.Status)
	}
}
