package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ"
)

// wantProblem checks that a is a problem of status whose detail has each of words.
func wantProblem(t *testing.T, a answer, status int, words ...string) {
	t.Helper()
	var p struct {
		Type, Title, Detail, Kind string
		Status                    int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil {
		t.Fatalf("status %d, not a problem: %v\n%.500s", a.status, err, a.body)
	}
	if a.status != status || p.Status != status || p.Type != "about:blank" || p.Title != http.StatusText(status) {
		t.Errorf("answer %d %+v, want status %d", a.status, p, status)
	}
	if got := a.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type %q", got)
	}
	for _, w := range words {
		if !strings.Contains(p.Detail, w) {
			t.Errorf("detail %q does not say %q", p.Detail, w)
		}
	}
}

// bodies are malformed requests to create a task, with the status and words of the
// refusal. EX-, CP- and scenario names are where each comes from.
var bodies = []struct {
	name   string
	body   string
	status int
	words  []string
}{
	{"CP-05 not JSON", `{"spec":`, 400, []string{"not JSON", "ends too early", "byte 8"}},
	{"CP-05 blank", ` `, 400, []string{"not JSON", "ends too early"}},
	{"CP-05 null body", `null`, 400, []string{"the body", "null"}},
	{"CP-05 array body", `[]`, 400, []string{"the body", "array", "want an object"}},
	{"CP-05 string body", `"x"`, 400, []string{"the body", "string"}},
	{"CP-05 two values", `{"step":"a"}{"step":"b"}`, 400, []string{"not JSON", "byte 12"}},
	{"CP-05 trailing text", `{"step":"a"} x`, 400, []string{"not JSON"}},
	{"CP-05 repeated key", `{"step":"a","step":"b"}`, 400, []string{"/step is given twice"}},
	{"CP-05 repeated nested key", `{"spec":{"language":"sh","code":"a","code":"b"}}`, 400, []string{"/spec/code is given twice"}},
	{"CP-05 repeated escaped key", `{"spec":{"language":"sh","code":"a","\u0063ode":"b"}}`, 400, []string{"/spec/code is given twice"}},
	{"CP-05 repeated variable", `{"spec":{"language":"sh","code":"a","env":{"A":"1","A":"2"}}}`, 400, []string{"/spec/env/A is given twice"}},
	{"CP-05 overflow", `{"spec":{"language":"sh","code":"a","limits":{"wall_ms":9223372036854775808}}}`, 400, []string{"/spec/limits/wall_ms", "64 bits"}},
	{"CP-05 huge exponent", `{"spec":{"language":"sh","code":"a","limits":{"wall_ms":1e400}}}`, 400, []string{"/spec/limits/wall_ms"}},
	{"CP-05 fraction", `{"spec":{"language":"sh","code":"a","limits":{"wall_ms":1.5}}}`, 400, []string{"/spec/limits/wall_ms", "whole number"}},
	{"CP-05 negative time", `{"spec":{"language":"sh","code":"a","limits":{"wall_ms":-1}}}`, 400, []string{"limits.wall_ms is -1"}},
	{"CP-05 NaN", `{"spec":{"language":"sh","code":"a","limits":{"wall_ms":NaN}}}`, 400, []string{"not JSON", "/spec/limits/wall_ms"}},
	{"CP-05 number as string", `{"spec":{"language":"sh","code":"a","limits":{"wall_ms":"5"}}}`, 400, []string{"/spec/limits/wall_ms", "string", "whole number"}},
	{"CP-05 code is a number", `{"spec":{"language":"sh","code":1}}`, 400, []string{"/spec/code", "number", "want a string"}},
	{"CP-05 args is a string", `{"spec":{"language":"sh","code":"a","args":"x"}}`, 400, []string{"/spec/args", "want an array"}},
	{"CP-05 argument is an object", `{"spec":{"language":"sh","code":"a","args":["x",{}]}}`, 400, []string{"/spec/args/1", "object"}},
	{"CP-05 content is not base64", `{"spec":{"language":"sh","code":"a","inputs":[{"path":"x","content":"%%"}]}}`, 400, []string{"/spec/inputs/0/content"}},
	{"CP-05 depth bomb", `{"spec":` + strings.Repeat(`[`, 1_000_000), 400, nil},
	{"CP-05 depth bomb in an object", `{"spec":{"env":` + strings.Repeat(`{"A":`, 1_000_000), 400, nil},
	{"CP-02 unknown member", `{"step":"a","user_id":"root"}`, 400, []string{"/user_id", "not a member"}},
	{"unknown nested member", `{"spec":{"language":"sh","code":"a","root":true}}`, 400, []string{"/spec/root", "not a member"}},
	{"MCP-22 key in another case", `{"spec":{"language":"sh","Code":"a"}}`, 400, []string{"/spec/Code", "case-sensitive"}},
	{"MCP-32 key that folds to ASCII", "{\"\u017ftep\":\"a\"}", 400, []string{"not a member"}},
	{"null member", `{"spec":null,"step":"a"}`, 400, []string{"/spec", "null"}},
	{"null argument", `{"spec":{"language":"sh","code":"a","args":[null]}}`, 400, []string{"/spec/args/0", "null"}},
	{"lone surrogate", `{"step":"\ud800"}`, 400, []string{"not JSON", "/step"}},
	{"neither spec nor step", `{}`, 400, []string{"neither spec nor step"}},
	{"all faults at once", `{"key":"../x","role":" ","spec":{"language":"","code":""}}`, 400, []string{"key", "role", "language is missing", "code is empty"}},

	{"scenario 20: 0 bytes", `{"spec":{"language":"python","code":""}}`, 400, []string{"code is empty"}},
	{"scenario 20: 11 MB", `{"spec":{"language":"python","code":"` + strings.Repeat("#", 11<<20) + `"}}`, 400, []string{"code has 11534336 bytes", "the most is 10485760"}},
	{"scenario 20: not UTF-8", "{\"spec\":{\"language\":\"python\",\"code\":\"a\xffb\"}}", 400, []string{"/spec/code", "UTF-8"}},
	{"scenario 20: NUL", `{"spec":{"language":"python","code":"a\u0000b"}}`, 400, []string{"code has a NUL byte at offset 1"}},
	{"scenario 20: bare NUL", "{\"spec\":{\"language\":\"python\",\"code\":\"a\x00b\"}}", 400, []string{"not JSON", "/spec/code"}},
	{"scenario 20: language null", `{"spec":{"language":null,"code":"a"}}`, 400, []string{"/spec/language", "null"}},
	{"scenario 20: language number", `{"spec":{"language":5,"code":"a"}}`, 400, []string{"/spec/language", "want a string"}},
	{"larger than a body may be", `{"step":"` + strings.Repeat(" ", 64<<20), 413, []string{"larger than 67108864 bytes"}},
}

