package main

import (
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ"
	"writ/blob"
	"writ/session"
	"writ/store"
)

// A server may remove files while they are copied, with the rows that name them, and take
// others: the backup has what a later moment has, and calls nothing lost. What is lost
// indeed is said, once that is sure.
func TestBackupWhileFilesAreRemoved(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	data := filepath.Join(dir, "data")
	folder, err := openFolder(data, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.release()
	db, err := store.Open(ctx, "sqlite:"+filepath.Join(data, "writ.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := openLog(ctx, db, data); err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.OpenFolder(filepath.Join(data, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer blobs.Close()
	if err := session.Bind(ctx, db, blobs); err != nil {
		t.Fatal(err)
	}
	add := func(text string) writ.Session {
		t.Helper()
		digest, size, err := blobs.Put(ctx, strings.NewReader(text), math.MaxInt64)
		if err != nil {
			t.Fatal(err)
		}
		s := writ.Session{ID: writ.NewSessionID(), Tenant: "acme", By: writ.Ref{Kind: writ.KindUser, ID: "u"}, Created: writ.Now(), Expires: writ.Now()}
		o := writ.Object{ID: writ.NewObjectID(), Session: s.ID, Name: "n", Size: size, SHA256: digest, Created: writ.Now()}
		err = db.Update(ctx, func(tx *store.Tx) error {
			if err := tx.InsertSession(ctx, s); err != nil {
				return err
			}
			return tx.InsertObject(ctx, s, o)
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	lose := func(text string) {
		t.Helper()
		if err := os.Remove(filepath.Join(data, "blobs", "blobs", string(writ.DigestOf([]byte(text))))); err != nil {
			t.Fatal(err)
		}
	}
	save := func(to string, meanwhile func()) *backup {
		t.Helper()
		b, err := newBackup(&cli{Data: data}, filepath.Join(dir, to))
		if err != nil {
			t.Fatal(err)
		}
		b.step = func(string) { meanwhile(); meanwhile = func() {} }
		if err := b.make(ctx); err != nil {
			t.Fatal(err)
		}
		return b
	}
	add("stays")
	goes := add("goes")

	b := save("whole", func() {
		err := db.Update(ctx, func(tx *store.Tx) error {
			s, err := tx.Session(ctx, goes.ID)
			if err != nil {
				return err
			}
			return tx.DeleteSession(ctx, s)
		})
		if err != nil {
			t.Fatal(err)
		}
		lose("goes")
		add("came")
	})
	if len(b.lost) > 0 || b.files != 2 || b.bytes != 9 || !b.report.OK {
		t.Errorf("lost %v, saved %d files of %d bytes, %+v; want 2 of 9", b.lost, b.files, b.bytes, b.report)
	}
	for text, want := range map[string]bool{"stays": true, "came": true, "goes": false} {
		if got := fileExists(filepath.Join(dir, "whole", "blobs", "blobs", string(writ.DigestOf([]byte(text))))); got != want {
			t.Errorf("the bytes of what %s: saved %t", text, got)
		}
	}

	lose("came")
	b = save("lacking", func() {})
	if len(b.lost) != 1 || b.lost[0] != writ.DigestOf([]byte("came")) || b.files != 1 {
		t.Errorf("lost %v, saved %d files", b.lost, b.files)
	}
}
