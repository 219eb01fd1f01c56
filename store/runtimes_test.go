package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/store"
)

var epoch = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func update(t testing.TB, db *store.DB, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	ctx := context.Background()
	if err := db.Update(ctx, func(tx *store.Tx) error { return fn(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
}

func view[T any](t testing.TB, db *store.DB, fn func(context.Context, *store.Tx) (T, error)) (v T) {
	t.Helper()
	ctx := context.Background()
	if err := db.View(ctx, func(tx *store.Tx) (err error) { v, err = fn(ctx, tx); return err }); err != nil {
		t.Fatal(err)
	}
	return v
}

// checkpoint is n files, three of which have the same bytes.
func checkpoint(n int) (files []writ.FileInput) {
	for i := range n {
		files = append(files, writ.FileInput{
			Path: fmt.Sprint("d/№ ", n-i), Digest: writ.DigestOf([]byte(fmt.Sprint(max(i, 2)))), Size: 10, Exec: i%2 == 0, ReadOnly: i%3 == 0,
		})
	}
	return files
}

// save makes files the checkpoint of key, and answers what the store has of it then.
func save(t testing.TB, db *store.DB, key writ.Digest, files []writ.FileInput) store.Runtime {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.AddRuntime(ctx, key, "te:nant", epoch); err != nil {
			return err
		}
		r, err := tx.Runtime(ctx, key)
		if err != nil {
			return err
		}
		return tx.SaveRuntime(ctx, r, files)
	})
	return view(t, db, func(ctx context.Context, tx *store.Tx) (store.Runtime, error) { return tx.Runtime(ctx, key) })
}

func totals(t testing.TB, db *store.DB) writ.SessionTotals {
	t.Helper()
	return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.SessionTotals, error) {
		return tx.SessionTotals(ctx, "te:nant")
	})
}

func runtimeRoundTrip(t *testing.T, url string) {
	db := open(t, url)
	for _, n := range []int{2500, 3, 0} { // more than one statement, then less in its place
		files := checkpoint(n)
		got := save(t, db, "a", files)
		want := store.Runtime{Key: "a", Tenant: "te:nant", Held: time.UnixMilli(0).UTC(), Used: epoch, Saved: true, Files: int64(n), Bytes: int64(10 * n)}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d files (-want +read):\n%s", n, d)
		}
		read := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.FileInput, error) { return tx.RuntimeFiles(ctx, "a") })
		if d := cmp.Diff(files, read); d != "" {
			t.Errorf("%d files (-saved +read):\n%s", n, d)
		}
		if got := totals(t, db); got != (writ.SessionTotals{Bytes: int64(10 * n)}) {
			t.Errorf("%d files: the tenant has %+v", n, got)
		}
	}
	files := checkpoint(3)
	save(t, db, "a", files)
	save(t, db, "b", files[:1])
	used := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Digest, error) {
		return tx.UsedDigests(ctx, []writ.Digest{files[0].Digest, writ.DigestOf([]byte("none"))})
	})
	if !slices.Equal(used, []writ.Digest{files[0].Digest}) {
		t.Errorf("used are %v", used)
	}
	u := view(t, db, func(ctx context.Context, tx *store.Tx) (store.Usage, error) { return tx.Usage(ctx) })
	if u != (store.Usage{Runtimes: 2, RuntimeBytes: 40}) {
		t.Errorf("usage %+v", u)
	}
	for range 2 { // the second time it is gone
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			r, err := tx.Runtime(ctx, "a")
			if writ.KindOf(err) == writ.NotFound {
				r, err = store.Runtime{Key: "a", Tenant: "te:nant", Bytes: 30}, nil
			}
			if err != nil {
				return err
			}
			return tx.DeleteRuntime(ctx, r)
		})
	}
	if got := totals(t, db); got != (writ.SessionTotals{Bytes: 10}) {
		t.Errorf("one deleted: the tenant has %+v", got)
	}
}

func unusedRuntimes(t *testing.T, url string) {
	db := open(t, url)
	now := epoch.Add(time.Hour)
	var want []writ.Digest
	for n := range 9 {
		r := store.Runtime{Key: writ.Digest(fmt.Sprint("r", n)), Used: epoch.Add(time.Duration(n/2) * time.Second)} // pairs at one moment
		switch n {
		case 2: // held
			r.Holder, r.Held = "x", now.Add(time.Second)
		case 3: // held until now by one that died
			r.Holder, r.Held = "x", now
		}
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.AddRuntime(ctx, r.Key, "acme", epoch); err != nil {
				return err
			}
			return tx.HoldRuntime(ctx, r)
		})
		if n < 8 && n != 2 { // the last was used at that moment, not before it
			want = append(want, r.Key)
		}
	}
	var got []writ.Digest
	var last store.Runtime
	for {
		page := view(t, db, func(ctx context.Context, tx *store.Tx) ([]store.Runtime, error) {
			return tx.UnusedRuntimes(ctx, epoch.Add(4*time.Second), now, last, 3)
		})
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			last = r
			got = append(got, r.Key)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("unused are %v, want %v", got, want)
	}
}

// TestKilledHolderOfARuntimeSessionHoldsNothing: on SQLite whoever opens the store is the
// only process.
func TestKilledHolderOfARuntimeSessionHoldsNothing(t *testing.T) {
	url := sqliteURL(t)
	db := open(t, url)
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := tx.AddRuntime(ctx, "a", "acme", epoch); err != nil {
			return err
		}
		return tx.HoldRuntime(ctx, store.Runtime{Key: "a", Holder: "x", Held: writ.Now().Add(time.Hour), Used: epoch})
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = open(t, url)
	if r := view(t, db, func(ctx context.Context, tx *store.Tx) (store.Runtime, error) { return tx.Runtime(ctx, "a") }); r.Holder != "" {
		t.Errorf("after a restart: %+v", r)
	}
}
