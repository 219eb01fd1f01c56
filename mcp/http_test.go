package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/mcp"
)

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func TestMCP02_LongMessagesOverHTTP(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	w := newWeb(t, newServer(t, d))
	w.initialize()
	patch := func(size int) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"apply_patch","arguments":{"workspace_id":"main","patch":"` + strings.Repeat("x", size) + `"}}}`
	}
	if r := w.post(http.StatusOK, patch(8<<20)); r.Result.IsError || d.applied != 1 {
		t.Errorf("%+v", r)
	}
	if r := w.post(http.StatusRequestEntityTooLarge, patch(mcp.MaxMessageBytes)); r.code() != -32600 {
		t.Errorf("%+v", r)
	}
	w.post(http.StatusOK, ping7)
}

func TestMCP04_NotificationsOverHTTP(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff)))
	w.initialize() // sends notifications/initialized and wants 202
	for _, n := range []string{`{"jsonrpc":"2.0","method":"notifications/foo"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`} {
		if res, body := w.do(http.MethodPost, n); res.StatusCode != http.StatusAccepted || body != "" {
			t.Errorf("%s: %d %q", n, res.StatusCode, body)
		}
	}
	alone := w.with("Mcp-Protocol-Version", "2026-07-28")
	alone.session = ""
	if res, body := alone.do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/foo"}`); res.StatusCode != http.StatusAccepted || body != "" {
		t.Errorf("without a session: %d %q", res.StatusCode, body)
	}
}

func TestMCP06_RequestIDsOverHTTP(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff)))
	w.initialize()
	for _, id := range []string{"0", `"0"`, "-3"} {
		if r := w.post(http.StatusOK, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`); string(r.ID) != id || r.Error != nil {
			t.Errorf("id %s: %s %+v", id, r.ID, r.Error)
		}
	}
	if r := w.post(http.StatusBadRequest, `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`); r.code() != -32600 {
		t.Errorf("null: %+v", r)
	}
}

func TestMCP07_BatchesOverHTTP(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	w := newWeb(t, newServer(t, d))
	w.initialize()
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"apply_patch","arguments":{"workspace_id":"main","patch":"p"}}}`
	for _, batch := range []string{"[" + ping7 + "," + call + "]", "[]", "[1]"} {
		if r := w.post(http.StatusBadRequest, batch); r.code() != -32600 {
			t.Errorf("%s: %+v", batch, r)
		}
	}
	if d.applied != 0 {
		t.Error("a batch was carried out")
	}
	w.post(http.StatusOK, ping7)
}

func TestMCP08_UnknownRevisionOverHTTP(t *testing.T) {
	for _, revision := range []string{"2099-01-01", "2026-07-28"} {
		w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff))).with("Mcp-Protocol-Version", revision)
		if r := w.post(http.StatusOK, strings.Replace(initialize, "2025-11-25", revision, 1)); r.Result.ProtocolVersion != "2025-11-25" {
			t.Errorf("%s: %+v", revision, r)
		}
	}
}

func TestMCP10_UnknownSession(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	w := newWeb(t, newServer(t, d))
	w.initialize()
	restarted := newWeb(t, newServer(t, d))
	restarted.session = w.session
	restarted.post(http.StatusNotFound, listTools)
	restarted.session = ""
	restarted.post(http.StatusBadRequest, listTools)
	if res, _ := restarted.do(http.MethodGet, ""); res.StatusCode != http.StatusBadRequest {
		t.Errorf("GET without a session: %d", res.StatusCode)
	}
	// An ended session is gone.
	if res, _ := w.do(http.MethodDelete, ""); res.StatusCode != http.StatusNoContent {
		t.Errorf("DELETE: %d", res.StatusCode)
	}
	if res, _ := w.do(http.MethodPost, listTools); res.StatusCode != http.StatusNotFound {
		t.Errorf("after DELETE: %d", res.StatusCode)
	}
}

