package audit_test

import (
	"testing"

	"writ/audit"
)

// The log's own cost of one event in one transaction: check the head, hash, sign.
// The store's cost comes on top.
func BenchmarkAppend(b *testing.B) {
	l, m := newLog(b, "writ.example"), newMemory()
	add(b, l, m, events(1000)...)
	for b.Loop() {
		err := m.update(func(tx audit.Tx) error {
			_, err := l.Append(b.Context(), tx, event(1))
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
