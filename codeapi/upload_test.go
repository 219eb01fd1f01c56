package codeapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/session"
)

const ada, bob = "acme/ada", "acme/bob"

// names are those of all files that kind=user&… lists, in order.
func (d *depot) names(t testing.TB, badge string, in writ.SessionID, query string) (names []string) {
	t.Helper()
	var list []struct{ Name string }
	d.ask(t, badge, "GET", "/files/"+string(in)+"?detail=normalized&"+query, nil).into(t, &list)
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

func (d *depot) get(t testing.TB, badge string, in writ.SessionID, id writ.ObjectID, query string, header ...string) answer {
	t.Helper()
	return d.ask(t, badge, "GET", "/download/"+string(in)+"/"+string(id)+"?"+query, nil, header...)
}

// TestLC02_UploadAnswers holds an answer against the contract's, byte for byte but for ids.
func TestLC02_UploadAnswers(t *testing.T) {
	d := newDepot(t, depotOptions{})
	a := d.upload(t, ada, "/upload", field("kind", "user"), field("id", "66b0c0ffee00000000000001"), file("weather.csv", "city,temp\n"), file("b.txt", ""))
	var up uploadAnswer
	a.into(t, &up)
	want := fmt.Sprintf(`{"message":"success","storage_session_id":"%s","files":[{"filename":"weather.csv","fileId":"%s"},{"filename":"b.txt","fileId":"%s"}]}`,
		up.Session, up.Files[0].ID, up.Files[1].ID)
	if !a.is(http.StatusOK, want) || !up.Session.Valid() || !up.Files[0].ID.Valid() || up.Files[0].ID == up.Files[1].ID {
		t.Errorf("%d %s\nwant %s", a.status, a.body, want)
	}
	if got := a.header.Get("Content-Type"); got != "application/json; charset=utf-8" {
		t.Errorf("content type %q", got)
	}
	for i, want := range []string{"city,temp\n", ""} {
		if got := d.get(t, ada, up.Session, up.Files[i].ID, "kind=user&id=any"); !got.is(http.StatusOK, want) || got.header.Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("%d: %+v", i, got)
		}
	}

	none := d.upload(t, ada, "/upload", field("kind", "user"), part{name: "file", body: "no file"})
	none.into(t, &up)
	if want := fmt.Sprintf(`{"message":"success","storage_session_id":"%s","files":[]}`, up.Session); !none.is(http.StatusOK, want) || !up.Session.Valid() {
		t.Errorf("without files: %d %s", none.status, none.body)
	}
	if got := d.ask(t, ada, "GET", "/files/"+string(up.Session)+"?kind=user", nil); !got.is(http.StatusForbidden, `{"error":"Unauthorized"}`) {
		t.Errorf("the session of no files: %+v", got)
	}
}

