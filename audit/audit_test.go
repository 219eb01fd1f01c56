package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"writ"
	"writ/audit"
)

func TestAppendSetsSeqAndTime(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	at := time.Date(2026, 3, 4, 5, 6, 7, 123456789, time.FixedZone("x", 3600))
	var got []writ.Event
	err := m.update(func(tx audit.Tx) (err error) {
		got, err = l.Append(t.Context(), tx, writ.Event{Seq: 99, Type: writ.EventTaskReceived, Time: at}, writ.Event{Type: writ.EventTaskDecided})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Seq != 0 || got[1].Seq != 1 {
		t.Errorf("Seq = %d, %d, want 0, 1", got[0].Seq, got[1].Seq)
	}
	if want := time.Date(2026, 3, 4, 4, 6, 7, 123e6, time.UTC); got[0].Time != want {
		t.Errorf("Time = %v, want %v", got[0].Time, want)
	}
	if got[1].Time.IsZero() {
		t.Error("a zero Time was not set")
	}
	for i, e := range got {
		var stored writ.Event
		if err := json.Unmarshal(m.records[int64(i)].Data, &stored); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, stored); diff != "" {
			t.Errorf("event %d returned and stored differ:\n%s", i, diff)
		}
	}
	if r := verify(t, l, m); !r.OK || r.Events != 2 || r.Head.Size != 2 {
		t.Errorf("Verify = %+v", r)
	}
}

func TestAppendOfNothingTouchesNothing(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	if err := m.update(func(tx audit.Tx) error { _, err := l.Append(t.Context(), tx); return err }); err != nil || m.note != "" {
		t.Errorf("err %v, note %q", err, m.note)
	}
	if r := verify(t, l, m); !r.OK || r.Events != 0 {
		t.Errorf("an empty log: %+v", r)
	}
}

// The stored hashes and roots are those that tlog makes, so that other
// implementations of RFC 6962 can read the log.
func TestTreeIsThatOfRFC6962(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	var reference []tlog.Hash
	read := tlog.HashReaderFunc(func(at []int64) (out []tlog.Hash, _ error) {
		for _, i := range at {
			out = append(out, reference[i])
		}
		return out, nil
	})
	for n := range int64(70) {
		add(t, l, m, event(int(n)))
		hashes, err := tlog.StoredHashes(n, m.records[n].Data, read)
		if err != nil {
			t.Fatal(err)
		}
		reference = append(reference, hashes...)
		if len(m.hashes) != len(reference) {
			t.Fatalf("size %d: %d hashes are stored, want %d", n+1, len(m.hashes), len(reference))
		}
		for i, h := range reference {
			if m.hashes[int64(i)] != h {
				t.Fatalf("size %d: hash %d differs", n+1, i)
			}
		}
		root, err := tlog.TreeHash(n+1, read)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("writ.example\n%d\n%s\n\n", n+1, root); !strings.HasPrefix(m.note, want) {
			t.Fatalf("head is %q, want it to begin with %q", m.note, want)
		}
	}
}

func TestPA14_ParallelWritersAndRollbacksLeaveOneChain(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	stop := errors.New("rolled back")
	write := func() {
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				err := m.update(func(tx audit.Tx) error {
					if _, err := l.Append(t.Context(), tx, event(i), event(i+1000)); err != nil {
						return err
					}
					if i%5 == 0 {
						return stop
					}
					return nil
				})
				if err != nil && err != stop {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	write()
	if r := verify(t, l, m); !r.OK || r.Events != 80 {
		t.Fatalf("after 50 writers of which 10 rolled back: %+v", r)
	}
	write() // as after a restart: a Log keeps nothing between calls
	if r := verify(t, l, m); !r.OK || r.Events != 160 {
		t.Fatalf("after 50 more: %+v", r)
	}
}

func TestAUD02_OneRecordIsOneLine(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	hostile := "a\nb\rc\x00d\x1b[31m\x7f\u0085\u009b2J\u2028\u2029\u202e\u200b\u2066\ufeff\U000e0041<&>\xff é漢"
	e := event(1)
	e.Data.Reason = hostile
	e.Data.Subject = hostile
	add(t, l, m, e)
	data := m.records[0].Data
	for _, r := range string(data) {
		if r < ' ' || r >= 0x7f && !strings.ContainsRune("é漢\ufffd", r) {
			t.Errorf("the record has %U in it", r)
		}
	}
	var back writ.Event
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if want := strings.ToValidUTF8(hostile, "\ufffd"); back.Data.Reason != want {
		t.Errorf("reason came back as %q, want %q", back.Data.Reason, want)
	}
	if r := verify(t, l, m); !r.OK {
		t.Errorf("%+v", r)
	}
}

func TestAUD05_SeqOrdersWhenTheClockGoesBack(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 5 {
		e := event(i)
		e.Time = at.Add(-time.Duration(i) * time.Hour)
		add(t, l, m, e)
	}
	if r := verify(t, l, m); !r.OK || r.Events != 5 {
		t.Errorf("%+v", r)
	}
}

func TestAppendRefusesADamagedHead(t *testing.T) {
	tests := map[string]func(m *memory){
		"size and note differ":    func(m *memory) { m.size-- },
		"note is gone":            func(m *memory) { m.note = "" },
		"note changed":            func(m *memory) { m.note = strings.Replace(m.note, "\n7\n", "\n6\n", 1); m.size = 6 },
		"a frontier hash changed": func(m *memory) { m.hashes[tlog.StoredHashIndex(2, 0)] = [32]byte{} },
		"a frontier hash is gone": func(m *memory) { delete(m.hashes, tlog.StoredHashIndex(0, 6)) },
		"signed by another key": func(m *memory) {
			o := newMemory()
			add(t, newLog(t, "writ.example"), o, events(7)...)
			*m = memory{records: o.records, hashes: o.hashes, size: o.size, note: o.note}
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			l, m := newLog(t, "writ.example"), newMemory()
			add(t, l, m, events(7)...)
			damage(m)
			before := len(m.records)
			err := m.update(func(tx audit.Tx) error { _, err := l.Append(t.Context(), tx, event(7)); return err })
			if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "writ audit verify") {
				t.Errorf("Append = %v, want Unavailable that says what to run", err)
			}
			if other := name == "signed by another key"; errors.Is(err, audit.ErrOtherKey) != other || !errors.Is(err, audit.ErrDamaged) {
				t.Errorf("Append = %v (%v): another key is told apart wrongly", err, errors.Unwrap(err))
			}
			if len(m.records) != before {
				t.Error("a record was added all the same")
			}
		})
	}
}

func TestProofsHoldOfflineAndNothingElseDoes(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	add(t, l, m, events(13)...)
	for seq := range int64(13) {
		p, err := audit.Prove(t.Context(), m, l.Verifier(), seq)
		if err != nil {
			t.Fatal(err)
		}
		if err := audit.CheckProof(p, l.Verifier()); err != nil {
			t.Fatalf("event %d: %v", seq, err)
		}
		// Over the wire and back.
		b, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var q writ.AuditProof
		if err := json.Unmarshal(b, &q); err != nil {
			t.Fatal(err)
		}
		if err := audit.CheckProof(q, l.Verifier()); err != nil {
			t.Errorf("event %d after JSON: %v", seq, err)
		}
	}
	p, _ := audit.Prove(t.Context(), m, l.Verifier(), 4)
	other, _ := audit.Prove(t.Context(), m, l.Verifier(), 5)
	tests := map[string]func(p *writ.AuditProof){
		"another seq":       func(p *writ.AuditProof) { p.Seq = 5 },
		"seq out of range":  func(p *writ.AuditProof) { p.Seq = 13 },
		"negative seq":      func(p *writ.AuditProof) { p.Seq = -1 },
		"record changed":    func(p *writ.AuditProof) { p.Record = strings.Replace(p.Record, "reason 4", "reason 5", 1) },
		"another record":    func(p *writ.AuditProof) { p.Record = other.Record },
		"a hash changed":    func(p *writ.AuditProof) { p.Hashes[1] = writ.DigestOf(nil) },
		"a hash in capital": func(p *writ.AuditProof) { p.Hashes[1] = writ.Digest(strings.ToUpper(string(p.Hashes[1]))) },
		"a hash too few":    func(p *writ.AuditProof) { p.Hashes = p.Hashes[1:] },
		"a hash too many":   func(p *writ.AuditProof) { p.Hashes = append(p.Hashes, p.Hashes[0]) },
		"size changed":      func(p *writ.AuditProof) { p.Checkpoint.Size = 12 },
		"root changed":      func(p *writ.AuditProof) { p.Checkpoint.Root = writ.DigestOf(nil) },
		"no note":           func(p *writ.AuditProof) { p.Checkpoint.Note = "" },
	}
	for name, change := range tests {
		q := p
		q.Hashes = slices.Clone(p.Hashes)
		change(&q)
		if err := audit.CheckProof(q, l.Verifier()); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%s: CheckProof = %v, want Invalid", name, err)
		}
	}
	if err := audit.CheckProof(p, newLog(t, "writ.example").Verifier()); writ.KindOf(err) != writ.Invalid {
		t.Errorf("with another key of the same origin: %v", err)
	}
	if err := audit.CheckProof(p, "nonsense"); writ.KindOf(err) != writ.Invalid {
		t.Errorf("with a malformed key: %v", err)
	}
	if _, err := audit.Prove(t.Context(), m, l.Verifier(), 13); writ.KindOf(err) != writ.NotFound {
		t.Errorf("Prove beyond the end: %v", err)
	}
	if _, err := audit.Prove(t.Context(), newMemory(), l.Verifier(), 0); writ.KindOf(err) != writ.NotFound {
		t.Errorf("Prove in an empty log: %v", err)
	}
}

