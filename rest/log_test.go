package rest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// lines are the log so far, one object a line, without what differs between runs.
func (s *system) lines(t *testing.T) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(s.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		delete(m, "time")
		delete(m, "took")
		delete(m, "bytes")
		out = append(out, m)
	}
	return out
}

// TestLogLine: one line for each request, with ids, and with nothing that the
// client sent beside them.
func TestLogLine(t *testing.T) {
	s := start(t, time.Minute)
	s.send(t, "POST", "/v1/tasks", `{"key":"hush-key","step":"hush-step"}`)
	s.send(t, "POST", "/v1/tasks", `{"hush-member":"hush-value"}`)
	s.send(t, "GET", "/v1/tasks/task_9?hush-param=1", "")
	s.send(t, "GET", "/hush-path", "", "X-Hush", "hush-header")
	s.send(t, "POST", "/v1/keys", `{"kind":"agent","subject":"coder"}`)
	s.send(t, "GET", "/v1/status", "", "Authorization", "", "Authorization", "Bearer hush-token")
	s.fail(&writ.Error{Kind: writ.NotFound, Msg: "there is no hush-thing"})
	s.send(t, "GET", "/v1/tasks/task_9", "")
	s.fail(&writ.Error{Kind: writ.Unavailable, Msg: "no runner", Err: errTest("connection refused")})
	s.send(t, "GET", "/v1/tasks/task_9", "")
	want := []map[string]any{
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/tasks", "status": 201.0, "by": "agent:coder", "made": "task_1"},
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/tasks", "status": 400.0, "by": "agent:coder", "kind": "invalid"},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "GET /v1/tasks/{id}", "status": 200.0, "by": "agent:coder", "id": "task_9"},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "", "status": 404.0, "kind": "not_found"},
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/keys", "status": 201.0, "by": "agent:coder", "made": "k2"},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "GET /v1/status", "status": 401.0, "kind": "unauthenticated"},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "GET /v1/tasks/{id}", "status": 404.0, "by": "agent:coder", "id": "task_9", "kind": "not_found"},
		{"level": "ERROR", "msg": "request", "method": "GET", "route": "GET /v1/tasks/{id}", "status": 503.0, "by": "agent:coder", "id": "task_9", "kind": "unavailable", "error": "no runner: connection refused"},
	}
	if diff := cmp.Diff(want, s.lines(t)); diff != "" {
		t.Errorf("log (want -, got +):\n%s", diff)
	}
	for _, word := range []string{"hush", "sesame", "shown-once"} {
		if strings.Contains(s.log.String(), word) {
			t.Errorf("the log has %q:\n%s", word, s.log)
		}
	}
}

type errTest string

func (e errTest) Error() string { return string(e) }