func TestMCP12AndCP10_OriginAndHost(t *testing.T) {
	url := serveHTTP(t, newServer(t, newDesk(writ.ApprovalsOff)), mcp.HTTPOptions{Hosts: []string{"0.0.0.0", "agents.example"}, Origins: []string{"https://app.example"}})
	w := &web{t: t, url: url}
	for _, test := range []struct {
		host, origin, site string
		want               int
	}{
		{"", "", "", 200},
		{"", "http://evil.example", "", 403},
		{"", "null", "", 403},
		{"", "https://app.example", "", 200},
		{"", "http://app.example", "", 403},
		{"", "", "cross-site", 403},
		{"", "", "same-origin", 200},
		{"evil.example", "", "", 403},
		{"evil.example", "http://evil.example", "", 403},
		{"agents.example", "", "", 200},
		{"agents.example:8787", "http://agents.example:8787", "", 200},
		{"agents.example:8787", "http://agents.example", "", 403},
		{"10.0.0.7:8787", "", "", 200},
		{"[::1]:8787", "http://[::1]:8787", "", 200},
		{"localhost.evil.example", "", "", 403},
	} {
		c := w.with("Origin", test.origin, "Sec-Fetch-Site", test.site)
		if test.host != "" {
			c = c.with("Host", test.host)
		}
		if res, body := c.do(http.MethodPost, initialize); res.StatusCode != test.want {
			t.Errorf("host %q origin %q site %q: %d, want %d: %s", test.host, test.origin, test.site, res.StatusCode, test.want, body)
		}
		// Before the body is looked at, and on every method.
		if test.want == 403 {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
				if res, _ := c.do(method, "rubbish"); res.StatusCode != 403 {
					t.Errorf("%s, host %q origin %q: %d", method, test.host, test.origin, res.StatusCode)
				}
			}
		}
	}
}

func TestScenario140_Bearer(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	w := newWeb(t, newServer(t, d))
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "bearer alice-key", "Basic alice-key", "alice-key"} {
		res, body := w.with("Authorization", header).do(http.MethodPost, initialize)
		if res.StatusCode != 401 || body != `{"error":"unauthorized"}` || res.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%q: %d %q %q", header, res.StatusCode, body, res.Header.Get("WWW-Authenticate"))
		}
	}
	if res, body := w.with("Authorization", "Bearer broken").do(http.MethodPost, initialize); res.StatusCode != 500 || strings.Contains(body, "database") {
		t.Errorf("a broken authenticator: %d %s", res.StatusCode, body)
	}
}

func TestRFC9728_Metadata(t *testing.T) {
	url := serveHTTP(t, newServer(t, newDesk(writ.ApprovalsOff)), mcp.HTTPOptions{Issuer: "https://id.example", Resource: "https://agents.example/mcp"})
	w := (&web{t: t, url: url}).with("Authorization", "")
	res, _ := w.do(http.MethodPost, initialize)
	want := `Bearer resource_metadata="https://agents.example/.well-known/oauth-protected-resource/mcp"`
	if got := res.Header.Get("WWW-Authenticate"); res.StatusCode != 401 || got != want {
		t.Errorf("%d %s, want %s", res.StatusCode, got, want)
	}
	r, err := http.Get(url + "/.well-known/oauth-protected-resource/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	var meta map[string]any
	if err := json.NewDecoder(r.Body).Decode(&meta); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{
		"resource": "https://agents.example/mcp", "authorization_servers": []any{"https://id.example"},
		"bearer_methods_supported": []any{"header"}, "resource_name": "writ",
	}, meta); diff != "" {
		t.Error(diff)
	}
	plain, err := http.Get(serveHTTP(t, newServer(t, newDesk(writ.ApprovalsOff)), mcp.HTTPOptions{}) + "/.well-known/oauth-protected-resource")
	if err != nil {
		t.Fatal(err)
	}
	plain.Body.Close()
	if plain.StatusCode != 404 {
		t.Errorf("metadata without an issuer: %d", plain.StatusCode)
	}
}

