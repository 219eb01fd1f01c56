package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ"
)

// wantFixed401 checks that a is the one answer of the inbox to who has no key.
func wantFixed401(t *testing.T, what string, a answer) {
	t.Helper()
	if a.status != http.StatusUnauthorized || strings.TrimSpace(a.body) != `{"error":"unauthorized"}` || a.header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%s: %d %q, WWW-Authenticate %q", what, a.status, a.body, a.header.Get("WWW-Authenticate"))
	}
}

// wantFault checks that a is an error body of the inbox and nothing else.
func wantFault(t *testing.T, what string, a answer, status int, code string) {
	t.Helper()
	var f map[string]string
	if err := json.Unmarshal([]byte(a.body), &f); err != nil {
		t.Errorf("%s: %v in %q", what, err, a.body)
	}
	if a.status != status || f["code"] != code || f["message"] == "" || len(f) != 2 || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %d %q as %s, want %d with code %s and a message", what, a.status, a.body, a.header.Get("Content-Type"), status, code)
	}
}

// TestScenario140_InboxHasOne401: whatever is wrong with the key, nothing is told, and
// nothing behind the API is called.
func TestScenario140_InboxHasOne401(t *testing.T) {
	s := start(t, time.Minute)
	for name, header := range map[string][]string{
		"none":  {"Authorization", ""},
		"wrong": {"Authorization", "", "Authorization", "Bearer writ_k1_other"},
		"two":   {"Authorization", "Bearer " + token},
	} {
		wantFixed401(t, name, s.send(t, "POST", "/inbox/works/work-1/intents", `{"body":"x"}`, header...))
	}
	s.wantCalls(t)
}

// TestInboxStatuses are those of spec/02 §10.1 for each code.
func TestInboxStatuses(t *testing.T) {
	s := start(t, time.Minute)
	for _, c := range []struct {
		code   string
		kind   writ.Kind
		status int
		sent   string
	}{
		{"WORK_NOT_FOUND", writ.NotFound, 404, ""},
		{"INTENT_NOT_FOUND", writ.NotFound, 404, ""},
		{"WORKSPACE_NOT_FOUND", writ.NotFound, 404, ""},
		{"INTENT_ALREADY_CLAIMED", writ.Conflict, 409, ""},
		{"INTENT_REVISION_CONFLICT", writ.Conflict, 409, ""},
		{"WORK_CLOSED", writ.Conflict, 409, ""},
		{"INTENT_NOT_EDITABLE", writ.Conflict, 400, ""},
		{"UNAUTHORIZED", writ.Denied, 403, ""},
		{"RESOURCE_QUEUE_FULL", writ.Exhausted, 429, ""},
		{"", writ.Invalid, 400, "INVALID_REQUEST"},
		{"", writ.Denied, 403, "UNAUTHORIZED"},
		{"", writ.Unavailable, 503, "UNAVAILABLE"},
		{"", writ.Internal, 500, "INTERNAL"},
	} {
		s.fail(&writ.Error{Kind: c.kind, Code: c.code, Msg: "say what to do"})
		if c.sent == "" {
			c.sent = c.code
		}
		wantFault(t, c.code, s.send(t, "POST", "/inbox/intents/fb-1/cancel", ""), c.status, c.sent)
		if c.code == "" {
			continue
		}
		_, err := s.overTCP.CancelIntent(t.Context(), "fb-1")
		if writ.CodeOf(err) != c.code || writ.Message(err) != "say what to do" {
			t.Errorf("%s reaches the client as %#v", c.code, err)
		}
	}
}

// TestInboxRefusesMalformedRequests: in the inbox's own form.
func TestInboxRefusesMalformedRequests(t *testing.T) {
	s := start(t, time.Minute)
	long := `{"body":"` + strings.Repeat("x", writ.MaxIntentBytes+1) + `"}`
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"POST", "/inbox/works/work-1/intents", ``, 415, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", `{`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", `{}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", `{"body":" \n"}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", `{"body":"a\u0000b"}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", long, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", `{"body":"x","kind":"stop_notice"}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", `{"body":"x","delivery":"now"}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/intents", `{"body":"x","state":"queued"}`, 400, "INVALID_REQUEST"},
		{"PATCH", "/inbox/intents/fb-1", `{"body":"x"}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/intents/fb-1/queue", `{}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/reorder", `{"intent_ids":["a","a",1]}`, 400, "INVALID_REQUEST"},
		{"POST", "/inbox/works/work-1/stop", `{"reason":1}`, 400, "INVALID_REQUEST"},
		{"GET", "/inbox/works?workspace=x", ``, 400, "INVALID_REQUEST"},
		{"GET", "/inbox/works?limit=0", ``, 400, "INVALID_REQUEST"},
		{"GET", "/inbox/works/-", ``, 404, "WORK_NOT_FOUND"},
		{"POST", "/inbox/intents/-/cancel", ``, 404, "INTENT_NOT_FOUND"},
		{"GET", "/inbox/none", ``, 404, "NOT_FOUND"},
		{"DELETE", "/inbox/works/work-1", ``, 405, "INVALID_REQUEST"},
	} {
		wantFault(t, c.method+" "+c.path+" "+c.body[:min(len(c.body), 60)], s.send(t, c.method, c.path, c.body), c.status, c.code)
	}
	s.wantCalls(t)
}

// TestInboxStopNeedsNoBody, since nobody needs a reason.
func TestInboxStopNeedsNoBody(t *testing.T) {
	s := start(t, time.Minute)
	a := s.send(t, "POST", "/inbox/works/work-1/stop", "")
	if a.status != http.StatusOK || !strings.Contains(a.body, `"ok":true,"killed":3,"intent":{"intent_id":"fb-1"`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	s.wantCalls(t, call{"StopWork", agent().Ref(), []any{writ.WorkID("work-1"), writ.StopRequest{}}})
}
