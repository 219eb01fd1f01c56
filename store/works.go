package store

import (
	"context"
	"encoding/json"
	"fmt"

	"writ"
)

// InsertWork stores a new work.
func (tx *Tx) InsertWork(ctx context.Context, w writ.Work) error {
	doc, err := json.Marshal(w)
	if err != nil {
		return fmt.Errorf("encode work: %w", err)
	}
	_, err = tx.exec(ctx, "insert work", `
		INSERT INTO works (id, tenant, workspace, root, state, revision, created, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		string(w.ID), string(w.Tenant), string(w.Workspace), w.Root, string(w.State), w.Revision, millis(w.Created), string(doc))
	return err
}

const workColumns = `SELECT doc, id, tenant, workspace, root, state, revision, created FROM works`

// Work reads one work. In a writing transaction it stays as it is until that ends.
// Whoever changes intents of a work reads it first, so that such changes come one after
// the other.
func (tx *Tx) Work(ctx context.Context, id writ.WorkID) (writ.Work, error) {
	return one(ctx, tx, "work", workColumns+` WHERE id = $1`+tx.locked(), scanWork, string(id))
}

// UpdateWork replaces the stored work by w if the stored one has the revision from and
// is not closed, and reports whether it did. What identifies a work (tenant, workspace,
// root, creation) is not changed.
func (tx *Tx) UpdateWork(ctx context.Context, w writ.Work, from int64) (bool, error) {
	doc, err := json.Marshal(w)
	if err != nil {
		return false, fmt.Errorf("encode work: %w", err)
	}
	n, err := tx.exec(ctx, "update work", `UPDATE works SET state = $1, revision = $2, doc = $3 WHERE id = $4 AND revision = $5 AND state <> 'closed'`,
		string(w.State), w.Revision, string(doc), string(w.ID), from)
	return n > 0, err
}

// Works lists works, newest first, page by page as Tasks does.
func (tx *Tx) Works(ctx context.Context, f writ.WorkFilter) (ws []writ.Work, next string, err error) {
	var c conditions
	c.equal("tenant", string(f.Tenant))
	c.equal("workspace", string(f.Workspace))
	in(&c, "state", f.States)
	return page(ctx, tx, "works", workColumns, &c, f.Page, scanWork,
		func(w writ.Work) cursor { return cursorOf(w.Created, string(w.ID)) })
}

// CountOpenWorks counts the works of a tenant's workspace at root that are not closed.
func (tx *Tx) CountOpenWorks(ctx context.Context, tenant writ.Tenant, workspace writ.WorkspaceID, root string) (int, error) {
	return count(ctx, tx, "open works",
		`SELECT count(*) FROM works WHERE tenant = $1 AND workspace = $2 AND root = $3 AND state <> 'closed'`,
		string(tenant), string(workspace), root)
}

// WorkHint says what waits in the open work id of a tenant's workspace at root or, when
// id is empty, in its only open one. found is false when there is no such work, or no
// only one.
func (tx *Tx) WorkHint(ctx context.Context, tenant writ.Tenant, workspace writ.WorkspaceID, root string, id writ.WorkID) (hint writ.WorkHint, found bool, err error) {
	var c conditions
	c.terms = append(c.terms, "tenant = "+c.arg(string(tenant)), "workspace = "+c.arg(string(workspace)), "root = "+c.arg(root), "state <> 'closed'")
	c.equal("id", string(id))
	hints, err := all(ctx, tx, "hints of works", `
		SELECT id, revision, (
			SELECT count(*) FROM intents WHERE work = works.id AND state IN ('queued', 'claimed') AND delivery <> 'next_work'
		) FROM works`+c.where()+` LIMIT 2`,
		func(row scanner) (h writ.WorkHint, err error) { return h, row.Scan(&h.Work, &h.Revision, &h.Pending) }, c.args...)
	if err != nil || len(hints) != 1 {
		return hint, false, err
	}
	return hints[0], true, nil
}

func scanWork(row scanner) (writ.Work, error) {
	var doc string
	var col writ.Work
	var created int64
	if err := row.Scan(&doc, &col.ID, &col.Tenant, &col.Workspace, &col.Root, &col.State, &col.Revision, &created); err != nil {
		return writ.Work{}, err
	}
	var w writ.Work
	if err := json.Unmarshal([]byte(doc), &w); err != nil {
		return writ.Work{}, fmt.Errorf("decode work: %w", err)
	}
	w.ID, w.Tenant, w.Workspace, w.Root, w.State, w.Revision, w.Created = col.ID, col.Tenant, col.Workspace, col.Root, col.State, col.Revision, fromMillis(created)
	return w, nil
}

// count reads the one number that query answers.
func count(ctx context.Context, tx *Tx, what, query string, args ...any) (int, error) {
	if !storable(args) {
		return 0, nil
	}
	return one(ctx, tx, what, query, func(row scanner) (n int, err error) { return n, row.Scan(&n) }, args...)
}
