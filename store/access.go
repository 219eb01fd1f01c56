package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"

	"writ"
)

// InsertKey stores a new API key, its secret as a hash. It is a Conflict when the
// id is taken; the transaction goes on.
func (tx *Tx) InsertKey(ctx context.Context, k writ.Key) error {
	n, err := tx.exec(ctx, "insert key", `
		INSERT INTO api_keys (id, kind, subject, tenant, hash, created, expires, revoked)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		string(k.ID), string(k.Kind), k.Subject, string(k.Tenant), string(k.Hash),
		millis(k.Created), nullMillis(k.Expires), nullMillis(k.Revoked))
	if err == nil && n == 0 {
		return &writ.Error{Kind: writ.Conflict, Op: "insert key", Msg: fmt.Sprintf("there is a key %s", k.ID)}
	}
	return err
}

const keyColumns = `SELECT id, kind, subject, tenant, hash, created, expires, revoked FROM api_keys`

// Key reads one key, also one that expired or was revoked.
func (tx *Tx) Key(ctx context.Context, id writ.KeyID) (writ.Key, error) {
	return one(ctx, tx, "key", keyColumns+` WHERE id = $1`, scanKey, string(id))
}

// Keys lists the keys of tenant, or all of them when it is empty, oldest first.
func (tx *Tx) Keys(ctx context.Context, tenant writ.Tenant) ([]writ.Key, error) {
	var c conditions
	c.equal("tenant", string(tenant))
	return all(ctx, tx, "keys", keyColumns+c.where()+` ORDER BY created, id`, scanKey, c.args...)
}

// RevokeKey revokes a key from at on and reports whether it did: false when there
// is no such key, or it is revoked already.
func (tx *Tx) RevokeKey(ctx context.Context, id writ.KeyID, at time.Time) (bool, error) {
	n, err := tx.exec(ctx, "revoke key", `UPDATE api_keys SET revoked = $1 WHERE id = $2 AND revoked IS NULL`, millis(at), string(id))
	return n > 0, err
}

func scanKey(row scanner) (writ.Key, error) {
	var k writ.Key
	var created int64
	var expires, revoked sql.Null[int64]
	err := row.Scan(&k.ID, &k.Kind, &k.Subject, &k.Tenant, &k.Hash, &created, &expires, &revoked)
	k.Created, k.Expires, k.Revoked = fromMillis(created), fromNullMillis(expires), fromNullMillis(revoked)
	return k, err
}

// InsertOperator stores a new operator. It is a Conflict when the id is taken, in
// whatever tenant; the transaction goes on.
func (tx *Tx) InsertOperator(ctx context.Context, o writ.Operator) error {
	roles, err := json.Marshal(o.Roles)
	if err != nil {
		return fmt.Errorf("encode roles: %w", err)
	}
	n, err := tx.exec(ctx, "insert operator", `
		INSERT INTO operators (id, tenant, roles, created, disabled) VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING`,
		o.ID, string(o.Tenant), string(roles), millis(o.Created), nullMillis(o.Disabled))
	if err == nil && n == 0 {
		return &writ.Error{Kind: writ.Conflict, Op: "insert operator", Msg: fmt.Sprintf("there is an operator %s", o.ID)}
	}
	return err
}

const operatorColumns = `SELECT id, tenant, roles, created, disabled FROM operators`

// Operator reads one operator, also one that was disabled.
func (tx *Tx) Operator(ctx context.Context, id string) (writ.Operator, error) {
	return one(ctx, tx, "operator", operatorColumns+` WHERE id = $1`, scanOperator, id)
}

// Operators lists the operators of tenant, or all of them when it is empty, oldest
// first, also those that were disabled.
func (tx *Tx) Operators(ctx context.Context, tenant writ.Tenant) ([]writ.Operator, error) {
	var c conditions
	c.equal("tenant", string(tenant))
	return all(ctx, tx, "operators", operatorColumns+c.where()+` ORDER BY created, id`, scanOperator, c.args...)
}

// DisableOperator disables an operator from at on and reports whether it did:
// false when there is none, or it is disabled already.
func (tx *Tx) DisableOperator(ctx context.Context, id string, at time.Time) (bool, error) {
	n, err := tx.exec(ctx, "disable operator", `UPDATE operators SET disabled = $1 WHERE id = $2 AND disabled IS NULL`, millis(at), id)
	return n > 0, err
}

func scanOperator(row scanner) (writ.Operator, error) {
	var o writ.Operator
	var roles string
	var created int64
	var disabled sql.Null[int64]
	if err := row.Scan(&o.ID, &o.Tenant, &roles, &created, &disabled); err != nil {
		return writ.Operator{}, err
	}
	if err := json.Unmarshal([]byte(roles), &o.Roles); err != nil {
		return writ.Operator{}, fmt.Errorf("decode roles: %w", err)
	}
	o.Created, o.Disabled = fromMillis(created), fromNullMillis(disabled)
	return o, nil
}
