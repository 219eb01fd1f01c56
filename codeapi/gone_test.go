package codeapi

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/interpreter"
)

// TestClientThatClosesItsHalf: it cannot be told from one that is gone, so its run ends. It
// reads that it closed the connection, and neither answer, count nor log have a fault of the
// server.
func TestClientThatClosesItsHalf(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context) error{
		"cancelled":        context.Context.Err,
		"the store is cut": func(ctx context.Context) error { return fmt.Errorf("read a row: %w", ctx.Err()) },
		"told as unavailable": func(ctx context.Context) error {
			return &writ.Error{Kind: writ.Unavailable, Op: "run", Msg: "come again", Err: ctx.Err()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			begun := make(chan bool, 1)
			seen := make(chan Observation, 1)
			d := newDesk(t, deskOptions{observe: func(o Observation) { seen <- o }, runs: &scriptedRuns{exec: func(ctx context.Context, _ writ.Principal, _ interpreter.Request) (interpreter.Reply, error) {
				begun <- true
				<-ctx.Done()
				return interpreter.Reply{}, end(ctx)
			}}})
			c := d.dial(t)
			c.send(t, d.half("POST", "/v1/exec", asJSON[1], hiBody, len(hiBody)))
			testkit.Receive(t, "the run begins", begun)
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			want(t, c.answer(t), 499, `{"error":"The client closed the connection before the answer"}`)
			if o := testkit.Receive(t, "the request is counted", seen); o.Status != 499 {
				t.Errorf("counted with status %d", o.Status)
			}
			if log := d.log.String(); !strings.Contains(log, `"client_gone":true`) || strings.Contains(log, `"ERROR"`) {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

// halves are requests of whose bodies a part comes, and what each answers when the rest
// does not come in time.
var halves = map[string]struct {
	method, path, media, body string
	starting                  bool // the server is
	status                    int
	want                      string
}{
	"JSON":                {"POST", "/v1/exec", "application/json", `{"lang":`, false, 408, late},
	"of no use to a POST": {"POST", "/v1/exec", "text/plain", "x", false, 408, late},
	"of no use to a GET":  {"GET", "/v1/files/aaaaaaaaaaaaaaaaaaaaa?kind=user", "text/plain", "x", false, 408, late},
	"JSON of a GET":       {"GET", "/v1/files/aaaaaaaaaaaaaaaaaaaaa?kind=user", "application/json", "{", false, 408, late},
	"of no use to DELETE": {"DELETE", "/v1/files/aaaaaaaaaaaaaaaaaaaaa/aaaaaaaaaaaaaaaaaaaaa?kind=user", "text/plain", "x", false, 408, late},
	"form":                {"POST", "/v1/upload", formType, "--" + boundary, false, 504, `{"error":"Upload timeout"}`},
	"while it starts":     {"POST", "/v1/upload", formType, "--" + boundary, true, 503, `{"error":"Service is starting up"}`},
}

const late = `{"error":"the body did not come in time"}`

// half is a request of ada whose body is said to have n bytes.
func (d *desk) half(method, path, media, body string, n int) string {
	bearer := d.bearer("ada")
	return fmt.Sprintf("%s %s HTTP/1.1\r\nHost: writ\r\n%s: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", method, path, bearer[0], bearer[1], media, n, body)
}

// TestBodyThatStops: its client waits, and is told what is wrong; net/http ends the context
// of its request as if it were gone.
func TestBodyThatStops(t *testing.T) {
	for name, tt := range halves {
		t.Run(name, func(t *testing.T) {
			seen := make(chan Observation, 1)
			d := newDesk(t, deskOptions{observe: func(o Observation) { seen <- o }})
			d.bodyTime, d.uploadTime = 50*time.Millisecond, 50*time.Millisecond
			if tt.starting {
				d.down.Store(&writ.Error{Kind: writ.Unavailable, Msg: "Service is starting up"})
			}
			c := d.dial(t)
			c.send(t, d.half(tt.method, tt.path, tt.media, tt.body, len(tt.body)+9))
			want(t, c.answer(t), tt.status, tt.want)
			if o := testkit.Receive(t, "the request is counted", seen); o.Status != tt.status {
				t.Errorf("counted with status %d", o.Status)
			}
			if log := d.log.String(); strings.Contains(log, "client_gone") || strings.Contains(log, `"ERROR"`) != tt.starting {
				t.Errorf("the log says %s", log)
			}
		})
	}
}

// TestClientThatHangsUpInItsBody: half a request is not served, and nothing failed here.
func TestClientThatHangsUpInItsBody(t *testing.T) {
	for name, tt := range halves {
		t.Run(name, func(t *testing.T) {
			seen := make(chan Observation, 1)
			d := newDesk(t, deskOptions{observe: func(o Observation) { seen <- o }})
			if tt.starting {
				d.down.Store(&writ.Error{Kind: writ.Unavailable, Msg: "Service is starting up"})
			}
			c := d.dial(t)
			c.send(t, d.half(tt.method, tt.path, tt.media, tt.body, len(tt.body)+9))
			c.Close()
			if o := testkit.Receive(t, "the request is counted", seen); o.Status != 499 {
				t.Errorf("counted with status %d", o.Status)
			}
			if log := d.log.String(); !strings.Contains(log, `"client_gone":true`) || strings.Contains(log, `"ERROR"`) {
				t.Errorf("the log says %s", log)
			}
		})
	}
}
