package codeapi

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"writ"
	"writ/interpreter"
	"writ/limit"
)

// TestReferenceRateLimits: the headers and the bodies that the contract's reference
// answered with limits of one (spec/03 §5); routes that share a limit, and requests that
// are refused for another reason, count.
func TestReferenceRateLimits(t *testing.T) {
	one := limit.Rule{Most: 1, Window: time.Hour}
	d := newDesk(t, deskOptions{rules: &limit.Rules{Exec: one, Upload: one, Download: one, Fetch: one}})
	const s = "aaaaaaaaaaaaaaaaaaaaa"
	for _, tt := range []struct {
		first, then [2]string // method, path
		body        string    // %d: seconds
	}{
		{[2]string{"POST", "/v1/exec"}, [2]string{"POST", "/v1/exec"}, `{"error":"rate_limited","message":"Too many CodeAPI execution requests. Please retry in %d seconds.","retry_after_seconds":%[1]d}`},
		{[2]string{"POST", "/v1/upload"}, [2]string{"POST", "/v1/upload/batch"}, `{"error":"Too many file uploads. Please retry in %d seconds."}`},
		{[2]string{"GET", "/v1/download/" + s + "/" + s}, [2]string{"HEAD", "/v1/download/" + s + "/" + s}, ""},
		{[2]string{"GET", "/v1/download/" + s + "/" + s}, [2]string{"GET", "/v1/download/" + s + "/x"}, `{"error":"Too many file downloads. Please retry in %d seconds."}`},
		{[2]string{"GET", "/v1/files/" + s}, [2]string{"GET", "/v1/sessions/" + s + "/objects/" + s}, `{"error":"Too many file list requests. Please retry in %d seconds."}`},
		{[2]string{"GET", "/v1/sessions/x/objects/y"}, [2]string{"DELETE", "/v1/files/" + s + "/" + s}, `{"error":"Too many file list requests. Please retry in %d seconds."}`},
	} {
		t.Run(tt.then[0]+" "+tt.then[1]+" after "+tt.first[1], func(t *testing.T) {
			who := d.bearer(t.Name())
			first := d.send(t, tt.first[0], tt.first[1], `{"lang":"zz"}`, asJSON, who)
			if first.status == 429 || first.status < 400 {
				t.Fatalf("the first request, which is malformed: %d %s", first.status, first.body)
			}
			got := d.send(t, tt.then[0], tt.then[1], hiBody, asJSON, who)
			var n int
			if _, err := fmt.Sscan(got.header.Get("Retry-After"), &n); err != nil || n < 1 || n > 3600 {
				t.Fatalf("Retry-After is %q", got.header.Get("Retry-After"))
			}
			body := ""
			if tt.body != "" {
				body = fmt.Sprintf(tt.body, n)
			}
			want(t, got, 429, body)
			for name, value := range map[string]string{
				"RateLimit-Policy": "1;w=3600", "RateLimit-Limit": "1", "RateLimit-Remaining": "0", "RateLimit-Reset": fmt.Sprint(n),
			} {
				if got.header.Get(name) != value {
					t.Errorf("%s of the 429 is %q, want %q", name, got.header.Get(name), value)
				}
				if first.header.Get(name) == "" {
					t.Errorf("the first answer has no %s", name)
				}
			}
			if first.header.Get("Retry-After") != "" {
				t.Error("the first answer has Retry-After")
			}
		})
	}
	// Others have their own, and what no limit has is not counted.
	want(t, d.send(t, "POST", "/v1/exec", hiBody, asJSON, d.bearer("somebody else")), 200, hiReply)
	for range 3 {
		if got := d.send(t, "POST", "/v1/exec/programmatic/cancel", `{}`, asJSON, d.bearer("ada")); got.status != 400 || got.header.Get("RateLimit-Limit") != "" {
			t.Errorf("cancel: %d %v", got.status, got.header)
		}
	}
}

