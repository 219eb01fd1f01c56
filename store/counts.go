package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"writ"
)

// Count counts one more request under a key: of the window that is kept there while that
// lasts, else the first of a new one that begins now. A window that begins later than now
// by its whole length is over, too. It answers when the window began, and how many
// requests it has had, at most most+1. Times are whole milliseconds; a window of less than
// its last millisecond lasts to the end of that.
//
// One statement reads and writes, so that no two gateways ever count on one old number. A
// power cut, or a crash of PostgreSQL's server, may take the last counts with it, and
// nothing else: that is what makes them cheap.
func (db *DB) Count(ctx context.Context, key writ.Digest, now time.Time, window time.Duration, most int64) (began time.Time, used int64, err error) {
	length := (window + time.Millisecond - 1).Milliseconds()
	err = db.again(ctx, func() (err error, lost bool) {
		if db.engine == sqlite {
			began, used, err = db.countSQLite(ctx, key, millis(now), length, most)
		} else {
			began, used, err = scanCount(db.writer.QueryRowContext(ctx, countPostgres, string(key), millis(now), length, most))
		}
		if err != nil {
			return failure(ctx, db.file, "count a request", err), lostConflict(err)
		}
		return nil, false
	})
	return began, used, err
}

// countOn is the rest of the statement for a key that is there. Both engines apply it to
// the row as it is when the statement has it to itself.
const countOn = `
	ON CONFLICT (key) DO UPDATE SET
		began = CASE WHEN counts.used < 1 OR $2 - counts.began >= $3 OR counts.began - $2 >= $3 THEN $2 ELSE counts.began END,
		ends  = CASE WHEN counts.used < 1 OR $2 - counts.began >= $3 OR counts.began - $2 >= $3 THEN $2 ELSE counts.began END + $3,
		used  = CASE WHEN counts.used < 1 OR $2 - counts.began >= $3 OR counts.began - $2 >= $3 THEN 1
			WHEN counts.used > $4 THEN $4 + 1 ELSE counts.used + 1 END
	RETURNING began, used`

const (
	countSQLite = `INSERT INTO counts (key, began, used, ends) VALUES ($1, $2, 1, $2 + $3)` + countOn
	// The commit does not wait for the disk.
	countPostgres = `INSERT INTO counts (key, began, used, ends)
	SELECT $1::text, $2::bigint, 1, $2::bigint + $3::bigint WHERE set_config('synchronous_commit', 'off', true) = 'off'` + countOn
)

// countSQLite counts without a sync of the disk. In its log each commit follows those
// before it, so that one without a sync can be lost, but neither break the database nor
// take another with it; the next commit that syncs makes it durable.
func (db *DB) countSQLite(ctx context.Context, key writ.Digest, now, length, most int64) (began time.Time, used int64, err error) {
	conn, err := db.writer.Conn(ctx)
	if err != nil {
		return time.Time{}, 0, err
	}
	defer conn.Close() // gives it back
	always := context.WithoutCancel(ctx)
	if _, err = conn.ExecContext(always, "PRAGMA synchronous = NORMAL"); err == nil {
		began, used, err = scanCount(conn.QueryRowContext(ctx, countSQLite, string(key), now, length, most))
	}
	if _, restored := conn.ExecContext(always, "PRAGMA synchronous = FULL"); restored != nil {
		// Whoever came next would write without a sync: the pool shall open another.
		err = errors.Join(err, restored, conn.Raw(func(any) error { return driver.ErrBadConn }))
	}
	return began, used, err
}

func scanCount(row *sql.Row) (began time.Time, used int64, err error) {
	var ms int64
	if err := row.Scan(&ms, &used); err != nil {
		return time.Time{}, 0, err
	}
	return fromMillis(ms), used, nil
}

// DeleteCounts deletes at most limit counts whose window ended before a time, and returns
// how many.
func (tx *Tx) DeleteCounts(ctx context.Context, before time.Time, limit int) (int64, error) {
	// The second condition looks at the row as it is when it has been waited for.
	return tx.exec(ctx, "delete counts", `
		DELETE FROM counts WHERE key IN (SELECT key FROM counts WHERE ends < $1 ORDER BY ends LIMIT $2) AND ends < $1`,
		millis(before), limit)
}
