package codeapi

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"writ"
	"writ/session"
)

// FuzzExec: whatever a body is, the answer is JSON and no fault of the server's, and what
// reaches the interpreter has the form that the contract gives it.
func FuzzExec(f *testing.F) {
	for _, seed := range []string{
		hiBody, `{"lang":"py","code":"","args":["a"],"files":[` + refText(nil) + `]}`,
		`{"lang":"bash","code":"x","files":[` + refText(map[string]string{"kind": `"skill"`, "version": "3.5"}) + `,` + refText(map[string]string{"name": `"a/../b"`}) + `]}`,
		`{"lang":1,"code":null}`, `[{}]`, `null`, `{"a":"\ud800"}`, "{\"lang\":\"\xff\"}", `{"lang":"bash","lang":"bash"}`, ` {"files":{"files":[[[1e999]]]}} `, `{"user_id":{}}`,
	} {
		f.Add([]byte(seed), "application/json", false)
	}
	f.Add([]byte(gzipped(f, hiBody)), "application/json", true)
	f.Add([]byte(hiBody), "text/plain; x=\"", false)
	f.Fuzz(func(t *testing.T, body []byte, contentType string, gz bool) {
		runs := &scriptedRuns{}
		api := New(slog.New(slog.DiscardHandler), Services{
			Auth: badges{}, Limits: ample{}, Runs: runs, Live: func(context.Context) error { return nil },
		}, Options{JSONBytes: 1 << 16})
		r := httptest.NewRequest("POST", "/v1/exec", bytes.NewReader(body))
		r.Header["Authorization"] = []string{"Bearer acme/ada"}
		r.Header["Content-Type"] = []string{contentType}
		if gz {
			r.Header["Content-Encoding"] = []string{"gzip"}
		}
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code >= 500 || !json.Valid(w.Body.Bytes()) || w.Body.Bytes()[0] != '{' || w.Body.Len() > 8<<10 {
			t.Fatalf("%d %.200s", w.Code, w.Body)
		}
		asked, _ := runs.all()
		if (w.Code == 200) != (len(asked) == 1) {
			t.Fatalf("%d after %d runs", w.Code, len(asked))
		}
		for _, run := range asked {
			for _, ref := range run.Files {
				if !ref.Object.ID.Valid() || !ref.Object.Session.Valid() || ref.Entity.Check() != nil || session.NameFault(ref.Name) != "" ||
					ref.Entity.Kind == writ.EntitySkill != (ref.Entity.Version != nil) {
					t.Errorf("a reference %+v", ref)
				}
			}
			for _, s := range append(run.Args, run.Code, string(run.Language)) {
				if strings.ToValidUTF8(s, "") != s {
					t.Errorf("%q is not UTF-8", s)
				}
			}
		}
	})
}