// TestUncountedIsRefused: a count that cannot be kept lets nothing pass.
func TestUncountedIsRefused(t *testing.T) {
	d := newDesk(t, deskOptions{})
	d.svc.Limits = uncountable{}
	want(t, d.exec(t, hiBody), 500, `{"error":"Internal server error"}`)
	if asked, _ := d.runs.all(); len(asked) > 0 {
		t.Error("it ran")
	}
}

type uncountable struct{}

func (uncountable) Count(context.Context, string, writ.Principal) (limit.Answer, error) {
	return limit.Answer{}, errors.New("the disk is full")
}

const aRequest = "575bc3a2-cc92-463f-9ef7-bba228ccff06"

// TestJW17_Cancel: who sent a run may end it by the id that it was sent with, and nobody
// else; what is over, and what is somebody else's, are one answer.
func TestJW17_Cancel(t *testing.T) {
	began, ended := make(chan struct{}), make(chan struct{})
	d := newDesk(t, deskOptions{runs: &scriptedRuns{exec: func(ctx context.Context, _ writ.Principal, _ interpreter.Request) (interpreter.Reply, error) {
		close(began)
		select {
		case <-ended:
		case <-ctx.Done():
		}
		return interpreter.Reply{}, &writ.Error{Kind: writ.Conflict, Code: "cancelled", Msg: "The run was cancelled"}
	}}})
	cancel := func(sub, body string) answer {
		return d.send(t, "POST", "/v1/exec/programmatic/cancel", body, asJSON, d.bearer(sub))
	}
	body := `{"request_id":"` + aRequest + `"}`
	done := make(chan answer, 1)
	go func() { done <- d.exec(t, hiBody, [2]string{"X-LibreChat-Code-Request-ID", aRequest}) }()
	<-began
	want(t, cancel("bob", body), 200, `{"status":"already_completed"}`)
	want(t, d.send(t, "POST", "/v1/exec/programmatic/cancel", body, asJSON), 401, noBearer)
	if d.runs.ended != nil {
		t.Fatalf("somebody else ended %v", d.runs.ended)
	}
	want(t, cancel("ada", body), 202, `{"status":"cancellation_requested"}`)
	close(ended)
	want(t, <-done, 409, `{"error":"cancelled","message":"The run was cancelled"}`)
	want(t, cancel("ada", body), 200, `{"status":"already_completed"}`)

	const invalid = `{"error":"Invalid or missing request_id"}`
	for _, bad := range []string{`{}`, `{"request_id":null}`, `{"request_id":7}`, `{"request_id":"short"}`, `{"request_id":"../../../../../etc/passwd"}`, `{"request_id":"` + aRequest + `\n"}`} {
		want(t, cancel("ada", bad), 400, invalid)
	}
	want(t, cancel("ada", `[]`), 400, `{"error":"the body must be a JSON object"}`)
}

// TestRequestIDs: a run that could not be cancelled by its id does not begin.
func TestRequestIDs(t *testing.T) {
	d := newDesk(t, deskOptions{})
	const name = "X-LibreChat-Code-Request-ID"
	for _, headers := range [][][2]string{{{name, "short"}}, {{name, "a b c d e f g h i j k"}}, {{name, aRequest}, {name, aRequest}}, {{name, ""}}} {
		want(t, d.exec(t, hiBody, headers...), 400, `{"error":"Invalid programmatic request ID"}`)
	}
	want(t, d.exec(t, hiBody, [2]string{name, aRequest}), 200, hiReply)
	if asked, _ := d.runs.all(); len(asked) != 1 || asked[0].ID != aRequest {
		t.Errorf("runs are %+v", asked)
	}
}

