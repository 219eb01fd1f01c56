package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// mark is in each body of these tests, and must be nowhere once they are deleted.
const mark = "the-secret-of-this-body"

// bearers are the files in dir that hold the mark.
func bearers(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(b), mark) {
			names = append(names, filepath.Base(f))
		}
	}
	return names
}

// forget stores bodies and deletes them, in a store that is in use and goes on, and
// looks for their bytes in its files.
func forget(t *testing.T, put func(context.Context, *store.Tx, []byte) error, remove func(context.Context, *store.Tx) error) {
	t.Helper()
	ctx := context.Background()
	for name, size := range map[string]int{"within a page": 2, "of many pages": 100_000} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := open(t, "sqlite:"+filepath.Join(dir, "writ.db"))
			text := []byte(strings.Repeat(mark+" ", size))
			if err := db.Update(ctx, func(tx *store.Tx) error { return put(ctx, tx, text) }); err != nil {
				t.Fatal(err)
			}
			if bearers(t, dir) == nil {
				t.Fatal("what was stored is in no file")
			}
			if err := db.Update(ctx, func(tx *store.Tx) error { return remove(ctx, tx) }); err != nil {
				t.Fatal(err)
			}
			if at := bearers(t, dir); at != nil {
				t.Errorf("what was deleted is still in %v", at)
			}
		})
	}
}

func putBody(ctx context.Context, tx *store.Tx, text []byte) error {
	task := writ.Task{ID: "t1", State: writ.TaskQueued, Created: writ.Now(), Updated: writ.Now()}
	return errors.Join(tx.InsertTask(ctx, task), tx.PutBody(ctx, "t1", store.BodyStdout, text))
}

func deleteBodies(ctx context.Context, tx *store.Tx) error {
	_, err := tx.DeleteBodies(ctx, "t1")
	return err
}

func TestDeletedBodyIsGone(t *testing.T) { forget(t, putBody, deleteBodies) }

func TestScenario129_HeldPatchIsGone(t *testing.T) {
	forget(t, func(ctx context.Context, tx *store.Tx, text []byte) error {
		a := writ.Approval{ID: "a1", Action: writ.ActionPatch, State: writ.ApprovalPending, Created: writ.Now(), Expires: writ.Now()}
		return errors.Join(tx.InsertApproval(ctx, a),
			tx.PutApprovalBody(ctx, "a1", store.BodyPatch, text), tx.PutApprovalBody(ctx, "a1", store.BodyPlan, text))
	}, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.DeleteApprovalBodies(ctx, "a1", store.BodyPatch, store.BodyPlan)
		return err
	})
}

func TestScenario94_OutputOfAProcessIsGone(t *testing.T) {
	forget(t, func(ctx context.Context, tx *store.Tx, text []byte) error {
		now := writ.Now()
		p := writ.Process{ProcessStatus: writ.ProcessStatus{ID: "proc-1", State: writ.ProcessExited, Started: now, Ended: &now}}
		return errors.Join(tx.InsertProcess(ctx, p), tx.PutProcessOutput(ctx, "proc-1", writ.StoredOutput{Data: text}))
	}, func(ctx context.Context, tx *store.Tx) error {
		_, err := tx.DeleteProcessOutputs(ctx, writ.Now().Add(time.Hour), 64)
		return err
	})
}

// TestDeletedBodyIsGoneOnceNobodyReads deletes under a reader, whom no writer waits
// for.
func TestDeletedBodyIsGoneOnceNobodyReads(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	db := open(t, "sqlite:"+filepath.Join(dir, "writ.db"))
	if err := db.Update(ctx, func(tx *store.Tx) error { return putBody(ctx, tx, []byte(mark)) }); err != nil {
		t.Fatal(err)
	}
	err := db.View(ctx, func(tx *store.Tx) error {
		before, err := tx.Body(ctx, "t1", store.BodyStdout)
		if err := db.Update(ctx, func(tx *store.Tx) error { return deleteBodies(ctx, tx) }); err != nil {
			return err
		}
		after, err1 := tx.Body(ctx, "t1", store.BodyStdout)
		if string(before) != mark || string(after) != mark {
			t.Errorf("the reader saw %q, then %q", before, after)
		}
		return errors.Join(err, err1)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(ctx, func(tx *store.Tx) error { return tx.Beat(ctx, "gw-1", 0) }); err != nil {
		t.Fatal(err)
	}
	if at := bearers(t, dir); at != nil {
		t.Errorf("after the next write it is still in %v", at)
	}
}

// TestDeletedBodyIsGoneAfterAKill finds the log of a process that was killed as it
// had deleted a body.
func TestDeletedBodyIsGoneAfterAKill(t *testing.T) {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "writ.db")
	kill(t, start(t, "forget", url))
	if bearers(t, dir) == nil {
		t.Fatal("the process left nothing: this shows nothing")
	}
	testkit.OpenStore(t, url)
	if at := bearers(t, dir); at != nil {
		t.Errorf("what was deleted is still in %v", at)
	}
}
