package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/mcp"
)

const ping7 = `{"jsonrpc":"2.0","id":7,"method":"ping"}`

func (p *pipe) wantPing() {
	p.t.Helper()
	if r := p.next(); string(r.ID) != "7" || r.Error != nil {
		p.t.Errorf("the next message is %+v, want the answer to ping 7", r)
	}
}

func TestMCP01_OnlyMessagesOnStdout(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
	p.initialize() // next() fails on a line that is no message
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `rubbish`, "", "  ",
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"gone","path":"x"}}}`, ping7)
	seen := map[string]bool{}
	for range 4 {
		r := p.next()
		seen[string(r.ID)] = true
		if string(r.ID) == "null" && r.code() != -32700 {
			t.Errorf("rubbish is answered with %+v", r.Error)
		}
	}
	if diff := cmp.Diff(map[string]bool{"1": true, "2": true, "7": true, "null": true}, seen); diff != "" {
		t.Error(diff)
	}
}

func TestMCP02_LongMessages(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.files["big"] = strings.Repeat("0123456789abcde\n", 64<<10)
	p := newPipe(t, newServer(t, d))
	p.initialize()
	patch := strings.Repeat(`+line\n`, 300_000)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"apply_patch","arguments":{"workspace_id":"main","patch":"` + patch + `"}}}`)
	if r := p.next(); r.Error != nil || r.Result.IsError || d.applied != 1 {
		t.Fatalf("a patch of %d bytes: %+v", len(patch), r)
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"big"}}}`)
	var got struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(p.next().Result.Structured, &got); err != nil || got.Content != d.files["big"] {
		t.Errorf("read %d bytes of %d: %v", len(got.Content), len(d.files["big"]), err)
	}
	// Beyond the limit: an error, and the connection goes on.
	p.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"apply_patch","arguments":{"patch":"`+strings.Repeat("x", mcp.MaxMessageBytes)+`"}}}`, ping7)
	if r := p.next(); r.code() != -32600 || !strings.Contains(r.Error.Message, fmt.Sprint(mcp.MaxMessageBytes)) {
		t.Errorf("%+v", r)
	}
	p.send(ping7)
	p.wantPing()
}

func TestMCP04_NotificationsGetNoReply(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
	p.send(initialize)
	p.next()
	p.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/foo"}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"apply_patch","arguments":{"workspace_id":"main","patch":"p"}}}`, ping7)
	p.wantPing()
}

func TestMCP06_RequestIDs(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
	p.initialize()
	for _, id := range []string{"0", `"0"`, "-3", `"é\n"`} {
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`)
		r := p.next()
		var sent, got any
		if json.Unmarshal([]byte(id), &sent) != nil || json.Unmarshal(r.ID, &got) != nil || sent != got || r.Error != nil {
			t.Errorf("id %s comes back as %s: %+v", id, r.ID, r.Error)
		}
	}
	for _, id := range []string{"null", "1.5", "1e3", "9007199254740993", "true", "{}", "[1]", `"` + strings.Repeat("x", 300) + `"`} {
		p.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/list"}`)
		if r := p.next(); r.code() != -32600 || string(r.ID) != "null" {
			t.Errorf("id %.20s: %+v", id, r)
		}
	}
}

func TestMCP07_Batches(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
	p.initialize()
	for _, batch := range []string{`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"tools/list"}]`, `[]`, `[1]`} {
		p.send(batch, ping7)
		if r := p.next(); r.code() != -32600 {
			t.Errorf("%s: %+v", batch, r)
		}
		p.wantPing()
	}
}

func TestMCP08_UnknownRevision(t *testing.T) {
	for _, revision := range []string{"2099-01-01", "2024-11-05", "2026-07-28"} {
		p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
		p.send(strings.Replace(initialize, "2025-11-25", revision, 1))
		if r := p.next(); r.Result.ProtocolVersion != "2025-11-25" {
			t.Errorf("%s: %+v", revision, r)
		}
	}
}

func TestMCP17_CancellingACall(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.stall = make(chan struct{})
	p := newPipe(t, newServer(t, d))
	p.initialize()
	p.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt"}}}`)
	testkit.Receive(t, "the call is under way", d.stall)
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	if r := p.next(); string(r.ID) != "5" || r.Error == nil {
		t.Errorf("the cancelled call is answered with %+v", r)
	}
	p.send(ping7)
	p.wantPing()
}

