package testkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ"
	"writ/store"
)

// Store is what every engine of package store must do. fresh answers the url of an
// empty database, another one each time.
func Store(t *testing.T, fresh func(testing.TB) string) {
	for _, c := range []struct {
		name string
		test func(*testing.T, storeSuite)
	}{
		{"task comes back as it was stored", taskRoundTrip},
		{"task key is taken once", taskKeyTaken},
		{"task key race has one winner", taskKeyRace},
		{"task compare-and-set", taskCompareAndSet},
		{"task claim race has one winner", taskClaimRace},
		{"lists page by page while rows are added", pages},
		{"lists narrow", filters},
		{"list refuses bad cursors and limits", badPages},
		{"running tasks and leases", leases},
		{"approval comes back as it was stored", approvalRoundTrip},
		{"approval votes at one moment are both kept", approvalVotes},
		{"due approvals", dueApprovals},
		{"bodies", bodies},
		{"operation comes back as it was stored", operationRoundTrip},
		{"operation keeps what identifies it", operationIdentity},
		{"Scenario 56 to 59: operation keys", operationKeys},
		{"operations with one key are bounded", operationsWithKeyAreBounded},
		{"operation key race has one winner", operationKeyRace},
		{"operation finish race has one winner", operationFinishRace},
		{"operation stays as it was read", operationLocked},
		{"operations list and narrow", operationLists},
		{"process comes back as it was stored", processRoundTrip},
		{"process keeps what identifies it", processIdentity},
		{"process end race has one winner", processEndRace},
		{"process stays as it was read", processLocked},
		{"processes list and narrow", processLists},
		{"Scenario 94: process outputs are kept for a while", processOutputs},
		{"work comes back as it was stored", workRoundTrip},
		{"works list and narrow, and give hints", workLists},
		{"intent comes back as it was stored", intentRoundTrip},
		{"intents list and count", intentLists},
		{"intent claim race has one winner each", intentClaimRace},
		{"session and objects come back as they were stored", sessionRoundTrip},
		{"session totals follow what is in sessions", sessionTotals},
		{"session totals are right under 8 writers", sessionTotalsRace},
		{"expired sessions are removed once", sessionsExpire},
		{"sessions list and narrow", sessionLists},
		{"what was removed is added up and taken once", removals},
		{"the folder of files has one owner", blobOwners},
		{"held patch comes back as it was stored", holdRoundTrip},
		{"Scenario 121: one open approval of a request", holdIsReused},
		{"Scenario 121: request race has one winner", holdRace},
		{"held patches and runs list and narrow", holdLists},
		{"approval bodies", holdBodies},
		{"keys", keys},
		{"operators", operators},
		{"rollback leaves nothing", rollback},
		{"view reads one snapshot and writes nothing", snapshot},
		{"hostile text", hostileText},
		{"log head, hashes and records", logParts},
		{"log refuses a record twice", logTwice},
		{"log events narrow", logFilters},
		{"log stays gapless under 8 writers", logConcurrent},
		{"job of a rolled back transaction never runs", jobRolledBack},
		{"job runs once", jobOnce},
		{"job runs not before its time", jobScheduled},
		{"job survives a restart", jobRestart},
		{"job is retried", jobRetried},
		{"job stop waits, then cancels", jobStop},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, storeSuite{fresh})
		})
	}
}

type storeSuite struct{ fresh func(testing.TB) string }

// open opens a fresh store and closes it with t.
func (s storeSuite) open(t *testing.T) *store.DB {
	t.Helper()
	return OpenStore(t, s.fresh(t))
}

// OpenStore opens the store at url, which looks for jobs every 20 ms, and closes it
// when t ends.
func OpenStore(t testing.TB, url string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), url, store.Options{Poll: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func update(t testing.TB, db *store.DB, fn func(context.Context, *store.Tx) error) {
	t.Helper()
	ctx := context.Background()
	if err := db.Update(ctx, func(tx *store.Tx) error { return fn(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
}

func view[T any](t testing.TB, db *store.DB, fn func(context.Context, *store.Tx) (T, error)) T {
	t.Helper()
	ctx := context.Background()
	var out T
	if err := db.View(ctx, func(tx *store.Tx) (err error) { out, err = fn(ctx, tx); return err }); err != nil {
		t.Fatal(err)
	}
	return out
}

func wantKind(t testing.TB, what string, err error, want writ.Kind) {
	t.Helper()
	if err == nil || writ.KindOf(err) != want {
		t.Errorf("%s: got error %v, want one of kind %v", what, err, want)
	}
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newTask(state writ.TaskState) writ.Task {
	return writ.Task{
		ID: writ.TaskID(writ.NewID("task")), Tenant: "acme", Identity: "builder",
		Requester: writ.Ref{Kind: writ.KindAgent, ID: "builder"}, State: state, Created: epoch, Updated: epoch,
	}
}

func insert(t testing.TB, db *store.DB, ts ...writ.Task) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, task := range ts {
			if err := tx.InsertTask(ctx, task); err != nil {
				return err
			}
		}
		return nil
	})
}

func readTask(t testing.TB, db *store.DB, id writ.TaskID) writ.Task {
	t.Helper()
	return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Task, error) { return tx.Task(ctx, id) })
}

