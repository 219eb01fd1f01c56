package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/audit"
)

func TestExportJSONLinesIsTheRecords(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(300)...)
	var all bytes.Buffer
	if err := audit.Export(t.Context(), m.view, &all, audit.JSONLines, writ.EventFilter{After: -1}); err != nil {
		t.Fatal(err)
	}
	// Read back as a store of its own, the export verifies.
	back := newMemory()
	back.hashes, back.size, back.note = m.hashes, m.size, m.note
	for i, line := range bytes.Split(bytes.TrimSuffix(all.Bytes(), []byte("\n")), []byte("\n")) {
		r := m.records[int64(i)]
		r.Data = line
		back.records[int64(i)] = r
	}
	if r := verify(t, l, back); !r.OK || r.Events != 300 {
		t.Errorf("the export does not verify: %+v", r)
	}
}

func TestExportFilters(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	for i := range 12 {
		e := event(i % 3)
		if i%2 == 1 {
			e.Tenant, e.Type = "other", writ.EventTaskDecided
		}
		add(t, l, m, e)
	}
	tests := map[string]struct {
		f    writ.EventFilter
		want []int64
	}{
		"tenant":        {writ.EventFilter{After: -1, Tenant: "other"}, []int64{1, 3, 5, 7, 9, 11}},
		"task":          {writ.EventFilter{After: -1, Task: "task_001"}, []int64{1, 4, 7, 10}},
		"type":          {writ.EventFilter{After: 6, Types: []writ.EventType{writ.EventTaskDecided}}, []int64{7, 9, 11}},
		"all of them":   {writ.EventFilter{After: -1, Tenant: "default", Task: "task_000", Types: []writ.EventType{writ.EventTaskReceived}}, []int64{0, 6}},
		"after":         {writ.EventFilter{After: 9}, []int64{10, 11}},
		"limit":         {writ.EventFilter{After: 2, Limit: 2}, []int64{3, 4}},
		"nothing is so": {writ.EventFilter{After: -1, Task: "task_9"}, nil},
	}
	for name, tt := range tests {
		var b bytes.Buffer
		if err := audit.Export(t.Context(), m.view, &b, audit.JSONLines, tt.f); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for line := range strings.Lines(b.String()) {
			var e writ.Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			got = append(got, e.Seq)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestExportCloudEvents(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	e := event(7)
	e.Time = writ.Now()
	e.Data.Reason = "<b>\u202e</b>"
	add(t, l, m, e)
	var b bytes.Buffer
	if err := audit.Export(t.Context(), m.view, &b, audit.CloudEvents, writ.EventFilter{After: -1}); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, b.Bytes())
	}
	if got["data"].(map[string]any)["data"].(map[string]any)["reason"] != e.Data.Reason {
		t.Errorf("data is %v", got["data"])
	}
	delete(got, "data")
	want := map[string]any{"specversion": "1.0", "id": "0", "source": "writ:audit/writ.example", "type": "writ.task.received",
		"subject": "task_007", "time": e.Time.Format("2006-01-02T15:04:05.999Z07:00"), "tenant": "default", "datacontenttype": "application/json"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !bytes.Contains(b.Bytes(), m.records[0].Data) || bytes.Count(b.Bytes(), []byte("\n")) != 1 {
		t.Errorf("the record is not in it byte for byte, on one line: %s", b.Bytes())
	}
}

// outside fails when it is written to while a snapshot is held.
type outside struct {
	bytes.Buffer
	held  *bool
	wrong int
}

func (w *outside) Write(p []byte) (int, error) {
	if *w.held {
		w.wrong++
	}
	return w.Buffer.Write(p)
}

// A client that takes its time holds no snapshot of the store, however long the log.
func TestExportHoldsNoSnapshotWhileItWrites(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(600)...)
	for _, format := range []string{audit.JSONLines, audit.CloudEvents} {
		held, views := false, 0
		w := &outside{held: &held}
		err := audit.Export(t.Context(), func(ctx context.Context, fn func(audit.Source) error) error {
			held, views = true, views+1
			defer func() { held = false }()
			return m.view(ctx, fn)
		}, w, format, writ.EventFilter{After: -1})
		if err != nil || w.wrong > 0 || views < 3 {
			t.Errorf("%s: %v; %d writes under a snapshot, of %d", format, err, w.wrong, views)
		}
		if n := bytes.Count(w.Bytes(), []byte("\n")); n != 600 {
			t.Errorf("%s: %d lines", format, n)
		}
	}
	broken := errors.New("no snapshot")
	err := audit.Export(t.Context(), func(context.Context, func(audit.Source) error) error { return broken }, &bytes.Buffer{}, audit.JSONLines, writ.EventFilter{})
	if !errors.Is(err, broken) {
		t.Errorf("a store that does not answer: %v", err)
	}
}

// What is appended during an export is in it, and a limit ends it where it says,
// also at the end of a page.
func TestExportOfAGrowingLog(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(256)...)
	grown := false
	var b bytes.Buffer
	err := audit.Export(t.Context(), func(ctx context.Context, fn func(audit.Source) error) error {
		defer func() {
			if !grown {
				grown = true
				add(t, l, m, events(10)...)
			}
		}()
		return m.view(ctx, fn)
	}, &b, audit.JSONLines, writ.EventFilter{After: -1})
	if n := bytes.Count(b.Bytes(), []byte("\n")); err != nil || n != 266 {
		t.Errorf("%d lines, %v", n, err)
	}
	for _, limit := range []int{1, 255, 256, 257, 266, 300} {
		b.Reset()
		err := audit.Export(t.Context(), m.view, &b, audit.JSONLines, writ.EventFilter{After: -1, Limit: limit})
		if n := bytes.Count(b.Bytes(), []byte("\n")); err != nil || n != min(limit, 266) {
			t.Errorf("limit %d: %d lines, %v", limit, n, err)
		}
	}
}

type full struct{}

var errFull = errors.New("no space left")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestExportReportsFailures(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(200)...)
	if err := audit.Export(t.Context(), m.view, full{}, audit.JSONLines, writ.EventFilter{After: -1}); !errors.Is(err, errFull) {
		t.Errorf("a writer that fails: %v", err)
	}
	if err := audit.Export(t.Context(), m.view, full{}, "xml", writ.EventFilter{}); writ.KindOf(err) != writ.Invalid {
		t.Errorf("an unknown format: %v", err)
	}
	r := m.records[3]
	r.Data = []byte("{")
	m.records[3] = r
	if err := audit.Export(t.Context(), m.view, &bytes.Buffer{}, audit.CloudEvents, writ.EventFilter{}); err == nil || !strings.Contains(err.Error(), "event 3") {
		t.Errorf("a record that is no event: %v", err)
	}
}