// TestScenario20_MalformedRequests: every one is refused with its place and reason,
// the refusal is recorded, nothing else is called, and no more than a short text
// is kept of it.
func TestScenario20_MalformedRequests(t *testing.T) {
	s := start(t, time.Minute)
	for _, c := range bodies {
		t.Run(c.name, func(t *testing.T) {
			a := s.send(t, "POST", "/v1/tasks", c.body)
			wantProblem(t, a, c.status, c.words...)
			calls := s.take()
			if len(calls) != 1 || calls[0].Method != "Refuse" {
				t.Fatalf("calls: %.300v, want one Refuse", calls)
			}
			if reason := calls[0].Args[0].(string); len(reason) > 1000 || reason == "" {
				t.Errorf("a reason of %d bytes is recorded", len(reason))
			}
		})
	}
	if a := s.send(t, "GET", "/healthz", ""); a.status != 200 {
		t.Errorf("afterwards /healthz answers %d", a.status)
	}
}

// TestRefusalNotRecorded: when the refusal cannot be recorded, that is the answer.
func TestRefusalNotRecorded(t *testing.T) {
	s := start(t, time.Minute)
	s.fail(&writ.Error{Kind: writ.Unavailable, Msg: "the store does not answer"})
	wantProblem(t, s.send(t, "POST", "/v1/tasks", `{}`), 503, "the store does not answer")
}

