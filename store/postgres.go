package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverdatabasesql"

	"writ"
)

// connections is how many one process opens to PostgreSQL, beside the one that
// listens for jobs.
const connections = 16

func (db *DB) openPostgres(ctx context.Context, url string) error {
	db.engine, db.url = postgres, url
	cfg, err := pgx.ParseConfig(url)
	if err != nil { // its text names what is wrong, the password masked
		return &writ.Error{Kind: writ.Invalid, Op: "open store", Msg: "the database url is malformed", Err: err}
	}
	setUp(cfg)
	db.writer = stdlib.OpenDB(*cfg)
	db.writer.SetMaxOpenConns(connections)
	db.writer.SetMaxIdleConns(connections)
	db.reader = db.writer
	db.driver = riverdatabasesql.New(db.writer)
	return migrate(ctx, db)
}

func setUp(cfg *pgx.ConnConfig) {
	cfg.RuntimeParams["application_name"] = "writ"
	// A gateway that hangs inside a transaction must not keep the log's lock.
	cfg.RuntimeParams["idle_in_transaction_session_timeout"] = "30000"
}

// workDriver is the driver for a client that works jobs, and what to call when it
// has stopped. On PostgreSQL it listens, so that a job starts at once.
func (db *DB) workDriver(ctx context.Context) (riverdriver.Driver[*sql.Tx], func(), error) {
	if db.engine == sqlite {
		return db.driver, func() {}, nil
	}
	cfg, err := pgxpool.ParseConfig(db.url)
	if err != nil {
		return nil, nil, fmt.Errorf("listen for jobs: %w", err)
	}
	setUp(cfg.ConnConfig)
	cfg.MinConns, cfg.MaxConns = 0, 1
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, nil, failure(ctx, "", "listen for jobs", err)
	}
	return riverdatabasesql.NewWithPgxListener(db.writer, pool), pool.Close, nil
}
