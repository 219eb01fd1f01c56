package testkit

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/audit"
	"writ/store"
)

var _ audit.Tx = (*store.Tx)(nil) // the store imports no audit, so the promise is held here

func newLog(t testing.TB) *audit.Log { return openLog(t, LogKey(t)) }

// LogKey is a new private key of an audit log.
func LogKey(t testing.TB) writ.Secret {
	t.Helper()
	private, _, err := audit.GenerateKey("writ.test")
	if err != nil {
		t.Fatal(err)
	}
	return private
}

// openLog is the log of a private key, of a new one when it is empty.
func openLog(t testing.TB, private writ.Secret) *audit.Log {
	t.Helper()
	if private == "" {
		private = LogKey(t)
	}
	log, err := audit.New(private)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func appendEvents(t testing.TB, db *store.DB, log *audit.Log, events ...writ.Event) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, err := log.Append(ctx, tx, events...)
		return err
	})
}

func verify(t testing.TB, db *store.DB, log *audit.Log) writ.AuditReport {
	t.Helper()
	return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.AuditReport, error) {
		return audit.Verify(ctx, tx, log.Verifier())
	})
}

func logParts(t *testing.T, s storeSuite) {
	db := s.open(t)
	hash := func(b byte) (h [32]byte) { copy(h[:], bytes.Repeat([]byte{b}, 32)); return h }
	want := []writ.Record{
		{Seq: 0, Type: "task.received", Tenant: "acme", Task: "t1", Data: []byte(`{"seq":0,"x":"\u0000"}`)},
		{Seq: 1, Type: "server.started", Data: []byte{0, 0xff, '\n'}}, // bytes, whatever they are
	}
	var many [][32]byte // more than one statement reads at a time
	for i := range 1300 {
		many = append(many, hash(byte(i)))
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		size, note, err := tx.LogHead(ctx)
		if size != 0 || note != "" || err != nil {
			t.Errorf("head of an empty log: %d, %q, %v", size, note, err)
		}
		if err := tx.AppendLog(ctx, want[:1], 0, many[:1], 1, "first"); err != nil {
			return err
		}
		return tx.AppendLog(ctx, want[1:], 1, many[1:], 2, "second ☃\n")
	})
	view(t, db, func(ctx context.Context, tx *store.Tx) (none struct{}, err error) {
		size, note, err := tx.LogHead(ctx)
		if size != 2 || note != "second ☃\n" || err != nil {
			t.Errorf("head: %d, %q, %v", size, note, err)
		}
		for _, c := range []struct {
			after int64
			limit int
			want  []writ.Record
		}{{-1, 10, want}, {-1, 1, want[:1]}, {0, 10, want[1:]}, {1, 10, nil}} {
			got, err := tx.Records(ctx, c.after, c.limit)
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("records after %d (-stored +read): %v\n%s", c.after, err, d)
			}
		}
		indexes := []int64{3, 0, 3, 1299}
		for i := range int64(1300) {
			indexes = append(indexes, 1299-i)
		}
		got, err := tx.LogHashes(ctx, indexes)
		if err != nil {
			return none, err
		}
		for i, idx := range indexes {
			if got[i] != many[idx] {
				t.Fatalf("hash %d of the answer is not that of index %d", i, idx)
			}
		}
		_, err = tx.LogHashes(ctx, []int64{0, 1300})
		wantKind(t, "hash that is not there", err, writ.NotFound)
		none2, err := tx.LogHashes(ctx, nil)
		if len(none2) != 0 {
			t.Errorf("no indexes, %d hashes", len(none2))
		}
		return none, err
	})
}

func logTwice(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	record := []writ.Record{{Seq: 0, Data: []byte("{}")}}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		return tx.AppendLog(ctx, record, 0, make([][32]byte, 1), 1, "n")
	})
	for what, again := range map[string]func(*store.Tx) error{
		"record": func(tx *store.Tx) error { return tx.AppendLog(ctx, record, 1, nil, 1, "n") },
		"hash":   func(tx *store.Tx) error { return tx.AppendLog(ctx, nil, 0, make([][32]byte, 1), 1, "n") },
	} {
		wantKind(t, "the same "+what+" again", db.Update(ctx, again), writ.Conflict)
		if err := db.Update(ctx, func(tx *store.Tx) error { _ = again(tx); return nil }); err == nil {
			t.Errorf("committed although a %s was there already", what)
		}
	}
}

func logFilters(t *testing.T, s storeSuite) {
	db, log := s.open(t), newLog(t)
	appendEvents(t, db, log,
		writ.Event{Type: writ.EventServerStarted},
		writ.Event{Type: writ.EventTaskReceived, Tenant: "acme", Task: "t1", Data: writ.EventData{Reason: "r☃"}},
		writ.Event{Type: writ.EventTaskReceived, Tenant: "evil", Task: "t2"},
		writ.Event{Type: writ.EventTaskDecided, Tenant: "acme", Task: "t1"},
		writ.Event{Type: writ.EventTaskReceived, Tenant: "acme", Task: "t3"})
	for _, c := range []struct {
		filter writ.EventFilter
		want   []int64
	}{
		{writ.EventFilter{After: -1}, []int64{0, 1, 2, 3, 4}},
		{writ.EventFilter{After: 2}, []int64{3, 4}},
		{writ.EventFilter{After: -1, Limit: 2}, []int64{0, 1}},
		{writ.EventFilter{After: -1, Tenant: "acme"}, []int64{1, 3, 4}},
		{writ.EventFilter{After: -1, Task: "t1"}, []int64{1, 3}},
		{writ.EventFilter{After: -1, Tenant: "evil", Task: "t1"}, nil},
		{writ.EventFilter{After: 1, Tenant: "acme", Types: []writ.EventType{writ.EventTaskReceived, writ.EventTaskQueued}}, []int64{4}},
		{writ.EventFilter{After: 99}, nil},
	} {
		var got []int64
		for _, e := range view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Event, error) { return tx.Events(ctx, c.filter) }) {
			got = append(got, e.Seq)
			if e.Seq == 1 && e.Data.Reason != "r☃" {
				t.Errorf("event 1 has the reason %q", e.Data.Reason)
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v (-want +got):\n%s", c.filter, d)
		}
	}
}

func logConcurrent(t *testing.T, s storeSuite) {
	const writers, each = 8, 12
	db, log := s.open(t), newLog(t)
	race(writers, func(i int) bool {
		for n := range each {
			appendEvents(t, db, log,
				writ.Event{Type: writ.EventTaskReceived, Task: writ.TaskID(fmt.Sprintf("t%d-%d", i, n))},
				writ.Event{Type: writ.EventTaskDecided, Task: writ.TaskID(fmt.Sprintf("t%d-%d", i, n))})
		}
		return true
	})
	events := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Event, error) {
		return tx.Events(ctx, writ.EventFilter{After: -1})
	})
	for i, e := range events {
		if e.Seq != int64(i) || i%2 == 1 && e.Task != events[i-1].Task {
			t.Fatalf("event %d has seq %d and is of %s: want no gap, and the events of one transaction side by side", i, e.Seq, e.Task)
		}
	}
	if r := verify(t, db, log); !r.OK || r.Events != 2*writers*each {
		t.Errorf("verification: %+v, want %d events and no fault", r, 2*writers*each)
	}
}
