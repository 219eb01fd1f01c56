package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	sqlitedriver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"writ"
)

// failure says what err of a statement means to the caller: Conflict for a row
// that is there already, Unavailable when the database cannot be reached, cannot
// write or is damaged, else internal. Nothing of SQL is in a message for the client.
// file is the SQLite file as that message may name it, empty on PostgreSQL.
func failure(ctx context.Context, file, doing string, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // drivers answer a cancelled call in words of their own
		return fmt.Errorf("%s: %w (%w)", doing, ctx.Err(), err)
	}
	switch {
	case isDuplicate(err):
		return &writ.Error{Kind: writ.Conflict, Op: doing, Msg: "it exists already", Err: err}
	case isUnreachable(err):
		return &writ.Error{Kind: writ.Unavailable, Op: doing,
			Msg: "the database does not answer or cannot write: try again, and see the server's log", Err: err}
	case isDamaged(err):
		what := "the database"
		if file != "" {
			what += " file " + file
		}
		is := " is damaged"
		if sqliteCode(err)&0xff == sqlite3.SQLITE_NOTADB { // also a wrong name in the configuration
			is += ", or is no database"
		}
		return &writ.Error{Kind: writ.Unavailable, Op: doing, Msg: what + is + ": stop the server, and restore a backup", Err: err}
	}
	return fmt.Errorf("%s: %w", doing, err)
}

func sqlState(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

func sqliteCode(err error) int {
	if e, ok := errors.AsType[*sqlitedriver.Error](err); ok {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

func isDuplicate(err error) bool {
	code := sqliteCode(err)
	return sqlState(err) == "23505" ||
		code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY || code == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}

// lostConflict reports a transaction that PostgreSQL ended for another's sake:
// serialization_failure or deadlock_detected.
func lostConflict(err error) bool {
	code := sqlState(err)
	return code == "40001" || code == "40P01"
}

// isDamaged reports that the database itself is not as it was written.
func isDamaged(err error) bool {
	switch sqliteCode(err) & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return true
	}
	code := sqlState(err)
	return code == "XX001" || code == "XX002"
}

func isUnreachable(err error) bool {
	switch sqliteCode(err) & 0xff { // the primary code
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY:
		return true
	}
	code := sqlState(err)
	for _, class := range []string{"08", "53", "57P", "58"} { // connection, resources, shutdown, I/O
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, driver.ErrBadConn) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