// TestOtherBodies: the same strictness holds for every operation with a body; none
// of them calls what is behind it.
func TestOtherBodies(t *testing.T) {
	s := start(t, time.Minute)
	for _, path := range []string{
		"/v1/policy/explain", "/v1/tasks/task_1/cancel", "/v1/approvals/appr_1/vote", "/v1/audit/verify", "/v1/keys", "/v1/operators",
		"/v1/operations/op-1/undo",
	} {
		for _, body := range []string{`null`, `[]`, `{"x":1}`, `{"reason":"a","reason":"b"}`, `{"Verdict":"deny"}`, `{} {}`, `{"reason":null}`} {
			a := s.send(t, "POST", path, body)
			wantProblem(t, a, 400)
			if calls := s.take(); len(calls) != 0 {
				t.Errorf("%s %s calls %v", path, body, calls)
			}
		}
		wantProblem(t, s.send(t, "POST", path, ""), 415, "application/json")
		wantProblem(t, s.send(t, "POST", path, "", "Content-Type", "application/json"), 400, "the body is empty")
		wantProblem(t, s.send(t, "POST", path, `{}`, "Content-Type", "", "Content-Type", "text/plain"), 415)
		if path != "/v1/policy/explain" {
			wantProblem(t, s.send(t, "POST", path, `{`+strings.Repeat(" ", 64<<10)+`}`), 413, "65536")
		}
	}
	for body, words := range map[string]string{
		`{"verdict":"maybe"}`:                                  "verdict",
		`{"verdict":"grant","shown":"abc"}`:                    "shown",
		`{"verdict":"deny","reason":"\u0000"}`:                 "reason",
		`{"verdict":"deny","by":{"kind":"local"}}`:             "/by",
		fmt.Sprintf(`{"verdict":"deny","reason":"%2001d"}`, 0): "2000",
	} {
		wantProblem(t, s.send(t, "POST", "/v1/approvals/appr_1/vote", body), 400, words)
	}
	for body, words := range map[string]string{
		`{"check_only":"yes"}`: "/check_only",
		`{"key":"\u0000"}`:     "key",
		`{"undo":"op-2"}`:      "/undo",
		`{"key":"` + strings.Repeat("k", writ.MaxOperationKeyBytes+1) + `"}`: "256",
	} {
		wantProblem(t, s.send(t, "POST", "/v1/operations/op-1/undo", body), 400, words)
	}
	wantProblem(t, s.send(t, "POST", "/v1/keys", `{"kind":"local","subject":"a/b"}`), 400, "kind", "subject")
	wantProblem(t, s.send(t, "POST", "/v1/keys", `{"kind":"agent","subject":"a","expires":"tomorrow"}`), 400, "/expires")
	wantProblem(t, s.send(t, "POST", "/v1/operators", `{"id":"..","tenant":"/","roles":[""]}`), 400, "id", "tenant", "role")
	s.wantCalls(t)
}

func TestIdempotencyKey(t *testing.T) {
	s := start(t, time.Minute)
	for _, c := range []struct {
		name, body string
		header     []string
		status     int
		key        string
	}{
		{"header alone", `{"step":"a"}`, []string{"Idempotency-Key", "k1"}, 201, "k1"},
		{"body alone", `{"step":"a","key":"k1"}`, nil, 201, "k1"},
		{"both the same", `{"step":"a","key":"k1"}`, []string{"Idempotency-Key", "k1"}, 201, "k1"},
		{"both, different", `{"step":"a","key":"k1"}`, []string{"Idempotency-Key", "k2"}, 400, ""},
		{"twice", `{"step":"a"}`, []string{"Idempotency-Key", "k1", "Idempotency-Key", "k1"}, 400, ""},
		{"not a name", `{"step":"a"}`, []string{"Idempotency-Key", "../k"}, 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.send(t, "POST", "/v1/tasks", c.body, c.header...)
			if a.status != c.status {
				t.Errorf("status %d, want %d: %s", a.status, c.status, a.body)
			}
			calls := s.take()
			if c.status == 400 {
				wantProblem(t, a, 400, "Idempotency-Key")
				if calls[0].Method != "Refuse" {
					t.Errorf("calls %v", calls)
				}
				return
			}
			if got := calls[0].Args[0].(writ.TaskRequest).Key; got != c.key {
				t.Errorf("key %q, want %q", got, c.key)
			}
			if got := a.header.Get("Location"); got != "/v1/tasks/task_1" {
				t.Errorf("Location %q", got)
			}
		})
	}
}

