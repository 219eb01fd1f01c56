package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// older gives the empty database at url the schema of an earlier version, with the
// rows of its file in testdata, and answers the names of the indexes that it had.
func older(t *testing.T, url string, version int64) (indexes []string) {
	t.Helper()
	ctx := context.Background()
	engine, dialect := "sqlite", goose.DialectSQLite3
	if strings.HasPrefix(url, "postgres") {
		engine, dialect = "postgres", goose.DialectPostgres
	}
	under := raw(t, url)
	defer under.Close()
	p, err := goose.NewProvider(dialect, under, os.DirFS("migrations/"+engine), goose.WithTableName("writ_schema"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		t.Fatal(err)
	}
	rows, err := os.ReadFile(fmt.Sprintf("testdata/v%d-rows.sql", version))
	if err != nil {
		t.Fatal(err)
	}
	text := string(rows)
	if engine == "postgres" {
		text = strings.ReplaceAll(text, "x'", `'\x`) // its way to write bytes
	}
	if _, err := under.ExecContext(ctx, text); err != nil {
		t.Fatal(err)
	}
	return indexNames(t, under, engine)
}

func indexNames(t *testing.T, db *sql.DB, engine string) (names []string) {
	t.Helper()
	query := `SELECT name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	if engine == "postgres" {
		query = `SELECT indexname FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname`
	}
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

// migrated opens a store that has an earlier schema, twice, and lets read look at it
// each time: migrating again changes nothing.
func migrated(t *testing.T, url string, read func(context.Context, *store.Tx) error) {
	t.Helper()
	ctx := context.Background()
	for range 2 {
		db, err := store.Open(ctx, url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(ctx, func(tx *store.Tx) error { return read(ctx, tx) })
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMigrateFromVersion1 opens a store of the first version, with rows in it, and
// finds the rows and what is new.
func TestMigrateFromVersion1(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		older(t, url, 1)
		migrated(t, url, func(ctx context.Context, tx *store.Tx) error {
			task, err := tx.Task(ctx, "task_v1")
			a, err1 := tx.Approval(ctx, "appr_v1")
			body, err2 := tx.Body(ctx, "task_v1", store.BodySpec)
			records, err3 := tx.Records(ctx, -1, 10)
			ks, err4 := tx.Keys(ctx, "")
			if task.State != writ.TaskHeld || task.Step != "from version 1" {
				t.Errorf("task of version 1: %+v", task)
			}
			if a.Task != "task_v1" || string(body) != "code" || len(records) != 1 || len(ks) != 0 {
				t.Errorf("rows of version 1: %+v, %q, %v, %v", a, body, records, ks)
			}
			return errors.Join(err, err1, err2, err3, err4)
		})
	})
}

// TestMigrateFromVersion2 opens a store whose approvals were all of runs.
func TestMigrateFromVersion2(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		before := older(t, url, 2)
		migrated(t, url, func(ctx context.Context, tx *store.Tx) error {
			as, _, err := tx.Approvals(ctx, writ.ApprovalFilter{})
			var got []string
			for _, a := range as {
				got = append(got, fmt.Sprint(a.ID, " ", a.Action, " ", a.Task, " ", a.Identity, " ", a.State, " ", len(a.Votes), " ", a.Request))
			}
			want := []string{
				"appr_c run task_b tester consumed 1 ",
				"appr_b run task_b tester denied 1 ",
				"appr_a run task_a builder pending 0 ",
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("approvals of version 2 (-want +got):\n%s", d)
			}
			due, err1 := tx.DueApprovals(ctx, writ.Now(), 10)
			if len(due) != 1 || due[0].ID != "appr_a" {
				t.Errorf("due are %v, want appr_a", due)
			}
			key, err2 := tx.Key(ctx, "key_v2")
			olga, err3 := tx.Operator(ctx, "olga")
			if key.Subject != "builder" || !slices.Equal(olga.Roles, []string{"lead"}) {
				t.Errorf("key %+v, operator %+v", key, olga)
			}
			ops, _, err4 := tx.Operations(ctx, writ.OperationFilter{})
			if len(ops) != 0 {
				t.Errorf("operations: %v", ops)
			}
			return errors.Join(err, err1, err2, err3, err4)
		})
		engine, _, _ := strings.Cut(url, ":")
		after := indexNames(t, raw(t, url), engine)
		for _, name := range before {
			if !slices.Contains(after, name) {
				t.Errorf("index %s is gone", name)
			}
		}

		// The row that was moved still answers for its task, and its task must be there.
		db, ctx := open(t, url), context.Background()
		err := db.Update(ctx, func(tx *store.Tx) error {
			a, err := tx.Approval(ctx, "appr_a")
			if err != nil {
				return err
			}
			a.State = writ.ApprovalGranted
			if ok, err := tx.UpdateApproval(ctx, a, writ.ApprovalPending); !ok || err != nil {
				t.Errorf("update of an approval of version 2: %v, %v", ok, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		drop := `DELETE FROM tasks WHERE id = 'task_a'`
		if engine == "sqlite" {
			drop = `PRAGMA foreign_keys = ON; ` + drop // its default is off
		}
		if _, err := raw(t, url).Exec(drop); err == nil {
			t.Error("a task was deleted under its approval")
		}
	})
}

// TestMigrateFromVersion3 opens a store that knew no processes and no works.
func TestMigrateFromVersion3(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		before := older(t, url, 3)
		migrated(t, url, func(ctx context.Context, tx *store.Tx) error {
			op, err := tx.Operation(ctx, "op-v3")
			a, err1 := tx.ActiveApproval(ctx, "r")
			body, err2 := tx.ApprovalBody(ctx, "appr-v3", store.BodyPatch)
			ps, _, err3 := tx.Processes(ctx, writ.ProcessFilter{})
			works, _, err4 := tx.Works(ctx, writ.WorkFilter{})
			if op.Key != "k" || op.Finished != nil || a.ID != "appr-v3" || string(body) != "patc" || len(ps) != 0 || len(works) != 0 {
				t.Errorf("rows of version 3: %+v, %+v, %q, %v, %v", op, a, body, ps, works)
			}
			return errors.Join(err, err1, err2, err3, err4)
		})
		engine, _, _ := strings.Cut(url, ":")
		after := indexNames(t, raw(t, url), engine)
		for _, name := range before {
			if !slices.Contains(after, name) {
				t.Errorf("index %s is gone", name)
			}
		}
	})
}

// TestMigrateFromVersion4 opens a store that knew no storage sessions.
func TestMigrateFromVersion4(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		before := older(t, url, 4)
		migrated(t, url, func(ctx context.Context, tx *store.Tx) error {
			p, err := tx.Process(ctx, "proc-v4")
			w, err1 := tx.Work(ctx, "work-v4")
			i, err2 := tx.Intent(ctx, "fb-v4")
			totals, err3 := tx.SessionTotals(ctx, "acme")
			if p.By.ID != "builder" || p.Ended != nil || w.Revision != 3 || i.Work != "work-v4" || i.Body != "do it" || totals != (writ.SessionTotals{}) {
				t.Errorf("rows of version 4: %+v, %+v, %+v, %+v", p, w, i, totals)
			}
			return errors.Join(err, err1, err2, err3)
		})
		engine, _, _ := strings.Cut(url, ":")
		after := indexNames(t, raw(t, url), engine)
		for _, name := range before {
			if !slices.Contains(after, name) {
				t.Errorf("index %s is gone", name)
			}
		}
	})
}

// TestMigrateFromVersion5 opens a store that counted no requests and knew no runtime
// sessions: the bodies of its users' runs go with their age.
func TestMigrateFromVersion5(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		before := older(t, url, 5)
		migrated(t, url, func(ctx context.Context, tx *store.Tx) error {
			s, err := tx.Session(ctx, "session-of-version--5")
			o, err1 := tx.Object(ctx, s.ID, "object-of-version---5")
			_, missing := tx.Runtime(ctx, "none")
			n, err2 := tx.UsersBodies(ctx, writ.Now())
			if s.Objects != 1 || s.Key != "k" || o.Name != "a.txt" || writ.KindOf(missing) != writ.NotFound || n != 1 {
				t.Errorf("rows of version 5: %+v, %+v, %v, %d bodies", s, o, missing, n)
			}
			return errors.Join(err, err1, err2)
		})
		engine, _, _ := strings.Cut(url, ":")
		after := indexNames(t, raw(t, url), engine)
		for _, name := range before {
			if !slices.Contains(after, name) {
				t.Errorf("index %s is gone", name)
			}
		}
	})
}

func TestOpenRefusesNewerSchema(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		db, err := store.Open(context.Background(), url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := raw(t, url).Exec(`INSERT INTO writ_schema (version_id, is_applied) VALUES (99, TRUE)`); err != nil {
			t.Fatal(err)
		}
		_, err = store.Open(context.Background(), url, store.Options{})
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(err.Error(), "newer") {
			t.Errorf("got %v, want to be told of a newer writ", err)
		}
	})
}

// TestOpenTogether starts as several gateways do after an upgrade.
func TestOpenTogether(t *testing.T) {
	url := testkit.Postgres(t)(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			db, err := store.Open(context.Background(), url, store.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
