package store

import (
	"context"
	"path/filepath"
	"testing"

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
