package codeapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"writ"
)

// TestLC16_IO09_DownloadHeaders has names and types that a browser would make something of.
func TestLC16_IO09_DownloadHeaders(t *testing.T) {
	d := newDepot(t, depotOptions{})
	const polyglot = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/><script>alert(1)</script>`
	for _, c := range []struct{ name, media, wantType, disposition string }{
		{"naïve № 1.txt", "text/plain", "text/plain; charset=utf-8", "na%C3%AFve%20%E2%84%96%201.txt"},
		{"skills/pptx/SKILL.md", "text/markdown", "text/markdown; charset=utf-8", "skills%2Fpptx%2FSKILL.md"},
		{"out/sum.json", "application/json", "application/json; charset=utf-8", "out%2Fsum.json"},
		{"a.js", "application/javascript", "application/javascript; charset=utf-8", "a.js"},
		{"a.txt", "text/plain; charset=iso-8859-1", "text/plain; charset=iso-8859-1", "a.txt"},
		{"a.png", "image/png", "image/png", "a.png"},
		{"page.html", "text/html", "text/html; charset=utf-8", "page.html"},
		{"lie.png", "text/html;charset=utf-8", "text/html;charset=utf-8", "lie.png"},
		{"x.svg", "image/svg+xml", "image/svg+xml", "x.svg"},
		{"none", "", "application/octet-stream", "none"},
		{"odd", "no type", "application/octet-stream", "odd"},
	} {
		f := part{name: "file", file: `filename="` + c.name + `"`, media: c.media, body: polyglot}
		up := d.mustUpload(t, ada, "/upload", field("kind", "user"), field("read_only", strconv.FormatBool(c.name == "a.png")), f)
		path := fmt.Sprintf("/download/%s/%s?kind=user", up.Session, up.Files[0].ID)
		for _, method := range []string{"GET", "HEAD"} {
			got := d.ask(t, ada, method, path, nil)
			body := polyglot
			if method == "HEAD" {
				body = ""
			}
			if !got.is(http.StatusOK, body) {
				t.Errorf("%s of %s: %d %q", method, c.name, got.status, got.body)
			}
			want := map[string]string{
				"Content-Type": c.wantType, "Content-Disposition": "attachment; filename*=UTF-8''" + c.disposition,
				"Content-Length": strconv.Itoa(len(polyglot)), "X-Content-Type-Options": "nosniff",
				"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "private, no-cache",
				"Accept-Ranges": "bytes", "Access-Control-Allow-Origin": "", "X-Read-Only": "",
			}
			if c.name == "a.png" {
				want["X-Read-Only"] = "true"
			}
			for name, value := range want {
				if got.header.Get(name) != value {
					t.Errorf("%s of %s: %s is %q, want %q", method, c.name, name, got.header.Get(name), value)
				}
			}
		}
	}
}

// TestLC18_MissingFiles is the table of what a client decides a new upload on.
func TestLC18_MissingFiles(t *testing.T) {
	d := newDepot(t, depotOptions{})
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), file("a.txt", "a"), file("b.txt", "b"))
	s := string(up.Session)
	d.ask(t, ada, "DELETE", "/files/"+s+"/"+string(up.Files[1].ID)+"?kind=user", nil)
	const lost, notThere, forbidden = `{"error":"File not found","details":"The file may have expired or does not exist"}`, `{"error":"File not found"}`, `{"error":"Unauthorized"}`
	for _, c := range []struct {
		badge, session string
		object         writ.ObjectID
		status         int
		get, metadata  string
	}{
		{ada, s, writ.NewObjectID(), 404, lost, notThere},
		{ada, s, up.Files[1].ID, 404, lost, notThere},
		{bob, s, up.Files[0].ID, 403, forbidden, forbidden},
		{bob, s, writ.NewObjectID(), 403, forbidden, forbidden},
		{"evil/ada", s, up.Files[0].ID, 403, forbidden, forbidden},
		{ada, string(writ.NewSessionID()), up.Files[0].ID, 403, forbidden, forbidden},
	} {
		path := "/download/" + c.session + "/" + string(c.object) + "?kind=user"
		if got := d.ask(t, c.badge, "GET", path, nil); !got.is(c.status, c.get) {
			t.Errorf("%s gets %s: %d %s", c.badge, path, got.status, got.body)
		}
		if got := d.ask(t, c.badge, "HEAD", path, nil); !got.is(c.status, "") {
			t.Errorf("%s: HEAD of %s: %d %s", c.badge, path, got.status, got.body)
		}
		path = "/sessions/" + c.session + "/objects/" + string(c.object) + "?kind=user"
		if got := d.ask(t, c.badge, "GET", path, nil); !got.is(c.status, c.metadata) {
			t.Errorf("%s gets %s: %d %s", c.badge, path, got.status, got.body)
		}
	}
}

// TestIO10_Ranges has each kind of Range: one that is there is answered alone, several and
// what is no range by all bytes, and one that is not there by its refusal.
func TestIO10_Ranges(t *testing.T) {
	d := newDepot(t, depotOptions{})
	text := strings.Repeat("0123456789", 10_000)
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), field("read_only", "true"), file("a.txt", text), file("empty", ""))
	s, id := up.Session, up.Files[0].ID
	tag := d.get(t, ada, s, id, "kind=user").header.Get("ETag")
	size := len(text)
	for header, want := range map[string]struct{ status, from, to int }{
		"bytes=0-0":                            {206, 0, 1},
		"bytes=5-14":                           {206, 5, 15},
		"bytes=99990-":                         {206, 99_990, size},
		"bytes=0-":                             {206, 0, size},
		"bytes=-3":                             {206, size - 3, size},
		"bytes=-200000":                        {206, 0, size},
		"bytes=99999-999999999999":             {206, 99_999, size},
		"bytes=99999-99999999999999999999":     {206, 99_999, size},
		"bytes=-99999999999999999999":          {206, 0, size},
		"bytes=100000-":                        {416, 0, 0},
		"bytes=9223372036854775807-":           {416, 0, 0},
		"bytes=-0":                             {200, 0, size},
		"bytes=5-4":                            {200, 0, size},
		"bytes=--1":                            {200, 0, size},
		"bytes=99999999999999999999-":          {416, 0, 0},
		"lines=1-2":                            {200, 0, size},
		"bytes=":                               {200, 0, size},
		"bytes=-":                              {200, 0, size},
		"bytes=a-b":                            {200, 0, size},
		"bytes=5-5 ":                           {206, 5, 6},
		"bytes=200000-4":                       {200, 0, size},
		"bytes=0-1,5-6":                        {200, 0, size},
		strings.Repeat("bytes=0-,", 5000):      {200, 0, size},
		"bytes=" + strings.Repeat("0-0,", 999): {200, 0, size},
	} {
		got := d.get(t, ada, s, id, "kind=user", "Range", header)
		name := header[:min(len(header), 40)]
		switch {
		case got.status != want.status:
			t.Errorf("%s: %d, want %d", name, got.status, want.status)
		case got.status == 416:
			if !got.is(416, `{"error":"Requested Range Not Satisfiable"}`) || got.header.Get("Content-Range") != fmt.Sprintf("bytes */%d", size) || got.header.Get("Content-Disposition") != "" || got.header.Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("%s: %+v", name, got)
			}
		case got.body != text[want.from:want.to] || got.header.Get("Content-Length") != strconv.Itoa(want.to-want.from):
			t.Errorf("%s: %d bytes of length %s", name, len(got.body), got.header.Get("Content-Length"))
		case got.status == 206 && got.header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", want.from, want.to-1, size):
			t.Errorf("%s: Content-Range %s", name, got.header.Get("Content-Range"))
		}
	}
	const unmet = `{"error":"Precondition Failed"}`
	for _, c := range []struct {
		header []string
		status int
		length int
	}{
		{[]string{"If-None-Match", tag}, 304, 0},
		{[]string{"If-None-Match", "*"}, 304, 0},
		{[]string{"If-None-Match", `"other", ` + tag}, 304, 0},
		{[]string{"If-None-Match", `"other"`}, 200, size},
		{[]string{"If-None-Match", "W/" + tag}, 304, 0},
		{[]string{"If-Match", tag}, 200, size},
		{[]string{"If-Match", `"other"`}, 412, len(unmet)},
		{[]string{"If-Unmodified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}, 412, len(unmet)},
		{[]string{"If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"}, 200, size},
		{[]string{"If-None-Match", tag, "Range", "bytes=0-1"}, 304, 0},
		{[]string{"Range", "bytes=0-1", "If-Range", tag}, 206, 2},
		{[]string{"Range", "bytes=0-1", "If-Range", `"other"`}, 200, size},
	} {
		got := d.get(t, ada, s, id, "kind=user", c.header...)
		if got.status != c.status || len(got.body) != c.length || c.status < 400 && got.header.Get("ETag") != tag {
			t.Errorf("%q: %d with %d bytes, tag %s", c.header, got.status, len(got.body), got.header.Get("ETag"))
		}
		if got.status == 412 && (got.body != unmet || got.header.Get("Content-Disposition") != "" || got.header.Get("Content-Type") != "application/json; charset=utf-8") {
			t.Errorf("%q: %+v", c.header, got)
		}
	}
	nothing := fmt.Sprintf("/download/%s/%s?kind=user", s, up.Files[1].ID)
	for _, method := range []string{"GET", "HEAD"} {
		for _, header := range [][]string{nil, {"Range", "bytes=0-0"}, {"Range", "bytes=0-"}, {"Range", "bytes=-1"}} {
			if got := d.ask(t, ada, method, nothing, nil, header...); !got.is(200, "") || got.header.Get("Content-Length") != "0" {
				t.Errorf("%s of nothing with %q: %+v", method, header, got)
			}
		}
	}
	part := fmt.Sprintf("/download/%s/%s?kind=user", s, id)
	if got := d.ask(t, ada, "HEAD", part, nil, "Range", "bytes=5-14"); !got.is(206, "") || got.header.Get("Content-Length") != "10" || got.header.Get("Content-Range") != fmt.Sprintf("bytes 5-14/%d", size) {
		t.Errorf("HEAD of a range: %+v", got)
	}
}

// TestIO10_TagsAreOfOneObject has two tenants with the same bytes: the tag of one tells
// nothing about the other's, and gets no 304 where there is no access.
func TestIO10_TagsAreOfOneObject(t *testing.T) {
	d := newDepot(t, depotOptions{})
	tags := map[string]string{}
	for _, badge := range []string{ada, bob, "evil/ada"} {
		up := d.mustUpload(t, badge, "/upload", field("kind", "user"), file("a.txt", "same"), file("a.txt", "same"))
		for _, f := range up.Files {
			got := d.get(t, badge, up.Session, f.ID, "kind=user")
			if other, seen := tags[got.header.Get("ETag")]; seen {
				t.Errorf("%s and %s have one tag", badge, other)
			}
			tags[got.header.Get("ETag")] = badge
			if got := d.get(t, "evil/eve", up.Session, f.ID, "kind=user", "If-None-Match", got.header.Get("ETag")); !got.is(403, `{"error":"Unauthorized"}`) {
				t.Errorf("whoever has a tag: %+v", got)
			}
		}
	}
}

// TestDamagedBytesAreNeverServedWell damages an object in each way that a disk does: no
// answer is one that looks whole.
func TestDamagedBytesAreNeverServedWell(t *testing.T) {
	d := newDepot(t, depotOptions{})
	for _, size := range []int{100, 300_000} {
		for what, c := range map[string]struct {
			damage func(path string, b []byte) error
			status int // of the answer to small ones; 0 for none that looks whole
			body   string
		}{
			"a flipped bit": {func(path string, b []byte) error { b[len(b)-1] ^= 1; return os.WriteFile(path, b, 0o600) },
				500, `{"error":"Error downloading file","details":"The file cannot be read"}`},
			"cut": {func(path string, b []byte) error { return os.Truncate(path, int64(len(b)/2)) },
				500, `{"error":"Error downloading file","details":"The file cannot be read"}`},
			"longer": {func(path string, b []byte) error { return os.WriteFile(path, append(b, 'x'), 0o600) },
				500, `{"error":"Error downloading file","details":"The file cannot be read"}`},
			"gone": {func(path string, b []byte) error { return os.Remove(path) },
				404, `{"error":"File not found","details":"The file may have expired or does not exist"}`},
		} {
			t.Run(fmt.Sprintf("%s of %d bytes", what, size), func(t *testing.T) {
				text := what + strings.Repeat("t", size)
				up := d.mustUpload(t, ada, "/upload", field("kind", "user"), field("read_only", "true"), file("a.txt", text))
				path := filepath.Join(d.blobs, "blobs", string(writ.DigestOf([]byte(text))))
				if err := c.damage(path, []byte(text)); err != nil {
					t.Fatal(err)
				}
				query := fmt.Sprintf("/download/%s/%s?kind=user", up.Session, up.Files[0].ID)
				got, err := d.try(ada, "GET", query, nil)
				switch {
				case err == nil && got.status == http.StatusOK:
					t.Errorf("%d bytes are served as the file", len(got.body))
				case err == nil && (!got.is(c.status, c.body) || got.header.Get("Content-Disposition") != "" || got.header.Get("X-Read-Only") != ""):
					t.Errorf("%+v", got)
				case err != nil && size < 1000:
					t.Errorf("no answer, though nothing was sent: %v", err)
				}
				if got, err := d.try(ada, "GET", query, nil, "Range", fmt.Sprintf("bytes=%d-", size/4)); err == nil && got.status == http.StatusPartialContent && what != "a flipped bit" && what != "longer" {
					t.Errorf("a range of %d bytes is served", len(got.body))
				}
			})
		}
	}
}

// TestDownloadOfAClientThatIsGone leaves in the middle; nothing holds the file open.
func TestDownloadOfAClientThatIsGone(t *testing.T) {
	var counted *opened
	d := newDepot(t, depotOptions{fileBytes: 64 << 20, wrap: func(s Sessions) Sessions {
		counted = &opened{Sessions: s, closed: make(chan struct{}, 9)}
		return counted
	}})
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), file("a.bin", strings.Repeat("b", 32<<20)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/download/%s/%s?kind=user", d.url, up.Session, up.Files[0].ID), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ada)
	resp, err := d.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, resp.Body, 1000); err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	<-counted.closed
}

// opened tells when what was opened is closed.
type opened struct {
	Sessions
	closed chan struct{}
}

type openedFile struct {
	io.ReadCloser
	closed chan struct{}
}

func (o *opened) Open(ctx context.Context, of writ.Object, from, n int64) (io.ReadCloser, error) {
	r, err := o.Sessions.Open(ctx, of, from, n)
	return openedFile{r, o.closed}, err
}

func (f openedFile) Close() error {
	f.closed <- struct{}{}
	return f.ReadCloser.Close()
}