// TestLC07_LC09_LC10_LC14_IO06_NamesComeBackAsTheyCame sends names as clients write them,
// and reads each where the contract has it: the answer, the list, and the download.
func TestLC07_LC09_LC10_LC14_IO06_NamesComeBackAsTheyCame(t *testing.T) {
	names := []struct{ sent, want string }{ // what follows "; filename"
		{`="отчёт № 3.csv"`, "отчёт № 3.csv"},
		{`*=UTF-8''%D0%BE.csv`, "о.csv"},
		{`="fallback.csv"; filename*=UTF-8''%D0%BF.csv`, "п.csv"},
		{`="июль.csv"`, "июль.csv"},
		{`="июнь.csv"`, "июнь.csv"},
		{"=\"Cafe\u0301.txt\"", "Café.txt"},
		{`="pdf/SKILL.md"`, "pdf/SKILL.md"},
		{`="pdf/scripts/run.py"`, "pdf/scripts/run.py"},
		{`="xls/SKILL.md"`, "xls/SKILL.md"},
		{`="a.xsd"`, "a.xsd"}, {`="types.d.ts"`, "types.d.ts"}, {`="LICENSE"`, "LICENSE"}, {`=".env.example"`, ".env.example"},
		{`="docs/a b.txt"`, "docs/a b.txt"},
		{`="say %22hi%22.txt"`, `say "hi".txt`},
		{`="100%.txt"`, "100%.txt"}, {`="%00.txt"`, "%00.txt"}, {`="a+b&c=d;e.txt"`, "a+b&c=d;e.txt"},
		{`="-rf"`, "-rf"}, {`="con"`, "con"}, {`="dot."`, "dot."}, {`="<script>alert(1)</script>"`, "<script>alert(1)</script>"},
		{"=\"\u202egnp.exe\"", "\u202egnp.exe"}, {`="🦊.txt"`, "🦊.txt"}, {`=plain.txt`, "plain.txt"},
		{`="` + strings.Repeat("n", 255) + `"`, strings.Repeat("n", 255)},
		{`="twice.txt"`, "twice.txt"}, {`="twice.txt"`, "twice.txt"},
	}
	d := newDepot(t, depotOptions{})
	for path, parts := range map[string][]part{"/upload": {field("kind", "user")}, "/upload/batch": {field("kind", "user")}} {
		var want []string
		for i, n := range names {
			parts = append(parts, part{name: "file", file: "filename" + n.sent, body: fmt.Sprint(i)})
			want = append(want, n.want)
		}
		up := d.mustUpload(t, ada, path, parts...)
		var said []string
		for i, f := range up.Files {
			said = append(said, f.Name)
			got := d.get(t, ada, up.Session, f.ID, "kind=user")
			if head := session.Disposition(want[i]); !got.is(http.StatusOK, fmt.Sprint(i)) || got.header.Get("Content-Disposition") != head {
				t.Errorf("%s: %q: %d %q %q, want %q", path, want[i], got.status, got.body, got.header.Get("Content-Disposition"), head)
			}
		}
		listed := d.names(t, ada, up.Session, "kind=user")
		slices.Sort(listed)
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("%s (-want +answered):\n%s", path, diff)
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, listed); diff != "" {
			t.Errorf("%s (-want +listed):\n%s", path, diff)
		}
	}
}

