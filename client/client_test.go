package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/client"
)

// serve is a client of a server that answers with h.
func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", "writ_k1_sesame")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestErrors: an answer that is not one of ours still has a kind, and what is one
// of ours is taken at its word.
func TestErrors(t *testing.T) {
	const problem = "application/problem+json"
	for _, c := range []struct {
		name, media, body string
		status            int
		kind              writ.Kind
		msg               string
	}{
		{"problem", problem, `{"kind":"conflict","detail":"it is over"}`, 409, writ.Conflict, "it is over"},
		{"the kind of a problem beats its status", problem, `{"kind":"not_found","detail":"gone"}`, 400, writ.NotFound, "gone"},
		{"kind of a later version", problem, `{"kind":"melted","detail":"too hot"}`, 403, writ.Denied, "too hot"},
		{"problem with a parameter", problem + "; charset=utf-8", `{"kind":"exhausted","detail":"full"}`, 429, writ.Exhausted, "full"},
		{"problem that is not JSON", problem, `<html>`, 401, writ.Unauthenticated, "the server answers 401 Unauthorized"},
		{"page of a proxy", "text/html", `<html>\x1b[2J`, 502, writ.Unavailable, "the server answers 502 Bad Gateway"},
		{"proxy timeout", "text/plain", ``, 504, writ.Unavailable, "the server answers 504 Gateway Timeout"},
		{"teapot", "", ``, 418, writ.Invalid, "the server answers 418 I'm a teapot"},
		{"internal", "", ``, 500, writ.Internal, "the server answers 500 Internal Server Error"},
		{"endless problem", problem, `{"detail":"` + strings.Repeat("a", 1<<20), 404, writ.NotFound, "the server answers 404 Not Found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.media)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			_, err := cl.Task(t.Context(), "task_1")
			e, ok := errors.AsType[*writ.Error](err)
			if !ok || e.Kind != c.kind || e.Msg != c.msg || e.Op != "GET /v1/tasks/task_1" {
				t.Errorf("error is %#v, want %s %q", err, c.kind, c.msg)
			}
		})
	}
}

// TestKeyGoesToItsServerOnly: a redirect is not followed, and the key is not shown.
func TestKeyGoesToItsServerOnly(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server is asked, with %q", r.Header.Get("Authorization"))
	}))
	defer other.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer writ_k1_sesame" {
			t.Errorf("Authorization %q", got)
		}
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	if _, err := c.Status(t.Context()); err == nil || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a redirect answers %v", err)
	}
	if s := fmt.Sprintf("%v %+v %#v", c, c, c); strings.Contains(s, "sesame") {
		t.Errorf("a printed client shows its key: %s", s)
	}
}

// TestIDsAreOnePathElement: an id is never more of a path than its element.
func TestIDsAreOnePathElement(t *testing.T) {
	var asked string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		_, _ = io.WriteString(w, "{}")
	})
	if _, err := c.Task(t.Context(), "../keys?x=1#y"); err != nil {
		t.Fatal(err)
	}
	if want := "/v1/tasks/..%2Fkeys%3Fx=1%23y"; asked != want {
		t.Errorf("asked for %s, want %s", asked, want)
	}
}

func TestAnswerIsCutShort(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"id":"task_1"`)
	})
	if _, err := c.Task(t.Context(), "task_1"); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("a JSON answer: %v", err)
	}
	if _, err := c.Output(t.Context(), "task_1", writ.Stdout); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("output: %v", err)
	}
	var b bytes.Buffer
	if err := c.Export(t.Context(), &b, "jsonl", writ.EventFilter{}); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("export: %v", err)
	}
}

// TestOutputIsBounded: a server that sends without end is an error, not a full
// memory.
func TestOutputIsBounded(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for block := make([]byte, 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return // the client has had enough
			}
		}
	})
	if _, err := c.Output(t.Context(), "task_1", writ.Stdout); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("endless output: %v", err)
	}
}

// TestWatchReadsTheStream: what server-sent events allow is read, and what is not
// known is skipped.
func TestWatchReadsTheStream(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, ":\n\n: hello\nretry: 5\nid: 7\n\n"+
			"event: later\ndata: nonsense\n\n"+
			"event:task\r\ndata:{\"task\":\r\ndata: {\"id\":\"task_1\",\"state\":\"running\"}}\r\n\r\n"+
			"event: output\ndata: {\"output\":{\"stream\":\"stdout\",\"data\":\"aGk=\"}}\n\n"+
			"event: task\ndata: {\"task\":{\"id\":\"task_1\",\"state\":\"failed\"},\"more\":1}\n\n"+
			"event: task\ndata: never read\n\n")
	})
	var got []writ.TaskEvent
	if err := c.Watch(t.Context(), "task_1", func(e writ.TaskEvent) error { got = append(got, e); return nil }); err != nil {
		t.Fatal(err)
	}
	want := []writ.TaskEvent{
		{Task: &writ.Task{ID: "task_1", State: writ.TaskRunning}},
		{Output: &writ.Chunk{Stream: writ.Stdout, Data: []byte("hi")}},
		{Task: &writ.Task{ID: "task_1", State: writ.TaskFailed}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (want -, got +):\n%s", diff)
	}
}

func TestWatchRefusesNonsense(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "event: task\ndata: {\"task\":5}\n\n")
	})
	err := c.Watch(t.Context(), "task_1", func(writ.TaskEvent) error { return errors.New("not reached") })
	if err == nil || !strings.Contains(err.Error(), "decode a task event") {
		t.Errorf("error %v", err)
	}
}

// TestWatchGivesUp: a server that is gone for good ends a watch, after a while; a
// context that ends does so at once.
func TestWatchGivesUp(t *testing.T) {
	c := client.Unix(t.TempDir() + "/none.sock")
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := c.Watch(t.Context(), "task_1", func(writ.TaskEvent) error { return nil })
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(err.Error(), "does not answer") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(began); took < 5*time.Second || took > 20*time.Second {
			t.Errorf("it gave up after %v", took)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("closing time"))
		defer cancel()
		if err := c.Watch(ctx, "task_1", func(writ.TaskEvent) error { return nil }); err == nil || !strings.Contains(err.Error(), "closing time") {
			t.Errorf("ended context: %v", err)
		}
	})
}
