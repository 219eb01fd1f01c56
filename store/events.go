package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"writ"
)

// Events lists events in the order of the log, from f.After+1 on: at most f.Limit,
// or writ.MaxPage when that is zero or more.
func (tx *Tx) Events(ctx context.Context, f writ.EventFilter) ([]writ.Event, error) {
	limit := f.Limit
	if limit <= 0 || limit > writ.MaxPage {
		limit = writ.MaxPage
	}
	var c conditions
	c.terms = append(c.terms, "seq > "+c.arg(f.After))
	c.equal("tenant", string(f.Tenant))
	c.equal("task", string(f.Task))
	in(&c, "type", f.Types)
	return all(ctx, tx, "events", `SELECT data FROM events`+c.where()+` ORDER BY seq LIMIT `+strconv.Itoa(limit),
		func(row scanner) (e writ.Event, err error) {
			var data []byte
			if err := row.Scan(&data); err != nil {
				return e, err
			}
			if err := json.Unmarshal(data, &e); err != nil {
				return e, fmt.Errorf("decode event: %w", err)
			}
			return e, nil
		}, c.args...)
}

// Records lists at most limit records of the log with Seq > after, in ascending
// order, as they are stored.
func (tx *Tx) Records(ctx context.Context, after int64, limit int) ([]writ.Record, error) {
	return all(ctx, tx, "records", `SELECT seq, type, tenant, task, data FROM events WHERE seq > $1 ORDER BY seq LIMIT $2`,
		func(row scanner) (r writ.Record, err error) {
			return r, row.Scan(&r.Seq, &r.Type, &r.Tenant, &r.Task, &r.Data)
		}, after, limit)
}

// LogHead is the size of the log and the signed note over it, 0 and "" at first. In
// a writing transaction it locks the log until that ends.
func (tx *Tx) LogHead(ctx context.Context) (size int64, note string, err error) {
	type head struct {
		size int64
		note string
	}
	h, err := one(ctx, tx, "log head", `SELECT size, note FROM log_head WHERE one = 1`+tx.locked(),
		func(row scanner) (h head, err error) { return h, row.Scan(&h.size, &h.note) })
	return h.size, h.note, err
}

// hashesAtOnce bounds the arguments of one statement. A proof needs some dozens.
const hashesAtOnce = 500

// LogHashes reads the stored hashes of the Merkle tree at indexes, in their order.
// It is NotFound when one is missing.
func (tx *Tx) LogHashes(ctx context.Context, indexes []int64) ([][32]byte, error) {
	type indexed struct {
		idx  int64
		hash [32]byte
	}
	found := make(map[int64][32]byte, len(indexes))
	for rest := indexes; len(rest) > 0; {
		n := min(len(rest), hashesAtOnce)
		var c conditions
		marks := make([]string, n)
		for i, idx := range rest[:n] {
			marks[i] = c.arg(idx)
		}
		rest = rest[n:]
		rows, err := all(ctx, tx, "log hashes", `SELECT idx, hash FROM log_hashes WHERE idx IN (`+strings.Join(marks, ", ")+`)`,
			func(row scanner) (x indexed, err error) {
				var b []byte
				if err := row.Scan(&x.idx, &b); err != nil {
					return x, err
				}
				if copy(x.hash[:], b) != len(x.hash) {
					return x, fmt.Errorf("hash %d has %d bytes", x.idx, len(b))
				}
				return x, nil
			}, c.args...)
		if err != nil {
			return nil, err
		}
		for _, x := range rows {
			found[x.idx] = x.hash
		}
	}
	out := make([][32]byte, len(indexes))
	for i, idx := range indexes {
		h, ok := found[idx]
		if !ok {
			return nil, &writ.Error{Kind: writ.NotFound, Op: "read log hashes", Msg: fmt.Sprintf("the log has no hash %d", idx)}
		}
		out[i] = h
	}
	return out, nil
}

// AppendLog adds records and, at the consecutive indexes from at on, hashes, and
// replaces the head. LogHead must have been called in the same transaction: it is
// what keeps two appends apart. A record or a hash that is there already is a
// Conflict, and the transaction cannot commit.
func (tx *Tx) AppendLog(ctx context.Context, records []writ.Record, at int64, hashes [][32]byte, size int64, note string) error {
	for _, r := range records {
		if _, err := tx.exec(ctx, "append to the audit log", `INSERT INTO events (seq, type, tenant, task, data) VALUES ($1, $2, $3, $4, $5)`,
			r.Seq, string(r.Type), string(r.Tenant), string(r.Task), r.Data); err != nil {
			return err
		}
	}
	for i, h := range hashes {
		if _, err := tx.exec(ctx, "append to the audit log", `INSERT INTO log_hashes (idx, hash) VALUES ($1, $2)`, at+int64(i), h[:]); err != nil {
			return err
		}
	}
	_, err := tx.exec(ctx, "sign the audit log", `UPDATE log_head SET size = $1, note = $2 WHERE one = 1`, size, note)
	return err
}
