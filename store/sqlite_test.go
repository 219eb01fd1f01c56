package store

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
)

func openSQLite(t *testing.T) *DB {
	t.Helper()
	db, err := Open(context.Background(), "sqlite:"+filepath.Join(t.TempDir(), "writ.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// TestSQLiteSettings asks SQLite what is in force, since it ignores what it does
// not understand.
func TestSQLiteSettings(t *testing.T) {
	db := openSQLite(t)
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "secure_delete": "1", "busy_timeout": "5000", "query_only": "0",
	} {
		var got string
		if err := db.writer.QueryRow("PRAGMA " + pragma).Scan(&got); err != nil || got != want {
			t.Errorf("writer: %s is %q (%v), want %q", pragma, got, err, want)
		}
	}
	var got string
	if err := db.reader.QueryRow("PRAGMA query_only").Scan(&got); err != nil || got != "1" {
		t.Errorf("reader: query_only is %q (%v)", got, err)
	}
}

// TestDiskFull stands in for a full disk with SQLite's own bound on the file.
func TestDiskFull(t *testing.T) {
	db, ctx := openSQLite(t), context.Background()
	if _, err := db.writer.Exec("PRAGMA max_page_count = 200"); err != nil {
		t.Fatal(err)
	}
	put := func(size int) error {
		task := writ.Task{ID: writ.TaskID(writ.NewID("task")), State: writ.TaskQueued, Created: writ.Now(), Updated: writ.Now()}
		return db.Update(ctx, func(tx *Tx) error {
			if err := tx.InsertTask(ctx, task); err != nil {
				return err
			}
			return tx.PutBody(ctx, task.ID, BodySpec, make([]byte, size))
		})
	}
	if err := put(4 << 20); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("got %v, want Unavailable", err)
	}
	if err := put(10); err != nil {
		t.Errorf("a small task after that: %v", err)
	}
}

// TestCountsDoNotSyncAndTheRestDoes: a count leaves the connection as it was opened, also
// one whose caller has gone.
func TestCountsDoNotSyncAndTheRestDoes(t *testing.T) {
	db := openSQLite(t)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, ctx := range []context.Context{context.Background(), gone} {
		_, used, err := db.Count(ctx, "k", writ.Now(), time.Second, 10)
		if ctx == gone && err == nil || ctx != gone && (used != 1 || err != nil) {
			t.Errorf("counted %d, %v", used, err)
		}
		var got string
		if err := db.writer.QueryRow("PRAGMA synchronous").Scan(&got); err != nil || got != "2" {
			t.Errorf("afterwards synchronous is %q (%v), want 2", got, err)
		}
	}
}

// TestRetentionLooksAtIndexesAlone: a pass costs what it finds, not what there is.
func TestRetentionLooksAtIndexesAlone(t *testing.T) {
	db := openSQLite(t)
	c := usersTasks(writ.Now())
	used, digests := usedDigests([]writ.Digest{"a", "b"})
	for query, index := range map[string]string{
		`SELECT id, tenant, objects, bytes` + expiredSessions + ` ORDER BY expires, id LIMIT 100`:         "sessions_expiring",
		`SELECT COUNT(*), SUM(objects)` + expiredSessions:                                                 "sessions_expiring",
		sessionColumns + ` WHERE (created, id) < (1, '') ORDER BY created DESC, id DESC`:                  "sessions_newest",
		sessionColumns + ` WHERE tenant = 'a' AND (created, id) < (1, '') ORDER BY created DESC, id DESC`: "sessions_of_tenant",
		objectColumns + ` WHERE session = 'a' ORDER BY created, id LIMIT 10`:                              "objects_of_session",
		used: "objects_of_digest",
		`SELECT id FROM tasks` + c.where() + ` ORDER BY updated, id LIMIT 100`:          "tasks_of_users_with_bodies",
		`SELECT key FROM counts WHERE ends < 1 ORDER BY ends LIMIT 100`:                 "counts_ending",
		runtimeColumns + ` WHERE used < 1 AND (used, key) > (0, '') ORDER BY used, key`: "runtimes_unused",
	} {
		args := c.args
		if query == used {
			args = digests
		}
		rows, err := db.writer.Query("EXPLAIN QUERY PLAN "+query, args...)
		if err != nil {
			t.Fatal(err)
		}
		plan := ""
		for rows.Next() {
			var a, b, n int
			var detail string
			if err := rows.Scan(&a, &b, &n, &detail); err != nil {
				t.Error(err)
			}
			if !strings.HasSuffix(detail, "VALUES CLAUSE") { // the digests that are asked about
				plan += detail + "; "
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || !strings.Contains(plan, index) || strings.Contains(plan, "SCAN") || strings.Contains(plan, "TEMP B-TREE") {
			t.Errorf("%s: %s (%v), want %s", query, plan, err, index)
		}
	}
}
