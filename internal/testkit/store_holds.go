package testkit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/store"
)

// newHold is the approval of a patch, which has no task.
func newHold(id string, state writ.ApprovalState, request writ.Digest) writ.Approval {
	return writ.Approval{
		ID: writ.ApprovalID(id), Action: writ.ActionPatch, Tenant: "acme", Identity: "builder",
		Requester: writ.Ref{Kind: writ.KindAgent, ID: "builder"}, State: state, Need: writ.Need{Grants: 1},
		Call:    &writ.HeldCall{Workspace: "site", Root: "/srv/site", Mode: writ.ApprovalsReview, Key: "k", Plan: "p"},
		Request: request, Created: epoch, Expires: epoch.Add(time.Hour),
	}
}

func insertApprovals(t testing.TB, db *store.DB, as ...writ.Approval) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, a := range as {
			if err := tx.InsertApproval(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
}

func holdRoundTrip(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	want := newHold("appr-1", writ.ApprovalPending, "r")
	want.Identity = "" // the owner of the data folder asked
	insertApprovals(t, db, want)
	read := func(tx *store.Tx) (writ.Approval, error) { return tx.Approval(ctx, want.ID) }
	if d := cmp.Diff(want, view(t, db, func(_ context.Context, tx *store.Tx) (writ.Approval, error) { return read(tx) })); d != "" {
		t.Errorf("held patch changed (-stored +read):\n%s", d)
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		a, err := read(tx)
		if err != nil {
			return err
		}
		a.State, a.Call.Operation = writ.ApprovalGranted, "op-1"
		a.Request, a.Action = "stolen", writ.ActionRun // what identifies it does not change
		_, err = tx.UpdateApproval(ctx, a, writ.ApprovalPending)
		return err
	})
	want.State, want.Call.Operation = writ.ApprovalGranted, "op-1"
	got := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Approval, error) { return tx.ActiveApproval(ctx, "r") })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("held patch changed (-stored +read):\n%s", d)
	}

	run := newApproval(newTask(writ.TaskHeld), writ.ApprovalPending) // of a task that is not stored
	if err := db.Update(ctx, func(tx *store.Tx) error { return tx.InsertApproval(ctx, run) }); err == nil {
		t.Error("an approval of a task that is not there was stored")
	}
	run.Task = ""
	if err := db.Update(ctx, func(tx *store.Tx) error { return tx.InsertApproval(ctx, run) }); err == nil {
		t.Error("an approval of a run without a task was stored")
	}
	old := newApproval(newTask(writ.TaskHeld), writ.ApprovalPending)
	task := newTask(writ.TaskHeld)
	old.Task, old.Action = task.ID, ""
	insert(t, db, task)
	insertApprovals(t, db, old)
	if a := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Approval, error) { return tx.Approval(ctx, old.ID) }); a.Action != writ.ActionRun {
		t.Errorf("an approval that does not say of what reads as of %q, want of a run", a.Action)
	}
}

// holdIsReused is scenario 121 as far as it is the store's: of two approvals of one
// request, at most one is not terminal.
func holdIsReused(t *testing.T, s storeSuite) {
	db := s.open(t)
	for i, state := range writ.ApprovalStates {
		request := writ.Digest(fmt.Sprint("r", i))
		first, second := newHold(fmt.Sprint("appr-1-", state), state, request), newHold(fmt.Sprint("appr-2-", state), writ.ApprovalPending, request)
		insertApprovals(t, db, first)
		update(t, db, func(ctx context.Context, tx *store.Tx) error {
			inserted, want := tx.InsertApproval(ctx, second), first.ID
			if state.Terminal() {
				want = second.ID
				if inserted != nil {
					t.Errorf("after one that is %s: %v", state, inserted)
				}
			} else {
				wantKind(t, "after one that is "+string(state), inserted, writ.Conflict)
			}
			got, err := tx.ActiveApproval(ctx, request) // the transaction goes on
			if got.ID != want {
				t.Errorf("beside one that is %s the open one is %s, want %s", state, got.ID, want)
			}
			// Once that is over, the next one may come.
			from := got.State
			got.State = writ.ApprovalCancelled
			ok, err1 := tx.UpdateApproval(ctx, got, from)
			_, none := tx.ActiveApproval(ctx, request)
			wantKind(t, "open approval after its end", none, writ.NotFound)
			if !ok {
				t.Errorf("one that is %s could not be ended", from)
			}
			return errors.Join(err, err1, tx.InsertApproval(ctx, newHold(fmt.Sprint("appr-3-", state), writ.ApprovalPending, request)))
		})
	}
	insertApprovals(t, db, newHold("appr-x", writ.ApprovalPending, ""), newHold("appr-y", writ.ApprovalPending, "")) // without a request nothing collides
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		_, none := tx.ActiveApproval(ctx, "")
		wantKind(t, "open approval of no request", none, writ.NotFound)
		_, none = tx.ActiveApproval(ctx, "a\x00b")
		wantKind(t, "open approval of hostile text", none, writ.NotFound)
		return nil
	})
}

