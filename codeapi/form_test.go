package codeapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/session"
)

// raw is a connection on which a test sends what it likes.
type raw struct {
	net.Conn
	r *bufio.Reader
}

func (d *depot) dial(t testing.TB) *raw { return dial(t, d.server.URL) }

func (d *desk) dial(t testing.TB) *raw { return dial(t, d.url) }

func dial(t testing.TB, url string) *raw {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &raw{c, bufio.NewReader(c)}
}

// head is that of a request for a form.
func head(path, length string) string {
	return "POST /v1" + path + " HTTP/1.1\r\nHost: writ\r\nAuthorization: Bearer " + ada + "\r\nContent-Type: " + formType + "\r\n" + length + "\r\n\r\n"
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

func (c *raw) send(t testing.TB, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

// answer reads the next answer; the test fails when there is none.
func (c *raw) answer(t testing.TB) answer {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(time.Minute))
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("half an answer: %v", err)
	}
	if resp.Close {
		resp.Header.Set("Connection", "close") // which was taken out
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// TestLC15_TooLargeWhileTheClientStillSends sends a file in small pieces, of which the
// client reads the answer when all are sent, and uses the connection again.
func TestLC15_TooLargeWhileTheClientStillSends(t *testing.T) {
	const limit = 100_000
	d := newDepot(t, depotOptions{fileBytes: limit})
	form := formOf(field("kind", "user"), file("small.txt", "s"), file("big.bin", strings.Repeat("b", limit+1)), file("after.txt", strings.Repeat("a", 3*limit)))
	c := d.dial(t)
	for range 2 {
		c.send(t, head("/upload", "Transfer-Encoding: chunked"))
		for rest := form; rest != ""; {
			n := min(len(rest), 7001)
			c.send(t, chunk(rest[:n]))
			rest = rest[n:]
		}
		c.send(t, "0\r\n\r\n")
		if got := c.answer(t); !got.is(http.StatusRequestEntityTooLarge, `{"error":"File size limit exceeded"}`) || got.header.Get("Connection") == "close" {
			t.Errorf("%+v", got)
		}
		d.nothingStays(t, "a file that is too large")
		whole := formOf(field("kind", "user"), file("ok.txt", "ok"))
		c.send(t, head("/upload", fmt.Sprintf("Content-Length: %d", len(whole)))+whole)
		got := c.answer(t)
		var up uploadAnswer
		if got.into(t, &up); got.status != http.StatusOK || len(up.Files) != 1 {
			t.Fatalf("the next upload: %+v", got)
		}
		if err := d.sessions.Discard(context.Background(), person("acme", "ada"), session.Entity{Kind: writ.EntityUser}, up.Session); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLC15_TooLargeFromAClientThatNeverStops sends until the server has enough, and only
// then looks for the answer.
func TestLC15_TooLargeFromAClientThatNeverStops(t *testing.T) {
	d := newDepot(t, depotOptions{fileBytes: 1000})
	c := d.dial(t)
	form := formOf(field("kind", "user"), file("big.bin", strings.Repeat("b", 100_000)))
	c.send(t, head("/upload", "Transfer-Encoding: chunked")+chunk(form[:50_000]))
	piece := chunk(strings.Repeat("b", 1<<20))
	sent := 0
	for ; sent < 1000; sent++ {
		if _, err := io.WriteString(c, piece); err != nil {
			break
		}
	}
	if got := c.answer(t); !got.is(http.StatusRequestEntityTooLarge, `{"error":"File size limit exceeded"}`) || got.header.Get("Connection") != "close" {
		t.Errorf("%+v", got)
	}
	if sent == 1000 {
		t.Error("the server takes everything")
	}
}

// TestLC15_RefusedBeforeTheBodyComes sends no body to who refuses it: it is answered at once,
// and not told to go on.
func TestLC15_RefusedBeforeTheBodyComes(t *testing.T) {
	d := newDepot(t, depotOptions{})
	const huge, patient = "Content-Length: 99999999999", "Content-Length: 9000\r\nExpect: 100-continue"
	asJSON := func(s string) string { return strings.Replace(s, formType, "application/json", 1) }
	stranger := func(s string) string { return strings.Replace(s, ada, "nobody", 1) }
	for name, c := range map[string]struct {
		head   string
		status int
	}{
		"a huge object":            {asJSON(head("/exec", huge)), 413},
		"a huge object, patiently": {asJSON(head("/exec", huge+"\r\nExpect: 100-continue")), 413},
		"a stranger's huge form":   {stranger(head("/upload", huge)), 401},
		"a stranger, patiently":    {stranger(head("/upload", patient)), 401},
		"another route, patiently": {head("/nowhere", patient), 404},
		"no form, patiently":       {strings.Replace(head("/upload", patient), formType, "text/plain", 1), 400},
	} {
		conn := d.dial(t)
		conn.send(t, c.head)
		if got := conn.answer(t); got.status != c.status || got.header.Get("Connection") != "close" {
			t.Errorf("%s: %+v, want %d", name, got, c.status)
		}
	}
}

// TestLC15_UploadThatTakesTooLong stops in each place where a form can, and waits.
func TestLC15_UploadThatTakesTooLong(t *testing.T) {
	d := newDepot(t, depotOptions{uploadTime: 200 * time.Millisecond})
	form := formOf(field("kind", "user"), file("a.txt", "whole"), file("b.txt", "half of it"))
	waiting := map[string]*raw{}
	for _, path := range []string{"/upload", "/upload/batch"} {
		for what, n := range map[string]int{
			"before the form": 0, "in a header": 20, "in a field": strings.Index(form, "user"),
			"in a file": strings.Index(form, "whole") + 2, "in the second file": strings.Index(form, "half") + 2, "before the end": len(form) - 4,
		} {
			c := d.dial(t)
			waiting[path+" "+what] = c
			c.send(t, head(path, fmt.Sprintf("Content-Length: %d", len(form)))+form[:n])
		}
	}
	for what, c := range waiting {
		if got := c.answer(t); !got.is(http.StatusGatewayTimeout, `{"error":"Upload timeout"}`) {
			t.Errorf("%s: %+v", what, got)
		}
	}
	d.nothingStays(t, t.Name())
}

// TestUploadMayAnswerAfterItsTime has storage take longer than the client has to send: that
// is not the client's fault, and the connection goes on.
func TestUploadMayAnswerAfterItsTime(t *testing.T) {
	const within = 400 * time.Millisecond
	d := newDepot(t, depotOptions{uploadTime: within, wrap: func(s Sessions) Sessions { return &slow{s, within + within/4} }})
	c := d.dial(t)
	form := formOf(field("kind", "user"), file("a.txt", "a"))
	for _, sent := range []string{
		head("/upload", fmt.Sprintf("Content-Length: %d", len(form))) + form,
		head("/upload", "Transfer-Encoding: chunked") + chunk(form) + "0\r\n\r\n",
	} {
		c.send(t, sent)
		if got := c.answer(t); got.status != http.StatusOK || got.header.Get("Connection") != "" {
			t.Fatalf("%+v", got)
		}
	}
}

// TestIO10_LengthsThatAreNone sends what is no length, and lengths that are not true.
func TestIO10_LengthsThatAreNone(t *testing.T) {
	d := newDepot(t, depotOptions{uploadTime: 200 * time.Millisecond})
	form := formOf(field("kind", "user"), file("a.txt", "a"))
	for length, status := range map[string]int{
		"Content-Length: -1":                         400,
		"Content-Length: 99999999999999999999":       400,
		"Content-Length: 10\r\nContent-Length: 11":   400,
		"Content-Length: 0x10":                       400,
		"Transfer-Encoding: gzip":                    501,
		"Content-Length: 9223372036854775807":        504, // which never comes
		"Content-Length: 4\r\nTransfer-Encoding: xx": 501,
	} {
		c := d.dial(t)
		c.send(t, head("/upload", length)+form[:len(form)-2])
		if got := c.answer(t); got.status != status {
			t.Errorf("%q: %+v, want %d", length, got, status)
		}
	}
	d.nothingStays(t, t.Name())
}

// TestUploadThatBreaksOff cuts one form behind each of its bytes. No part of it is taken
// for the whole, and what was kept meanwhile is taken back.
func TestUploadThatBreaksOff(t *testing.T) {
	var counted *unkept
	d := newDepot(t, depotOptions{wrap: func(s Sessions) Sessions { counted = &unkept{Sessions: s}; return counted }})
	form := formOf(field("kind", "user"), file("a.txt", "aaaa"), file("b.txt", "bbbb"))
	form = strings.TrimSuffix(form, "\r\n") // which may be missing
	for _, path := range []string{"/upload", "/upload/batch"} {
		for n := range len(form) + 1 {
			r := httptest.NewRequest("POST", "/v1"+path, strings.NewReader(form[:n]))
			r.Header.Set("Content-Type", formType)
			r.Header.Set("Authorization", "Bearer "+ada)
			w := &deadlines{httptest.NewRecorder()}
			*counted = unkept{Sessions: counted.Sessions}
			d.ServeHTTP(w, r)
			if n == len(form) {
				if w.Code != http.StatusOK || counted.puts != 2 || counted.discarded != 0 {
					t.Fatalf("%s of the whole: %d %s, %d put, %d taken back", path, w.Code, w.Body, counted.puts, counted.discarded)
				}
			} else if want := `{"error":"Error processing upload"}`; w.Code != http.StatusBadRequest || w.Body.String() != want || counted.made != counted.discarded {
				t.Fatalf("%s cut behind %q: %d %s, of %d sessions %d are taken back", path, form[max(0, n-20):n], w.Code, w.Body, counted.made, counted.discarded)
			}
		}
	}
}

// TestUploadOfAClientThatIsGone closes the connection in the second file.
func TestUploadOfAClientThatIsGone(t *testing.T) {
	d := newDepot(t, depotOptions{})
	form := formOf(field("kind", "user"), file("a.txt", "whole"), file("b.txt", "half of it"))
	c := d.dial(t)
	c.send(t, head("/upload", fmt.Sprintf("Content-Length: %d", len(form)))+form[:strings.Index(form, "half")+2])
	testkit.Eventually(t, "the first file is kept", func() bool { held, _ := d.stored(t, "acme"); return held.Objects == 1 })
	c.Close()
	testkit.Eventually(t, "it is taken back", func() bool {
		held, drafts := d.stored(t, "acme")
		return held == writ.SessionTotals{} && drafts == 0
	})
}

// FuzzForm sends any bytes as a form: the answer is JSON and no failure of ours, and what
// is answered as kept is there.
func FuzzForm(f *testing.F) {
	for _, s := range []string{
		formOf(field("kind", "user"), file("a.txt", "a")), formOf(file("a", ""), field("kind", "user"), file("b/c", "\r\n--")),
		formOf(field("kind", "skill"), field("id", "s"), field("version", "1e3"), file("..", "x")), "--" + boundary + "--", "",
		formOf(field("kind", "user"), part{name: "f", file: `filename*=UTF-8''%ff%00`}, part{name: "f", file: "filename"}),
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	d := newDepot(f, depotOptions{fileBytes: 64, wrap: func(s Sessions) Sessions { return &unkept{Sessions: s} }})
	f.Fuzz(func(t *testing.T, body string, batch bool) {
		path := "/v1/upload"
		if batch {
			path += "/batch"
		}
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header.Set("Content-Type", formType)
		r.Header.Set("Authorization", "Bearer "+ada)
		w := &deadlines{httptest.NewRecorder()}
		d.ServeHTTP(w, r)
		var up uploadAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &up); err != nil || w.Code >= 500 {
			t.Fatalf("%d %s: %v", w.Code, w.Body, err)
		}
		for _, file := range up.Files {
			if strings.Contains("/"+file.Name+"/", "/../") || strings.HasPrefix(file.Name, "/") || strings.ContainsAny(file.Name, "\\\x00\r\n") {
				t.Fatalf("a name that leads away: %q", file.Name)
			}
		}
	})
}

// deadlines lets a recorder have deadlines, which never pass.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetReadDeadline(time.Time) error  { return nil }
func (deadlines) SetWriteDeadline(time.Time) error { return nil }
func (deadlines) EnableFullDuplex() error          { return nil }

// slow takes a while to keep a file.
type slow struct {
	Sessions
	by time.Duration
}

func (s *slow) Put(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, f session.File) (writ.Object, error) {
	o, err := s.Sessions.Put(ctx, p, e, in, f)
	select {
	case <-time.After(s.by):
	case <-ctx.Done():
		return o, ctx.Err()
	}
	return o, err
}
