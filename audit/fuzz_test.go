package audit_test

import (
	"encoding/json"
	"testing"

	"writ"
	"writ/audit"
)

// A proof that holds says nothing but what was appended, whatever its bytes.
func FuzzCheckProof(f *testing.F) {
	l, m := newLog(f, "writ.example"), newMemory()
	add(f, l, m, events(11)...)
	for seq := range int64(11) {
		p, err := audit.Prove(f.Context(), m, l.Verifier(), seq)
		if err != nil {
			f.Fatal(err)
		}
		b, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p writ.AuditProof
		if json.Unmarshal(b, &p) != nil || audit.CheckProof(p, l.Verifier()) != nil {
			return
		}
		if p.Record != string(m.records[p.Seq].Data) {
			t.Errorf("a record that was never appended is proven: %q", p.Record)
		}
	})
}

// Only the log as it was appended verifies, whatever else is in the store.
func FuzzVerify(f *testing.F) {
	l, m := newLog(f, "writ.example"), newMemory()
	add(f, l, m, events(3)...)
	f.Add(m.size, m.note, m.records[0].Data, m.records[1].Data, m.records[2].Data, m.note)
	f.Add(int64(0), "", []byte("{}"), []byte(nil), []byte("null"), m.note)
	f.Add(int64(-1), "writ.example\n-1\n\n— writ.example AAAA\n", []byte(`{"seq":-9}`), []byte(`{"seq":9223372036854775807}`), []byte("["), m.note)
	f.Fuzz(func(t *testing.T, size int64, note string, a, b, c []byte, anchor string) {
		n := m.clone()
		n.size, n.note = size, note
		same := size == m.size && note == m.note
		for i, data := range [][]byte{a, b, c} {
			r := n.records[int64(i)]
			same = same && string(r.Data) == string(data)
			r.Data = data
			n.records[int64(i)] = r
		}
		report, err := audit.Verify(t.Context(), n, l.Verifier(), anchor)
		if err == nil && report.OK && !same {
			t.Errorf("a log that was never appended verifies: %+v", report)
		}
	})
}
