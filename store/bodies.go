package store

import (
	"context"

	"writ"
)

// The names of a task's bodies.
const (
	BodySpec   = "spec"
	BodyStdout = "stdout"
	BodyStderr = "stderr"
	BodyFiles  = "files" // what became of the workspace: names and digests
)

// PutBody stores data as the named body of a task that is stored, in place of what
// was there.
func (tx *Tx) PutBody(ctx context.Context, task writ.TaskID, name string, data []byte) error {
	if data == nil {
		data = []byte{} // empty, not NULL
	}
	_, err := tx.exec(ctx, "store body", `
		INSERT INTO bodies (task, name, data) VALUES ($1, $2, $3)
		ON CONFLICT (task, name) DO UPDATE SET data = excluded.data`, string(task), name, data)
	return err
}

// Body reads the named body of a task. It is NotFound when it was never stored or
// was deleted.
func (tx *Tx) Body(ctx context.Context, task writ.TaskID, name string) ([]byte, error) {
	return one(ctx, tx, "body", `SELECT data FROM bodies WHERE task = $1 AND name = $2`,
		func(row scanner) (data []byte, err error) { return data, row.Scan(&data) }, string(task), name)
}

// DeleteBodies deletes all bodies of a task and returns how many there were. The
// audit log does not depend on them.
func (tx *Tx) DeleteBodies(ctx context.Context, task writ.TaskID) (int64, error) {
	return tx.deleteBodies(ctx, `DELETE FROM bodies WHERE task = $1`, string(task))
}

// The names of an approval's bodies.
const (
	BodyPatch   = "patch"   // what was sent
	BodyPlan    = "plan"    // what it would do, with the diff
	BodyCommand = "command" // what was to be started
	BodyInput   = "input"   // what was to be written to a process
	BodyOutcome = "outcome" // what was answered when it was carried out
)

// PutApprovalBody stores data as the named body of an approval that is stored, in
// place of what was there.
func (tx *Tx) PutApprovalBody(ctx context.Context, id writ.ApprovalID, name string, data []byte) error {
	if data == nil {
		data = []byte{} // empty, not NULL
	}
	_, err := tx.exec(ctx, "store approval body", `
		INSERT INTO approval_bodies (approval, name, data) VALUES ($1, $2, $3)
		ON CONFLICT (approval, name) DO UPDATE SET data = excluded.data`, string(id), name, data)
	return err
}

// ApprovalBody reads the named body of an approval. It is NotFound when it was never
// stored or was deleted.
func (tx *Tx) ApprovalBody(ctx context.Context, id writ.ApprovalID, name string) ([]byte, error) {
	return one(ctx, tx, "approval body", `SELECT data FROM approval_bodies WHERE approval = $1 AND name = $2`,
		func(row scanner) (data []byte, err error) { return data, row.Scan(&data) }, string(id), name)
}

// DeleteApprovalBodies deletes the named bodies of an approval, or all of them when no
// name is given, and returns how many there were.
func (tx *Tx) DeleteApprovalBodies(ctx context.Context, id writ.ApprovalID, names ...string) (int64, error) {
	var c conditions
	c.terms = append(c.terms, "approval = "+c.arg(string(id)))
	in(&c, "name", names)
	return tx.deleteBodies(ctx, `DELETE FROM approval_bodies`+c.where(), c.args...)
}

// deleteBodies deletes, and remembers to take the bytes out of SQLite's log as well.
func (tx *Tx) deleteBodies(ctx context.Context, query string, args ...any) (int64, error) {
	n, err := tx.exec(ctx, "delete bodies", query, args...)
	tx.deleted = tx.deleted || n > 0
	return n, err
}
