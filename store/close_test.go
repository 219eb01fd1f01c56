package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"writ"
	"writ/store"
)

// TestAClosedStoreAnswers: a call that a server which stops has given up waiting for may
// still come. It is an error, and no end of the whole process, whatever moment it comes at.
func TestAClosedStoreAnswers(t *testing.T) {
	engines(t, func(t *testing.T, url string) {
		ctx := context.Background()
		db, err := store.Open(ctx, url, store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		calls := map[string]func() error{
			"view":   func() error { return db.View(ctx, func(*store.Tx) error { return nil }) },
			"update": func() error { return db.Update(ctx, func(*store.Tx) error { return nil }) },
			"count":  func() error { _, _, err := db.Count(ctx, "k", writ.Now(), time.Second, 10); return err },
		}
		var late sync.WaitGroup
		for _, call := range calls {
			late.Go(func() {
				for call() == nil { // until it is closed
				}
			})
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		late.Wait()
		for name, call := range calls {
			if err := call(); err == nil {
				t.Errorf("%s in a closed store: no error", name)
			}
		}
		if err := db.Close(); err != nil {
			t.Errorf("closed again: %v", err)
		}
		next := open(t, url)
		if err := db.Close(); err != nil {
			t.Errorf("closed under the next: %v", err)
		}
		if err := next.Update(ctx, func(tx *store.Tx) error { return nil }); err != nil {
			t.Errorf("the next: %v", err)
		}
	})
}
