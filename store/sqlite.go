package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	"github.com/riverqueue/river/riverdriver/riversqlite"

	"writ"
)

// readers is how many snapshots of a SQLite store are read at a time.
const readers = 4

func (db *DB) openSQLite(ctx context.Context, path string) error {
	db.engine = sqlite
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := private(path); err != nil {
		return err
	}
	if db.lock, err = lockFolder(ctx, path); err != nil {
		return err
	}
	// Immediate: a transaction that writes queues when it begins, and never finds
	// out half-way that somebody else wrote what it has read.
	writer := url.Values{
		"_txlock":       {"immediate"},
		"_busy_timeout": {"5000"},
		"_foreign_keys": {"on"},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"}, // what was committed survives a power cut
		"_defensive":    {"1"},
		"_pragma":       {"secure_delete(1)", "journal_size_limit(67108864)"}, // deleted bodies are overwritten
	}
	if db.writer, err = sql.Open("sqlite", dsn(path, writer)); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	db.writer.SetMaxOpenConns(1)
	db.driver = riversqlite.New(db.writer)
	if err := migrate(ctx, db); err != nil {
		return err
	}
	if err := adopt(ctx, db.writer); err != nil {
		return err
	}
	reader := url.Values{"_busy_timeout": {"5000"}, "_query_only": {"on"}, "_defensive": {"1"}}
	if db.reader, err = sql.Open("sqlite", dsn(path, reader)); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	db.reader.SetMaxOpenConns(readers)
	db.reader.SetMaxIdleConns(readers)
	return nil
}

// dsn is the driver's name of the file at path, which must be absolute.
func dsn(path string, options url.Values) string {
	u := url.URL{Path: path}
	return "file:" + u.EscapedPath() + "?" + options.Encode()
}

// private creates the file at path, readable for its owner alone, or makes the one
// there so. SQLite gives its side files the same mode.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		msg := fmt.Sprintf("the database file %s cannot be opened", path)
		if errors.Is(err, fs.ErrNotExist) {
			msg = fmt.Sprintf("the folder %s does not exist", filepath.Dir(path))
		}
		return &writ.Error{Kind: writ.Unavailable, Op: "open store", Msg: msg, Err: err}
	}
	return errors.Join(f.Chmod(0o600), f.Close())
}
