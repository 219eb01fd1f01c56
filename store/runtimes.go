package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"writ"
)

// Runtime is a runtime session: the files that a run left for the next, its checkpoint,
// and who has them now.
type Runtime struct {
	Key    writ.Digest // names it
	Tenant writ.Tenant
	Holder string    // a name that each holder makes anew; empty once it let go
	Held   time.Time // until when, unless the holder renews it
	Used   time.Time // last
	Saved  bool      // there is a checkpoint
	Files  int64     // of the checkpoint
	Bytes  int64     // of them, each counted as if no other had the same ones
}

// AddRuntime stores a runtime session that nobody holds and that has no checkpoint, unless
// it is there.
func (tx *Tx) AddRuntime(ctx context.Context, key writ.Digest, tenant writ.Tenant, now time.Time) error {
	_, err := tx.exec(ctx, "insert runtime session", `
		INSERT INTO runtimes (key, tenant, holder, held, used, saved, files, bytes) VALUES ($1, $2, '', 0, $3, 0, 0, 0) ON CONFLICT DO NOTHING`,
		string(key), string(tenant), millis(now))
	return err
}

const runtimeColumns = `SELECT key, tenant, holder, held, used, saved, files, bytes FROM runtimes`

// Runtime reads one runtime session. In a writing transaction it stays as it is until that
// ends. Whoever changes a runtime session reads it first, and its tenant's totals after it.
func (tx *Tx) Runtime(ctx context.Context, key writ.Digest) (Runtime, error) {
	return one(ctx, tx, "runtime session", runtimeColumns+` WHERE key = $1`+tx.locked(), scanRuntime, string(key))
}

// HoldRuntime stores who holds a runtime session that was read in this transaction, until
// when, and when it was used.
func (tx *Tx) HoldRuntime(ctx context.Context, r Runtime) error {
	_, err := tx.exec(ctx, "hold runtime session", `UPDATE runtimes SET holder = $1, held = $2, used = $3 WHERE key = $4`,
		r.Holder, millis(r.Held), millis(r.Used), string(r.Key))
	return err
}

// RuntimeFiles lists the checkpoint of a runtime session.
func (tx *Tx) RuntimeFiles(ctx context.Context, key writ.Digest) ([]writ.FileInput, error) {
	return all(ctx, tx, "files of a runtime session", `SELECT doc FROM runtime_files WHERE runtime = $1 ORDER BY n`, func(row scanner) (f writ.FileInput, err error) {
		var doc string
		if err := row.Scan(&doc); err != nil {
			return f, err
		}
		if err := json.Unmarshal([]byte(doc), &f); err != nil {
			return f, fmt.Errorf("decode file: %w", err)
		}
		return f, nil
	}, string(key))
}

// runtimeRows is how many files one statement inserts. SQLite's driver looks for each
// argument among all: with many rows that takes longer than the rows do.
const runtimeRows = 50

// SaveRuntime makes files the checkpoint of a runtime session that was read in this
// transaction, in the place of what that was, and counts their bytes in the totals of the
// tenant's sessions.
func (tx *Tx) SaveRuntime(ctx context.Context, r Runtime, files []writ.FileInput) error {
	if _, err := tx.exec(ctx, "delete checkpoint", `DELETE FROM runtime_files WHERE runtime = $1`, string(r.Key)); err != nil {
		return err
	}
	var bytes int64
	for from := 0; from < len(files); from += runtimeRows {
		var c conditions
		var rows []string
		key := c.arg(string(r.Key))
		for n := from; n < min(from+runtimeRows, len(files)); n++ {
			doc, err := json.Marshal(files[n])
			if err != nil {
				return fmt.Errorf("encode file: %w", err)
			}
			rows = append(rows, "("+key+", "+c.arg(n)+", "+c.arg(string(files[n].Digest))+", "+c.arg(string(doc))+")")
			bytes += files[n].Size
		}
		if _, err := tx.exec(ctx, "insert checkpoint", `INSERT INTO runtime_files (runtime, n, sha256, doc) VALUES `+strings.Join(rows, ", "), c.args...); err != nil {
			return err
		}
	}
	if _, err := tx.exec(ctx, "save runtime session", `UPDATE runtimes SET saved = 1, files = $1, bytes = $2 WHERE key = $3`, len(files), bytes, string(r.Key)); err != nil {
		return err
	}
	return tx.addTotals(ctx, r.Tenant, writ.SessionTotals{Bytes: bytes - r.Bytes})
}

// UnusedRuntimes lists at most limit runtime sessions that were used last before a time
// and are not held at now, those first that were used first. It lists those that come
// after another; the zero Runtime is before all.
func (tx *Tx) UnusedRuntimes(ctx context.Context, before, now time.Time, after Runtime, limit int) ([]Runtime, error) {
	from := int64(-1 << 62)
	if after.Key != "" {
		from = millis(after.Used)
	}
	return all(ctx, tx, "runtime sessions", runtimeColumns+`
		WHERE used < $1 AND (used, key) > ($2, $3) AND (holder = '' OR held <= $4) ORDER BY used, key LIMIT $5`, scanRuntime,
		millis(before), from, string(after.Key), millis(now), limit)
}

// DeleteRuntime deletes a runtime session that was read in this transaction, and its
// checkpoint.
func (tx *Tx) DeleteRuntime(ctx context.Context, r Runtime) error {
	if _, err := tx.exec(ctx, "delete checkpoint", `DELETE FROM runtime_files WHERE runtime = $1`, string(r.Key)); err != nil {
		return err
	}
	n, err := tx.exec(ctx, "delete runtime session", `DELETE FROM runtimes WHERE key = $1`, string(r.Key))
	if err != nil || n == 0 {
		return err
	}
	return tx.addTotals(ctx, r.Tenant, writ.SessionTotals{Bytes: -r.Bytes})
}

func scanRuntime(row scanner) (Runtime, error) {
	var r Runtime
	var held, used, saved int64
	err := row.Scan(&r.Key, &r.Tenant, &r.Holder, &held, &used, &saved, &r.Files, &r.Bytes)
	r.Held, r.Used, r.Saved = fromMillis(held), fromMillis(used), saved != 0
	return r, err
}
