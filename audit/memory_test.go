package audit_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"writ"
	"writ/audit"
)

// memory is a store of one log: transactions are serial and can be rolled back.
// Its rows are open to the tests, as a database file is to whoever can write it.
type memory struct {
	mu      sync.Mutex
	records map[int64]writ.Record
	hashes  map[int64][32]byte
	size    int64
	note    string
}

func newMemory() *memory {
	return &memory{records: map[int64]writ.Record{}, hashes: map[int64][32]byte{}}
}

func (m *memory) clone() *memory {
	return &memory{records: maps.Clone(m.records), hashes: maps.Clone(m.hashes), size: m.size, note: m.note}
}

// update runs fn in a transaction, which is rolled back when fn fails.
func (m *memory) update(fn func(audit.Tx) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	tx := &memoryTx{m: m}
	if err := fn(tx); err != nil {
		return err
	}
	for _, do := range tx.pending {
		do()
	}
	return nil
}

// view calls fn with the rows as they are.
func (m *memory) view(_ context.Context, fn func(audit.Source) error) error { return fn(m) }

type memoryTx struct {
	m       *memory
	pending []func()
}

func (m *memory) LogHead(context.Context) (int64, string, error) { return m.size, m.note, nil }

func (m *memory) LogHashes(_ context.Context, indexes []int64) ([][32]byte, error) {
	var out [][32]byte
	for _, i := range indexes {
		h, ok := m.hashes[i]
		if !ok {
			return nil, &writ.Error{Kind: writ.NotFound, Msg: fmt.Sprintf("no hash %d", i)}
		}
		out = append(out, h)
	}
	return out, nil
}

func (m *memory) Records(_ context.Context, after int64, limit int) ([]writ.Record, error) {
	var out []writ.Record
	for _, seq := range slices.Sorted(maps.Keys(m.records)) {
		if seq > after && len(out) < limit {
			out = append(out, m.records[seq])
		}
	}
	return out, nil
}

func (t *memoryTx) LogHead(ctx context.Context) (int64, string, error) { return t.m.LogHead(ctx) }

func (t *memoryTx) LogHashes(ctx context.Context, indexes []int64) ([][32]byte, error) {
	return t.m.LogHashes(ctx, indexes)
}

func (t *memoryTx) Records(ctx context.Context, after int64, limit int) ([]writ.Record, error) {
	return t.m.Records(ctx, after, limit)
}

func (t *memoryTx) AppendLog(_ context.Context, records []writ.Record, at int64, hashes [][32]byte, size int64, note string) error {
	for _, r := range records {
		if _, ok := t.m.records[r.Seq]; ok {
			return fmt.Errorf("record %d is there", r.Seq)
		}
		r.Data = slices.Clone(r.Data)
		t.pending = append(t.pending, func() { t.m.records[r.Seq] = r })
	}
	for i, h := range hashes {
		if _, ok := t.m.hashes[at+int64(i)]; ok {
			return fmt.Errorf("hash %d is there", at+int64(i))
		}
		t.pending = append(t.pending, func() { t.m.hashes[at+int64(i)] = h })
	}
	t.pending = append(t.pending, func() { t.m.size, t.m.note = size, note })
	return nil
}

// newLog is a log with a key of its own.
func newLog(t testing.TB, origin string) *audit.Log {
	t.Helper()
	private, public, err := audit.GenerateKey(origin)
	if err != nil {
		t.Fatal(err)
	}
	l, err := audit.New(private)
	if err != nil {
		t.Fatal(err)
	}
	if l.Verifier() != public {
		t.Fatalf("Verifier() = %q, the key was made with %q", l.Verifier(), public)
	}
	return l
}

// add appends events, each in a transaction of its own.
func add(t testing.TB, l *audit.Log, m *memory, events ...writ.Event) {
	t.Helper()
	for _, e := range events {
		err := m.update(func(tx audit.Tx) error {
			_, err := l.Append(t.Context(), tx, e)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// event is an event that differs from others of another n.
func event(n int) writ.Event {
	return writ.Event{Type: writ.EventTaskReceived, Tenant: "default", Task: writ.TaskID(fmt.Sprintf("task_%03d", n)),
		Actor: writ.Ref{Kind: writ.KindAgent, ID: "coder"}, Data: writ.EventData{Reason: fmt.Sprintf("reason %d", n)}}
}

func events(n int) []writ.Event {
	var out []writ.Event
	for i := range n {
		out = append(out, event(i))
	}
	return out
}

func verify(t testing.TB, l *audit.Log, m *memory, anchors ...string) writ.AuditReport {
	t.Helper()
	r, err := audit.Verify(t.Context(), m, l.Verifier(), anchors...)
	if err != nil {
		t.Fatalf("Verify: %v", err)
	}
	if r.OK != (len(r.Faults) == 0) {
		t.Errorf("report is OK=%v with faults %v", r.OK, r.Faults)
	}
	return r
}

// failing is a store of which one call fails.
type failing struct {
	*memory
	at  string
	err error
}

func (f failing) LogHead(ctx context.Context) (int64, string, error) {
	if f.at == "head" {
		return 0, "", f.err
	}
	return f.memory.LogHead(ctx)
}

func (f failing) LogHashes(ctx context.Context, indexes []int64) ([][32]byte, error) {
	if f.at == "hashes" {
		return nil, f.err
	}
	return f.memory.LogHashes(ctx, indexes)
}

func (f failing) Records(ctx context.Context, after int64, limit int) ([]writ.Record, error) {
	if f.at == "records" {
		return nil, f.err
	}
	return f.memory.Records(ctx, after, limit)
}