// TestProfiles: a client that expects what another deployment keeps is told so before
// anything is done (spec/03 §13).
func TestProfiles(t *testing.T) {
	const header = "X-CodeAPI-Expected-Profile"
	mismatch := func(expected, actual string) string {
		return fmt.Sprintf(`{"error":"execution_profile_mismatch","message":"Expected the %s execution profile, but reached %s","expected_profile":%[1]q,"actual_profile":%[2]q}`, expected, actual)
	}
	for mode, actual := range map[interpreter.Mode]string{interpreter.Stateless: "default", interpreter.Affinity: "stateful", interpreter.Strict: "stateful"} {
		t.Run(string(mode), func(t *testing.T) {
			d := newDesk(t, deskOptions{runs: &scriptedRuns{mode: mode}})
			const body = `{"lang":"bash","code":"","runtime_session_hint":"v2:user:0123456789abcdef"}`
			other := "stateful"
			if actual == other {
				other = "default"
			}
			want(t, d.exec(t, body), 200, hiReply)
			got := d.exec(t, body, [2]string{header, actual})
			want(t, got, 200, hiReply)
			if got.header.Get("X-CodeAPI-Execution-Profile") != actual {
				t.Errorf("headers are %v", got.header)
			}
			got = d.exec(t, body, [2]string{header, other})
			want(t, got, 409, mismatch(other, actual))
			if got.header.Get("X-CodeAPI-Execution-Profile") != actual || got.header.Get("RateLimit-Limit") != "" {
				t.Errorf("headers are %v", got.header)
			}
			want(t, d.send(t, "GET", "/v1/files/aaaaaaaaaaaaaaaaaaaaa?kind=user", "", d.bearer("ada"), [2]string{header, other}), 409, mismatch(other, actual))
			want(t, d.exec(t, body, [2]string{header, "aws"}), 400,
				`{"error":"invalid_execution_profile","message":"Invalid execution profile: aws","expected_profile":"aws","actual_profile":"`+actual+`"}`)
			if got := d.exec(t, body, [2]string{header, actual}, [2]string{header, actual}); got.status != 400 {
				t.Errorf("two profiles: %d %s", got.status, got.body)
			}
			if asked, _ := d.runs.all(); len(asked) != 2 {
				t.Errorf("%d runs began, want 2", len(asked))
			}
		})
	}
}

// TestHints: where there are runtime sessions, a hint is checked after the language and
// before files.
func TestHints(t *testing.T) {
	d := newDesk(t, deskOptions{runs: &scriptedRuns{mode: interpreter.Strict}})
	for body, fault := range map[string]string{
		`{"lang":"bash","code":"","runtime_session_hint":7}`:                 "runtime_session_hint must be a string",
		`{"lang":"bash","code":"","runtime_session_hint":"a b"}`:             `runtime_session_hint may only contain letters, digits, \".\", \"_\", \":\", and \"-\"`,
		`{"lang":"bash","code":""}`:                                          "runtime_session_hint is required in strict mode",
		`{"lang":"bash","code":"","runtime_session_hint":null}`:              "runtime_session_hint is required in strict mode",
		`{"lang":"zz","code":"","runtime_session_hint":7}`:                   "Unsupported language: zz",
		`{"lang":"bash","code":"","files":7,"runtime_session_hint":"a b"}`:   `runtime_session_hint may only contain letters, digits, \".\", \"_\", \":\", and \"-\"`,
		`{"lang":"bash","code":"","files":7,"runtime_session_hint":"a:b-1"}`: "files must be an array",
	} {
		want(t, d.exec(t, body), 400, `{"error":"`+fault+`"}`)
	}
	want(t, d.exec(t, `{"lang":"bash","code":"","runtime_session_hint":"v2:user:0123"}`), 200, hiReply)
	if asked, _ := d.runs.all(); len(asked) != 1 || asked[0].Hint != "v2:user:0123" {
		t.Errorf("runs are %+v", asked)
	}
	for _, hint := range []string{``, `,"runtime_session_hint":"v2:user:0123"`, `,"runtime_session_hint":7`} { // always stateless (spec/03 §3.2)
		want(t, d.send(t, "POST", "/v1/exec", `{"lang":"bash","code":""`+hint+`}`, asJSON, [2]string{"X-CodeAPI-Synthetic-Token", syntheticSecret}), 200, hiReply)
		if asked, by := d.runs.all(); asked[len(asked)-1].Hint != "" || !by[len(by)-1].Synthetic {
			t.Errorf("the synthetic run is %+v of %+v", asked[len(asked)-1], by[len(by)-1])
		}
	}
}
