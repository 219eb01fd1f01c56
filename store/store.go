package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver"

	"writ"
)

// Options adjust a store. The zero value is usable.
type Options struct {
	Log  *slog.Logger  // warnings of the job queue; nil means none
	Poll time.Duration // how often jobs are looked for; 0 means 1 s, at least 1 ms
}

type engine string

const (
	sqlite   engine = "sqlite"
	postgres engine = "postgres"
)

// DB is one open store. It is safe for concurrent use.
type DB struct {
	engine engine
	writer *sql.DB     // on SQLite one connection, so that writers queue here and never meet "busy"
	reader *sql.DB     // the same as writer on PostgreSQL
	lock   *folderLock // nil on PostgreSQL
	file   string      // SQLite only: its name in messages
	url    string      // PostgreSQL only: for connections that listen
	stale  atomic.Bool // SQLite only: deleted bodies may still be in the write-ahead log
	close  sync.Once

	driver riverdriver.Driver[*sql.Tx]
	jobs   *river.Client[*sql.Tx] // inserts only
	poll   time.Duration
	log    *slog.Logger // what River may say
}

// Open opens the store at url and migrates it forward to what this program needs.
//
// "sqlite:/path/to/file.db" is a file with mode 0600 in a folder that exists. One
// process at a time may have it open: a second one gets an Unavailable error that
// says who holds it. "postgres://..." is a PostgreSQL database that any number of
// processes may share; those that start at once migrate one after the other.
//
// Errors: Invalid for a url of neither form, Unavailable when the database cannot
// be reached, is held by another process, or was written by a newer writ. After an
// error nothing stays open. Otherwise the caller must Close.
func Open(ctx context.Context, url string, opt Options) (*DB, error) {
	db := &DB{poll: opt.Poll, log: quiet(opt.Log)}
	if db.poll <= 0 {
		db.poll = time.Second
	}
	var err error
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		err = db.openSQLite(ctx, path)
	} else if strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://") {
		err = db.openPostgres(ctx, url)
	} else {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "open store",
			Msg: `the database must be "sqlite:/path/to/file.db" or "postgres://user@host/name"`}
	}
	if err == nil {
		db.jobs, err = river.NewClient(db.driver, &river.Config{Logger: db.log})
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Close closes the store. Work must have been stopped and no transaction may be
// open. A call that comes all the same is answered with an error. Close may be called
// again, which does nothing.
func (db *DB) Close() error {
	var errs []error
	db.close.Do(func() {
		if db.reader != nil && db.reader != db.writer {
			errs = append(errs, db.reader.Close())
		}
		if db.writer != nil {
			errs = append(errs, db.writer.Close())
		}
		if db.lock != nil {
			errs = append(errs, db.lock.release()) // last: until here the file is ours
		}
	})
	return errors.Join(errs...)
}

// Engine is "sqlite" or "postgres".
func (db *DB) Engine() string { return string(db.engine) }

// maxAttempts bounds how often Update runs its function. Each loser of a conflict
// waits for the winner, so a few attempts suffice under any load that is not a
// fault.
const maxAttempts = 8

// Update runs fn in one writing transaction and commits it when fn returns nil and
// no statement in it failed. Otherwise nothing of it remains, jobs included, and
// the error of fn comes back as it is.
//
// On PostgreSQL a transaction that lost a serialization conflict or a deadlock is
// run again, a few times, then answered Unavailable: fn must have no effect but
// through its Tx, and must not keep the Tx. On SQLite fn has the only writing
// connection: it must not call methods of the DB.
//
// An error of the commit itself may leave open whether it happened: what the
// transaction would have allowed must then not be done.
func (db *DB) Update(ctx context.Context, fn func(*Tx) error) error {
	return db.again(ctx, func() (error, bool) { return db.try(ctx, fn) })
}

// again calls once until it has not lost a conflict with another, a few times.
func (db *DB) again(ctx context.Context, once func() (err error, lost bool)) error {
	for attempt := 1; ; attempt++ {
		err, lost := once()
		if !lost {
			return err
		}
		if attempt == maxAttempts {
			return &writ.Error{Kind: writ.Unavailable, Op: "write to the database",
				Msg: "too many others write to the same records: try again", Err: err}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("write to the database: %w", ctx.Err())
		case <-time.After(time.Duration(attempt) * 5 * time.Millisecond):
		}
	}
}

// try runs fn once. lost says that the transaction lost a conflict with another
// and may be run again.
func (db *DB) try(ctx context.Context, fn func(*Tx) error) (err error, lost bool) {
	sqlTx, err := db.writer.BeginTx(ctx, nil)
	if err != nil {
		return failure(ctx, db.file, "begin a transaction", err), false
	}
	defer sqlTx.Rollback() // also when fn panics; after a commit it does nothing
	tx := &Tx{sql: sqlTx, engine: db.engine, file: db.file, writing: true, jobs: db.jobs}
	if err := fn(tx); err != nil {
		return err, lostConflict(err) || lostConflict(tx.failed)
	}
	if tx.failed != nil {
		return tx.failed, lostConflict(tx.failed)
	}
	if err := sqlTx.Commit(); err != nil {
		return failure(ctx, db.file, "commit", err), lostConflict(err)
	}
	if db.engine == sqlite {
		if tx.deleted {
			db.stale.Store(true)
		}
		db.scrub(ctx)
	}
	return nil, false
}

// View runs fn on one snapshot of the store; methods of Tx that write fail in it.
// The error of fn comes back as it is. fn must not keep the Tx.
func (db *DB) View(ctx context.Context, fn func(*Tx) error) error {
	opt := &sql.TxOptions{ReadOnly: true}
	if db.engine == postgres {
		opt.Isolation = sql.LevelRepeatableRead // SQLite has nothing less
	}
	sqlTx, err := db.reader.BeginTx(ctx, opt)
	if err != nil {
		return failure(ctx, db.file, "begin a read", err)
	}
	defer sqlTx.Rollback() // nothing to commit
	return fn(&Tx{sql: sqlTx, engine: db.engine, file: db.file})
}

// quiet lets only warnings and errors of River through.
func quiet(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(atLeastWarn{log.Handler()})
}

// atLeastWarn drops records below a warning: River tells its statistics and its
// elections at lower levels, which nobody acts on.
type atLeastWarn struct{ slog.Handler }

func (h atLeastWarn) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

func (h atLeastWarn) WithAttrs(as []slog.Attr) slog.Handler {
	return atLeastWarn{h.Handler.WithAttrs(as)}
}

func (h atLeastWarn) WithGroup(name string) slog.Handler {
	return atLeastWarn{h.Handler.WithGroup(name)}
}