// TestEndOfInput_AnswersWhatWasSent: a client that says all at once and hangs up gets
// every answer.
func TestEndOfInput_AnswersWhatWasSent(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
	p.send(initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	want := map[string]bool{`"init"`: true}
	for i := range 20 {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt"}}}`, i))
		want[fmt.Sprint(i)] = true
	}
	p.in.Close()
	for len(want) > 0 {
		r := p.next()
		if r.Error != nil || !want[string(r.ID)] {
			t.Fatalf("unexpected %+v", r)
		}
		delete(want, string(r.ID))
	}
}

// TestEndOfInput_DoesNotWaitForItsUser: nobody can answer a form any more.
func TestEndOfInput_DoesNotWaitForItsUser(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsConfirm)))
	p.send(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.next()
	p.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"apply_patch","arguments":{"workspace_id":"main","patch":"x"}}}`)
	if r := p.next(); r.Method != "elicitation/create" {
		t.Fatalf("%+v", r)
	}
	p.in.Close()
	for over := time.After(patience); ; { // less than a form has time
		select {
		case _, open := <-p.lines:
			if !open {
				return
			}
		case <-over:
			t.Fatal("the session goes on after its client hung up")
		}
	}
}

// TestMCP06_AnIDThatIsInUse: of two calls of one id at once the second is refused, and keeps
// nobody from the end of the session.
func TestMCP06_AnIDThatIsInUse(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.stall = make(chan struct{})
	s := newServer(t, d)
	p := newPipe(t, s)
	p.initialize()
	const call = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt"}}}`
	p.send(call)
	testkit.Receive(t, "the call is under way", d.stall)
	p.send(call)
	if r := p.next(); string(r.ID) != "null" || r.code() != -32600 {
		t.Errorf("the second is answered with %+v", r)
	}
	p.send(strings.Replace(ping7, "7", `"5"`, 1)) // which is another
	if r := p.next(); string(r.ID) != `"5"` || r.Error != nil {
		t.Errorf("a text that looks like it: %+v", r)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	if r := p.next(); string(r.ID) != "5" || r.Error == nil {
		t.Errorf("the cancelled call is answered with %+v", r)
	}
	p.send(strings.Replace(ping7, "7", "5", 1)) // it is free again
	if r := p.next(); string(r.ID) != "5" || r.Error != nil {
		t.Errorf("%+v", r)
	}
	p.in.Close()
	select {
	case line, open := <-p.lines:
		if open {
			t.Errorf("at the end there is %s", line)
		}
	case <-time.After(patience):
		t.Error("the session goes on after its client hung up")
	}
}

// TestClose_EndsCalls: a server that stops does not wait for its calls.
func TestClose_EndsCalls(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.stall = make(chan struct{})
	s := newServer(t, d)
	p := newPipe(t, s)
	p.initialize()
	p.send(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt"}}}`)
	testkit.Receive(t, "the call is under way", d.stall)
	s.Close()
	if r := p.next(); r.Error == nil {
		t.Errorf("%+v", r)
	}
}

func TestMCP19_Cursors(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
	p.initialize()
	for _, cursor := range []string{`"bogus"`, `5`, `{}`} {
		p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":` + cursor + `}}`)
		if r := p.next(); r.code() != -32602 {
			t.Errorf("cursor %s: %+v", cursor, r.Error)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":""}}`)
	if r := p.next(); len(r.Result.Tools) != len(wantTools) { // the first page
		t.Errorf("an empty cursor: %+v", r)
	}
}

func TestMCP34_ProbeBeforeInitialize(t *testing.T) {
	for _, caps := range []string{"", `,"io.modelcontextprotocol/clientCapabilities":{}`} {
		p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
		p.send(`{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"` + caps + `}}}`)
		r := p.next()
		if diff := cmp.Diff([]string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"}, r.Result.Supported); diff != "" || string(r.ID) != "0" {
			t.Errorf("id %s, error %+v:\n%s", r.ID, r.Error, diff)
		}
		p.initialize()
		p.send(ping7)
		p.wantPing()
	}
}

// TestUnknownMethod_IsNotFound: and nothing is closed.
func TestUnknownMethod_IsNotFound(t *testing.T) {
	p := newPipe(t, newServer(t, newDesk(writ.ApprovalsOff)))
	p.initialize()
	p.send(`{"jsonrpc":"2.0","id":1,"method":"no/such"}`)
	if r := p.next(); r.code() != -32601 {
		t.Errorf("%+v", r)
	}
	p.send(ping7)
	p.wantPing()
}
