package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/riverqueue/river"

	"writ"
)

// Tx is one transaction, valid only inside the function it was given to and for
// one goroutine. Its single-row reads answer a *writ.Error of kind NotFound when
// there is no such row.
type Tx struct {
	sql     *sql.Tx
	engine  engine
	file    string // DB.file
	writing bool
	jobs    *river.Client[*sql.Tx] // nil when not writing

	// failed is the first failure of a statement. A transaction with one must not
	// commit: PostgreSQL refuses to, so neither does SQLite.
	failed error

	deleted bool // bodies, whose bytes must go with them
}

func (tx *Tx) fail(ctx context.Context, doing string, err error) error {
	err = failure(ctx, tx.file, doing, err)
	if tx.failed == nil {
		tx.failed = err
	}
	return err
}

// exec runs a statement that writes and returns how many rows it touched.
func (tx *Tx) exec(ctx context.Context, doing, query string, args ...any) (int64, error) {
	if !tx.writing {
		return 0, fmt.Errorf("%s: the transaction only reads", doing)
	}
	if !storable(args) {
		return 0, &writ.Error{Kind: writ.Invalid, Op: doing, Msg: "text with a NUL byte or that is not UTF-8 cannot be stored"}
	}
	res, err := tx.sql.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, tx.fail(ctx, doing, err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return 0, tx.fail(ctx, doing, err)
	}
	return n, nil
}

// scanner is a row under a cursor.
type scanner interface{ Scan(dest ...any) error }

// one reads the row that query answers. what names it in the NotFound error.
func one[T any](ctx context.Context, tx *Tx, what, query string, scan func(scanner) (T, error), args ...any) (T, error) {
	var zero T
	missing := &writ.Error{Kind: writ.NotFound, Op: "read " + what, Msg: "there is no such " + what}
	if !storable(args) {
		return zero, missing
	}
	v, err := scan(tx.sql.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return zero, missing
	}
	if err != nil {
		return zero, tx.fail(ctx, "read "+what, err)
	}
	return v, nil
}

// all reads every row that query answers.
func all[T any](ctx context.Context, tx *Tx, what, query string, scan func(scanner) (T, error), args ...any) ([]T, error) {
	if !storable(args) {
		return nil, nil
	}
	rows, err := tx.sql.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, tx.fail(ctx, "list "+what, err)
	}
	defer rows.Close()
	var out []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, tx.fail(ctx, "list "+what, err)
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, tx.fail(ctx, "list "+what, err)
	}
	return out, nil
}

// locked is the clause that keeps a row that a writing transaction read by id as
// it was read. SQLite has one writer, so nothing else could change it there.
func (tx *Tx) locked() string {
	if tx.writing && tx.engine == postgres {
		return " FOR UPDATE"
	}
	return ""
}

// storable reports whether both engines can hold every text among args.
func storable(args []any) bool {
	for _, a := range args {
		if s, ok := a.(string); ok && (strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s)) {
			return false
		}
	}
	return true
}

// conditions builds a WHERE clause and its arguments.
type conditions struct {
	terms []string
	args  []any
}

// arg adds an argument and returns its placeholder.
func (c *conditions) arg(v any) string {
	c.args = append(c.args, v)
	return "$" + strconv.Itoa(len(c.args))
}

// equal demands that column is v, unless v is empty.
func (c *conditions) equal(column, v string) {
	if v != "" {
		c.terms = append(c.terms, column+" = "+c.arg(v))
	}
}

// in demands that column is one of vs, unless there are none.
func in[S ~string](c *conditions, column string, vs []S) {
	if len(vs) == 0 {
		return
	}
	marks := make([]string, len(vs))
	for i, v := range vs {
		marks[i] = c.arg(string(v))
	}
	c.terms = append(c.terms, column+" IN ("+strings.Join(marks, ", ")+")")
}

func (c *conditions) where() string {
	if len(c.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.terms, " AND ")
}

// nullText is s, or NULL when it is empty.
func nullText(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func millis(t time.Time) int64 { return t.UnixMilli() }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func nullMillis(t *time.Time) sql.Null[int64] {
	if t == nil {
		return sql.Null[int64]{}
	}
	return sql.Null[int64]{V: t.UnixMilli(), Valid: true}
}

func fromNullMillis(n sql.Null[int64]) *time.Time {
	if !n.Valid {
		return nil
	}
	t := fromMillis(n.V)
	return &t
}