// holdRace asks for one thing from many transactions at once.
func holdRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	got := race(8, func(i int) string {
		var open writ.Approval
		err := db.Update(ctx, func(tx *store.Tx) error {
			err := tx.InsertApproval(ctx, newHold(fmt.Sprint("appr-", i), writ.ApprovalPending, "r"))
			if err != nil && writ.KindOf(err) != writ.Conflict {
				return err
			}
			open, err = tx.ActiveApproval(ctx, "r")
			return err
		})
		if err != nil {
			return err.Error()
		}
		return string(open.ID)
	})
	all := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Approval, error) {
		as, _, err := tx.Approvals(ctx, writ.ApprovalFilter{})
		return as, err
	})
	if len(all) != 1 || got[string(all[0].ID)] != 8 {
		t.Errorf("8 approvals of one request: %d stored, the open one was %v; want one, and all to be told of it", len(all), got)
	}
}

// holdLists lists approvals of runs and of patches together: an agent's are its own.
func holdLists(t *testing.T, s storeSuite) {
	db := s.open(t)
	task := newTask(writ.TaskHeld)
	run := newApproval(task, writ.ApprovalPending)
	run.ID = "appr-1"
	insert(t, db, task)
	granted, theirs, owners, other := newHold("appr-2", writ.ApprovalGranted, "a"), newHold("appr-3", writ.ApprovalPending, "b"), newHold("appr-4", writ.ApprovalPending, "c"), newHold("appr-5", writ.ApprovalPending, "d")
	theirs.Identity, owners.Identity, other.Tenant = "tester", "", "evil"
	insertApprovals(t, db, run, granted, theirs, owners, other)
	for _, c := range []struct {
		filter writ.ApprovalFilter
		want   []string
	}{
		{writ.ApprovalFilter{}, []string{"appr-5", "appr-4", "appr-3", "appr-2", "appr-1"}},
		{writ.ApprovalFilter{Tenant: "acme", Identity: "builder"}, []string{"appr-2", "appr-1"}},
		{writ.ApprovalFilter{Tenant: "acme", Identity: "tester"}, []string{"appr-3"}},
		{writ.ApprovalFilter{Tenant: "acme", Identity: "builder", States: []writ.ApprovalState{writ.ApprovalPending}}, []string{"appr-1"}},
		{writ.ApprovalFilter{Tenant: "acme", States: []writ.ApprovalState{writ.ApprovalPending}}, []string{"appr-4", "appr-3", "appr-1"}},
	} {
		var got []string
		for _, a := range view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Approval, error) {
			as, _, err := tx.Approvals(ctx, c.filter)
			return as, err
		}) {
			got = append(got, string(a.ID))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.filter, got, c.want)
		}
	}
	for identity, want := range map[writ.IdentityID]int{"builder": 1, "tester": 1, "": 1, "nobody": 0} {
		n := view(t, db, func(ctx context.Context, tx *store.Tx) (int, error) {
			return tx.PendingApprovals(ctx, "acme", identity)
		})
		if n != want {
			t.Errorf("%q has %d pending approvals, want %d", identity, n, want)
		}
	}
}

func holdBodies(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	insertApprovals(t, db, newHold("appr-1", writ.ApprovalPending, "a"), newHold("appr-2", writ.ApprovalPending, "b"))
	big := strings.Repeat("\x00\xff0123456", 1<<18)
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(
			tx.PutApprovalBody(ctx, "appr-1", store.BodyPatch, []byte("old")),
			tx.PutApprovalBody(ctx, "appr-1", store.BodyPatch, []byte(big)),
			tx.PutApprovalBody(ctx, "appr-1", store.BodyPlan, nil),
			tx.PutApprovalBody(ctx, "appr-1", store.BodyOutcome, []byte("done")),
			tx.PutApprovalBody(ctx, "appr-2", store.BodyPatch, []byte("kept")))
	})
	holds := func(when, want string) {
		t.Helper()
		var got []string
		for _, id := range []writ.ApprovalID{"appr-1", "appr-2"} {
			for _, name := range []string{store.BodyPatch, store.BodyPlan, store.BodyOutcome} {
				err := db.View(ctx, func(tx *store.Tx) error {
					b, err := tx.ApprovalBody(ctx, id, name)
					if err == nil {
						got = append(got, fmt.Sprint(name, " ", len(b)))
					}
					if string(b) != big && len(b) > 4 {
						t.Errorf("%s: %s of %s is not what was stored", when, name, id)
					}
					return err
				})
				if err != nil && writ.KindOf(err) != writ.NotFound {
					t.Error(err)
				}
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %v, want %s", when, got, want)
		}
	}
	remove := func(names ...string) (n int64) {
		update(t, db, func(ctx context.Context, tx *store.Tx) (err error) {
			n, err = tx.DeleteApprovalBodies(ctx, "appr-1", names...)
			return err
		})
		return n
	}
	holds("stored", fmt.Sprintf("patch %d, plan 0, outcome 4, patch 4", len(big)))
	if n := remove(store.BodyPatch, store.BodyPlan, "none"); n != 2 {
		t.Errorf("%d bodies deleted by name, want 2", n)
	}
	holds("two deleted", "outcome 4, patch 4")
	if n := remove(); n != 1 {
		t.Errorf("%d bodies deleted, want the last", n)
	}
	holds("all deleted", "patch 4")

	err := db.Update(ctx, func(tx *store.Tx) error { return tx.PutApprovalBody(ctx, "appr-none", store.BodyPatch, nil) })
	if err == nil {
		t.Error("a body of no approval was stored")
	}
	err = db.View(ctx, func(tx *store.Tx) error { _, err := tx.DeleteApprovalBodies(ctx, "appr-2"); return err })
	if err == nil {
		t.Error("a view deleted a body")
	}
}