// TestIO05_NamesThatLeadAnywhereAreRefused tries each alone, and beside a good file: one
// upload keeps neither, a batch the good one, and no answer holds a name that leads away.
func TestIO05_NamesThatLeadAnywhereAreRefused(t *testing.T) {
	d := newDepot(t, depotOptions{})
	for _, c := range []struct{ sent, fault, label string }{
		{`="../../app/dist/poc.txt"`, "file name must not contain empty, current, or parent path segments", ".._.._app_dist_poc.txt"},
		{`="/etc/x.txt"`, "file name must be a relative path", "_etc_x.txt"},
		{`*=UTF-8''C%3A%5Cdir%5Cx.txt`, "file name contains invalid path characters", "C:_dir_x.txt"},
		{`="a//b"`, "file name must not contain empty, current, or parent path segments", "a__b"},
		{`=".."`, "file name must not contain empty, current, or parent path segments", "_"},
		{`=""`, "file name must not be empty", "_"},
		{`*=UTF-8''a%00b`, "file name contains invalid path characters", "a_b"},
		{`*=UTF-8''a%0d%0ab`, "file name contains invalid path characters", "a__b"},
		{"=\"a\xffb\"", "file name contains invalid path characters", "a_b"},
		{`="` + strings.Repeat("n", 257) + `"`, "file name must not exceed 256 characters", strings.Repeat("n", 256)},
		{`="1/2/3/4/5/6/7/8/9/10/11"`, "file name exceeds maximum nesting depth of 10", "1_2_3_4_5_6_7_8_9_10_11"},
		{`="unclosed`, "a file's Content-Disposition cannot be read", "_"},
		{`="a"; filename="b"`, "a file's Content-Disposition cannot be read", "_"},
	} {
		bad := part{name: "file", file: "filename" + c.sent, body: "bad"}
		one := d.upload(t, ada, "/upload", field("kind", "user"), file("good.txt", "good"), bad)
		if !one.is(http.StatusBadRequest, fmt.Sprintf(`{"error":"%s"}`, c.fault)) {
			t.Errorf("%s: %d %s, want %s", c.sent, one.status, one.body, c.fault)
		}
		d.nothingStays(t, c.sent)
		batch := d.upload(t, ada, "/upload/batch", field("kind", "user"), bad, file("good.txt", "good"))
		var up uploadAnswer
		batch.into(t, &up)
		if want := fmt.Sprintf(`{"message":"partial_success","storage_session_id":"%s","files":[{"status":"error","filename":"%s","error":"%s"},{"status":"success","filename":"good.txt","fileId":"%s"}],"succeeded":1,"failed":1}`,
			up.Session, c.label, c.fault, up.Files[1].ID); !batch.is(http.StatusOK, want) {
			t.Errorf("%s: %d %s\nwant %s", c.sent, batch.status, batch.body, want)
		}
		if got := d.names(t, ada, up.Session, "kind=user"); !slices.Equal(got, []string{"good.txt"}) {
			t.Errorf("%s: the batch kept %q", c.sent, got)
		}
		if err := d.sessions.Discard(context.Background(), person("acme", "ada"), session.Entity{Kind: writ.EntityUser}, up.Session); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUploadRefusals is the table of spec/03 §10.1 for forms that are wrong. Nothing of any
// of them stays.
func TestUploadRefusals(t *testing.T) {
	d := newDepot(t, depotOptions{fileBytes: 1024})
	const kinds = "kind must be one of: skill, agent, user"
	x := file("x.txt", "x")
	long := strings.Repeat("v", maxFieldBytes+1)
	for name, c := range map[string]struct {
		parts  []part
		status int
		text   string
	}{
		"fields after the file": {[]part{x, field("kind", "user")}, 400, kinds},
		"no kind":               {[]part{x}, 400, kinds},
		"legacy entity_id":      {[]part{field("entity_id", "e"), x}, 400, kinds},
		"kind that is none":     {[]part{field("kind", "team"), x}, 400, kinds},
		"agent without id":      {[]part{field("kind", "agent"), x}, 400, "id is required for kind: 'agent'"},
		"skill without version": {[]part{field("kind", "skill"), field("id", "s"), x}, 400, "version is required for kind: 'skill'"},
		"version without sense": {[]part{field("kind", "skill"), field("id", "s"), field("version", "v3"), x}, 400, "version must be a number for kind: 'skill'"},
		"user with version":     {[]part{field("kind", "user"), field("version", "3"), x}, 400, "version is only valid for kind: 'skill'"},
		"kind twice":            {[]part{field("kind", "user"), field("kind", "agent"), field("id", "a"), x}, 400, "kind must not be sent twice"},
		"id twice, later":       {[]part{field("kind", "agent"), field("id", "a"), x, field("id", "b"), x}, 400, "id must not be sent twice"},
		"a long field":          {[]part{field("kind", "user"), field("id", long), x}, 400, "id has more than 4096 bytes"},
		"a long id":             {[]part{field("kind", "agent"), field("id", long[:4096]), x}, 400, "id must not exceed 256 bytes"},
		"many fields":           {slices.Repeat([]part{field("f", "v")}, maxFields+1), 400, "the form has more than 64 fields"},
		"a file at the limit":   {[]part{field("kind", "user"), x, file("big.txt", strings.Repeat("b", 1024)), x}, 413, "File size limit exceeded"},
		"a file above":          {[]part{field("kind", "user"), x, file("big.txt", strings.Repeat("b", 99_999)), x}, 413, "File size limit exceeded"},
	} {
		if got := d.upload(t, ada, "/upload", c.parts...); !got.is(c.status, fmt.Sprintf(`{"error":"%s"}`, c.text)) {
			t.Errorf("%s: %d %s, want %d %s", name, got.status, got.body, c.status, c.text)
		}
	}
	d.nothingStays(t, "forms that are wrong")
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), field("unknown", long), file("just.txt", strings.Repeat("b", 1023)))
	if got := d.get(t, ada, up.Session, up.Files[0].ID, "kind=user"); len(got.body) != 1023 {
		t.Errorf("a file below the limit has %d bytes", len(got.body))
	}

	form := formOf(field("kind", "user"), x)
	for _, path := range []string{"/upload", "/upload/batch"} {
		for _, c := range []struct {
			media, body string
			status      int
			text        string
		}{
			{"", form, 400, "Invalid content type. Must be multipart/form-data."},
			{"text/plain", form, 400, "Invalid content type. Must be multipart/form-data."},
			{"application/json", `{"kind":"user"}`, 400, "Invalid content type. Must be multipart/form-data."},
			{"multipart/mixed; boundary=" + boundary, form, 400, "Invalid content type. Must be multipart/form-data."},
			{"multipart/form-data", form, 500, "An unexpected error occurred"},
			{"multipart/form-data; boundary", form, 500, "An unexpected error occurred"},
			{"multipart/form-data; boundary=other", form, 400, "Error processing upload"},
			{formType, "", 400, "Error processing upload"},
		} {
			if got := d.ask(t, ada, "POST", path, strings.NewReader(c.body), "Content-Type", c.media); !got.is(c.status, fmt.Sprintf(`{"error":"%s"}`, c.text)) {
				t.Errorf("%s of %q: %d %s, want %d %s", path, c.media, got.status, got.body, c.status, c.text)
			}
		}
	}
}

