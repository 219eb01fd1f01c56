package codeapi

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/interpreter"
)

// lines are the log so far, one object a line, without what differs between runs.
func (d *desk) lines(t *testing.T) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range strings.Lines(d.log.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"time", "took", "bytes"} {
			delete(m, k)
		}
		out = append(out, m)
	}
	return out
}

// TestLogLines (case CP-03): one line for each request, with ids, and with nothing else
// that the client sent; old clients send keys in bodies.
func TestLogLines(t *testing.T) {
	d := newDesk(t, deskOptions{runs: &scriptedRuns{exec: func(_ context.Context, _ writ.Principal, r interpreter.Request) (interpreter.Reply, error) {
		switch r.Code {
		case "fail":
			return interpreter.Reply{}, &writ.Error{Kind: writ.Unavailable, Code: "sandbox_setup_failed", Msg: "nothing can run now", Err: errors.New("connection refused")}
		case "refuse":
			return interpreter.Reply{}, &writ.Error{Kind: writ.Invalid, Code: "bad_request", Msg: "there is no hush-thing"}
		}
		return interpreter.Reply{Session: "aaaaaaaaaaaaaaaaaaaaa", Stdout: "hush-output"}, nil
	}}})
	hush := [][2]string{{"X-Hush", "hush-header"}, {"User-Agent", "hush-agent"}, {"Cookie", "hush-cookie"}}
	d.exec(t, `{"lang":"bash","code":"hush-code","apiKey":"hush-key","hush-member":1}`, hush...)
	d.exec(t, `{"lang":"bash","code":"refuse"}`, hush...)
	d.exec(t, `{"lang":"bash","code":"fail"}`, hush...)
	d.exec(t, `{"lang":"hush-lang","code":""}`)
	d.exec(t, `{"hush-member":`)
	d.send(t, "POST", "/v1/exec", hiBody, asJSON, [2]string{"Authorization", "Bearer hush-token"})
	d.send(t, "GET", "/v1/files/aaaaaaaaaaaaaaaaaaaaa?kind=user&id=hush-id&hush=1", "", d.bearer("ada"))
	d.send(t, "GET", "/v1/download/hush-session/hush-object", "", d.bearer("ada"))
	d.send(t, "HUSH", "/v1/hush-path", "", d.bearer("ada"))
	d.send(t, "GET", "/hush-path", "")
	d.send(t, "POST", "/v1/upload", "hush", d.bearer("ada"), [2]string{"Content-Type", "multipart/form-data"}) // a 500 of the contract
	d.send(t, "GET", "/v1/health", "")
	want := []map[string]any{
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/exec", "status": 200.0, "by": "user:ada"},
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/exec", "status": 400.0, "by": "user:ada", "code": "bad_request"},
		{"level": "ERROR", "msg": "request", "method": "POST", "route": "POST /v1/exec", "status": 503.0, "by": "user:ada", "code": "sandbox_setup_failed", "error": "nothing can run now: connection refused"},
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/exec", "status": 400.0, "by": "user:ada"},
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/exec", "status": 400.0},
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/exec", "status": 401.0},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "GET /v1/files/{session}", "status": 403.0, "by": "user:ada", "session": "aaaaaaaaaaaaaaaaaaaaa"},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "GET /v1/download/{session}/{object}", "status": 400.0, "by": "user:ada"},
		{"level": "INFO", "msg": "request", "method": "other", "route": "", "status": 404.0, "by": "user:ada"},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "", "status": 404.0},
		{"level": "INFO", "msg": "request", "method": "POST", "route": "POST /v1/upload", "status": 500.0, "by": "user:ada"},
		{"level": "INFO", "msg": "request", "method": "GET", "route": "GET /v1/health", "status": 200.0},
	}
	if diff := cmp.Diff(want, d.lines(t)); diff != "" {
		t.Errorf("log (want -, got +):\n%s", diff)
	}
	if strings.Contains(strings.ToLower(d.log.String()), "hush") {
		t.Errorf("the log has what was sent:\n%s", d.log)
	}
}

// TestPanics: a panic is the server's fault and says nothing, and the server lives on.
func TestPanics(t *testing.T) {
	d := newDesk(t, deskOptions{runs: &scriptedRuns{exec: func(context.Context, writ.Principal, interpreter.Request) (interpreter.Reply, error) {
		panic("hush")
	}}})
	want(t, d.exec(t, hiBody), 500, `{"error":"Internal server error"}`)
	lines := d.lines(t)
	stack, _ := lines[0]["stack"].(string)
	if lines[0]["error"] != "panic: hush" || !strings.Contains(stack, "TestPanics") {
		t.Errorf("the log says %v", lines[0])
	}
	want(t, d.send(t, "GET", "/v1/health", ""), 200, "OK")
}
