package codeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/blob"
	"writ/internal/testkit"
	"writ/interpreter"
	"writ/limit"
	"writ/session"
	"writ/store"
)

// depot is the API on a real store of sessions and a real folder of bytes, behind a real
// server.
type depot struct {
	*API
	url      string
	sessions *session.Service
	blobs    string // folder of the bytes
	db       *store.DB
	server   *httptest.Server
}

type depotOptions struct {
	fileBytes  int64 // 0: 1 MiB
	uploadTime time.Duration
	session    func(*session.Options) // changes the default ones; may be nil
	tasks      interpreter.Tasks      // of a real interpreter; nil for a scripted one
	wrap       func(Sessions) Sessions
	log        *slog.Logger
}

func newDepot(t testing.TB, opt depotOptions) *depot {
	t.Helper()
	d := &depot{blobs: filepath.Join(t.TempDir(), "blobs")}
	folder, err := blob.OpenFolder(d.blobs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	d.db = testkit.OpenStore(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db"))
	sessionOptions := session.Defaults()
	if opt.session != nil {
		opt.session(&sessionOptions)
	}
	if d.sessions, err = session.New(d.db, folder, sessionOptions); err != nil {
		t.Fatal(err)
	}
	if opt.fileBytes == 0 {
		opt.fileBytes = 1 << 20
	}
	if opt.log == nil {
		opt.log = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	}
	var sessions Sessions = d.sessions
	if opt.wrap != nil {
		sessions = opt.wrap(sessions)
	}
	var runs interpreter.Runs = &scriptedRuns{}
	if opt.tasks != nil {
		runs = interpreter.New(opt.tasks, d.sessions, nil, pythonOnly{}, opt.log, interpreter.Options{
			Limits: writ.Limits{WorkspaceBytes: 1 << 20}, OutputUnits: 1000, Inputs: 10, Mode: interpreter.Stateless, Deadline: time.Minute,
		})
	}
	d.API = New(opt.log, Services{
		Auth: badges{}, Limits: ample{}, Sessions: sessions, Runs: runs,
		Live: func(context.Context) error { return nil },
	}, Options{JSONBytes: 1 << 20, FileBytes: func(writ.Principal) int64 { return opt.fileBytes }})
	if opt.uploadTime > 0 {
		d.API.uploadTime = opt.uploadTime
	}
	d.server = httptest.NewServer(d.API)
	t.Cleanup(d.server.Close)
	d.url = d.server.URL + "/v1"
	return d
}

// badges authenticates who wears one: "Bearer acme/ada".
type badges struct{}

func (badges) User(_ context.Context, header func(string) []string, _ bool, _ func() string) (writ.Principal, error) {
	badge := ""
	if h := header("Authorization"); len(h) == 1 {
		badge = strings.TrimPrefix(h[0], "Bearer ")
	}
	tenant, id, ok := strings.Cut(badge, "/")
	if !ok {
		return writ.Principal{}, &writ.Error{Kind: writ.Unauthenticated, Msg: "Bearer token is required"}
	}
	return person(tenant, id), nil
}

func person(tenant, id string) writ.Principal {
	return writ.Principal{Kind: writ.KindUser, ID: id, Tenant: writ.Tenant(tenant)}
}

// pythonOnly is a host with one language.
type pythonOnly struct{}

func (pythonOnly) Languages(context.Context) ([]writ.LanguageStatus, error) {
	return []writ.LanguageStatus{{Kind: writ.RunInterpreter, Name: "python", Interpreter: "/usr/bin/python3"}}, nil
}

// ample lets every request pass.
type ample struct{}

func (ample) Count(context.Context, string, writ.Principal) (limit.Answer, error) {
	return limit.Answer{Allowed: true, Most: 1000, Remaining: 999, Reset: time.Second, Window: time.Second}, nil
}

// answer is what came of a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// into reads the body as JSON.
func (a answer) into(t testing.TB, v any) {
	t.Helper()
	if err := a.decode(v); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
}

func (a answer) decode(v any) error { return json.Unmarshal([]byte(a.body), v) }

func (a answer) is(status int, body string) bool { return a.status == status && a.body == body }

// ask sends a request with a badge; header are names and values.
func (d *depot) ask(t testing.TB, badge, method, path string, body io.Reader, header ...string) answer {
	t.Helper()
	a, err := d.try(badge, method, path, body, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (d *depot) try(badge, method, path string, body io.Reader, header ...string) (answer, error) {
	r, err := http.NewRequest(method, d.url+path, body)
	if err != nil {
		return answer{}, err
	}
	if badge != "" {
		r.Header.Set("Authorization", "Bearer "+badge)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := d.server.Client().Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(b)}, err
}

// part is a part of a form as it is sent.
type part struct {
	name     string
	file     string // Content-Disposition's rest, from "filename" on; empty for a field
	media    string
	body     string
	encoding string
}

func field(name, value string) part { return part{name: name, body: value} }

func file(name, body string) part {
	return part{name: "file", file: `filename="` + name + `"`, media: "text/plain", body: body}
}

const boundary = "----7f3b"

// formOf is a form of parts, and its content type.
func formOf(parts ...part) string {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.SetBoundary(boundary)
	for _, p := range parts {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name=%q`, p.name)
		if p.file != "" {
			disposition += "; " + p.file
		}
		h.Set("Content-Disposition", disposition)
		if p.media != "" {
			h.Set("Content-Type", p.media)
		}
		if p.encoding != "" {
			h.Set("Content-Transfer-Encoding", p.encoding)
		}
		dst, _ := w.CreatePart(h) // a buffer takes everything
		_, _ = io.WriteString(dst, p.body)
	}
	_ = w.Close()
	return b.String()
}

const formType = "multipart/form-data; boundary=" + boundary

// upload sends a form to path, in chunks as clients do.
func (d *depot) upload(t testing.TB, badge, path string, parts ...part) answer {
	t.Helper()
	return d.ask(t, badge, "POST", path, io.MultiReader(strings.NewReader(formOf(parts...))), "Content-Type", formType)
}

type uploadAnswer struct {
	Message string         `json:"message"`
	Session writ.SessionID `json:"storage_session_id"`
	Files   []struct {
		Status string        `json:"status"`
		Name   string        `json:"filename"`
		ID     writ.ObjectID `json:"fileId"`
		Error  string        `json:"error"`
	} `json:"files"`
	Succeeded int  `json:"succeeded"`
	Failed    int  `json:"failed"`
	Reached   bool `json:"filesLimitReached"`
	Max       int  `json:"maxFiles"`
}

// mustUpload uploads what must be kept.
func (d *depot) mustUpload(t testing.TB, badge, path string, parts ...part) uploadAnswer {
	t.Helper()
	a := d.upload(t, badge, path, parts...)
	var up uploadAnswer
	if a.into(t, &up); a.status != http.StatusOK || up.Message != "success" {
		t.Fatalf("upload: %d %s", a.status, a.body)
	}
	return up
}

// stored is what a tenant's sessions hold, and how many files are under way, of all.
func (d *depot) stored(t testing.TB, tenant writ.Tenant) (held writ.SessionTotals, drafts int) {
	t.Helper()
	err := d.db.View(context.Background(), func(tx *store.Tx) (err error) {
		held, err = tx.SessionTotals(context.Background(), tenant)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(filepath.Join(d.blobs, "drafts"))
	if err != nil {
		t.Fatal(err)
	}
	return held, len(files)
}

// nothingStays fails over anything that is kept for acme, also a session that is empty.
func (d *depot) nothingStays(t testing.TB, after string) {
	t.Helper()
	if held, drafts := d.stored(t, "acme"); held != (writ.SessionTotals{}) || drafts != 0 {
		t.Errorf("%s: %+v and %d drafts stay", after, held, drafts)
	}
}
