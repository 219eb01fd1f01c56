package response_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"writ"
	"writ/response"
)

func TestRecorder(t *testing.T) {
	w := httptest.NewRecorder()
	rec := response.Record(w)
	if rec.Status != 0 {
		t.Errorf("status %d before anything was written", rec.Status)
	}
	if _, err := rec.Write([]byte("abc")); err != nil || rec.Status != http.StatusOK || rec.Bytes != 3 {
		t.Errorf("status %d, %d bytes, %v", rec.Status, rec.Bytes, err)
	}
	rec = response.Record(httptest.NewRecorder())
	rec.WriteHeader(http.StatusTeapot)
	if _, err := rec.Write([]byte("ab")); err != nil || rec.Status != http.StatusTeapot || rec.Bytes != 2 {
		t.Errorf("status %d, %d bytes, %v", rec.Status, rec.Bytes, err)
	}
	if rec.Unwrap() == nil {
		t.Error("the connection cannot be found")
	}
}

// TestEveryKindHasAStatus: one status for each kind, none shared.
func TestEveryKindHasAStatus(t *testing.T) {
	want := map[writ.Kind]int{
		writ.Internal: 500, writ.Invalid: 400, writ.Unauthenticated: 401, writ.Denied: 403,
		writ.NotFound: 404, writ.Conflict: 409, writ.Exhausted: 429, writ.Unavailable: 503,
	}
	for _, k := range writ.Kinds {
		if got := response.Status(k); got != want[k] {
			t.Errorf("status of %s is %d, want %d", k, got, want[k])
		}
	}
}

func FuzzShorten(f *testing.F) {
	f.Add("é", 3)
	f.Add(strings.Repeat("é☃", 9), 10)
	f.Add("a\xffb", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		most = 3 + abs(most)%50
		got := response.Shorten(s, most)
		if len(got) > most || !utf8.ValidString(got) {
			t.Errorf("%q in %d bytes is %q", s, most, got)
		}
		if utf8.ValidString(s) && len(s) <= most && got != s {
			t.Errorf("%q became %q for no reason", s, got)
		}
	})
}

func abs(n int) int {
	if n < 0 {
		return -(n + 1)
	}
	return n
}

func TestCatch(t *testing.T) {
	fall := func(with any) (err error) {
		defer response.Catch(&err)
		if with != nil {
			panic(with)
		}
		return errors.New("its own")
	}
	p, ok := errors.AsType[*response.Panic](fall("deep"))
	if !ok || p.Error() != "panic: deep" || !strings.Contains(string(p.Stack), "TestCatch") {
		t.Errorf("a panic is %v", p)
	}
	if err := fall(nil); err == nil || err.Error() != "its own" {
		t.Errorf("without a panic: %v", err)
	}
}
