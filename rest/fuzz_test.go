package rest_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ"
	"writ/rest"
)

// FuzzSubmit: a body is refused as malformed, or it is read as every other JSON
// decoder reads it, and what was read is accepted again and means the same.
func FuzzSubmit(f *testing.F) {
	for _, c := range bodies {
		if len(c.body) < 4096 {
			f.Add([]byte(c.body))
		}
	}
	full, err := json.Marshal(writ.TaskRequest{Key: "k", Step: "s", Spec: new(someSpec())})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(full)
	b := &backend{}
	h := rest.New(slog.New(slog.DiscardHandler), rest.Services{
		Auth: b, Tasks: b, Approvals: b, Files: b, Audit: b, Access: b, Policy: b,
	}, rest.Options{}).TCP().Handler
	submit := func(t *testing.T, body []byte) (writ.TaskRequest, bool) {
		r := httptest.NewRequest("POST", "http://localhost/v1/tasks", bytes.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		calls := b.take()
		switch {
		case w.Code == http.StatusCreated && calls[0].Method == "Submit":
			return calls[0].Args[0].(writ.TaskRequest), true
		case w.Code == http.StatusBadRequest && calls[0].Method == "Refuse":
			return writ.TaskRequest{}, false
		}
		t.Fatalf("answer %d after %v", w.Code, calls)
		return writ.TaskRequest{}, false
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := submit(t, body)
		if !ok {
			return
		}
		var other writ.TaskRequest
		if err := json.Unmarshal(body, &other); err != nil {
			t.Fatalf("accepted, but encoding/json says %v", err)
		}
		if diff := cmp.Diff(other, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("read otherwise than by encoding/json (-):\n%s", diff)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if second, ok := submit(t, again); !ok || !cmp.Equal(got, second, cmpopts.EquateEmpty()) {
			t.Errorf("what was read is not accepted again as it was: %s", again)
		}
	})
}
