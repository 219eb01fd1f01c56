package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"writ"
)

// Usage is what all storage sessions, of all tenants, hold together, and all runtime
// sessions.
type Usage struct {
	Sessions     int64
	Objects      int64
	Bytes        int64 // of objects
	Runtimes     int64
	RuntimeBytes int64 // of checkpoints
}

// Usage reads what is kept.
func (tx *Tx) Usage(ctx context.Context) (Usage, error) {
	u, err := one(ctx, tx, "usage", `
		SELECT CAST(COALESCE(SUM(sessions), 0) AS BIGINT), CAST(COALESCE(SUM(objects), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM session_totals`,
		func(row scanner) (u Usage, err error) { return u, row.Scan(&u.Sessions, &u.Objects, &u.Bytes) })
	if err != nil {
		return Usage{}, err
	}
	r, err := one(ctx, tx, "usage", `SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM runtimes`,
		func(row scanner) (u Usage, err error) { return u, row.Scan(&u.Runtimes, &u.RuntimeBytes) })
	u.Runtimes, u.RuntimeBytes, u.Bytes = r.Runtimes, r.RuntimeBytes, u.Bytes-r.RuntimeBytes
	return u, err
}

// expiredSessions is the rest of a query for the sessions that expired before $1.
const expiredSessions = ` FROM sessions WHERE expires < $1`

// ExpiredSessions counts the sessions that expired before a time, and what they hold.
func (tx *Tx) ExpiredSessions(ctx context.Context, before time.Time) (writ.SessionTotals, error) {
	return one(ctx, tx, "expired sessions", `SELECT COUNT(*), CAST(COALESCE(SUM(objects), 0) AS BIGINT), CAST(COALESCE(SUM(bytes), 0) AS BIGINT)`+expiredSessions,
		func(row scanner) (t writ.SessionTotals, err error) {
			return t, row.Scan(&t.Sessions, &t.Objects, &t.Bytes)
		}, millis(before))
}

// expiredObjects is how many objects one transaction deletes at most, but for those of one
// session: on SQLite everybody waits for it.
const expiredObjects = 2000

// DeleteExpiredSessions deletes at most limit of the sessions that expired before a time,
// those first that expired first, with their objects, and answers what it deleted: no
// sessions when none is left that another transaction is not about to delete.
func (tx *Tx) DeleteExpiredSessions(ctx context.Context, before time.Time, limit int) (writ.SessionTotals, error) {
	query := `SELECT id, tenant, objects, bytes` + expiredSessions + ` ORDER BY expires, id LIMIT $2`
	if tx.engine == postgres {
		query += " FOR UPDATE SKIP LOCKED"
	}
	old, err := all(ctx, tx, "expired sessions", query, func(row scanner) (s writ.Session, err error) {
		return s, row.Scan(&s.ID, &s.Tenant, &s.Objects, &s.Bytes)
	}, millis(before), limit)
	if err != nil || len(old) == 0 {
		return writ.SessionTotals{}, err
	}
	var sum writ.SessionTotals
	var ids []writ.SessionID
	of := map[writ.Tenant]writ.SessionTotals{}
	for _, s := range old {
		if len(ids) > 0 && sum.Objects+s.Objects > expiredObjects {
			break
		}
		ids = append(ids, s.ID)
		sum = writ.SessionTotals{Sessions: sum.Sessions + 1, Objects: sum.Objects + s.Objects, Bytes: sum.Bytes + s.Bytes}
		t := of[s.Tenant]
		of[s.Tenant] = writ.SessionTotals{Sessions: t.Sessions - 1, Objects: t.Objects - s.Objects, Bytes: t.Bytes - s.Bytes}
	}
	var objects, sessions conditions
	in(&objects, "session", ids)
	if _, err := tx.exec(ctx, "delete objects", `DELETE FROM objects`+objects.where(), objects.args...); err != nil {
		return writ.SessionTotals{}, err
	}
	in(&sessions, "id", ids)
	if _, err := tx.exec(ctx, "delete sessions", `DELETE FROM sessions`+sessions.where(), sessions.args...); err != nil {
		return writ.SessionTotals{}, err
	}
	for _, tenant := range slices.Sorted(maps.Keys(of)) { // in one order, or two passes could wait for each other
		if err := tx.addTotals(ctx, tenant, of[tenant]); err != nil {
			return writ.SessionTotals{}, err
		}
	}
	return sum, nil
}

