package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"writ"
)

// InsertApproval stores a new approval. Its task, if it has one, must be stored; that
// of a run must have one, and an empty Action is that of a run. It is a Conflict when
// the id is taken, or when a.Request is not empty and an approval that is not terminal
// has it; the transaction goes on, and ActiveApproval finds that one.
func (tx *Tx) InsertApproval(ctx context.Context, a writ.Approval) error {
	a.Action = cmp.Or(a.Action, writ.ActionRun)
	doc, err := approvalDoc(a)
	if err != nil {
		return err
	}
	n, err := tx.exec(ctx, "insert approval", `
		INSERT INTO approvals (id, action, task, request, tenant, identity, state, created, expires, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
		string(a.ID), string(a.Action), nullText(string(a.Task)), string(a.Request), string(a.Tenant), string(a.Identity),
		string(a.State), millis(a.Created), millis(a.Expires), doc)
	if err == nil && n == 0 {
		return &writ.Error{Kind: writ.Conflict, Op: "insert approval", Msg: fmt.Sprintf("there is an approval %s, or an open one of the same request", a.ID)}
	}
	return err
}

const approvalColumns = `SELECT doc, state, action, request FROM approvals`

// Approval reads one approval. In a writing transaction it stays as it is until
// that ends, so that no vote is lost to another at the same moment.
func (tx *Tx) Approval(ctx context.Context, id writ.ApprovalID) (writ.Approval, error) {
	return one(ctx, tx, "approval", approvalColumns+` WHERE id = $1`+tx.locked(), scanApproval, string(id))
}

// ActiveApproval reads the approval with this Request that is not terminal, of which
// there is at most one, and keeps it as Approval does. The empty request is nobody's.
func (tx *Tx) ActiveApproval(ctx context.Context, request writ.Digest) (writ.Approval, error) {
	return one(ctx, tx, "open approval", approvalColumns+`
		WHERE request = $1 AND request <> '' AND state IN ('pending', 'granted', 'queued', 'resuming')`+tx.locked(),
		scanApproval, string(request))
}

// Approvals lists approvals, newest first, page by page as Tasks does.
func (tx *Tx) Approvals(ctx context.Context, f writ.ApprovalFilter) (as []writ.Approval, next string, err error) {
	return page(ctx, tx, "approvals", approvalColumns, narrowed(f.Tenant, f.Identity, f.States), f.Page, scanApproval,
		func(a writ.Approval) cursor { return cursorOf(a.Created, string(a.ID)) })
}

// UpdateApproval replaces the stored approval by a if its stored state is one of
// from, and reports whether it did. Its action, task, request, tenant, identity and
// creation are not changed. Leaving a terminal state is an error.
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

// DueApprovals lists at most limit approvals that expired by now, those that expired
// first first: pending ones, and granted and queued ones of tools' calls, which nobody carried out.
func (tx *Tx) DueApprovals(ctx context.Context, now time.Time, limit int) ([]writ.Approval, error) {
	return all(ctx, tx, "due approvals", approvalColumns+`
		WHERE (state = 'pending' OR state IN ('granted', 'queued') AND action <> 'run') AND expires <= $1 ORDER BY expires, id LIMIT $2`,
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
	var doc, state, action, request string
	if err := row.Scan(&doc, &state, &action, &request); err != nil {
		return writ.Approval{}, err
	}
	var a writ.Approval
	if err := json.Unmarshal([]byte(doc), &a); err != nil {
		return writ.Approval{}, fmt.Errorf("decode approval: %w", err)
	}
	a.State, a.Action, a.Request = writ.ApprovalState(state), writ.Action(action), writ.Digest(request)
	return a, nil
}