func TestProveRefusesADamagedLog(t *testing.T) {
	tests := map[string]func(m *memory){
		"record gone":    func(m *memory) { delete(m.records, 4) },
		"record changed": func(m *memory) { r := m.records[4]; r.Data = bytes.ToUpper(r.Data); m.records[4] = r },
		"hash gone":      func(m *memory) { delete(m.hashes, tlog.StoredHashIndex(0, 5)) },
		"hash changed":   func(m *memory) { m.hashes[tlog.StoredHashIndex(0, 5)] = [32]byte{} },
		"head garbled":   func(m *memory) { m.note = "x" },
	}
	for name, damage := range tests {
		l, m := newLog(t, "writ.example"), newMemory()
		add(t, l, m, events(13)...)
		damage(m)
		if _, err := audit.Prove(t.Context(), m, l.Verifier(), 4); writ.KindOf(err) != writ.Unavailable {
			t.Errorf("%s: Prove = %v, want Unavailable", name, err)
		}
	}
}

func TestHead(t *testing.T) {
	l, m := newLog(t, "writ.example"), newMemory()
	if _, err := audit.Head(t.Context(), m, l.Verifier()); writ.KindOf(err) != writ.NotFound {
		t.Errorf("of an empty log: %v", err)
	}
	add(t, l, m, events(3)...)
	c, err := audit.Head(t.Context(), m, l.Verifier())
	if err != nil || c.Size != 3 || c.Note != m.note {
		t.Errorf("Head = %+v, %v", c, err)
	}
	if _, err := audit.Head(t.Context(), m, newLog(t, "writ.example").Verifier()); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("under another key: %v", err)
	}
	if r := verify(t, l, m, c.Note); !r.OK || r.Head != c {
		t.Errorf("Verify = %+v, want head %+v", r, c)
	}
}

