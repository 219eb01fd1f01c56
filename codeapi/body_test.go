package codeapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/interpreter"
	"writ/limit"
	"writ/response"
)

// TestCP05_MalformedBodies: what is no object of JSON is a 400, whoever sends it, and the
// server lives on.
func TestCP05_MalformedBodies(t *testing.T) {
	d := newDesk(t, deskOptions{})
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for body, fault := range map[string]string{
		`null`:                          "JSON Parse error: want an object",
		`7`:                             "JSON Parse error: want an object",
		`"lang"`:                        "JSON Parse error: want an object",
		` `:                             "JSON Parse error: Unexpected EOF",
		`{`:                             "JSON Parse error: Unexpected EOF",
		`{"a":"`:                        "JSON Parse error: Unexpected EOF",
		`{} {}`:                         "JSON Parse error: there is more after the value",
		`{"lang":"bash","lang":"js"}`:   "JSON Parse error: /lang is given twice",
		`{"a":[{"b":1,"b":2}]}`:         "JSON Parse error: /a/0/b is given twice",
		`{"lang":"bash","la\u006eg":1}`: "JSON Parse error: /lang is given twice",
	} {
		want(t, d.send(t, "POST", "/v1/exec", body, asJSON), 400, `{"error":"`+fault+`"}`)
		want(t, d.exec(t, body), 400, `{"error":"`+fault+`"}`)
	}
	for _, body := range []string{
		`{'lang':'bash'}`, `{"lang":NaN}`, `{"lang":Infinity}`, `{"a":01}`, `{"a":1,}`, `undefined`, "\x00", "\ufeff{}", `{"a":"` + "\n" + `"}`, `{"a":"\x"}`,
		`{"x":` + deep + `}`, `{}}`, `<xml/>`,
	} {
		got := d.exec(t, body)
		if got.status != 400 || !strings.HasPrefix(got.body, `{"error":"JSON Parse error: `) || len(got.body) > 1100 {
			t.Errorf("%.40q: %d %s", body, got.status, got.body)
		}
	}
	if asked, _ := d.runs.all(); len(asked) > 0 {
		t.Errorf("%d runs began", len(asked))
	}
	want(t, d.exec(t, hiBody), 200, hiReply)
}

func gzipped(t testing.TB, body string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, body); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestGzippedBodies: a body is bounded by what it inflates to.
func TestGzippedBodies(t *testing.T) {
	d := newDesk(t, deskOptions{jsonBytes: 2 << 20})
	gz := [2]string{"Content-Encoding", "gzip"}
	want(t, d.exec(t, gzipped(t, hiBody), gz), 200, hiReply)
	want(t, d.exec(t, gzipped(t, hiBody), [2]string{"Content-Encoding", "GZIP"}), 200, hiReply)
	want(t, d.exec(t, gzipped(t, `{"lang":"bash","code":"`+strings.Repeat("x", 64<<20)+`"}`), gz), 413, `{"error":"request entity too large"}`)
	want(t, d.exec(t, hiBody, gz), 400, `{"error":"the body is not of Content-Encoding gzip"}`)
	cut := gzipped(t, hiBody)
	if got := d.exec(t, cut[:len(cut)-9], gz); got.status != 400 {
		t.Errorf("a body that breaks off: %d %s", got.status, got.body)
	}
	want(t, d.exec(t, cut[:len(cut)-5]+"\x00\x00\x00\x00\x00", gz), 400, `{"error":"the body is not of Content-Encoding gzip"}`)
	want(t, d.exec(t, hiBody, [2]string{"Content-Encoding", "br"}), 415, `{"error":"unsupported content encoding \"br\""}`)
	if asked, _ := d.runs.all(); len(asked) != 2 {
		t.Errorf("%d runs began, want 2", len(asked))
	}
}

// endless is a body of JSON without end that counts what is read of it.
type endless struct {
	n     atomic.Int64 // the transport may read on when the answer is there
	begun bool
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	if !e.begun {
		e.begun = true
		copy(p, `{"code":"`)
	}
	e.n.Add(int64(len(p)))
	return len(p), nil
}

// TestBodiesOfStrangers: of a body without a length the server keeps no more than a small
// one, before it is known who sends it; who sends without end is not listened to for ever.
func TestBodiesOfStrangers(t *testing.T) {
	const most = 64 << 20
	d := newDesk(t, deskOptions{jsonBytes: most})
	send := func(headers ...[2]string) (answer, *endless) {
		body := &endless{}
		req, err := http.NewRequest("POST", d.url+"/v1/exec", body)
		if err != nil {
			t.Fatal(err)
		}
		return d.do(t, req, append(headers, asJSON)...), body
	}
	got, body := send()
	want(t, got, 401, noBearer) // 413, had it read on
	if n := body.n.Load(); n > 3*drainBytes {
		t.Errorf("%d bytes of a stranger were taken", n)
	}
	pad := strings.Repeat(" ", smallBody)
	want(t, d.send(t, "POST", "/v1/exec", pad[2:]+"[}", asJSON), 400, `{"error":"JSON Parse error: invalid character '}' at start of value, at byte 16383"}`)
	want(t, d.send(t, "POST", "/v1/exec", pad+"[}", asJSON), 401, noBearer)
	got, _ = send(d.bearer("ada"))
	want(t, got, 413, `{"error":"request entity too large"}`)
}

