package codeapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/session"
)

// TestLC12_BatchWithOneFailingFile also counts what is kept of a file that is too large.
func TestLC12_BatchWithOneFailingFile(t *testing.T) {
	d := newDepot(t, depotOptions{fileBytes: 100_000})
	user, big := field("kind", "user"), file("big.bin", strings.Repeat("b", 100_001))
	got := d.upload(t, ada, "/upload/batch", user, file("ok1.txt", "1"), big, file("ok2.txt", "2"))
	var up uploadAnswer
	if got.into(t, &up); len(up.Files) != 3 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	want := fmt.Sprintf(`{"message":"partial_success","storage_session_id":"%s","files":[{"status":"success","filename":"ok1.txt","fileId":"%s"},{"status":"error","filename":"big.bin","error":"File size limit exceeded"},{"status":"success","filename":"ok2.txt","fileId":"%s"}],"succeeded":2,"failed":1}`,
		up.Session, up.Files[0].ID, up.Files[2].ID)
	if !got.is(http.StatusOK, want) {
		t.Errorf("%d %s\nwant %s", got.status, got.body, want)
	}
	for _, i := range []int{0, 2} {
		if got := d.get(t, ada, up.Session, up.Files[i].ID, "kind=user"); !got.is(http.StatusOK, string("1 2"[i])) {
			t.Errorf("%d: %+v", i, got)
		}
	}
	if held, drafts := d.stored(t, "acme"); held != (writ.SessionTotals{Sessions: 1, Objects: 2, Bytes: 2}) || drafts != 0 {
		t.Errorf("%+v, %d drafts", held, drafts)
	}
	if err := d.sessions.Discard(context.Background(), person("acme", "ada"), session.Entity{Kind: writ.EntityUser}, up.Session); err != nil {
		t.Fatal(err)
	}

	got = d.upload(t, ada, "/upload/batch", user, big)
	got.into(t, &up)
	want = fmt.Sprintf(`{"message":"error","storage_session_id":"%s","files":[{"status":"error","filename":"big.bin","error":"File size limit exceeded"}],"succeeded":0,"failed":1}`, up.Session)
	if !got.is(http.StatusBadRequest, want) || !up.Session.Valid() {
		t.Errorf("%d %s\nwant %s", got.status, got.body, want)
	}
	d.nothingStays(t, "a batch of which no file is kept")
	if got := d.upload(t, ada, "/upload/batch", user, field("id", "u")); !got.is(http.StatusBadRequest, `{"error":"No files provided"}`) {
		t.Errorf("no file: %d %s", got.status, got.body)
	}
}

// TestLC10_LC14_BatchOfASkill uploads a skill as LibreChat does; another user of the
// tenant, who names the skill and its version, sees it.
func TestLC10_LC14_BatchOfASkill(t *testing.T) {
	d := newDepot(t, depotOptions{})
	up := d.mustUpload(t, ada, "/upload/batch", field("kind", "skill"), field("id", "6655"), field("version", "3"), field("read_only", "TRUE"),
		file("skills/demo/SKILL.md", "# Skill\n"), file("skills/demo/__init__.py", ""), file("skills/demo/a.xsd", "<x/>"), file("skills/demo/LICENSE", "MIT"))
	var list []struct {
		Name     string            `json:"name"`
		Metadata map[string]string `json:"metadata"`
	}
	d.ask(t, bob, "GET", "/files/"+string(up.Session)+"?detail=full&kind=skill&id=6655&version=3.0", nil).into(t, &list)
	listed := map[string]string{} // object ids by name, as clients find them
	for _, f := range list {
		id, _, _ := strings.Cut(strings.TrimPrefix(f.Name, string(up.Session)+"/"), ".")
		if listed[f.Metadata["original-filename"]] = id; f.Metadata["read-only"] != "true" {
			t.Errorf("%s is not read-only", f.Name)
		}
	}
	if len(list) != 4 || up.Succeeded != 4 {
		t.Fatalf("%d listed of %+v", len(list), up)
	}
	for _, f := range up.Files {
		if listed[f.Name] != string(f.ID) {
			t.Errorf("%s is %s, listed as %s", f.Name, f.ID, listed[f.Name])
		}
	}
}