func TestMCP17_CancellingACallOverHTTP(t *testing.T) {
	call := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt"}%s}}`
	t.Run("session", func(t *testing.T) {
		d := newDesk(writ.ApprovalsOff)
		d.stall = make(chan struct{})
		w := newWeb(t, newServer(t, d))
		w.initialize()
		done := make(chan reply, 1)
		go func() { done <- w.post(http.StatusOK, fmt.Sprintf(call, "")) }()
		testkit.Receive(t, "the call is under way", d.stall)
		w.post(http.StatusAccepted, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
		if r := testkit.Receive(t, "the answer", done); r.Error == nil {
			t.Errorf("%+v", r)
		}
		w.post(http.StatusOK, ping7)
	})
	t.Run("alone", func(t *testing.T) { // there the end of the request is the word
		d := newDesk(writ.ApprovalsOff)
		d.stall = make(chan struct{})
		w := newWeb(t, newServer(t, d))
		ctx, cancel := context.WithCancel(t.Context())
		body := fmt.Sprintf(call, `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+mcp.Path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range map[string]string{
			"Authorization": "Bearer alice-key", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "read",
		} {
			r.Header.Set(k, v)
		}
		gone := make(chan error, 1)
		go func() {
			res, err := http.DefaultTransport.RoundTrip(r)
			if err == nil {
				res.Body.Close()
			}
			gone <- err
		}()
		testkit.Receive(t, "the call is under way", d.stall)
		cancel()
		testkit.Receive(t, "the end of the request", gone)
		if _, writes := d.state(""); writes != 0 { // waits for Read, which lets go when its context ends
			t.Errorf("%d writes", writes)
		}
	})
}

func TestMCP24_SessionsAreTheirOwners(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	w := newWeb(t, newServer(t, d))
	w.initialize()
	bob := w.with("Authorization", "Bearer bob-key")
	bob.post(http.StatusNotFound, listTools)
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if res, _ := bob.with("Last-Event-ID", "a_0").do(method, ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s with another's session: %d", method, res.StatusCode)
		}
	}
	for _, id := range []string{w.session[:len(w.session)-1] + "0", "s" + w.session[1:], strings.ToUpper(w.session), "x"} {
		if c := *w; id != w.session {
			c.session = id
			c.post(http.StatusNotFound, listTools)
		}
	}
	// Nothing is replayed: a stream has no event ids.
	if res, _ := w.with("Last-Event-ID", "a_0").do(http.MethodGet, ""); res.StatusCode != http.StatusBadRequest {
		t.Errorf("resuming: %d", res.StatusCode)
	}
	w.post(http.StatusOK, listTools)
}

func TestMCP33_StatelessRevision(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff)))
	request := func(method, revision string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, revision)
	}
	alone := w.with("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
	if r := alone.post(http.StatusOK, request("tools/list", "2026-07-28")); len(r.Result.Tools) != len(wantTools) {
		t.Errorf("%+v", r)
	}
	r := w.with("Mcp-Protocol-Version", "2099-01-01", "Mcp-Method", "tools/list").post(http.StatusBadRequest, request("tools/list", "2099-01-01"))
	var data struct {
		Requested string   `json:"requested"`
		Supported []string `json:"supported"`
	}
	if r.code() != -32022 || json.Unmarshal(r.Error.Data, &data) != nil || data.Requested != "2099-01-01" || len(data.Supported) != 4 {
		t.Errorf("%+v %+v", r.Error, data)
	}
	if r := w.post(http.StatusBadRequest, request("tools/list", "2026-07-28")); r.code() != -32020 {
		t.Errorf("without the header: %+v", r)
	}
	if r := w.with("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "no/such").post(http.StatusNotFound, request("no/such", "2026-07-28")); r.code() != -32601 {
		t.Errorf("unknown method: %+v", r)
	}
	w.initialize() // an older client is served beside
	w.post(http.StatusOK, listTools)
}

// TestUnknownMethodOverHTTP_IsNotFound: as a JSON-RPC error, which a client reads.
func TestUnknownMethodOverHTTP_IsNotFound(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff)))
	w.initialize()
	if r := w.post(http.StatusOK, `{"jsonrpc":"2.0","id":3,"method":"no/such"}`); r.code() != -32601 || string(r.ID) != "3" {
		t.Errorf("%+v", r)
	}
}

// TestAnswers_AreJSONUnlessTheClientAsks (spec/02 §2): only a client that can ask its
// user needs a stream.
func TestAnswers_AreJSONUnlessTheClientAsks(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff)))
	for caps, want := range map[string]string{`{}`: "application/json", `{"elicitation":{}}`: "text/event-stream"} {
		w.session = ""
		res, _ := w.do(http.MethodPost, strings.Replace(initialize, `"capabilities":{}`, `"capabilities":`+caps, 1))
		if got := res.Header.Get("Content-Type"); got != want {
			t.Errorf("initialize with %s: %s", caps, got)
		}
		w.session = res.Header.Get("Mcp-Session-Id")
		if res, _ := w.do(http.MethodPost, listTools); res.Header.Get("Content-Type") != want {
			t.Errorf("tools/list with %s: %s", caps, res.Header.Get("Content-Type"))
		}
	}
}

// TestAnswersAlone_AreJSONUnlessTheClientListens: as in sessions.
func TestAnswersAlone_AreJSONUnlessTheClientListens(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff))).with("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read")
	for more, want := range map[string]string{"": "application/json", `,"progressToken":1`: "text/event-stream", `,"io.modelcontextprotocol/logLevel":"info"`: "text/event-stream"} {
		res, body := w.do(http.MethodPost, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt"},"_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`+more+`}}}`)
		if got := res.Header.Get("Content-Type"); got != want || !strings.Contains(body, "hello") {
			t.Errorf("with %q: %s %s", more, got, body)
		}
	}
}

// TestSessions_AreBounded: for each principal. What is ended makes room.
func TestSessions_AreBounded(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff)))
	for range 64 {
		w.session = ""
		w.initialize()
	}
	last := *w
	w.session = ""
	if res, body := w.do(http.MethodPost, initialize); res.StatusCode != http.StatusTooManyRequests {
		t.Errorf("the 65th session: %d %s", res.StatusCode, body)
	}
	w.with("Authorization", "Bearer bob-key").post(http.StatusOK, initialize)
	if res, _ := last.do(http.MethodDelete, ""); res.StatusCode != http.StatusNoContent {
		t.Fatalf("DELETE: %d", res.StatusCode)
	}
	w.post(http.StatusOK, initialize)
}