// AddRemoval adds r to what was removed and stands in no event yet.
func (tx *Tx) AddRemoval(ctx context.Context, r writ.FileRemoval) error {
	sum, err := tx.removal(ctx)
	if err != nil {
		return err
	}
	sum.Add(r)
	return tx.putRemoval(ctx, sum)
}

// TakeRemoval answers what was removed and stands in no event yet; from now on it does.
func (tx *Tx) TakeRemoval(ctx context.Context) (writ.FileRemoval, error) {
	r, err := tx.removal(ctx)
	if err != nil || r == (writ.FileRemoval{}) {
		return r, err
	}
	return r, tx.putRemoval(ctx, writ.FileRemoval{})
}

// removal reads it, and keeps it as it is until the transaction ends.
func (tx *Tx) removal(ctx context.Context) (r writ.FileRemoval, err error) {
	if _, err := tx.exec(ctx, "count what was removed", `INSERT INTO unrecorded_removal (one, doc) VALUES (1, '{}') ON CONFLICT DO NOTHING`); err != nil {
		return r, err
	}
	doc, err := one(ctx, tx, "what was removed", `SELECT doc FROM unrecorded_removal WHERE one = $1`+tx.locked(),
		func(row scanner) (doc string, err error) { return doc, row.Scan(&doc) }, 1)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(doc), &r); err != nil {
		return r, fmt.Errorf("decode what was removed: %w", err)
	}
	return r, nil
}

func (tx *Tx) putRemoval(ctx context.Context, r writ.FileRemoval) error {
	doc, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode what was removed: %w", err)
	}
	_, err = tx.exec(ctx, "count what was removed", `UPDATE unrecorded_removal SET doc = $1 WHERE one = 1`, string(doc))
	return err
}

// usersTasks are the tasks of users that ended before a time and whose bodies were not
// removed for their age yet. The first two terms are those of the index.
func usersTasks(before time.Time) *conditions {
	c := &conditions{terms: []string{"bodies = 1", "substr(identity, 1, 5) = 'user:'"}}
	c.terms = append(c.terms, "updated < "+c.arg(millis(before)))
	for _, state := range writ.TaskStates {
		if !state.Terminal() { // not those that are: SQLite would take the index of states
			c.terms = append(c.terms, "state <> "+c.arg(string(state)))
		}
	}
	return c
}

// DeleteUsersBodies deletes the bodies of at most limit tasks of users, those first that
// ended first, that ended before a time. It returns how many tasks it looked at, 0 when
// none is left, and how many bodies they had.
func (tx *Tx) DeleteUsersBodies(ctx context.Context, before time.Time, limit int) (tasks int, bodies int64, err error) {
	c := usersTasks(before)
	query := `SELECT id FROM tasks` + c.where() + ` ORDER BY updated, id LIMIT ` + c.arg(limit) + tx.locked()
	ids, err := all(ctx, tx, "tasks of users", query,
		func(row scanner) (id writ.TaskID, err error) { return id, row.Scan(&id) }, c.args...)
	if err != nil || len(ids) == 0 {
		return 0, 0, err
	}
	var of, done conditions
	in(&of, "task", ids)
	if bodies, err = tx.deleteBodies(ctx, `DELETE FROM bodies`+of.where(), of.args...); err != nil {
		return 0, 0, err
	}
	in(&done, "id", ids)
	_, err = tx.exec(ctx, "delete bodies", `UPDATE tasks SET bodies = 0`+done.where(), done.args...)
	return len(ids), bodies, err
}

// UsersBodies counts the bodies that DeleteUsersBodies would delete, were its limit high
// enough.
func (tx *Tx) UsersBodies(ctx context.Context, before time.Time) (int64, error) {
	c := usersTasks(before)
	return one(ctx, tx, "bodies", `SELECT COUNT(*) FROM bodies WHERE task IN (SELECT id FROM tasks`+c.where()+`)`,
		func(row scanner) (n int64, err error) { return n, row.Scan(&n) }, c.args...)
}