func taskRoundTrip(t *testing.T, s storeSuite) {
	db := s.open(t)
	exit, start := 3, epoch.Add(1500*time.Millisecond)
	want := newTask(writ.TaskFailed)
	want.Key, want.Role, want.Step, want.RetryOf = "build-1", "coder", "first\x00, \u202e then ☃ 💥", "task_old"
	want.Reason, want.Clamped, want.Approval = `exit "3" <&>`, []string{"wall_ms"}, "approval_1"
	want.Rules = []writ.Rule{{ID: "r7", File: "a.cedar", Line: 3, Effect: writ.Hold}}
	want.Language, want.Digest, want.RequestDigest, want.Owner = "python", "d1", "d2", "gw-1"
	want.Started, want.Finished, want.Updated = &start, &start, start
	want.Result = &writ.Result{Outcome: writ.Failed, Started: true, ExitCode: &exit,
		Stdout: writ.NewOutput([]byte("secret\xff"), 9), Stderr: writ.NewOutput([]byte("oops"), 4), WallMS: 12}
	insert(t, db, want)

	// The bytes of the outputs have a place of their own, from which they can go.
	want.Result.Stdout.Text, want.Result.Stdout.Raw, want.Result.Stderr.Text = "", nil, ""
	got := readTask(t, db, want.ID)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("task changed (-stored +read):\n%s", d)
	}
	byKey := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Task, error) {
		return tx.TaskByKey(ctx, want.Tenant, want.Identity, want.Key)
	})
	if d := cmp.Diff(want, byKey); d != "" {
		t.Errorf("task by key changed (-stored +read):\n%s", d)
	}
}

func taskKeyTaken(t *testing.T, s storeSuite) {
	db := s.open(t)
	first, again, other, bare := newTask(writ.TaskQueued), newTask(writ.TaskQueued), newTask(writ.TaskQueued), newTask(writ.TaskQueued)
	first.Key, again.Key, other.Key, other.Identity = "k", "k", "k", "tester"
	insert(t, db, first, other, bare, newTask(writ.TaskQueued)) // without a key nothing collides
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		wantKind(t, "second task with the key", tx.InsertTask(ctx, again), writ.Conflict)
		wantKind(t, "second task with the id", tx.InsertTask(ctx, bare), writ.Conflict)
		got, err := tx.TaskByKey(ctx, again.Tenant, again.Identity, again.Key) // the transaction goes on
		if got.ID != first.ID {
			t.Errorf("key names %s, want the first task %s", got.ID, first.ID)
		}
		_, none := tx.TaskByKey(ctx, bare.Tenant, bare.Identity, "")
		wantKind(t, "task with the empty key", none, writ.NotFound)
		return err
	})
}

// race runs fn n times at once and counts the answers.
func race[T comparable](n int, fn func(i int) T) map[T]int {
	var wg sync.WaitGroup
	out := make([]T, n)
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() { <-start; out[i] = fn(i) })
	}
	close(start)
	wg.Wait()
	counts := map[T]int{}
	for _, v := range out {
		counts[v]++
	}
	return counts
}

func taskKeyRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	var mu sync.Mutex
	seen := map[writ.TaskID]bool{} // guarded by mu: what the key names, by each contender
	got := race(8, func(int) writ.Kind {
		task := newTask(writ.TaskQueued)
		task.Key = "k"
		err := db.Update(ctx, func(tx *store.Tx) error {
			inserted := tx.InsertTask(ctx, task)
			named, err := tx.TaskByKey(ctx, task.Tenant, task.Identity, task.Key)
			mu.Lock()
			defer mu.Unlock()
			seen[named.ID] = true
			return errors.Join(inserted, err)
		})
		if err == nil {
			return -1
		}
		return writ.KindOf(err)
	})
	if got[-1] != 1 || got[writ.Conflict] != 7 || len(seen) != 1 {
		t.Errorf("8 tasks with one key: %d stored, %d in conflict, %d tasks named by the key; want 1, 7, 1", got[-1], got[writ.Conflict], len(seen))
	}
}

