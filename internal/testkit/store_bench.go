package testkit

import (
	"context"
	"errors"
	"testing"

	"writ"
	"writ/store"
)

// BenchmarkCreateTask measures the transaction that admits a task: its row, its
// spec, two events with the Merkle tree over them, and the job that carries it over
// a crash.
func BenchmarkCreateTask(b *testing.B, fresh func(testing.TB) string) {
	db, log, ctx := OpenStore(b, fresh(b)), newLog(b), context.Background()
	spec := make([]byte, 2<<10)
	b.ReportAllocs()
	for b.Loop() {
		task := newTask(writ.TaskQueued)
		task.Key = string(task.ID)
		err := db.Update(ctx, func(tx *store.Tx) error {
			if err := errors.Join(tx.InsertTask(ctx, task), tx.PutBody(ctx, task.ID, store.BodySpec, spec)); err != nil {
				return err
			}
			if _, err := log.Append(ctx, tx, writ.Event{Type: writ.EventTaskReceived, Task: task.ID},
				writ.Event{Type: writ.EventTaskDecided, Task: task.ID}); err != nil {
				return err
			}
			return tx.Enqueue(ctx, dispatch(task.ID))
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
