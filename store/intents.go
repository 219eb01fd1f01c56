package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"writ"
)

// InsertIntent stores a new intent. Its work, if it has one, must be stored.
func (tx *Tx) InsertIntent(ctx context.Context, i writ.Intent) error {
	doc, err := intentDoc(i)
	if err != nil {
		return err
	}
	_, err = tx.exec(ctx, "insert intent", `
		INSERT INTO intents (id, tenant, workspace, root, work, state, delivery, position, revision, body, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
		string(i.ID), string(i.Tenant), string(i.Workspace), i.Root, nullText(string(i.Work)), string(i.State), string(i.Delivery),
		i.Position, i.Revision, i.Body, doc)
	return err
}

const intentColumns = `SELECT doc, id, tenant, workspace, root, coalesce(work, ''), state, delivery, position, revision, body FROM intents`

// Intent reads one intent. Nothing is locked: what is decided from it holds if
// UpdateIntent says so.
func (tx *Tx) Intent(ctx context.Context, id writ.IntentID) (writ.Intent, error) {
	return one(ctx, tx, "intent", intentColumns+` WHERE id = $1`, scanIntent, string(id))
}

// UpdateIntent replaces the stored intent by i if the stored one has the state and the
// revision of was, and reports whether it did. What identifies an intent (tenant,
// workspace, root) is not changed. Leaving a terminal state is an error.
func (tx *Tx) UpdateIntent(ctx context.Context, i, was writ.Intent) (bool, error) {
	if err := checkStep("intent", string(i.ID), i.State, []writ.IntentState{was.State}); err != nil {
		return false, err
	}
	doc, err := intentDoc(i)
	if err != nil {
		return false, err
	}
	n, err := tx.exec(ctx, "update intent", `
		UPDATE intents SET work = $1, state = $2, delivery = $3, position = $4, revision = $5, body = $6, doc = $7
		WHERE id = $8 AND state = $9 AND revision = $10`,
		nullText(string(i.Work)), string(i.State), string(i.Delivery), i.Position, i.Revision, i.Body, doc,
		string(i.ID), string(was.State), was.Revision)
	return n > 0, err
}

// NextPosition is behind every intent of a tenant's workspace at root. Two transactions
// at one moment may be given the same.
func (tx *Tx) NextPosition(ctx context.Context, tenant writ.Tenant, workspace writ.WorkspaceID, root string) (int64, error) {
	n, err := count(ctx, tx, "positions of intents",
		`SELECT coalesce(max(position), 0) + 1 FROM intents WHERE tenant = $1 AND workspace = $2 AND root = $3`,
		string(tenant), string(workspace), root)
	return int64(n), err
}

// NextIntent is the first of the queued intents of a work with one of the deliveries;
// NotFound when there is none.
func (tx *Tx) NextIntent(ctx context.Context, work writ.WorkID, deliveries []writ.Delivery) (writ.Intent, error) {
	if len(deliveries) == 0 {
		return writ.Intent{}, errors.New("next intent: no delivery to look for")
	}
	var c conditions
	c.terms = append(c.terms, "state = 'queued'", "work = "+c.arg(string(work)))
	in(&c, "delivery", deliveries)
	return one(ctx, tx, "queued intent", intentColumns+c.where()+` ORDER BY position, id LIMIT 1`, scanIntent, c.args...)
}

// IntentFilter narrows a list of intents of one root of a tenant's workspace.
type IntentFilter struct {
	Tenant    writ.Tenant
	Workspace writ.WorkspaceID
	Root      string
	Work      writ.WorkID // those of this work
	Loose     bool        // those of no work, also beside those of Work
	States    []writ.IntentState
	Limit     int
}

// Intents lists intents: claimed ones, then queued ones, then drafts, each in the order
// of their positions, then those that are over, the latest first.
func (tx *Tx) Intents(ctx context.Context, f IntentFilter) ([]writ.Intent, error) {
	var c conditions
	c.terms = append(c.terms, "tenant = "+c.arg(string(f.Tenant)), "workspace = "+c.arg(string(f.Workspace)), "root = "+c.arg(f.Root))
	switch {
	case f.Loose && f.Work != "":
		c.terms = append(c.terms, "(work IS NULL OR work = "+c.arg(string(f.Work))+")")
	case f.Loose:
		c.terms = append(c.terms, "work IS NULL")
	default:
		c.equal("work", string(f.Work))
	}
	in(&c, "state", f.States)
	return all(ctx, tx, "intents", intentColumns+c.where()+`
		ORDER BY CASE state WHEN 'claimed' THEN 0 WHEN 'queued' THEN 1 WHEN 'draft' THEN 2 ELSE 3 END,
			CASE WHEN state IN ('claimed', 'queued', 'draft') THEN position ELSE -position END, id
		LIMIT `+c.arg(f.Limit), scanIntent, c.args...)
}

// IntentCount is how many intents of a work have a state and a delivery.
type IntentCount struct {
	State    writ.IntentState
	Delivery writ.Delivery
	N        int
}

// IntentCounts counts the intents of a work, by state and delivery.
func (tx *Tx) IntentCounts(ctx context.Context, work writ.WorkID) ([]IntentCount, error) {
	return all(ctx, tx, "counts of intents", `SELECT state, delivery, count(*) FROM intents WHERE work = $1 GROUP BY state, delivery`,
		func(row scanner) (c IntentCount, err error) { return c, row.Scan(&c.State, &c.Delivery, &c.N) }, string(work))
}

// CountOpenIntents counts the intents of one root of a tenant's workspace that are not
// over, also those of no work.
func (tx *Tx) CountOpenIntents(ctx context.Context, tenant writ.Tenant, workspace writ.WorkspaceID, root string) (int, error) {
	return count(ctx, tx, "open intents", `
		SELECT count(*) FROM intents WHERE tenant = $1 AND workspace = $2 AND root = $3 AND state IN ('draft', 'queued', 'claimed')`,
		string(tenant), string(workspace), root)
}

func intentDoc(i writ.Intent) (string, error) {
	i.Body = "" // it has a column of its own, which an edit writes over
	b, err := json.Marshal(i)
	if err != nil {
		return "", fmt.Errorf("encode intent: %w", err)
	}
	return string(b), nil
}

func scanIntent(row scanner) (writ.Intent, error) {
	var doc string
	var col writ.Intent
	if err := row.Scan(&doc, &col.ID, &col.Tenant, &col.Workspace, &col.Root, &col.Work, &col.State, &col.Delivery,
		&col.Position, &col.Revision, &col.Body); err != nil {
		return writ.Intent{}, err
	}
	var i writ.Intent
	if err := json.Unmarshal([]byte(doc), &i); err != nil {
		return writ.Intent{}, fmt.Errorf("decode intent: %w", err)
	}
	i.ID, i.Tenant, i.Workspace, i.Root, i.Work = col.ID, col.Tenant, col.Workspace, col.Root, col.Work
	i.State, i.Delivery, i.Position, i.Revision, i.Body = col.State, col.Delivery, col.Position, col.Revision, col.Body
	return i, nil
}