// TestRoomForLargeBodies: large bodies of one caller at one moment, and those of all, are
// bounded, and the room comes back.
func TestRoomForLargeBodies(t *testing.T) {
	began, release := make(chan struct{}, 16), make(chan struct{})
	d := newDesk(t, deskOptions{jsonBytes: 2 << 20, runs: &scriptedRuns{exec: func(context.Context, writ.Principal, interpreter.Request) (interpreter.Reply, error) {
		began <- struct{}{}
		<-release
		return interpreter.Reply{Session: "aaaaaaaaaaaaaaaaaaaaa"}, nil
	}}})
	large := `{"lang":"bash","code":"` + strings.Repeat("x", 2<<20-100) + `"}`
	post := func(sub string) answer {
		return d.send(t, "POST", "/v1/exec", large, asJSON, d.bearer(sub))
	}
	done := make(chan answer, 4)
	for _, sub := range []string{"ada", "ada", "bob", "bob"} {
		go func() { done <- post(sub) }()
		<-began
	}
	want(t, post("ada"), 503, `{"error":"other large requests of yours are under way: send this one again in a moment"}`)
	want(t, post("eve"), 503, `{"error":"other large requests of others are under way: send this one again in a moment"}`)
	close(release)
	for range 4 {
		if got := <-done; got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := post("eve"); got.status != 200 {
		t.Errorf("afterwards: %d %s", got.status, got.body)
	}
	for _, sub := range []writ.IdentityID{"one", "other"} {
		if err := d.room.Take(caller{owner: sub}, 4<<20); err != nil {
			t.Errorf("room is gone: %v", err)
		}
	}
}

// TestBodiesTakeTheirRoom: the memory of a body is what room was taken for, with and
// without a length.
func TestBodiesTakeTheirRoom(t *testing.T) {
	const most = 4 << 20
	d := newDesk(t, deskOptions{jsonBytes: most})
	for _, tt := range []struct{ size, length, memory int }{
		{10, 10, 10}, {10, -1, smallBody}, {smallBody, smallBody, smallBody}, {smallBody, -1, smallBody},
		{smallBody + 1, smallBody + 1, smallBody + 1}, {smallBody + 1, -1, mediumBody}, {mediumBody, -1, mediumBody},
		{mediumBody + 1, -1, most}, {most, most, most}, {most, -1, most},
	} {
		body := "[" + strings.Repeat(" ", tt.size-2) + "]"
		r := httptest.NewRequest("POST", "/v1/exec", strings.NewReader(body))
		r.ContentLength = int64(tt.length)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", d.bearer("ada")[1])
		got, err := d.readJSON(&recorder{Recorder: response.Record(httptest.NewRecorder())}, r, find(r))
		if err != nil {
			t.Fatalf("%+v: %v", tt, err)
		}
		if n := cap(got.data); string(got.data) != body || n > tt.memory+16<<10 {
			t.Errorf("%+v: %d bytes in %d", tt, len(got.data), n)
		}
		got.done()
	}
	for _, id := range []writ.IdentityID{"one", "other"} {
		if err := d.room.Take(caller{owner: id}, 2*most); err != nil {
			t.Errorf("room is gone: %v", err)
		}
	}
}

// TestBodyThatDoesNotCome: a client that stops in the middle is told so, and the log does not
// say that it is gone.
func TestBodyThatDoesNotCome(t *testing.T) {
	seen := make(chan Observation, 1)
	d := newDesk(t, deskOptions{observe: func(o Observation) { seen <- o }})
	d.API.bodyTime = 100 * time.Millisecond
	r, w := io.Pipe()
	defer w.Close()
	go io.WriteString(w, `{"lang":`)
	req, err := http.NewRequest("POST", d.url+"/v1/exec", r)
	if err != nil {
		t.Fatal(err)
	}
	want(t, d.do(t, req, asJSON, d.bearer("ada")), 408, `{"error":"the body did not come in time"}`)
	testkit.Receive(t, "the request is counted", seen)
	if log := d.log.String(); strings.Contains(log, "client_gone") {
		t.Errorf("the log says %s", log)
	}
}

// TestRefusalsReachWhoSends: a client that is refused at the door while it sends gets the
// answer, as do those that look at it only when they have sent all.
func TestRefusalsReachWhoSends(t *testing.T) {
	one := limit.Rule{Most: 1, Window: time.Hour}
	d := newDesk(t, deskOptions{rules: &limit.Rules{Exec: one, Upload: one, Download: one, Fetch: one}})
	const size = 24 << 20
	for name, tt := range map[string]struct {
		path, contentType string
		sub               string // of the token; none when empty
		status            int
	}{
		"no credential": {"/v1/upload", "multipart/form-data; boundary=b", "", 401},
		"too many":      {"/v1/upload", "multipart/form-data; boundary=b", "ada", 429},
		"no such route": {"/v1/nope", "application/octet-stream", "bob", 404},
		"no such place": {"/upload", "multipart/form-data; boundary=b", "", 404},
		"not of JSON":   {"/v1/exec", "text/plain", "eve", 400},
		"too large":     {"/v1/exec", "application/json", "", 413},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.sub != "" {
				d.send(t, "POST", "/v1/upload", "", d.bearer(tt.sub))
			}
			conn, err := net.Dial("tcp", strings.TrimPrefix(d.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(2 * time.Minute))
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n", tt.path, tt.contentType, size)
			if tt.sub != "" {
				head += "Authorization: " + d.bearer(tt.sub)[1] + "\r\n"
			}
			if _, err := io.WriteString(conn, head+"\r\n"); err != nil {
				t.Fatal(err)
			}
			piece := bytes.Repeat([]byte(" "), 1<<20)
			for range size / len(piece) {
				if _, err := conn.Write(piece); err != nil {
					t.Fatalf("while it sent: %v", err)
				}
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatalf("the answer: %v", err)
			}
			defer resp.Body.Close()
			if resp.StatusCode != tt.status {
				t.Errorf("%d, want %d", resp.StatusCode, tt.status)
			}
		})
	}
}
