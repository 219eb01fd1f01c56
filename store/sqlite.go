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

// busyTimeout is how long a connection waits for another process, in milliseconds.
const busyTimeout = "5000"

func (db *DB) openSQLite(ctx context.Context, path string) error {
	db.engine = sqlite
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := private(path); err != nil {
		return err
	}
	db.file = path
	if db.lock, err = lockFolder(ctx, path); err != nil {
		return err
	}
	// Immediate: a transaction that writes queues when it begins, and never finds
	// out half-way that somebody else wrote what it has read.
	writer := url.Values{
		"_txlock":       {"immediate"},
		"_busy_timeout": {busyTimeout},
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
	if err := adopt(ctx, db.writer, path); err != nil {
		return err
	}
	db.stale.Store(true) // a process that was killed may have left its log
	db.scrub(ctx)
	reader := url.Values{"_busy_timeout": {busyTimeout}, "_query_only": {"on"}, "_defensive": {"1"}}
	if db.reader, err = sql.Open("sqlite", dsn(path, reader)); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	db.reader.SetMaxOpenConns(readers)
	db.reader.SetMaxIdleConns(readers)
	db.file = filepath.Base(path) // from here on others than who started it hear of it
	return nil
}

// scrub empties the write-ahead log of a SQLite store after bodies were deleted:
// what it held stays in that file, whose end may not be written over for weeks. It
// does not wait for those who read. While it cannot, the log is left as it is, and
// the next write tries again; so does the end of the process that closes the store.
func (db *DB) scrub(ctx context.Context) {
	if !db.stale.Swap(false) {
		return
	}
	if err := db.emptyLog(ctx); err != nil {
		db.stale.Store(true)
	}
}

// emptyLog moves the write-ahead log into the database file and cuts it to nothing.
func (db *DB) emptyLog(ctx context.Context) error {
	conn, err := db.writer.Conn(ctx)
	if err != nil {
		return fmt.Errorf("empty the write-ahead log: %w", err)
	}
	defer conn.Close()               // gives it back
	ctx = context.WithoutCancel(ctx) // or the connection would keep the timeout below
	var busy, frames, moved int
	_, err = conn.ExecContext(ctx, "PRAGMA busy_timeout = 0") // for readers, whom other writers must not wait for
	if err == nil {
		err = conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &frames, &moved)
	}
	_, restored := conn.ExecContext(ctx, "PRAGMA busy_timeout = "+busyTimeout)
	if err = errors.Join(err, restored); err != nil {
		return fmt.Errorf("empty the write-ahead log: %w", err)
	}
	if busy != 0 {
		return errors.New("empty the write-ahead log: it is being read")
	}
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
