package gateway

import (
	"context"
	"fmt"
	"strings"

	"writ"
	"writ/store"
)

// Operation is one row of the ledger, by id or, when that is empty, by key; or
// OPERATION_NOT_FOUND. A key is looked for in the workspaces that who may see here. It
// is OPERATION_KEY_CONFLICT when operations of several have it.
func (w *Workspaces) Operation(ctx context.Context, who writ.Principal, id writ.OperationID, key string) (op writ.Operation, err error) {
	none := func(format string, args ...any) error {
		return &writ.Error{Kind: writ.NotFound, Code: codeOperationNotFound, Op: "read operation", Msg: fmt.Sprintf(format, args...)}
	}
	if id != "" {
		err = w.g.db.View(ctx, func(tx *store.Tx) error {
			op, err = tx.Operation(ctx, id)
			return err
		})
		if writ.KindOf(err) == writ.NotFound || err == nil && !seesOperation(who, op) {
			return writ.Operation{}, none("there is no operation %.80q", string(id))
		}
		return op, err
	}
	if key == "" {
		return op, none("want the id or the key of an operation")
	}
	var all []writ.Operation
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		tenant, _ := who.Narrow("", "")
		all, err = tx.OperationsWithKey(ctx, tenant, key)
		return err
	})
	if err != nil {
		return op, err
	}
	var found []writ.Operation
	for _, op := range all {
		if ws, err := w.registry.Get(who, op.Workspace); err == nil && ws.Root == op.Root && seesOperation(who, op) {
			found = append(found, op)
		}
	}
	switch len(found) {
	case 0:
		return op, none("there is no operation with the key %.80q", key)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, op := range found {
		names = append(names, fmt.Sprintf("%s in %s", op.ID, op.Workspace))
	}
	return op, &writ.Error{Kind: writ.Conflict, Code: codeKeyConflict, Op: "read operation", Msg: fmt.Sprintf(
		"the key %.80q names %s: ask by operation_id", key, strings.Join(names, ", "))}
}

// Operations lists what who may see of the ledger, newest first, and the cursor of the
// next page.
func (w *Workspaces) Operations(ctx context.Context, who writ.Principal, f writ.OperationFilter) (list []writ.Operation, next string, err error) {
	f.Tenant, _ = who.Narrow(f.Tenant, "")
	if !who.Administers() {
		f.By = who.Ref()
	}
	err = w.g.db.View(ctx, func(tx *store.Tx) error {
		list, next, err = tx.Operations(ctx, f)
		return err
	})
	return list, next, err
}

// Undo takes back what an applied operation changed, by a patch that is its reverse:
// decided, held and recorded as every other. It is VERSION_CONFLICT, and changes
// nothing, when a file is not as that operation left it. Errors are those of Patch and
// Operation.
func (w *Workspaces) Undo(ctx context.Context, who writ.Principal, id writ.OperationID, req writ.UndoRequest) (writ.Operation, error) {
	old, err := w.Operation(ctx, who, id, "")
	if err != nil {
		return old, err
	}
	op, _, err := w.Patch(ctx, who, writ.PatchRequest{Workspace: old.Workspace, Undo: id, CheckOnly: req.CheckOnly, Key: req.Key})
	return op, err
}

// seesOperation reports whether op is who's own, or its tenant's when it administers.
func seesOperation(who writ.Principal, op writ.Operation) bool { return seesOwn(who, op.Tenant, op.By) }
