package codeapi

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

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
			c, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			bearer := d.bearer("ada")
			if _, err := fmt.Fprintf(c, "POST /v1/exec HTTP/1.1\r\nHost: writ\r\n%s: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", bearer[0], bearer[1], len(hiBody), hiBody); err != nil {
				t.Fatal(err)
			}
			testkit.Receive(t, "the run begins", begun)
			if err := c.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			want(t, answer{status: resp.StatusCode, body: string(body)}, 499, `{"error":"The client closed the connection before the answer"}`)
			if o := testkit.Receive(t, "the request is counted", seen); o.Status != 499 {
				t.Errorf("counted with status %d", o.Status)
			}
			if log := d.log.String(); !strings.Contains(log, `"client_gone":true`) || strings.Contains(log, `"ERROR"`) {
				t.Errorf("the log says %s", log)
			}
		})
	}
}
