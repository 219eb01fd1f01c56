package store

import (
	"context"
	"encoding/json"
	"fmt"

	"writ"
)

// InsertSession stores a new storage session, which holds nothing yet.
func (tx *Tx) InsertSession(ctx context.Context, s writ.Session) error {
	doc, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode session: %w", err)
	}
	if _, err = tx.exec(ctx, "insert session", `
		INSERT INTO sessions (id, tenant, created, expires, objects, bytes, doc) VALUES ($1, $2, $3, $4, 0, 0, $5)`,
		string(s.ID), string(s.Tenant), millis(s.Created), millis(s.Expires), string(doc)); err != nil {
		return err
	}
	return tx.addTotals(ctx, s.Tenant, writ.SessionTotals{Sessions: 1})
}

const sessionColumns = `SELECT doc, id, tenant, created, expires, objects, bytes FROM sessions`

// Session reads one storage session. In a writing transaction it stays as it is until
// that ends. Whoever changes what is in a session reads it first, and its tenant's totals
// after it, so that such changes come one after the other.
func (tx *Tx) Session(ctx context.Context, id writ.SessionID) (writ.Session, error) {
	return one(ctx, tx, "session", sessionColumns+` WHERE id = $1`+tx.locked(), scanSession, string(id))
}

// DeleteSession deletes a session that was read in this transaction, and its objects, and
// takes them off the totals.
func (tx *Tx) DeleteSession(ctx context.Context, s writ.Session) error {
	if _, err := tx.exec(ctx, "delete objects", `DELETE FROM objects WHERE session = $1`, string(s.ID)); err != nil {
		return err
	}
	n, err := tx.exec(ctx, "delete session", `DELETE FROM sessions WHERE id = $1`, string(s.ID))
	if err != nil || n == 0 {
		return err
	}
	return tx.addTotals(ctx, s.Tenant, writ.SessionTotals{Sessions: -1, Objects: -s.Objects, Bytes: -s.Bytes})
}

// Sessions lists sessions, newest first, page by page as Tasks does, also those that are
// over and were not removed yet.
func (tx *Tx) Sessions(ctx context.Context, f writ.SessionFilter) (ss []writ.Session, next string, err error) {
	var c conditions
	c.equal("tenant", string(f.Tenant))
	return page(ctx, tx, "sessions", sessionColumns, &c, f.Page, scanSession,
		func(s writ.Session) cursor { return cursorOf(s.Created, string(s.ID)) })
}

// SessionTotals reads what the sessions of a tenant hold together. In a writing
// transaction it stays so, but for what that itself changes, until it ends.
func (tx *Tx) SessionTotals(ctx context.Context, tenant writ.Tenant) (writ.SessionTotals, error) {
	if tx.writing { // a row to lock, also for the tenant's first session
		if err := tx.addTotals(ctx, tenant, writ.SessionTotals{}); err != nil {
			return writ.SessionTotals{}, err
		}
	}
	ts, err := all(ctx, tx, "totals of sessions", `SELECT sessions, objects, bytes FROM session_totals WHERE tenant = $1`,
		func(row scanner) (t writ.SessionTotals, err error) {
			return t, row.Scan(&t.Sessions, &t.Objects, &t.Bytes)
		}, string(tenant))
	if err != nil || len(ts) == 0 {
		return writ.SessionTotals{}, err
	}
	return ts[0], nil
}

// addTotals adds d to what a tenant's sessions hold, and locks it.
func (tx *Tx) addTotals(ctx context.Context, tenant writ.Tenant, d writ.SessionTotals) error {
	_, err := tx.exec(ctx, "count sessions", `INSERT INTO session_totals (tenant, sessions, objects, bytes) VALUES ($1, 0, 0, 0) ON CONFLICT DO NOTHING`, string(tenant))
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, "count sessions", `
		UPDATE session_totals SET sessions = sessions + $1, objects = objects + $2, bytes = bytes + $3 WHERE tenant = $4`,
		d.Sessions, d.Objects, d.Bytes, string(tenant))
	return err
}

// InsertObject stores a new object of s, which was read in this transaction.
func (tx *Tx) InsertObject(ctx context.Context, s writ.Session, o writ.Object) error {
	return tx.InsertObjects(ctx, s, []writ.Object{o})
}