// TestUploadKeepsBytesAsTheySentThem has parts that claim an encoding: files are bytes.
func TestUploadKeepsBytesAsTheySentThem(t *testing.T) {
	d := newDepot(t, depotOptions{})
	f := file("q.txt", "a=3Db=\r\nc\r\n--not-the-boundary\r\n")
	f.encoding = "quoted-printable"
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), f)
	if got := d.get(t, ada, up.Session, up.Files[0].ID, "kind=user"); got.body != f.body {
		t.Errorf("%q came back as %q", f.body, got.body)
	}
}

// TestUploadBoundsOfTenant fills a tenant: the words of what is full reach the client, and
// an upload that did not fit leaves room for others.
func TestUploadBoundsOfTenant(t *testing.T) {
	d := newDepot(t, depotOptions{session: func(o *session.Options) {
		o.Limits.SessionObjects, o.Limits.SessionBytes, o.Limits.TenantBytes = 3, 100, 150
	}})
	user := field("kind", "user")
	hundred := strings.Repeat("h", 100)
	for range 2 { // the second is no worse for the first
		if got := d.upload(t, ada, "/upload", user, file("a", hundred), file("b", "b")); got.status != 413 || !strings.Contains(got.body, "room for 0 more bytes") {
			t.Fatalf("more bytes than a session has: %d %s", got.status, got.body)
		}
		if got := d.upload(t, ada, "/upload", user, file("a", ""), file("b", ""), file("c", ""), file("d", "")); got.status != 413 || !strings.Contains(got.body, "holds 3 files") {
			t.Fatalf("more files than a session has: %d %s", got.status, got.body)
		}
	}
	d.mustUpload(t, ada, "/upload", user, file("a", hundred))
	got := d.upload(t, bob, "/upload/batch", user, file("a", hundred), file("b", hundred[:50]))
	var up uploadAnswer
	got.into(t, &up)
	if got.status != 200 || up.Failed != 1 || !strings.Contains(up.Files[0].Error, "room for 50 more bytes") || up.Files[1].Status != "success" {
		t.Errorf("a batch into what is left of a tenant: %d %s", got.status, got.body)
	}
	if got := d.upload(t, "evil/ada", "/upload", user, file("a", hundred)); got.status != 200 {
		t.Errorf("another tenant has no room: %d %s", got.status, got.body)
	}
}

// failing puts so many files, then fails.
type failing struct {
	Sessions
	left int
	with error
}

func (f *failing) Put(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, file session.File) (writ.Object, error) {
	if f.left--; f.left < 0 {
		return writ.Object{}, f.with
	}
	return f.Sessions.Put(ctx, p, e, in, file)
}

// TestUploadThatFailsHereKeepsNothing has the storage fail behind the second file. Time that
// is over is not that of a run.
func TestUploadThatFailsHereKeepsNothing(t *testing.T) {
	for _, with := range []error{errors.New("no space left on device: /srv/writ"), fmt.Errorf("put object: %w", context.DeadlineExceeded)} {
		for _, path := range []string{"/upload", "/upload/batch"} {
			d := newDepot(t, depotOptions{wrap: func(s Sessions) Sessions { return &failing{s, 2, with} }})
			got := d.upload(t, ada, path, field("kind", "user"), file("a", "a"), file("b", "b"), file("c", "c"), file("d", "d"))
			if !got.is(http.StatusInternalServerError, `{"error":"Internal server error"}`) {
				t.Errorf("%s, %v: %d %s", path, with, got.status, got.body)
			}
			d.nothingStays(t, path)
		}
	}
}