func taskCompareAndSet(t *testing.T, s storeSuite) {
	db := s.open(t)
	task := newTask(writ.TaskHeld)
	insert(t, db, task)
	step := func(to writ.TaskState, from ...writ.TaskState) (ok bool, err error) {
		next := task
		next.State, next.Reason, next.Owner = to, string(to), "gw-1"
		next.Tenant = "thief" // what identifies a task does not change
		err = db.Update(context.Background(), func(tx *store.Tx) error { ok, err = tx.UpdateTask(context.Background(), next, from...); return err })
		return ok, err
	}
	for _, c := range []struct {
		to   writ.TaskState
		from []writ.TaskState
		want bool
	}{
		{writ.TaskRunning, []writ.TaskState{writ.TaskQueued}, false},
		{writ.TaskQueued, []writ.TaskState{writ.TaskReceived, writ.TaskHeld}, true},
		{writ.TaskRunning, []writ.TaskState{writ.TaskQueued}, true},
		{writ.TaskRunning, []writ.TaskState{writ.TaskQueued}, false},
		{writ.TaskKilled, []writ.TaskState{writ.TaskQueued, writ.TaskRunning}, true},
		{writ.TaskSucceeded, []writ.TaskState{writ.TaskRunning}, false},
	} {
		if ok, err := step(c.to, c.from...); ok != c.want || err != nil {
			t.Errorf("%v to %s: got %v, %v, want %v", c.from, c.to, ok, err, c.want)
		}
	}
	if _, err := step(writ.TaskQueued, writ.TaskKilled); err == nil {
		t.Error("a terminal state was left")
	}
	if _, err := step(writ.TaskQueued); err == nil {
		t.Error("an update from no state at all was accepted")
	}
	got := readTask(t, db, task.ID)
	if got.State != writ.TaskKilled || got.Reason != "killed" || got.Owner != "gw-1" {
		t.Errorf("stored: state %s, reason %s, owner %s", got.State, got.Reason, got.Owner)
	}
	listed := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Task, error) {
		ts, _, err := tx.Tasks(ctx, writ.TaskFilter{Tenant: "acme"})
		return ts, err
	})
	if len(listed) != 1 {
		t.Errorf("its tenant lists %d tasks, want 1", len(listed))
	}
}

func taskClaimRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	task := newTask(writ.TaskQueued)
	insert(t, db, task)
	got := race(8, func(i int) string {
		mine := task
		mine.State, mine.Owner = writ.TaskRunning, fmt.Sprint("gw-", i)
		var won bool
		if err := db.Update(ctx, func(tx *store.Tx) (err error) { won, err = tx.UpdateTask(ctx, mine, writ.TaskQueued); return err }); err != nil {
			return err.Error()
		}
		if won {
			return "won " + mine.Owner
		}
		return "lost"
	})
	owner := readTask(t, db, task.ID).Owner
	if got["lost"] != 7 || got["won "+owner] != 1 {
		t.Errorf("8 claims: %v, stored owner %s; want one winner, stored", got, owner)
	}
}

