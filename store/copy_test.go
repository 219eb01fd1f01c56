package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/store"
)

// A copy is what was committed when it was made, while others write; it is private, whole,
// and a store.
func TestCopyIsOneMoment(t *testing.T) {
	ctx, url, to := context.Background(), sqliteURL(t), filepath.Join(t.TempDir(), "copy?.db")
	db := open(t, url)
	before := writ.Task{ID: "task_before", State: writ.TaskQueued, Created: epoch, Updated: epoch}
	insertTask(t, db, before)

	begun, resume, done := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		done <- db.Update(ctx, func(tx *store.Tx) error {
			later := before
			later.ID = "task_later"
			err := tx.InsertTask(ctx, later)
			close(begun)
			<-resume
			return err
		})
	}()
	<-begun
	saved, err := store.Copy(ctx, url, to)
	close(resume)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if _, err := readTask(t, saved, "task_before"); err != nil {
		t.Errorf("what was committed: %v", err)
	}
	if _, err := readTask(t, saved, "task_later"); writ.KindOf(err) != writ.NotFound {
		t.Errorf("what was not yet committed: got %v, want NotFound", err)
	}
	if err := saved.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Dir(to))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the copy: %v, %v", entries, err)
	}
	if is, err := os.Stat(to); err != nil || is.Mode() != 0o600 {
		t.Errorf("the copy has %v, %v", is.Mode(), err)
	}
	restored := open(t, "sqlite:"+to)
	insertTask(t, restored, writ.Task{ID: "task_after", State: writ.TaskQueued, Created: epoch, Updated: epoch})
}

func TestCopyFaults(t *testing.T) {
	ctx := context.Background()
	url, dir := sqliteURL(t), t.TempDir()
	open(t, url)
	to := filepath.Join(dir, "copy")
	refused := func(what, url string, kind writ.Kind, says string) {
		t.Helper()
		saved, err := store.Copy(ctx, url, to)
		if err == nil {
			saved.Close()
		}
		if writ.KindOf(err) != kind || !strings.Contains(writ.Message(err), says) {
			t.Errorf("%s: got %v, want %v with %q", what, err, kind, says)
		}
	}
	refused("PostgreSQL", "postgres://host/db", writ.Invalid, "pg_dump")
	refused("nothing", "sqlite:"+filepath.Join(dir, "none"), writ.NotFound, "there is no database at "+dir)
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy of nothing: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text"), []byte(strings.Repeat("this is no database", 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("no database", "sqlite:"+filepath.Join(dir, "text"), writ.Unavailable, "/text is damaged, or is no database")
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, url).Exec("INSERT INTO writ_schema (version_id, is_applied) VALUES (99, 1)"); err != nil {
		t.Fatal(err)
	}
	refused("a newer one", url, writ.Unavailable, "schema 99")
	if _, err := store.Copy(ctx, url, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("over another file: %v", err)
	}
}

func TestDigestsAreThoseOfAllFiles(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		db := open(t, url)
		save(t, db, "a", checkpoint(40))
		s := writ.Session{ID: writ.NewSessionID(), Tenant: "acme", By: writ.Ref{Kind: writ.KindUser, ID: "u"}, Created: epoch, Expires: epoch}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.InsertSession(ctx, s); err != nil {
				return err
			}
			for _, text := range []string{"5", "x", "x"} {
				o := writ.Object{ID: writ.NewObjectID(), Session: s.ID, Name: "n", SHA256: writ.DigestOf([]byte(text)), Created: epoch}
				if err := tx.InsertObject(ctx, s, o); err != nil {
					return err
				}
				if s, _ = tx.Session(ctx, s.ID); s.ID == "" {
					return errors.New("the session is gone")
				}
			}
			return nil
		})
		want := []writ.Digest{writ.DigestOf([]byte("x"))}
		for _, f := range checkpoint(40) {
			want = append(want, f.Digest)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		var got []writ.Digest
		for {
			after := writ.Digest("")
			if len(got) > 0 {
				after = got[len(got)-1]
			}
			page := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Digest, error) { return tx.Digests(ctx, after, 7) })
			if got = append(got, page...); len(page) < 7 {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %d digests, want %d:\n%v\n%v", len(got), len(want), got, want)
		}
	})
}
