package codeapi

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"writ"
)

// TestLC02_Listings holds the four details against the contract's shapes, byte for byte but
// for ids, times and tags.
func TestLC02_Listings(t *testing.T) {
	d := newDepot(t, depotOptions{})
	md := file("skills/pptx/SKILL.md", "# skill")
	md.media = "text/markdown"
	plain := part{name: "file", file: `filename=".env"`, body: "A=1"}
	up := d.mustUpload(t, ada, "/upload", field("kind", "skill"), field("id", "s1"), field("version", "3"), field("read_only", "true"), md, plain)
	s, a, b := up.Session, up.Files[0].ID, up.Files[1].ID

	var normal []struct {
		ID   writ.ObjectID `json:"id"`
		Time string        `json:"lastModified"`
	}
	path := "/files/" + string(s) + "?kind=skill&id=s1&version=3"
	d.ask(t, bob, "GET", path+"&detail=normalized", nil).into(t, &normal)
	var summary []struct{ ETag string }
	d.ask(t, bob, "GET", path+"&detail=summary", nil).into(t, &summary)
	if len(normal) != 2 || len(summary) != 2 || normal[0].ID != a || normal[1].ID != b {
		t.Fatalf("%+v %+v, want %s and %s", normal, summary, a, b)
	}
	when, err := time.Parse("2006-01-02T15:04:05.000Z", normal[0].Time)
	if err != nil || time.Since(when).Abs() > time.Hour {
		t.Errorf("last modified %q: %v", normal[0].Time, err)
	}
	simple := fmt.Sprintf(`["%[1]s/%[2]s.md","%[1]s/%[3]s"]`, s, a, b)
	for detail, want := range map[string]string{
		"": simple, "&detail=simple": simple, "&detail=bogus": simple, "&detail=": simple,
		"&detail=summary": fmt.Sprintf(`[{"name":"%s/%s.md","size":7,"lastModified":"%s","etag":"%s"},{"name":"%s/%s","size":3,"lastModified":"%s","etag":"%s"}]`,
			s, a, normal[0].Time, summary[0].ETag, s, b, normal[1].Time, summary[1].ETag),
		"&detail=full": fmt.Sprintf(`[{"name":"%s/%s.md","size":7,"lastModified":"%s","etag":"%s","metadata":{"content-type":"text/markdown","original-filename":"skills/pptx/SKILL.md","original-filename-encoded":"none","read-only":"true"},"versionId":null,"contentType":"text/markdown"},`+
			`{"name":"%s/%s","size":3,"lastModified":"%s","etag":"%s","metadata":{"content-type":"application/octet-stream","original-filename":".env","original-filename-encoded":"none","read-only":"true"},"versionId":null,"contentType":"application/octet-stream"}]`,
			s, a, normal[0].Time, summary[0].ETag, s, b, normal[1].Time, summary[1].ETag),
		"&detail=normalized": fmt.Sprintf(`[{"id":"%s","name":"skills/pptx/SKILL.md","storage_session_id":"%s","size":7,"contentType":"text/markdown","lastModified":"%s","read_only":true},`+
			`{"id":"%s","name":".env","storage_session_id":"%s","size":3,"contentType":"application/octet-stream","lastModified":"%s","read_only":true}]`,
			a, s, normal[0].Time, b, s, normal[1].Time),
	} {
		if got := d.ask(t, bob, "GET", path+detail, nil); !got.is(http.StatusOK, want) {
			t.Errorf("%q: %d %s\nwant %s", detail, got.status, got.body, want)
		}
	}

	want := fmt.Sprintf(`{"name":"%s/%s.md","originalFilename":"skills/pptx/SKILL.md","size":7,"lastModified":"%s","etag":"%s","contentType":"text/markdown","readOnly":true}`,
		s, a, normal[0].Time, summary[0].ETag)
	object := "/sessions/" + string(s) + "/objects/" + string(a) + "?kind=skill&id=s1&version=3"
	if got := d.ask(t, bob, "GET", object, nil); !got.is(http.StatusOK, want) {
		t.Errorf("metadata: %d %s\nwant %s", got.status, got.body, want)
	}
	if got := d.ask(t, bob, "HEAD", object, nil); !got.is(http.StatusOK, "") || got.header.Get("Content-Length") != fmt.Sprint(len(want)) {
		t.Errorf("HEAD: %+v", got)
	}
}

