package audit_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"

	"writ"
	"writ/audit"
)

// rehash makes all stored hashes those of the stored records, as somebody would who
// covers a change up.
func (m *memory) rehash(t testing.TB) {
	t.Helper()
	m.hashes = map[int64][32]byte{}
	read := tlog.HashReaderFunc(func(at []int64) (out []tlog.Hash, _ error) {
		for _, i := range at {
			out = append(out, m.hashes[i])
		}
		return out, nil
	})
	for n := range int64(len(m.records)) {
		hashes, err := tlog.StoredHashes(n, m.records[n].Data, read)
		if err != nil {
			t.Fatal(err)
		}
		for i, h := range hashes {
			m.hashes[tlog.StoredHashIndex(0, n)+int64(i)] = h
		}
	}
}

func (m *memory) edit(seq int64, old, new string) {
	r := m.records[seq]
	r.Data = bytes.Replace(r.Data, []byte(old), []byte(new), 1)
	m.records[seq] = r
}

// AUD-01 and the second half of PA-14: whatever is done to the stored log is found,
// with its position. Logs have 600 events, more than two pages.
func TestAUD01_PA14_EveryManipulationIsNamedWithItsPosition(t *testing.T) {
	const size = 600
	l, whole := newLog(t, "writ.example"), newMemory()
	add(t, l, whole, events(299)...)
	at299 := whole.note
	add(t, l, whole, events(size)[299:]...)
	foreign := newMemory()
	add(t, newLog(t, "writ.example"), foreign, events(5)...)
	rewritten := newMemory() // by the key's owner
	add(t, l, rewritten, events(size + 1)[1:]...)

	swap := func(m *memory, a, b int64) {
		ra, rb := m.records[a], m.records[b]
		ra.Seq, rb.Seq = b, a
		m.records[a], m.records[b] = rb, ra
	}
	cut := func(m *memory, n int64) {
		for seq := range m.records {
			if seq >= n {
				delete(m.records, seq)
			}
		}
	}
	cutHashes := func(m *memory, n int64) {
		for i := range m.hashes {
			if i >= tlog.StoredHashCount(n) {
				delete(m.hashes, i)
			}
		}
	}
	tests := []struct {
		name    string
		do      func(m *memory)
		anchors []string
		seq     int64
		want    string
	}{
		{"changed", func(m *memory) { m.edit(417, "reason", "Reason") }, nil, 417, "event 417 was changed"},
		{"changed, first", func(m *memory) { m.edit(0, "reason", "Reason") }, nil, 0, "event 0 was changed"},
		{"changed, last", func(m *memory) { m.edit(599, "reason", "Reason") }, nil, 599, "event 599 was changed"},
		{"changed twice", func(m *memory) { m.edit(500, "reason", "Reason"); m.edit(20, "reason", "Reason") }, nil, 20, "event 20 was changed"},
		{"changed in spelling only", func(m *memory) { m.edit(8, `,"type"`, `, "type"`) }, nil, 8, "event 8 was changed"},
		{"changed to what is not JSON", func(m *memory) { m.edit(9, "{", "") }, nil, 9, "event 9 was changed"},
		{"number changed", func(m *memory) { m.edit(300, `"seq":300`, `"seq":30`) }, nil, 300, "event 300 was changed"},
		{"changed with its hash", func(m *memory) {
			m.edit(41, "reason", "Reason")
			m.hashes[tlog.StoredHashIndex(0, 41)] = tlog.RecordHash(m.records[41].Data)
		}, nil, 40, "one of the events 40 to 41 was changed"},
		{"changed with all hashes", func(m *memory) { m.edit(417, "reason", "Reason"); m.rehash(t) }, nil, 0, "an event from 0 to 599 was changed"},
		{"changed with all hashes, an anchor before", func(m *memory) { m.edit(417, "reason", "Reason"); m.rehash(t) }, []string{at299}, 299, "an event from 299 to 599 was changed"},
		{"changed with all hashes, an anchor behind", func(m *memory) { m.edit(17, "reason", "Reason"); m.rehash(t) }, []string{at299}, 0, "an event from 0 to 298 was changed"},

		{"dropped", func(m *memory) { delete(m.records, 256) }, nil, 256, "event 256 is missing (dropped)"},
		{"dropped, first", func(m *memory) { delete(m.records, 0) }, nil, 0, "event 0 is missing (dropped)"},
		{"dropped, gap closed", func(m *memory) {
			for seq := int64(100); seq < size-1; seq++ {
				r := m.records[seq+1]
				r.Seq = seq
				m.records[seq] = r
			}
			delete(m.records, size-1)
		}, nil, 100, "event 100 is missing (dropped)"},
		{"dropped, everything", func(m *memory) { clear(m.records) }, nil, 0, "the log ends after 0 events"},

		{"reordered, neighbours", func(m *memory) { swap(m, 7, 8) }, nil, 7, "event 7 is not in its place: it stands as event 8 (reordered)"},
		{"reordered, far apart", func(m *memory) { swap(m, 3, 590) }, nil, 3, "it stands as event 590 (reordered)"},
		{"reordered with all hashes", func(m *memory) { swap(m, 3, 590); m.rehash(t) }, nil, 3, "it stands as event 590 (reordered)"},
		{"moved to the end", func(m *memory) {
			r := m.records[5]
			delete(m.records, 5)
			r.Seq = 1000
			m.records[1000] = r
		}, nil, 5, "it stands as event 1000 (reordered)"},
		{"repeated over another", func(m *memory) { r := m.records[5]; r.Seq = 6; m.records[6] = r }, nil, 6, "event 6 is missing (dropped)"},

		{"truncated", func(m *memory) { cut(m, 590) }, nil, 590, "the log ends after 590 events, but the signed head signs 600 (truncated)"},
		{"truncated with its hashes", func(m *memory) { cut(m, 590); cutHashes(m, 590) }, nil, 590, "(truncated)"},
		{"truncated to an old head, hashes forgotten", func(m *memory) { cut(m, 299); m.size, m.note = 299, at299 }, nil, 299, "hashes are stored of more than the 299"},
		{"truncated to an old head, with an anchor", func(m *memory) {
			cut(m, 299)
			cutHashes(m, 299)
			m.size, m.note = 299, at299
		}, []string{whole.note}, 299, "the log ends after 299 events, but anchor 1 signs 600 (truncated)"},
		{"truncated to nothing, with an anchor", func(m *memory) { *m = *newMemory() }, []string{at299}, 0, "the log ends after 0 events, but anchor 1 signs 299"},

		{"old head put back", func(m *memory) { m.size, m.note = 299, at299 }, nil, 299, "event 299 stands behind the signed head"},
		{"head removed", func(m *memory) { m.size, m.note = 0, "" }, nil, 0, "event 0 stands behind the signed head"},
		{"event added", func(m *memory) {
			m.records[600] = writ.Record{Seq: 600, Data: []byte(`{"seq":600}`)}
		}, nil, 600, "event 600 stands behind the signed head"},
		{"size of the head changed", func(m *memory) { m.size = 599 }, nil, -1, "the store says that the log has 599 events, its signed head says 600"},
		{"text of the head changed", func(m *memory) { m.note = strings.Replace(m.note, "600", "599", 1) }, nil, -1, "the signed head: its signature is bad"},
		{"head of another log", func(m *memory) { m.size, m.note = foreign.size, foreign.note }, nil, -1, "the signed head: it is of another log"},
		{"head garbled", func(m *memory) { m.note = "\x00" }, nil, -1, "the signed head: it is not a signed checkpoint"},

		{"anchor of another log", func(*memory) {}, []string{at299, foreign.note}, -1, "anchor 2: it is of another log"},
		{"anchor with a bad signature", func(*memory) {}, []string{strings.Replace(at299, "299", "298", 1)}, -1, "anchor 1: its signature is bad"},
		{"anchor of another history of the same size", func(*memory) {}, []string{rewritten.note}, 0, "is not what anchor 1 signs"},
		{"log replaced by its key's owner", func(m *memory) { *m = *rewritten.clone() }, []string{at299}, 0, "an event from 0 to 298"},

		{"stored hash changed", func(m *memory) { m.hashes[tlog.StoredHashIndex(0, 77)] = [32]byte{} }, nil, 77, "the stored hash of event 77 was changed; the event is as it was signed"},
		{"stored hash missing", func(m *memory) { delete(m.hashes, tlog.StoredHashIndex(0, 77)) }, nil, 77, "the stored hash of event 77 is missing"},
		{"stored hash of a subtree changed", func(m *memory) { m.hashes[tlog.StoredHashIndex(3, 2)] = [32]byte{} }, nil, 16, "the stored hash over the events 16 to 23 was changed"},
		{"filed under another task", func(m *memory) { r := m.records[50]; r.Task = "task_x"; m.records[50] = r }, nil, 50, `event 50 is filed as "task.received" of tenant "default", task "task_x"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := whole.clone()
			tt.do(m)
			r := verify(t, l, m, tt.anchors...)
			if r.OK {
				t.Fatal("nothing was found")
			}
			if f := r.Faults[0]; f.Seq != tt.seq || !strings.Contains(f.Fault, tt.want) {
				t.Errorf("first fault is %d: %q\nwant            %d: ... %q", f.Seq, f.Fault, tt.seq, tt.want)
			}
		})
	}
	for name, anchors := range map[string][]string{"none": nil, "one": {at299}, "head": {whole.note}, "several": {whole.note, at299, at299}} {
		if r := verify(t, l, whole, anchors...); !r.OK || r.Events != size {
			t.Errorf("untouched, anchors %s: %+v", name, r)
		}
	}
}

// What doc.go says cannot be seen without a checkpoint from outside.
func TestATailCutWithAnOldHeadNeedsAnAnchor(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(5)...)
	old := m.clone()
	add(t, l, m, events(9)[5:]...)
	if r := verify(t, l, old); !r.OK {
		t.Errorf("the earlier log is good in itself, got %+v", r)
	}
	if r := verify(t, l, old, m.note); r.OK || r.Faults[0].Seq != 5 {
		t.Errorf("with an anchor: %+v, want a fault at 5", r)
	}
}

func TestVerifyRefusesMalformedArguments(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, event(1))
	if _, err := audit.Verify(t.Context(), m, "nonsense"); writ.KindOf(err) != writ.Invalid {
		t.Errorf("a malformed key: %v", err)
	}
	for _, a := range []string{"", "x", m.note[:20], strings.Repeat("x\n\n", 10_000)} {
		if _, err := audit.Verify(t.Context(), m, l.Verifier(), m.note, a); writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), "anchor 2") {
			t.Errorf("anchor %.20q: %v, want Invalid that names it", a, err)
		}
	}
}

func TestVerifyReturnsErrorsOfTheStore(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(3)...)
	broken := errors.New("disk on fire")
	for _, at := range []string{"head", "hashes", "records"} {
		if _, err := audit.Verify(t.Context(), failing{m, at, broken}, l.Verifier()); !errors.Is(err, broken) {
			t.Errorf("%s: %v, want the store's error", at, err)
		}
	}
}

func TestVerifyGoesOnWithoutAHead(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(9)...)
	anchor := m.note
	m.edit(4, "reason", "Reason")
	r, err := audit.Verify(t.Context(), failing{m, "head", &writ.Error{Kind: writ.NotFound, Msg: "no row"}}, l.Verifier(), anchor)
	if err != nil {
		t.Fatal(err)
	}
	want := []writ.AuditFault{
		{Seq: -1, Fault: "the signed head is missing"},
		{Seq: 4, Fault: "event 4 was changed: its record does not make its stored hash"},
	}
	if diff := cmp.Diff(want, r.Faults); diff != "" || r.OK {
		t.Errorf("OK=%v, faults:\n%s", r.OK, diff)
	}
}
