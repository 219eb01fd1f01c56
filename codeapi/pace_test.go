package codeapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"writ"
	"writ/session"
)

// watched is an answer whose connection tells its deadlines.
type watched struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *watched) SetReadDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

func (w *watched) EnableFullDuplex() error { return nil }

// timed tells for each file that is put which deadline its body has.
type timed struct {
	Sessions
	w  *watched
	at []time.Time
}

func (s *timed) Put(ctx context.Context, p writ.Principal, e session.Entity, in writ.SessionID, f session.File) (writ.Object, error) {
	s.at = append(s.at, s.w.deadlines[len(s.w.deadlines)-1])
	return s.Sessions.Put(ctx, p, e, in, f)
}

// TestEachFileOfAFormHasItsTime: the time of an upload is that of one file (spec/03 §10.1),
// so that many of them come through a slow line, each in good time. All together have a
// bound, and what has come has no deadline any more.
func TestEachFileOfAFormHasItsTime(t *testing.T) {
	const within = time.Hour
	send := func(size, files int) *timed {
		t.Helper()
		var seen *timed
		d := newDepot(t, depotOptions{uploadTime: within, wrap: func(s Sessions) Sessions {
			seen = &timed{Sessions: s, w: &watched{ResponseRecorder: httptest.NewRecorder()}}
			return seen
		}})
		parts := []part{field("kind", "user")}
		for range files {
			parts = append(parts, file("a.txt", strings.Repeat("a", size)))
		}
		r := httptest.NewRequest(http.MethodPost, "/v1/upload/batch", iotest.DataErrReader(strings.NewReader(formOf(parts...))))
		r.Header.Set("Authorization", "Bearer "+ada)
		r.Header.Set("Content-Type", formType)
		start := time.Now()
		d.API.ServeHTTP(seen.w, r)
		if seen.w.Code != http.StatusOK || len(seen.at) != files {
			t.Fatalf("%d %s, %d files", seen.w.Code, seen.w.Body, len(seen.at))
		}
		for _, at := range seen.at {
			if left := at.Sub(start); left < within || left > maxPace*within {
				t.Errorf("a file has a deadline in %v", left)
			}
		}
		return seen
	}
	// More than is read ahead.
	last := time.Time{}
	for i, at := range send(64<<10, 4).at {
		if !at.After(last) {
			t.Errorf("file %d has the deadline of the one before it", i)
		}
		last = at
	}
	// All of it is read with the first.
	if at := send(1, 4).at; at[0] != at[3] {
		t.Error("a form that has come gets another deadline")
	}

	w := &watched{ResponseRecorder: httptest.NewRecorder()}
	f := &form{body: &tap{}, conn: http.NewResponseController(w), within: within, end: time.Now().Add(time.Minute)}
	if err := f.pace(); err != nil || w.deadlines[0] != f.end {
		t.Errorf("at the end of the time for all of it: %v, %v, want %v", err, w.deadlines, f.end)
	}
}
