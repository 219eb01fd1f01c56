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
	"strings"

	"writ"
)

// Copy writes the SQLite store at url, as it is at one moment, to the file at path, which
// must not exist, and answers the copy, for View alone; the caller must close it. Another
// process may have the store open, and writes on meanwhile. What was deleted is not in the
// copy, and the copy is on the disk.
//
// Errors: Invalid for PostgreSQL, NotFound when there is no such store, Unavailable when it
// is damaged, or of another version of writ. After an error there may be a part of the file.
func Copy(ctx context.Context, url, path string) (*DB, error) {
	from, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "copy store", Msg: "only a SQLite database can be copied: PostgreSQL has pg_dump"}
	}
	from, err := filepath.Abs(from)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("copy store: %w", err)
	}
	if err := vacuum(ctx, from, path); err != nil {
		return nil, err
	}
	return openCopy(ctx, path)
}

// vacuum writes a copy of one snapshot.
func vacuum(ctx context.Context, from, to string) (err error) {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return &writ.Error{Kind: writ.NotFound, Op: "copy store", Msg: fmt.Sprintf("there is no database at %s: writ serve makes it", from), Err: err}
	}
	db, err := sql.Open("sqlite", dsn(from, url.Values{"mode": {"rw"}, "_busy_timeout": {busyTimeout}, "_defensive": {"1"}}))
	if err != nil {
		return fmt.Errorf("copy store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// Made before SQLite does, which then fills it and leaves its mode.
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("copy store: %w", err)
	}
	_, err = db.ExecContext(ctx, "VACUUM INTO $1", to)
	if err = failure(ctx, from, "copy store", err); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// openCopy opens a file that nobody writes to.
func openCopy(ctx context.Context, path string) (*DB, error) {
	db := &DB{engine: sqlite, file: path, log: quiet(nil)}
	var err error
	// Immutable: nothing is written beside it.
	if db.reader, err = sql.Open("sqlite", dsn(path, url.Values{"mode": {"ro"}, "immutable": {"1"}, "_query_only": {"on"}, "_defensive": {"1"}})); err != nil {
		return nil, fmt.Errorf("open the copy of the store: %w", err)
	}
	if err := db.known(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// known refuses a store whose schema is not the one of this program.
func (db *DB) known(ctx context.Context) error {
	files, err := fs.Glob(migrations, "migrations/sqlite/*.sql")
	if err != nil {
		return err
	}
	var has int
	if err := db.reader.QueryRowContext(ctx, "SELECT MAX(version_id) FROM writ_schema").Scan(&has); err != nil {
		return failure(ctx, db.file, "read the schema's version", err)
	}
	if has != len(files) {
		return &writ.Error{Kind: writ.Unavailable, Op: "copy store",
			Msg: fmt.Sprintf("the database has schema %d, this writ knows %d: use the writ that works on it", has, len(files))}
	}
	return nil
}