// InsertObjects stores new objects of s, which was read in this transaction.
func (tx *Tx) InsertObjects(ctx context.Context, s writ.Session, os []writ.Object) error {
	var bytes int64
	for _, o := range os {
		doc, err := json.Marshal(o)
		if err != nil {
			return fmt.Errorf("encode object: %w", err)
		}
		if _, err := tx.exec(ctx, "insert object", `INSERT INTO objects (id, session, sha256, size, created, doc) VALUES ($1, $2, $3, $4, $5, $6)`,
			string(o.ID), string(s.ID), string(o.SHA256), o.Size, millis(o.Created), string(doc)); err != nil {
			return err
		}
		bytes += o.Size
	}
	return tx.addObjects(ctx, s, int64(len(os)), bytes)
}

const objectColumns = `SELECT doc, id, session, sha256, size, created FROM objects`

// Object reads one object of a session.
func (tx *Tx) Object(ctx context.Context, session writ.SessionID, id writ.ObjectID) (writ.Object, error) {
	return one(ctx, tx, "object", objectColumns+` WHERE id = $1 AND session = $2`, scanObject, string(id), string(session))
}

// SessionOfObject reads the session that an object is in.
func (tx *Tx) SessionOfObject(ctx context.Context, id writ.ObjectID) (writ.Session, error) {
	return one(ctx, tx, "session", sessionColumns+` WHERE id = (SELECT session FROM objects WHERE id = $1)`, scanSession, string(id))
}

// Objects lists at most limit objects of a session, in the order in which they came.
func (tx *Tx) Objects(ctx context.Context, session writ.SessionID, limit int) ([]writ.Object, error) {
	return all(ctx, tx, "objects", objectColumns+` WHERE session = $1 ORDER BY created, id LIMIT $2`, scanObject, string(session), limit)
}

// DeleteObject deletes an object that was read in this transaction, as its session s was.
func (tx *Tx) DeleteObject(ctx context.Context, s writ.Session, o writ.Object) error {
	n, err := tx.exec(ctx, "delete object", `DELETE FROM objects WHERE id = $1 AND session = $2`, string(o.ID), string(s.ID))
	if err != nil || n == 0 {
		return err
	}
	return tx.addObjects(ctx, s, -1, -o.Size)
}

// addObjects counts n more objects of so many bytes in s.
func (tx *Tx) addObjects(ctx context.Context, s writ.Session, n, bytes int64) error {
	if _, err := tx.exec(ctx, "count objects", `UPDATE sessions SET objects = objects + $1, bytes = bytes + $2 WHERE id = $3`, n, bytes, string(s.ID)); err != nil {
		return err
	}
	return tx.addTotals(ctx, s.Tenant, writ.SessionTotals{Objects: n, Bytes: bytes})
}

func scanSession(row scanner) (writ.Session, error) {
	var doc string
	var col writ.Session
	var created, expires int64
	if err := row.Scan(&doc, &col.ID, &col.Tenant, &created, &expires, &col.Objects, &col.Bytes); err != nil {
		return writ.Session{}, err
	}
	var s writ.Session
	if err := json.Unmarshal([]byte(doc), &s); err != nil {
		return writ.Session{}, fmt.Errorf("decode session: %w", err)
	}
	s.ID, s.Tenant, s.Objects, s.Bytes = col.ID, col.Tenant, col.Objects, col.Bytes
	s.Created, s.Expires = fromMillis(created), fromMillis(expires)
	return s, nil
}

func scanObject(row scanner) (writ.Object, error) {
	var doc string
	var col writ.Object
	var created int64
	if err := row.Scan(&doc, &col.ID, &col.Session, &col.SHA256, &col.Size, &created); err != nil {
		return writ.Object{}, err
	}
	var o writ.Object
	if err := json.Unmarshal([]byte(doc), &o); err != nil {
		return writ.Object{}, fmt.Errorf("decode object: %w", err)
	}
	o.ID, o.Session, o.SHA256, o.Size, o.Created = col.ID, col.Session, col.SHA256, col.Size, fromMillis(created)
	return o, nil
}
