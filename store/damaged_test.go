package store

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ"
)

// spoil writes nonsense over a page of the file, counted from one.
func spoil(t *testing.T, file string, page int64) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Seek((page-1)*4096, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprint(f, strings.Repeat("nonsense", 4096/8)); err != nil {
		t.Fatal(err)
	}
}

// Who has a damaged database is told so, and in which file it is: by its path who opens it,
// by its name who asks a server, which may be anybody.
func TestDamagedFileIsNamed(t *testing.T) {
	ctx, folder := context.Background(), t.TempDir()
	file := filepath.Join(folder, "writ.db")
	db, err := Open(ctx, "sqlite:"+file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var page int64
	if err := db.writer.QueryRow(`SELECT rootpage FROM sqlite_master WHERE name = 'events'`).Scan(&page); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	damaged := func(doing string, err error, name string) {
		t.Helper()
		want := "the database file " + name + ": stop the server, and restore a backup"
		if writ.KindOf(err) != writ.Unavailable || writ.Message(err) != want {
			t.Errorf("%s: got %v, %q, want %q", doing, writ.KindOf(err), writ.Message(err), want)
		}
	}

	spoil(t, file, page)
	if db, err = Open(ctx, "sqlite:"+file, Options{}); err != nil {
		t.Fatal(err)
	}
	damaged("read", db.View(ctx, func(tx *Tx) error {
		_, err := tx.Records(ctx, -1, 10)
		return err
	}), "writ.db is damaged")
	damaged("write", db.Update(ctx, func(tx *Tx) error {
		return tx.AppendLog(ctx, []writ.Record{{Data: []byte("{}")}}, 0, [][32]byte{{}}, 1, "note")
	}), "writ.db is damaged")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	spoil(t, file, 1)
	_, err = Open(ctx, "sqlite:"+file, Options{})
	damaged("open", err, file+" is damaged, or is no database")

	spoil(t, file+".lock", 1)
	_, err = Open(ctx, "sqlite:"+file, Options{})
	if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), file+".lock is not what writ made: remove it") {
		t.Errorf("got %v, want Unavailable that names the lock", err)
	}
}
