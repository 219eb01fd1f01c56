package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(childRole); role != "" {
		child(role, os.Getenv(childURL))
	}
	goleak.VerifyTestMain(m)
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "writ?.db") }

func TestStoreSQLite(t *testing.T) { testkit.Store(t, sqliteURL) }

func TestStorePostgreSQL(t *testing.T) { testkit.Store(t, testkit.Postgres(t)) }

// engines runs a test on both engines, each time with the url of an empty database.
func engines(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, sqliteURL(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, testkit.Postgres(t)(t)) })
}

// raw is the database behind a store's url, without the store.
func raw(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver, name := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, name = "sqlite", "file:"+strings.ReplaceAll(path, "?", "%3f")
	}
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func open(t testing.TB, url string) *store.DB {
	t.Helper()
	return testkit.OpenStore(t, url)
}

func insertTask(t testing.TB, db *store.DB, task writ.Task) {
	t.Helper()
	if err := db.Update(context.Background(), func(tx *store.Tx) error { return tx.InsertTask(context.Background(), task) }); err != nil {
		t.Fatal(err)
	}
}

func readTask(t testing.TB, db *store.DB, id writ.TaskID) (task writ.Task, err error) {
	err = db.View(context.Background(), func(tx *store.Tx) (err error) { task, err = tx.Task(context.Background(), id); return err })
	return task, err
}

// TestAUD01_LogIsAppendOnly tries, past the store, to change what was logged.
func TestAUD01_LogIsAppendOnly(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		db := open(t, url)
		err := db.Update(context.Background(), func(tx *store.Tx) error {
			return tx.AppendLog(context.Background(), []writ.Record{{Seq: 0, Data: []byte("{}")}}, 0, make([][32]byte, 1), 1, "n")
		})
		if err != nil {
			t.Fatal(err)
		}
		under := raw(t, url)
		for _, q := range []string{
			`UPDATE events SET data = data`, `UPDATE events SET seq = 7`, `DELETE FROM events`, `DELETE FROM events WHERE seq = 0`,
			`UPDATE log_hashes SET hash = hash`, `DELETE FROM log_hashes`,
			`DELETE FROM log_head`, `UPDATE log_head SET size = 0`,
		} {
			if _, err := under.Exec(q); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: got %v, want a refusal", q, err)
			}
		}
		if db.Engine() == "postgres" {
			if _, err := under.Exec(`TRUNCATE events`); err == nil {
				t.Error("TRUNCATE was accepted")
			}
		}
	})
}

func TestOpenFaults(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("this is no database, whatever its name says"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		url  string
		kind writ.Kind
		says string
	}{
		{"", writ.Invalid, "sqlite:/path"},
		{"mysql://root:hunter2@host/db", writ.Invalid, "sqlite:/path"},
		{"sqlite:" + filepath.Join(dir, "none", "writ.db"), writ.Unavailable, filepath.Join(dir, "none")},
		{"sqlite:" + dir, writ.Unavailable, dir},
		{"sqlite:" + file, writ.Unavailable, file + " is damaged, or is no database"},
		{"postgres://user:hunter2@127.0.0.1:1/db?connect_timeout=5", writ.Unavailable, "does not answer"},
		{"postgres://user:hunter2@[bad/db", writ.Invalid, "malformed"},
	} {
		db, err := store.Open(context.Background(), c.url, store.Options{})
		if err == nil {
			db.Close()
			t.Errorf("%s: opened", c.url)
			continue
		}
		if writ.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got kind %v, %v; want kind %v, with %q, without the password", c.url, writ.KindOf(err), err, c.kind, c.says)
		}
	}
}

func TestSQLiteFilesArePrivate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "writ.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	insertTask(t, open(t, "sqlite:"+path), writ.Task{ID: "t1", Created: writ.Now(), Updated: writ.Now(), State: writ.TaskQueued})
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), info.Mode())
		}
	}
	if len(entries) < 4 { // the database, its log, the lock, its holder
		t.Errorf("only %v", entries)
	}
}