// TestDeletion is that of spec/03 §11: the answer, and what is there afterwards.
func TestDeletion(t *testing.T) {
	d := newDepot(t, depotOptions{})
	up := d.mustUpload(t, ada, "/upload", field("kind", "agent"), field("id", "agent_abc"), file("docs/a b.txt", "hello nested"))
	s, f := string(up.Session), string(up.Files[0].ID)
	const who = "?kind=agent&id=agent_abc"
	if got := d.ask(t, bob, "DELETE", "/files/"+s+"/"+f+"?kind=user", nil); !got.is(403, `{"error":"Unauthorized"}`) {
		t.Errorf("as a user: %+v", got)
	}
	if got := d.ask(t, bob, "DELETE", "/files/"+s+"/"+f+who, nil); !got.is(200, fmt.Sprintf(`{"message":"File deleted successfully","session_id":"%s","fileId":"%s"}`, s, f)) {
		t.Errorf("delete: %+v", got)
	}
	for _, c := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"DELETE", "/files/" + s + "/" + f + who, 500, `{"error":"Error deleting file"}`},
		{"GET", "/files/" + s + who, 200, `[]`},
		{"GET", "/sessions/" + s + "/objects/" + f + who, 404, `{"error":"File not found"}`},
		{"GET", "/download/" + s + "/" + f + who, 404, `{"error":"File not found","details":"The file may have expired or does not exist"}`},
		{"GET", "/sessions/" + s + "/objects" + who, 404, `{"error":"Not found"}`},
	} {
		if got := d.ask(t, ada, c.method, c.path, nil); !got.is(c.status, c.body) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, got.status, got.body, c.status, c.body)
		}
	}
}

// TestCP13_OrderOfChecks is that of spec/03 §11: what is no id comes before the entity, and
// that before the session, on each route.
func TestCP13_OrderOfChecks(t *testing.T) {
	d := newDepot(t, depotOptions{})
	up := d.mustUpload(t, ada, "/upload", field("kind", "user"), file("a.txt", "a"))
	s, f := string(up.Session), string(up.Files[0].ID)
	const badRequest, kinds = `{"error":"Bad request"}`, `{"error":"kind must be one of: skill, agent, user"}`
	unknown := string(writ.NewSessionID())
	for _, rt := range []struct{ method, before, after string }{
		{"GET", "/files/", ""}, {"GET", "/sessions/", "/objects/" + f}, {"GET", "/download/", "/" + f}, {"DELETE", "/files/", "/" + f},
	} {
		for _, c := range []struct {
			session, query string
			status         int
			body           string
		}{
			{"short", "?kind=user", 400, badRequest},
			{s + "A", "?kind=user", 400, badRequest},
			{"..%2f..%2f..%2fetc%2fpasswd", "?kind=user", 400, badRequest},
			{s[:20] + "%00", "?kind=user", 400, badRequest},
			{s[:20] + "%2F", "?kind=user", 400, badRequest},
			{s[:20] + "é", "?kind=user", 400, badRequest},
			{"short", "?kind=team", 400, badRequest},
			{unknown, "?kind=user&kind=user", 400, badRequest},
			{s, "?kind=user&id=1&id=2", 400, badRequest},
			{s, "?kind=user&detail=full&detail=full", 400, badRequest},
			{s, "?kind=user&x=1&x=2", 400, badRequest},
			{s, "?kind=user&id=%zz", 400, badRequest},
			{unknown, "", 400, kinds},
			{s, "?Kind=user", 400, kinds},
			{s, "?kind=USER", 400, kinds},
			{s, "?kind=skill", 400, `{"error":"id is required for kind: 'skill'"}`},
			{s, "?kind=agent", 400, `{"error":"id is required for kind: 'agent'"}`},
			{s, "?kind=skill&id=s", 400, `{"error":"version is required for kind: 'skill'"}`},
			{s, "?kind=skill&id=s&version=new", 400, `{"error":"version must be a number for kind: 'skill'"}`},
			{s, "?kind=user&version=3", 400, `{"error":"version is only valid for kind: 'skill'"}`},
			{unknown, "?kind=user", 403, `{"error":"Unauthorized"}`},
		} {
			path := rt.before + c.session + rt.after + c.query
			if got := d.ask(t, ada, rt.method, path, nil); !got.is(c.status, c.body) {
				t.Errorf("%s %s: %d %s, want %d %s", rt.method, path, got.status, got.body, c.status, c.body)
			}
		}
		if rt.after == "" {
			continue
		}
		path := rt.before + s + rt.after + "x?kind=user"
		if got := d.ask(t, ada, rt.method, path, nil); !got.is(400, badRequest) {
			t.Errorf("%s %s: %d %s", rt.method, path, got.status, got.body)
		}
	}
	if got := d.names(t, ada, up.Session, "kind=user"); len(got) != 1 {
		t.Errorf("the file is gone: %q", got)
	}
}