func bodies(t *testing.T, s storeSuite) {
	db := s.open(t)
	task, other := newTask(writ.TaskQueued), newTask(writ.TaskQueued)
	insert(t, db, task, other)
	big := strings.Repeat("\x00\xff0123456", 1<<20)
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(
			tx.PutBody(ctx, task.ID, store.BodySpec, []byte("old")),
			tx.PutBody(ctx, task.ID, store.BodySpec, []byte(big)),
			tx.PutBody(ctx, task.ID, store.BodyStdout, nil),
			tx.PutBody(ctx, other.ID, store.BodySpec, []byte("kept")))
	})
	body := func(id writ.TaskID, name string) (string, error) {
		var b []byte
		err := db.View(context.Background(), func(tx *store.Tx) (err error) { b, err = tx.Body(context.Background(), id, name); return err })
		return string(b), err
	}
	for _, c := range []struct{ id, name, want string }{
		{string(task.ID), store.BodySpec, big}, {string(task.ID), store.BodyStdout, ""}, {string(other.ID), store.BodySpec, "kept"},
	} {
		if got, err := body(writ.TaskID(c.id), c.name); err != nil || got != c.want {
			t.Errorf("body %s has %d bytes, want %d (%v)", c.name, len(got), len(c.want), err)
		}
	}
	_, err := body(task.ID, store.BodyStderr)
	wantKind(t, "body that was never stored", err, writ.NotFound)
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		n, err := tx.DeleteBodies(ctx, task.ID)
		if n != 2 {
			t.Errorf("%d bodies deleted, want 2", n)
		}
		return err
	})
	_, err = body(task.ID, store.BodySpec)
	wantKind(t, "deleted body", err, writ.NotFound)
	if got, _ := body(other.ID, store.BodySpec); got != "kept" {
		t.Errorf("the other task's body is now %q", got)
	}
}

func keys(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	later := epoch.Add(time.Hour)
	want := []writ.Key{
		{ID: "k1", Kind: writ.KindAgent, Subject: "builder", Tenant: "acme", Hash: "h1", Created: epoch, Expires: &later},
		{ID: "k2", Kind: writ.KindOperator, Subject: "olga", Tenant: "acme", Hash: "h2", Created: later},
		{ID: "k3", Kind: writ.KindAgent, Subject: "spy", Tenant: "evil", Hash: "h3", Created: later},
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, k := range want {
			if err := tx.InsertKey(ctx, k); err != nil {
				return err
			}
		}
		wantKind(t, "second key with the id", tx.InsertKey(ctx, want[0]), writ.Conflict)
		_, err := tx.Key(ctx, "k9")
		wantKind(t, "key that is not there", err, writ.NotFound)
		return nil
	})
	list := func(tenant writ.Tenant) []writ.Key {
		return view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Key, error) { return tx.Keys(ctx, tenant) })
	}
	if d := cmp.Diff(want[:2], list("acme")) + cmp.Diff(want, list("")); d != "" {
		t.Errorf("keys (-stored +read):\n%s", d)
	}
	got := race(4, func(i int) bool {
		var done bool
		err := db.Update(ctx, func(tx *store.Tx) (err error) {
			done, err = tx.RevokeKey(ctx, "k1", later.Add(time.Duration(i)*time.Minute))
			return err
		})
		return done && err == nil
	})
	one := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Key, error) { return tx.Key(ctx, "k1") })
	if got[true] != 1 || one.Revoked == nil || one.Revoked.Before(later) || one.Hash != "h1" {
		t.Errorf("4 revocations: %v, key %+v; want exactly one", got, one)
	}
}

func operators(t *testing.T, s storeSuite) {
	db := s.open(t)
	want := []writ.Operator{
		{ID: "olga", Tenant: "acme", Roles: []string{"security", "lead"}, Created: epoch},
		{ID: "oscar", Tenant: "acme", Created: epoch},
		{ID: "otto", Tenant: "evil", Created: epoch},
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, o := range want {
			if err := tx.InsertOperator(ctx, o); err != nil {
				return err
			}
		}
		wantKind(t, "second operator with the id", tx.InsertOperator(ctx, writ.Operator{ID: "olga", Tenant: "evil"}), writ.Conflict)
		_, err := tx.Operator(ctx, "nobody")
		wantKind(t, "operator that is not there", err, writ.NotFound)
		first, err1 := tx.DisableOperator(ctx, "oscar", epoch)
		second, err2 := tx.DisableOperator(ctx, "oscar", epoch.Add(time.Hour))
		none, err3 := tx.DisableOperator(ctx, "nobody", epoch)
		if !first || second || none {
			t.Errorf("disable, again, nobody: %v %v %v, want true false false", first, second, none)
		}
		return errors.Join(err1, err2, err3)
	})
	want[1].Disabled = &epoch
	for tenant, n := range map[writ.Tenant]int{"acme": 2, "": 3} {
		got := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Operator, error) { return tx.Operators(ctx, tenant) })
		if d := cmp.Diff(want[:n], got, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("operators of %q (-stored +read):\n%s", tenant, d)
		}
	}
	olga := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Operator, error) { return tx.Operator(ctx, "olga") })
	if d := cmp.Diff(want[0], olga); d != "" {
		t.Errorf("operator (-stored +read):\n%s", d)
	}
}
