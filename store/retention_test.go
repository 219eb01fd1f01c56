package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// TestInterpreterRows is what both engines must do with what the code interpreter keeps.
// They share a server, which takes longer to start than all of it.
func TestInterpreterRows(t *testing.T) {
	for engine, fresh := range map[string]func(testing.TB) string{"sqlite": sqliteURL, "postgres": testkit.Postgres(t)} {
		for name, test := range map[string]func(*testing.T, string){
			"a runtime session comes back as it was stored": runtimeRoundTrip,
			"unused runtime sessions list page by page":     unusedRuntimes,
			"bodies of users go with their age":             usersBodies,
			"counts go with their window":                   oldCounts,
		} {
			t.Run(engine+"/"+name, func(t *testing.T) { test(t, fresh(t)) })
		}
	}
}

// usersBodies: of each state, owner and age those of users that are over and old go,
// once, a few at a time.
func usersBodies(t *testing.T, url string) {
	db := open(t, url)
	user := writ.Principal{Kind: writ.KindUser, ID: "ada", Tenant: "acme"}
	agent := writ.Principal{Kind: writ.KindAgent, ID: "user", Tenant: "acme"}
	run := writ.Principal{Kind: writ.KindAgentRun, ID: "user:ada", Tenant: "acme"}
	keep := map[writ.TaskID]bool{}
	n := 0
	for _, p := range []writ.Principal{user, agent, run} {
		for _, state := range writ.TaskStates {
			for _, old := range []bool{true, false} {
				n++
				task := writ.Task{ID: writ.TaskID(fmt.Sprint("t", n)), Tenant: p.Tenant, Identity: p.Owner(), State: state, Created: epoch, Updated: epoch}
				if old {
					task.Updated = epoch.Add(-time.Millisecond)
				}
				keep[task.ID] = p.Kind != writ.KindUser || !state.Terminal() || !old
				update(t, db, func(ctx context.Context, tx *store.Tx) error {
					return errors.Join(tx.InsertTask(ctx, task), tx.PutBody(ctx, task.ID, store.BodySpec, []byte("code")), tx.PutBody(ctx, task.ID, store.BodyFiles, nil))
				})
			}
		}
	}
	gone := 0
	for _, kept := range keep {
		if !kept {
			gone++
		}
	}
	count := func() int64 {
		return view(t, db, func(ctx context.Context, tx *store.Tx) (int64, error) { return tx.UsersBodies(ctx, epoch) })
	}
	if got := count(); got != int64(2*gone) {
		t.Errorf("%d bodies would go, want %d", got, 2*gone)
	}
	tasks, bodies, calls := 0, int64(0), 0
	for more := true; more; calls++ {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			some, b, err := tx.DeleteUsersBodies(ctx, epoch, 4)
			more = some > 0
			tasks, bodies = tasks+some, bodies+b
			return err
		})
	}
	if tasks != gone || bodies != int64(2*gone) || calls != (gone+3)/4+1 || count() != 0 {
		t.Errorf("%d tasks and %d bodies went in %d calls, want %d and %d; %d are left", tasks, bodies, calls, gone, 2*gone, count())
	}
	for id, kept := range keep {
		err := db.View(context.Background(), func(tx *store.Tx) error { _, err := tx.Body(context.Background(), id, store.BodySpec); return err })
		if kept && err != nil || !kept && writ.KindOf(err) != writ.NotFound {
			t.Errorf("%s, kept %v: %v", id, kept, err)
		}
		if _, err := readTask(t, db, id); err != nil {
			t.Errorf("the task itself: %v", err)
		}
	}
}

func oldCounts(t *testing.T, url string) {
	db, ctx := open(t, url), context.Background()
	for n := range 7 {
		if _, used, err := db.Count(ctx, writ.Digest(fmt.Sprint(n)), epoch.Add(time.Duration(n)*time.Second), 10*time.Second, 3); used != 1 || err != nil {
			t.Fatal(used, err)
		}
	}
	cut := epoch.Add(15 * time.Second) // the windows of 0 to 4 have ended before it
	var removed []int64
	for range 3 {
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			n, err := tx.DeleteCounts(ctx, cut, 3)
			removed = append(removed, n)
			return err
		})
	}
	if d := cmp.Diff([]int64{3, 2, 0}, removed); d != "" {
		t.Errorf("removed (-want +got):\n%s", d)
	}
	if _, used, err := db.Count(ctx, "6", epoch.Add(7*time.Second), 10*time.Second, 3); used != 2 || err != nil {
		t.Errorf("one that is not old: %d, %v", used, err)
	}
}

// TestTaskHasNoNamesOfFiles: what became of the workspace is a body, which can be deleted.
func TestTaskHasNoNamesOfFiles(t *testing.T) {
	db := open(t, sqliteURL(t))
	insertTask(t, db, writ.Task{ID: "t", State: writ.TaskFailed, Created: epoch, Updated: epoch, Result: &writ.Result{
		Outcome: writ.Failed, Files: []writ.OutputFile{{Path: "secret.txt"}}, Dropped: []writ.DroppedFile{{Path: "secret"}}, DroppedFiles: 7,
	}})
	got, err := readTask(t, db, "t")
	if err != nil || len(got.Result.Files)+len(got.Result.Dropped) != 0 || got.Result.DroppedFiles != 7 {
		t.Errorf("got %+v, %v", got.Result, err)
	}
}