func TestKeysAreCheckedAndNeverQuoted(t *testing.T) {
	for _, origin := range []string{"", "a b", "a+b", "a\nb", "é"} {
		if _, _, err := audit.GenerateKey(origin); writ.KindOf(err) != writ.Invalid {
			t.Errorf("GenerateKey(%q) = %v, want Invalid", origin, err)
		}
	}
	private, public, err := audit.GenerateKey("writ.example")
	if err != nil {
		t.Fatal(err)
	}
	secret := private.Reveal()
	for _, bad := range []string{"", "x", public, secret[:len(secret)-1], secret + "x", strings.Replace(secret, "writ.example", "other", 1)} {
		_, err := audit.New(writ.Secret(bad))
		if writ.KindOf(err) != writ.Invalid {
			t.Errorf("New = %v, want Invalid", err)
		} else if bad != "" && bad != "x" && strings.Contains(fmt.Sprintf("%+v %v", err, errors.Unwrap(err)), bad[len(bad)-20:]) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
}

func TestPropertyAppendedIsVerifiedAndAnyFlippedBitIsNot(t *testing.T) {
	l := newLog(t, "writ.example")
	rapid.Check(t, func(rt *rapid.T) {
		m := newMemory()
		n := rapid.IntRange(1, 40).Draw(rt, "events")
		for i := 0; i < n; {
			batch := rapid.IntRange(1, 6).Draw(rt, "batch")
			var evs []writ.Event
			for range batch {
				e := event(i)
				e.Data.Reason = rapid.String().Draw(rt, "reason")
				evs = append(evs, e)
				i++
			}
			if err := m.update(func(tx audit.Tx) error { _, err := l.Append(t.Context(), tx, evs...); return err }); err != nil {
				rt.Fatal(err)
			}
		}
		if r := verify(t, l, m, m.note); !r.OK || r.Events != int64(len(m.records)) {
			rt.Fatalf("%+v", r)
		}
		seq := int64(-1)
		switch rapid.SampledFrom([]string{"record", "hash", "note"}).Draw(rt, "what") {
		case "record":
			seq = rapid.Int64Range(0, m.size-1).Draw(rt, "seq")
			r := m.records[seq]
			r.Data = flip(rt, r.Data)
			m.records[seq] = r
		case "hash":
			at := rapid.Int64Range(0, int64(len(m.hashes))-1).Draw(rt, "index")
			h := m.hashes[at]
			m.hashes[at] = [32]byte(flip(rt, h[:]))
		case "note":
			m.note = string(flip(rt, []byte(m.note)))
		}
		r := verify(t, l, m)
		if r.OK {
			rt.Fatal("not found")
		}
		if seq >= 0 && !slices.ContainsFunc(r.Faults, func(f writ.AuditFault) bool { return f.Seq == seq }) {
			rt.Fatalf("event %d was changed, found %v", seq, r.Faults)
		}
	})
}

func flip(rt *rapid.T, b []byte) []byte {
	b = slices.Clone(b)
	bit := rapid.IntRange(0, 8*len(b)-1).Draw(rt, "bit")
	b[bit/8] ^= 1 << (bit % 8)
	return b
}
