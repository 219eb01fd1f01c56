package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"writ"
)

// InsertApproval stores a new approval of a task that is stored. It is a Conflict
// when its id is taken; the transaction goes on.
func (tx *Tx) InsertApproval(ctx context.Context, a writ.Approval) error {
	doc, err := approvalDoc(a)
	if err != nil {
		return err
	}
	n, err := tx.exec(ctx, "insert approval", `
		INSERT INTO approvals (id, task, tenant, identity, state, created, expires, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING`,
		string(a.ID), string(a.Task), string(a.Tenant), string(a.Identity), string(a.State),
		millis(a.Created), millis(a.Expires), doc)
	if err == nil && n == 0 {
		return &writ.Error{Kind: writ.Conflict, Op: "insert approval", Msg: fmt.Sprintf("there is an approval %s", a.ID)}
	}
	return err
}

const approvalColumns = `SELECT doc, state FROM approvals`

// Approval reads one approval. In a writing transaction it stays as it is until
// that ends, so that no vote is lost to another at the same moment.
func (tx *Tx) Approval(ctx context.Context, id writ.ApprovalID) (writ.Approval, error) {
	return one(ctx, tx, "approval", approvalColumns+` WHERE id = $1`+tx.locked(), scanApproval, string(id))
}

// Approvals lists approvals, newest first, page by page as Tasks does.
func (tx *Tx) Approvals(ctx context.Context, f writ.ApprovalFilter) (as []writ.Approval, next string, err error) {
	return page(ctx, tx, "approvals", approvalColumns, narrowed(f.Tenant, f.Identity, f.States), f.Page, scanApproval,
		func(a writ.Approval) cursor { return cursorOf(a.Created, string(a.ID)) })
}

// UpdateApproval replaces the stored approval by a if its stored state is one of
// from, and reports whether it did. Its task, tenant, identity and creation are
// not changed. Leaving a terminal state is an error.
func (tx *Tx) UpdateApproval(ctx context.Context, a writ.Approval, from ...writ.ApprovalState) (bool, error) {
	if err := checkStep("approval", string(a.ID), a.State, from); err != nil {
		return false, err
	}
	doc, err := approvalDoc(a)
	if err != nil {
		return false, err
	}
	var c conditions
	set := `UPDATE approvals SET state = ` + c.arg(string(a.State)) + `, expires = ` + c.arg(millis(a.Expires)) + `, doc = ` + c.arg(doc)
	c.terms = append(c.terms, "id = "+c.arg(string(a.ID)))
	in(&c, "state", from)
	n, err := tx.exec(ctx, "update approval", set+c.where(), c.args...)
	return n > 0, err
}

// DueApprovals lists at most limit pending approvals that expired by now, those
// that expired first first.
func (tx *Tx) DueApprovals(ctx context.Context, now time.Time, limit int) ([]writ.Approval, error) {
	return all(ctx, tx, "due approvals", approvalColumns+` WHERE state = 'pending' AND expires <= $1 ORDER BY expires, id LIMIT $2`,
		scanApproval, millis(now), limit)
}

// PendingApprovals counts the pending approvals of one identity.
func (tx *Tx) PendingApprovals(ctx context.Context, tenant writ.Tenant, identity writ.IdentityID) (int, error) {
	n, err := all(ctx, tx, "pending approvals",
		`SELECT count(*) FROM approvals WHERE state = 'pending' AND tenant = $1 AND identity = $2`,
		func(row scanner) (n int, err error) { return n, row.Scan(&n) }, string(tenant), string(identity))
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

func approvalDoc(a writ.Approval) (string, error) {
	b, err := json.Marshal(a)
	if err != nil {
		return "", fmt.Errorf("encode approval: %w", err)
	}
	return string(b), nil
}

func scanApproval(row scanner) (writ.Approval, error) {
	var doc, state string
	if err := row.Scan(&doc, &state); err != nil {
		return writ.Approval{}, err
	}
	var a writ.Approval
	if err := json.Unmarshal([]byte(doc), &a); err != nil {
		return writ.Approval{}, fmt.Errorf("decode approval: %w", err)
	}
	a.State = writ.ApprovalState(state)
	return a, nil
}
