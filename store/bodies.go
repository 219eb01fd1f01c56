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
	return tx.exec(ctx, "delete bodies", `DELETE FROM bodies WHERE task = $1`, string(task))
}