// TestQueries: parameters are checked as strictly as bodies.
func TestQueries(t *testing.T) {
	s := start(t, time.Minute)
	for path, words := range map[string]string{
		"/v1/tasks?state=done":                                  "none of noted, held",
		"/v1/tasks?State=held":                                  `"State" is not known`,
		"/v1/tasks?tenant=other":                                `"tenant" is not known`,
		"/v1/tasks?limit=0":                                     "from 1 to 500",
		"/v1/tasks?limit=501":                                   "from 1 to 500",
		"/v1/tasks?limit=1e1":                                   "whole number",
		"/v1/tasks?limit=1&limit=2":                             "given 2 times",
		"/v1/tasks?cursor=%00":                                  "cursor",
		"/v1/tasks?cursor=%ff":                                  "UTF-8",
		"/v1/tasks?cursor=%zz":                                  "well-formed",
		"/v1/tasks?limit=1;cursor=2":                            "well-formed",
		"/v1/tasks?cursor=" + strings.Repeat("a", 1025):         "1024",
		"/v1/tasks/task_1/wait?timeout_ms=60001":                "from 0 to 60000",
		"/v1/tasks/task_1/wait?timeout_ms=-1":                   "from 0 to 60000",
		"/v1/tasks/task_1/wait?timeout_ms=99999999999999999999": "whole number",
		"/v1/tasks/task_1/output?stream=stdin":                  "none of stdout, stderr",
		"/v1/approvals?state=held":                              "none of pending",
		"/v1/operations?by=coder":                               "kind:id",
		"/v1/operations?by=agent:":                              "kind:id",
		"/v1/operations?tenant=other":                           `"tenant" is not known`,
		"/v1/operations?workspace=a&workspace=b":                "given 2 times",
		"/v1/operations?limit=501":                              "from 1 to 500",
		"/v1/audit/events?after=-2":                             "from -1",
		"/v1/audit/events?type=x":                               "none of task.refused",
		"/v1/audit/export?format=xml":                           "none of jsonl, cloudevents",
	} {
		wantProblem(t, s.send(t, "GET", path, ""), 400, "query", words)
	}
	s.wantCalls(t)
}

// TestCP13_PathsInIDs: what cannot be an id reaches nothing.
func TestCP13_PathsInIDs(t *testing.T) {
	s := start(t, time.Minute)
	for _, path := range []string{
		"/v1/tasks/..%2f..%2fetc", "/v1/tasks/%2e%2e", "/v1/tasks/a%00b", "/v1/tasks/a%2fb/spec", "/v1/tasks/.hidden",
		"/v1/tasks/" + strings.Repeat("a", 65), "/v1/tasks/a%20b", "/v1/tasks/../keys", "//v1/tasks", "/v1/tasks/", "/v1//tasks",
		"/v1/operations/..", "/v1/operations/a%2fb", "/v1/audit/proof/-1", "/v1/audit/proof/1.5", "/v1/audit/proof/9223372036854775808", "/v2/tasks", "/", "/debug/pprof/", "/metrics/x",
	} {
		wantProblem(t, s.send(t, "GET", path, ""), 404, "there is nothing at")
	}
	s.wantCalls(t)
}

func TestWrongMethod(t *testing.T) {
	s := start(t, time.Minute)
	a := s.send(t, "PUT", "/v1/tasks", `{}`)
	wantProblem(t, a, 405, "PUT", "GET, HEAD, POST")
	if got := a.header.Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow %q", got)
	}
	// CP-12: reading never changes anything.
	for _, path := range []string{"/v1/tasks/task_1/cancel", "/v1/approvals/appr_1/vote", "/v1/tasks/task_1/bodies", "/v1/approvals/appr-2/resume", "/v1/operations/op-1/undo"} {
		wantProblem(t, s.send(t, "GET", path, ""), 405)
	}
	s.wantCalls(t)
}
