package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
	"github.com/riverqueue/river/rivermigrate"

	"writ"
)

// migrations holds one folder per engine. Files are numbered, only go forward, and
// are never changed once released: a change is a new file in both folders.
//
//go:embed migrations
var migrations embed.FS

// migrate brings the schema to what this program needs: ours, then River's.
func migrate(ctx context.Context, db *DB) (err error) {
	if db.engine == postgres {
		unlock, lockErr := lockMigrations(ctx, db.writer)
		if lockErr != nil {
			return lockErr
		}
		defer func() { err = errors.Join(err, unlock()) }()
	}
	p, err := migrator(db)
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return failure(ctx, db.file, "read the schema's version", err)
	}
	if current > target {
		return &writ.Error{Kind: writ.Unavailable, Op: "open store",
			Msg: fmt.Sprintf("the database has schema %d, this writ knows %d: use the newer writ that wrote it", current, target)}
	}
	if _, err := p.Up(ctx); err != nil {
		return failure(ctx, db.file, "migrate", err)
	}
	r, err := rivermigrate.New(db.driver, &rivermigrate.Config{Logger: db.log})
	if err != nil {
		return fmt.Errorf("migrate the job queue: %w", err)
	}
	if _, err := r.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return failure(ctx, db.file, "migrate the job queue", err)
	}
	return nil
}

// migrator applies our own migrations. It keeps its place in table writ_schema.
func migrator(db *DB) (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+string(db.engine))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	dialect := goose.DialectSQLite3
	if db.engine == postgres {
		dialect = goose.DialectPostgres
	}
	p, err := goose.NewProvider(dialect, db.writer, files,
		goose.WithTableName("writ_schema"), goose.WithDisableGlobalRegistry(true), goose.WithSlog(db.log))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return p, nil
}

// lockMigrations keeps other processes that start at the same time waiting, each
// asking once a second for at most five minutes.
func lockMigrations(ctx context.Context, db *sql.DB) (unlock func() error, err error) {
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 300))
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, failure(ctx, "", "connect to the database", err)
	}
	if err := locker.SessionLock(ctx, conn); err != nil {
		return nil, errors.Join(failure(ctx, "", "wait for another migration", err), conn.Close())
	}
	return func() error {
		ctx := context.WithoutCancel(ctx) // a lock that stays would stop every later start
		return errors.Join(locker.SessionUnlock(ctx, conn), conn.Close())
	}, nil
}