// TestUpdateRetriesLostConflicts makes transactions that PostgreSQL must choose
// between: a deadlock, and a serialization failure.
func TestUpdateRetriesLostConflicts(t *testing.T) {
	url := testkit.Postgres(t)(t)
	setUp := open(t, url)
	for i := range 2 {
		insertTask(t, setUp, writ.Task{ID: writ.TaskID(fmt.Sprint("t", i)), State: writ.TaskQueued, Created: writ.Now(), Updated: writ.Now()})
	}
	for name, c := range map[string]struct {
		url           string
		first, second [2]writ.TaskID // each transaction's two tasks, in its order
	}{
		"deadlock":      {url, [2]writ.TaskID{"t0", "t1"}, [2]writ.TaskID{"t1", "t0"}},
		"serialization": {url + "&default_transaction_isolation=serializable", [2]writ.TaskID{"t0", "t1"}, [2]writ.TaskID{"t0", "t1"}},
	} {
		t.Run(name, func(t *testing.T) {
			db, ctx := open(t, c.url), context.Background()
			var wg, began sync.WaitGroup
			var mu sync.Mutex
			runs := 0 // guarded by mu
			began.Add(2)
			for _, order := range [][2]writ.TaskID{c.first, c.second} {
				var once sync.Once
				wg.Go(func() {
					err := db.Update(ctx, func(tx *store.Tx) error {
						mu.Lock()
						runs++
						mu.Unlock()
						if name == "serialization" { // a snapshot each before either writes
							if _, err := tx.Running(ctx, ""); err != nil {
								return err
							}
							once.Do(func() { began.Done(); began.Wait() })
						}
						for _, id := range order {
							task, err := tx.Task(ctx, id)
							if err != nil {
								return err
							}
							if name == "deadlock" { // one row each before either wants its second
								once.Do(func() { began.Done(); began.Wait() })
							}
							task.Reason += "x"
							if _, err := tx.UpdateTask(ctx, task, writ.TaskQueued); err != nil {
								return err
							}
						}
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if runs < 3 {
				t.Errorf("the transactions ran %d times together: there was no conflict to retry", runs)
			}
		})
	}
	for i := range 2 {
		task, err := readTask(t, setUp, writ.TaskID(fmt.Sprint("t", i)))
		if err != nil || task.Reason != "xxxx" {
			t.Errorf("task %d was changed %q (%v), want four times: no update lost, none applied twice", i, task.Reason, err)
		}
	}
}

// TestConnectionLost cuts every connection under a transaction.
func TestConnectionLost(t *testing.T) {
	url, ctx := testkit.Postgres(t)(t), context.Background()
	db := open(t, url)
	under := raw(t, url)
	err := db.Update(ctx, func(tx *store.Tx) error {
		if err := tx.InsertTask(ctx, writ.Task{ID: "lost", State: writ.TaskQueued, Created: writ.Now(), Updated: writ.Now()}); err != nil {
			return err
		}
		if _, err := under.Exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'writ'`); err != nil {
			return err
		}
		_, err := tx.Running(ctx, "")
		return err
	})
	if writ.KindOf(err) != writ.Unavailable || strings.Contains(writ.Message(err), "SQL") {
		t.Errorf("got %v, want Unavailable in plain words", err)
	}
	testkit.Eventually(t, "the store connects again", func() bool {
		_, err := readTask(t, db, "lost")
		return writ.KindOf(err) == writ.NotFound // and what was under way is not there
	})
}

func BenchmarkCreateTask(b *testing.B) {
	b.Run("sqlite", func(b *testing.B) { testkit.BenchmarkCreateTask(b, sqliteURL) })
	b.Run("postgres", func(b *testing.B) { testkit.BenchmarkCreateTask(b, testkit.Postgres(b)) }) // without fsync
}