// TestHandlerClose_EndsStreams: a client that listens does not keep a server alive.
func TestHandlerClose_EndsStreams(t *testing.T) {
	s := newServer(t, newDesk(writ.ApprovalsOff))
	h := s.HTTP(someKeys, mcp.HTTPOptions{})
	srv := &http.Server{Handler: h}
	l := listen(t)
	go srv.Serve(l)
	w := &web{t: t, url: "http://" + l.Addr().String()}
	w.initialize()
	r, err := http.NewRequest(http.MethodGet, w.url+mcp.Path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer alice-key")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Mcp-Session-Id", w.session)
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != 200 {
		t.Fatalf("GET: %v %v", res, err)
	}
	defer res.Body.Close()
	h.Close(t.Context())
	for lines := bufio.NewScanner(res.Body); lines.Scan(); { // until the server ends it
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if err := srv.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

// TestOtherPathsAndMethods: are refused with a key and without.
func TestOtherPathsAndMethods(t *testing.T) {
	w := newWeb(t, newServer(t, newDesk(writ.ApprovalsOff)))
	for _, method := range []string{http.MethodPut, http.MethodOptions, http.MethodPatch} {
		if res, _ := w.do(method, ""); res.StatusCode != 405 || res.Header.Get("Allow") != "GET, POST, DELETE" {
			t.Errorf("%s: %d", method, res.StatusCode)
		}
	}
	if res, _ := w.with("Content-Type", "text/plain").do(http.MethodPost, initialize); res.StatusCode != 415 {
		t.Errorf("text/plain: %d", res.StatusCode)
	}
	res, err := http.Get(w.url + "/mcp/other")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 404 {
		t.Errorf("another path: %d", res.StatusCode)
	}
}
