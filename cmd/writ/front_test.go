package main

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// A store that does not answer keeps no server from its end.
func TestRefusalsDoNotWaitForTheStoreForEver(t *testing.T) {
	t.Parallel()
	s := &system{db: testkit.OpenStore(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db")), slog: slog.New(slog.NewTextHandler(io.Discard, nil))}
	held, release := make(chan struct{}), make(chan struct{})
	over := make(chan error, 1)
	go func() {
		over <- s.db.Update(context.Background(), func(*store.Tx) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	s.foreign(t.Context(), writ.Principal{Kind: writ.KindUser, Tenant: "acme", ID: "eve"}, "a session")
	done := make(chan bool, 1)
	go func() { s.work.Wait(); done <- true }()
	testkit.Receive(t, "all is done that the server waits for", done)
	close(release)
	if err := testkit.Receive(t, "the store answers again", over); err != nil {
		t.Error(err)
	}
}
