package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"writ"
)

// InsertOperation stores a new operation. It is a Conflict when the id is taken, or
// when an operation on the same root of the same tenant's workspace has this key; the
// transaction goes on, and OperationByKey finds that one.
func (tx *Tx) InsertOperation(ctx context.Context, op writ.Operation) error {
	doc, err := operationDoc(op)
	if err != nil {
		return err
	}
	n, err := tx.exec(ctx, "insert operation", `
		INSERT INTO operations (id, tenant, workspace, root, key, requester_kind, requester, fingerprint, owner, created, finished, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
		string(op.ID), string(op.Tenant), string(op.Workspace), op.Root, op.Key, string(op.By.Kind), op.By.ID,
		string(op.Fingerprint), op.Owner, millis(op.Created), nullMillis(op.Finished), doc)
	if err == nil && n == 0 {
		return &writ.Error{Kind: writ.Conflict, Op: "insert operation",
			Msg: fmt.Sprintf("there is an operation %s, or workspace %s has one with the key %q", op.ID, op.Workspace, op.Key)}
	}
	return err
}

const operationColumns = `SELECT doc, id, tenant, workspace, root, key, requester_kind, requester, fingerprint, owner, created, finished FROM operations`

// Operation reads one operation. In a writing transaction it stays as it is until
// that ends.
func (tx *Tx) Operation(ctx context.Context, id writ.OperationID) (writ.Operation, error) {
	return one(ctx, tx, "operation", operationColumns+` WHERE id = $1`+tx.locked(), scanOperation, string(id))
}

// OperationByKey reads the operation that has this key on this root of the tenant's
// workspace, and keeps it as Operation does. The empty key is nobody's.
func (tx *Tx) OperationByKey(ctx context.Context, tenant writ.Tenant, workspace writ.WorkspaceID, root, key string) (writ.Operation, error) {
	return one(ctx, tx, "operation",
		operationColumns+` WHERE tenant = $1 AND workspace = $2 AND root = $3 AND key = $4 AND key <> ''`+tx.locked(),
		scanOperation, string(tenant), string(workspace), root, key)
}

// sameKey bounds OperationsWithKey.
const sameKey = 100

// OperationsWithKey lists the operations of tenant, or of all tenants when it is
// empty, that have this key, in whatever workspace: the newest 100, newest first. The
// contract knows a key without its workspace (spec/02 §16 item 18).
func (tx *Tx) OperationsWithKey(ctx context.Context, tenant writ.Tenant, key string) ([]writ.Operation, error) {
	var c conditions
	c.terms = append(c.terms, "key = "+c.arg(key), "key <> ''")
	c.equal("tenant", string(tenant))
	return all(ctx, tx, "operations", operationColumns+c.where()+` ORDER BY created DESC, id DESC LIMIT `+c.arg(sameKey), scanOperation, c.args...)
}

// Operations lists operations, newest first, page by page as Tasks does.
func (tx *Tx) Operations(ctx context.Context, f writ.OperationFilter) (ops []writ.Operation, next string, err error) {
	var c conditions
	c.equal("tenant", string(f.Tenant))
	c.equal("requester_kind", string(f.By.Kind))
	c.equal("requester", f.By.ID)
	c.equal("workspace", string(f.Workspace))
	return page(ctx, tx, "operations", operationColumns, &c, f.Page, scanOperation,
		func(op writ.Operation) cursor { return cursorOf(op.Created, string(op.ID)) })
}

// UnfinishedOperations lists the operations of owner that are not finished, or all of
// them when owner is empty, oldest first.
func (tx *Tx) UnfinishedOperations(ctx context.Context, owner string) ([]writ.Operation, error) {
	c := conditions{terms: []string{"finished IS NULL"}}
	c.equal("owner", owner)
	return all(ctx, tx, "unfinished operations", operationColumns+c.where()+` ORDER BY created, id`, scanOperation, c.args...)
}

// FinishOperation replaces the stored operation by op, whose Finished must be set, if
// the stored one is not finished, and reports whether it did: false also when there is
// none. What identifies an operation (tenant, workspace, root, key, requester,
// fingerprint, owner, creation) is not changed, and once it is finished nothing is.
func (tx *Tx) FinishOperation(ctx context.Context, op writ.Operation) (bool, error) {
	if op.Finished == nil {
		return false, fmt.Errorf("finish operation %s: it does not say when it was finished", op.ID)
	}
	doc, err := operationDoc(op)
	if err != nil {
		return false, err
	}
	n, err := tx.exec(ctx, "finish operation", `UPDATE operations SET finished = $1, doc = $2 WHERE id = $3 AND finished IS NULL`,
		nullMillis(op.Finished), doc, string(op.ID))
	return n > 0, err
}

func operationDoc(op writ.Operation) (string, error) {
	b, err := json.Marshal(op)
	if err != nil {
		return "", fmt.Errorf("encode operation: %w", err)
	}
	return string(b), nil
}

// scanOperation believes the columns, which do not change, before the document.
func scanOperation(row scanner) (writ.Operation, error) {
	var doc string
	var col writ.Operation
	var created int64
	var finished sql.Null[int64]
	if err := row.Scan(&doc, &col.ID, &col.Tenant, &col.Workspace, &col.Root, &col.Key, &col.By.Kind, &col.By.ID,
		&col.Fingerprint, &col.Owner, &created, &finished); err != nil {
		return writ.Operation{}, err
	}
	var op writ.Operation
	if err := json.Unmarshal([]byte(doc), &op); err != nil {
		return writ.Operation{}, fmt.Errorf("decode operation: %w", err)
	}
	op.ID, op.Tenant, op.Workspace, op.Root, op.Key, op.By = col.ID, col.Tenant, col.Workspace, col.Root, col.Key, col.By
	op.Fingerprint, op.Owner, op.Created, op.Finished = col.Fingerprint, col.Owner, fromMillis(created), fromNullMillis(finished)
	return op, nil
}
