package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/mcp"
)

// narrow is a listener whose connections hold little of what nobody reads.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// TestHandlerClose_DoesNotWaitForWhoIsDeaf: a client that has asked and takes no answer keeps
// no server from its end, in sessions of either kind.
func TestHandlerClose_DoesNotWaitForWhoIsDeaf(t *testing.T) {
	for _, caps := range []string{`{}`, `{"elicitation":{}}`} {
		d := newDesk(writ.ApprovalsOff)
		d.files["big"] = strings.Repeat("0123456789abcde\n", 64<<10)
		h := newServer(t, d).HTTP(someKeys, mcp.HTTPOptions{})
		srv := &http.Server{Handler: h}
		l := listen(t)
		served := make(chan error, 1)
		go func() { served <- srv.Serve(narrow{l}) }()
		w := &web{t: t, url: "http://" + l.Addr().String()}
		res, _ := w.do(http.MethodPost, strings.Replace(initialize, `"capabilities":{}`, `"capabilities":`+caps, 1))
		w.session = res.Header.Get("Mcp-Session-Id")

		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"big"}}}`
		_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer alice-key\r\nMcp-Session-Id: %s\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n%s",
			mcp.Path, l.Addr(), w.session, len(call), call)
		if err == nil {
			_ = conn.SetReadDeadline(time.Now().Add(patience))
			_, err = conn.Read(make([]byte, 1)) // the answer has begun, and is more than fits on the way
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		closed := make(chan struct{})
		go func() { h.Close(ctx); close(closed) }()
		select {
		case <-closed:
			t.Errorf("%s: it does not wait for the answer that is under way", caps)
		case <-time.After(50 * time.Millisecond):
		}
		cancel()
		select {
		case <-closed:
		case <-time.After(patience / 3): // less than a client has for an answer
			t.Errorf("%s: it waits for who takes no answer", caps)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		testkit.Receive(t, "the end of the server", served)
		testkit.Receive(t, "the end of the close", closedAs(closed))
	}
}

// closedAs has a value when c is closed.
func closedAs(c <-chan struct{}) <-chan bool {
	over := make(chan bool, 1)
	go func() { <-c; over <- true }()
	return over
}

// TestStdio_LeavesWhoIsDeaf: a client that has asked and reads no answer keeps a session from
// its end no longer than it may be told to.
func TestStdio_LeavesWhoIsDeaf(t *testing.T) {
	s := newServer(t, newDesk(writ.ApprovalsOff))
	answers, out := io.Pipe()
	in, questions := io.Pipe()
	defer answers.Close()
	defer questions.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Stdio(ctx, in, out, agent("alice")) }()
	if _, err := io.WriteString(questions, initialize+"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := answers.Read(make([]byte, 1)); err != nil { // the answer has begun, and waits
		t.Fatal(err)
	}
	cancel()
	if err := testkit.Receive(t, "the end of the session", done); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
