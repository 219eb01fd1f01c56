package store

import (
	"context"
	"encoding/json"
	"fmt"

	"writ"
)

// InsertTask stores a new task. It is a Conflict when the id is taken or when the
// identity has a task with this key; the transaction goes on and TaskByKey finds
// that one. The bytes of the result's outputs, and the names of its files, are not
// stored: PutBody keeps them.
func (tx *Tx) InsertTask(ctx context.Context, t writ.Task) error {
	doc, err := taskDoc(t)
	if err != nil {
		return err
	}
	n, err := tx.exec(ctx, "insert task", `
		INSERT INTO tasks (id, tenant, identity, key, state, owner, request_digest, created, updated, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING`,
		string(t.ID), string(t.Tenant), string(t.Identity), t.Key, string(t.State), t.Owner,
		string(t.RequestDigest), millis(t.Created), millis(t.Updated), doc)
	if err == nil && n == 0 {
		return &writ.Error{Kind: writ.Conflict, Op: "insert task", Msg: fmt.Sprintf("%s has a task with the key %q", t.Identity, t.Key)}
	}
	return err
}

const taskColumns = `SELECT doc, state, owner, request_digest FROM tasks`

// Task reads one task. Its result, if it has one, describes the outputs without
// their bytes and counts the files that were not kept without naming any. In a writing transaction it stays as it is until that ends.
func (tx *Tx) Task(ctx context.Context, id writ.TaskID) (writ.Task, error) {
	return one(ctx, tx, "task", taskColumns+` WHERE id = $1`+tx.locked(), scanTask, string(id))
}

// TaskByKey reads the task that the identity gave this key.
func (tx *Tx) TaskByKey(ctx context.Context, tenant writ.Tenant, identity writ.IdentityID, key string) (writ.Task, error) {
	return one(ctx, tx, "task", taskColumns+` WHERE tenant = $1 AND identity = $2 AND key = $3 AND key <> ''`+tx.locked(),
		scanTask, string(tenant), string(identity), key)
}

// Tasks lists tasks, newest first. next is the cursor of the following page, empty
// on the last. A cursor that is not ours, or a limit out of bounds, is Invalid.
// Tasks that are added between two pages change neither.
func (tx *Tx) Tasks(ctx context.Context, f writ.TaskFilter) (tasks []writ.Task, next string, err error) {
	return page(ctx, tx, "tasks", taskColumns, narrowed(f.Tenant, f.Identity, f.States), f.Page, scanTask,
		func(t writ.Task) cursor { return cursorOf(t.Created, string(t.ID)) })
}

// UpdateTask replaces the stored task by t if its stored state is one of from, and
// reports whether it did. What identifies a task (tenant, identity, key, request
// digest, creation) is not changed. Leaving a terminal state is an error.
func (tx *Tx) UpdateTask(ctx context.Context, t writ.Task, from ...writ.TaskState) (bool, error) {
	if err := checkStep("task", string(t.ID), t.State, from); err != nil {
		return false, err
	}
	doc, err := taskDoc(t)
	if err != nil {
		return false, err
	}
	var c conditions
	set := `UPDATE tasks SET state = ` + c.arg(string(t.State)) + `, owner = ` + c.arg(t.Owner) +
		`, updated = ` + c.arg(millis(t.Updated)) + `, doc = ` + c.arg(doc)
	c.terms = append(c.terms, "id = "+c.arg(string(t.ID)))
	in(&c, "state", from)
	n, err := tx.exec(ctx, "update task", set+c.where(), c.args...)
	return n > 0, err
}

// Running lists the running tasks that owner claimed, or all of them when owner is
// empty, oldest first.
func (tx *Tx) Running(ctx context.Context, owner string) ([]writ.Task, error) {
	c := conditions{terms: []string{"state = 'running'"}}
	c.equal("owner", owner)
	return all(ctx, tx, "running tasks", taskColumns+c.where()+` ORDER BY created, id`, scanTask, c.args...)
}

// taskDoc is t as it is stored. Outputs go without their bytes, and the result without
// the names of its files: they have a place of their own from which they can be deleted.
func taskDoc(t writ.Task) (string, error) {
	if t.Result != nil {
		r := *t.Result
		r.Stdout.Text, r.Stdout.Raw = "", nil
		r.Stderr.Text, r.Stderr.Raw = "", nil
		r.Files, r.Dropped = nil, nil
		t.Result = &r
	}
	b, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encode task: %w", err)
	}
	return string(b), nil
}

func scanTask(row scanner) (writ.Task, error) {
	var doc, state, owner, digest string
	if err := row.Scan(&doc, &state, &owner, &digest); err != nil {
		return writ.Task{}, err
	}
	var t writ.Task
	if err := json.Unmarshal([]byte(doc), &t); err != nil {
		return writ.Task{}, fmt.Errorf("decode task: %w", err)
	}
	t.State, t.Owner, t.RequestDigest = writ.TaskState(state), owner, writ.Digest(digest)
	return t, nil
}