// TestBatchIdentityIsOfEachFile is spec/03 §10.2 for files that came before what says
// whose they are.
func TestBatchIdentityIsOfEachFile(t *testing.T) {
	d := newDepot(t, depotOptions{})
	const kinds = "kind must be one of: skill, agent, user"
	x := file("x.txt", "x")
	for name, c := range map[string]struct {
		parts   []part
		status  int
		message string
		errors  []string // of each file, empty for one that is kept
	}{
		"fields after the first": {[]part{x, field("kind", "user"), x}, 200, "partial_success", []string{kinds, ""}},
		"no kind at all":         {[]part{x, x}, 400, "error", []string{kinds, kinds}},
		"id after the first":     {[]part{field("kind", "agent"), x, field("id", "a"), x}, 200, "partial_success", []string{"id is required for kind: 'agent'", ""}},
		"version after":          {[]part{field("kind", "skill"), field("id", "s"), x, field("version", "1"), x}, 200, "partial_success", []string{"version is required for kind: 'skill'", ""}},
		"version turns bad":      {[]part{field("kind", "user"), x, field("version", "1"), x}, 200, "partial_success", []string{"", "version is only valid for kind: 'skill'"}},
		"another entity":         {[]part{field("kind", "agent"), field("id", "a"), x, field("id", "b"), x}, 200, "partial_success", []string{"", "id must not be sent twice"}},
	} {
		got := d.upload(t, ada, "/upload/batch", c.parts...)
		var up uploadAnswer
		got.into(t, &up)
		var errs []string
		for _, f := range up.Files {
			errs = append(errs, f.Error)
			if (f.Error == "") != (f.Status == "success") || (f.Status == "success") != f.ID.Valid() {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if got.status != c.status || up.Message != c.message || !slices.Equal(errs, c.errors) {
			t.Errorf("%s: %d %s %q, want %d %s %q", name, got.status, up.Message, errs, c.status, c.message, c.errors)
		}
	}
}

// unkept reads every file, says that it is kept, and keeps none.
type unkept struct {
	Sessions
	puts, made, discarded int
}

func (u *unkept) Create(context.Context, writ.Principal, session.Entity) (writ.Session, error) {
	u.made++
	return writ.Session{ID: writ.NewSessionID()}, nil
}

func (u *unkept) Put(_ context.Context, _ writ.Principal, _ session.Entity, in writ.SessionID, f session.File) (writ.Object, error) {
	if _, err := io.Copy(io.Discard, f.Body); err != nil {
		return writ.Object{}, err
	}
	u.puts++
	return writ.Object{ID: writ.NewObjectID(), Session: in, Name: f.Name}, nil
}

func (u *unkept) Discard(context.Context, writ.Principal, session.Entity, writ.SessionID) error {
	u.discarded++
	return nil
}

// TestBatchOfMoreFilesThanItMayHave keeps the first 200 and says so.
func TestBatchOfMoreFilesThanItMayHave(t *testing.T) {
	var counted *unkept
	d := newDepot(t, depotOptions{wrap: func(s Sessions) Sessions { counted = &unkept{Sessions: s}; return counted }})
	parts := []part{field("kind", "user")}
	for i := range maxBatch + 5 {
		parts = append(parts, file(fmt.Sprintf("f%d.txt", i), "x"))
	}
	full := d.mustUpload(t, ada, "/upload/batch", parts[:1+maxBatch]...)
	if len(full.Files) != maxBatch || full.Reached || full.Max != 0 {
		t.Errorf("%d files, limit reached %t of %d", len(full.Files), full.Reached, full.Max)
	}
	more := d.mustUpload(t, ada, "/upload/batch", parts...)
	if len(more.Files) != maxBatch || more.Succeeded != maxBatch || !more.Reached || more.Max != maxBatch || more.Files[maxBatch-1].Name != "f199.txt" {
		t.Errorf("%d files, limit reached %t of %d", len(more.Files), more.Reached, more.Max)
	}
	if counted.puts != 2*maxBatch || counted.discarded != 0 {
		t.Errorf("%d files were put, %d sessions taken back", counted.puts, counted.discarded)
	}
}
