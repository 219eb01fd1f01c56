package testkit

import (
	"context"
	"errors"
	"testing"
	"time"

	"writ"
	"writ/store"
)

var errChanged = errors.New("changed our mind")

func rollback(t *testing.T, s storeSuite) {
	db := s.open(t)
	task, there := newTask(writ.TaskQueued), newTask(writ.TaskQueued)
	insert(t, db, there)
	write := func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(tx.InsertTask(ctx, task), tx.PutBody(ctx, task.ID, store.BodySpec, []byte("x")),
			tx.Beat(ctx, "gw-1", time.Hour), tx.AppendLog(ctx, []writ.Record{{Seq: 0, Data: []byte("{}")}}, 0, make([][32]byte, 1), 1, "note"))
	}
	nothing := func(after string) {
		t.Helper()
		view(t, db, func(ctx context.Context, tx *store.Tx) (none struct{}, err error) {
			_, missing := tx.Task(ctx, task.ID)
			wantKind(t, "task after "+after, missing, writ.NotFound)
			_, missing = tx.Body(ctx, task.ID, store.BodySpec)
			wantKind(t, "body after "+after, missing, writ.NotFound)
			size, note, err := tx.LogHead(ctx)
			records, err1 := tx.Records(ctx, -1, 10)
			alive, err2 := tx.Alive(ctx)
			if size != 0 || note != "" || len(records) != 0 || len(alive) != 0 {
				t.Errorf("after %s: log of %d, %q, %d records, %d leases", after, size, note, len(records), len(alive))
			}
			return none, errors.Join(err, err1, err2)
		})
	}
	ctx := context.Background()
	err := db.Update(ctx, func(tx *store.Tx) error { return errors.Join(write(ctx, tx), errChanged) })
	if !errors.Is(err, errChanged) {
		t.Errorf("Update answers %v, want the function's own error", err)
	}
	nothing("an error")

	func() {
		defer func() { _ = recover() }()
		_ = db.Update(ctx, func(tx *store.Tx) error {
			if err := write(ctx, tx); err != nil {
				t.Error(err)
			}
			panic("bug")
		})
	}()
	nothing("a panic")

	cancelled, cancel := context.WithCancel(ctx)
	err = db.Update(cancelled, func(tx *store.Tx) error {
		err := write(cancelled, tx)
		cancel()
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Update with a cancelled context answers %v", err)
	}
	nothing("a cancelled context")

	// A statement failed and the function went on as if it had not.
	err = db.Update(ctx, func(tx *store.Tx) error {
		if err := write(ctx, tx); err != nil {
			return err
		}
		_ = tx.PutBody(ctx, "task_none", store.BodySpec, nil) // of no task
		return nil
	})
	if err == nil {
		t.Error("a transaction with a failed statement was committed")
	}
	nothing("a failed statement")
	update(t, db, write) // and the store goes on
}

func snapshot(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	task := newTask(writ.TaskQueued)
	insert(t, db, task)
	view(t, db, func(ctx context.Context, tx *store.Tx) (none struct{}, err error) {
		before, err := tx.Task(ctx, task.ID)
		if err != nil {
			return none, err
		}
		next := task
		next.State = writ.TaskRunning
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.UpdateTask(ctx, next, writ.TaskQueued)
			return err
		})
		running, err := tx.Running(ctx, "")
		if before.State != writ.TaskQueued || len(running) != 0 {
			t.Errorf("a view sees %s, then %d running tasks of a later write", before.State, len(running))
		}
		return none, err
	})
	if got := readTask(t, db, task.ID).State; got != writ.TaskRunning {
		t.Errorf("a later view sees %s", got)
	}
	for name, write := range map[string]func(*store.Tx) error{
		"insert":  func(tx *store.Tx) error { return tx.InsertTask(ctx, newTask(writ.TaskQueued)) },
		"delete":  func(tx *store.Tx) error { _, err := tx.DeleteBodies(ctx, task.ID); return err },
		"enqueue": func(tx *store.Tx) error { return tx.Enqueue(ctx, store.Job{Kind: store.JobDispatch, Task: task.ID}) },
	} {
		if err := db.View(ctx, write); err == nil {
			t.Errorf("%s in a view was accepted", name)
		}
	}
}

func hostileText(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	for _, id := range []string{"", "a\x00b", "\xff\xfe", "'; DROP TABLE tasks; --", "task_%", string(make([]byte, 1<<16))} {
		view(t, db, func(ctx context.Context, tx *store.Tx) (none struct{}, err error) {
			_, err = tx.Task(ctx, writ.TaskID(id))
			wantKind(t, "task "+id, err, writ.NotFound)
			_, err = tx.Approval(ctx, writ.ApprovalID(id))
			wantKind(t, "approval "+id, err, writ.NotFound)
			_, err = tx.Operation(ctx, writ.OperationID(id))
			wantKind(t, "operation "+id, err, writ.NotFound)
			_, err = tx.Work(ctx, writ.WorkID(id))
			wantKind(t, "work "+id, err, writ.NotFound)
			_, err = tx.Intent(ctx, writ.IntentID(id))
			wantKind(t, "intent "+id, err, writ.NotFound)
			_, err = tx.Process(ctx, writ.ProcessID(id))
			wantKind(t, "process "+id, err, writ.NotFound)
			_, err = tx.ApprovalBody(ctx, writ.ApprovalID(id), id)
			wantKind(t, "approval body "+id, err, writ.NotFound)
			_, err = tx.Key(ctx, writ.KeyID(id))
			wantKind(t, "key "+id, err, writ.NotFound)
			_, err = tx.Body(ctx, writ.TaskID(id), id)
			wantKind(t, "body "+id, err, writ.NotFound)
			if id == "" {
				return none, nil // an empty filter does not narrow
			}
			events, err := tx.Events(ctx, writ.EventFilter{Task: writ.TaskID(id), After: -1})
			if len(events) > 0 {
				t.Errorf("events of task %q: %d", id, len(events))
			}
			return none, err
		})
	}
	bad := newTask(writ.TaskQueued)
	bad.ID = "a\x00b"
	wantKind(t, "insert a task with a NUL in its id", db.Update(ctx, func(tx *store.Tx) error { return tx.InsertTask(ctx, bad) }), writ.Invalid)
	odd := newTask(writ.TaskQueued)
	odd.ID = "'; DROP TABLE tasks; --"
	insert(t, db, odd)
	if got := readTask(t, db, odd.ID); got.ID != odd.ID {
		t.Errorf("read %q", got.ID)
	}
}
