package testkit

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"writ"
	"writ/store"
)

// listed is one page of tasks, as their ids.
func listed(t testing.TB, db *store.DB, f writ.TaskFilter) (ids []writ.TaskID, next string) {
	t.Helper()
	ts := view(t, db, func(ctx context.Context, tx *store.Tx) (ts []writ.Task, err error) {
		ts, next, err = tx.Tasks(ctx, f)
		return ts, err
	})
	for _, task := range ts {
		ids = append(ids, task.ID)
	}
	return ids, next
}

func pages(t *testing.T, s storeSuite) {
	db := s.open(t)
	var want []writ.TaskID // newest first
	for i := range 25 {
		task := newTask(writ.TaskQueued)
		task.Created = epoch.Add(time.Duration(i/10) * time.Millisecond) // ten share each instant
		task.ID = writ.TaskID(fmt.Sprintf("task_%02d", i))
		insert(t, db, task)
		want = append([]writ.TaskID{task.ID}, want...)
	}
	var got []writ.TaskID
	f := writ.TaskFilter{Page: writ.Page{Limit: 10}}
	for page := 1; ; page++ {
		ids, next := listed(t, db, f)
		got = append(got, ids...)
		if next == "" {
			break
		}
		if page > 3 {
			t.Fatalf("a fourth page of 25 tasks by 10")
		}
		f.Page.Cursor = next
		newer := newTask(writ.TaskQueued) // at the front, between two pages
		newer.Created = epoch.Add(time.Hour)
		insert(t, db, newer)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("pages together (-want +got):\n%s", d)
	}
	if ids, next := listed(t, db, writ.TaskFilter{Page: writ.Page{Limit: 27}}); len(ids) != 27 || next != "" {
		t.Errorf("a page that holds all has %d tasks and next %q, want 27 and none", len(ids), next)
	}
}

func filters(t *testing.T, s storeSuite) {
	db := s.open(t)
	add := func(id string, tenant writ.Tenant, identity writ.IdentityID, state writ.TaskState) {
		task := newTask(state)
		task.ID, task.Tenant, task.Identity = writ.TaskID(id), tenant, identity
		insert(t, db, task)
	}
	add("t1", "acme", "builder", writ.TaskQueued)
	add("t2", "acme", "builder", writ.TaskRunning)
	add("t3", "acme", "tester", writ.TaskQueued)
	add("t4", "evil", "spy", writ.TaskQueued)
	for _, c := range []struct {
		filter writ.TaskFilter
		want   []writ.TaskID
	}{
		{writ.TaskFilter{}, []writ.TaskID{"t4", "t3", "t2", "t1"}},
		{writ.TaskFilter{Tenant: "acme"}, []writ.TaskID{"t3", "t2", "t1"}},
		{writ.TaskFilter{Tenant: "acme", Identity: "builder"}, []writ.TaskID{"t2", "t1"}},
		{writ.TaskFilter{Tenant: "acme", Identity: "spy"}, nil},
		{writ.TaskFilter{States: []writ.TaskState{writ.TaskQueued}}, []writ.TaskID{"t4", "t3", "t1"}},
		{writ.TaskFilter{Tenant: "acme", States: []writ.TaskState{writ.TaskRunning, writ.TaskDenied}}, []writ.TaskID{"t2"}},
		{writ.TaskFilter{Tenant: "nobody"}, nil},
		{writ.TaskFilter{Tenant: "acme' OR '1'='1"}, nil},
		{writ.TaskFilter{Identity: "a\x00b"}, nil},
		{writ.TaskFilter{Identity: "a\xffb"}, nil},
	} {
		if got, _ := listed(t, db, c.filter); !slices.Equal(got, c.want) {
			t.Errorf("%+v: got %v, want %v", c.filter, got, c.want)
		}
	}
}

func badPages(t *testing.T, s storeSuite) {
	db := s.open(t)
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for _, p := range []writ.Page{
		{Limit: -1}, {Limit: writ.MaxPage + 1},
		{Cursor: "x"}, {Cursor: "!!"}, {Cursor: encode("12")}, {Cursor: encode("12 ")},
		{Cursor: encode("twelve id")}, {Cursor: encode("012 id")}, {Cursor: encode("1 a\x00")}, {Cursor: encode("9223372036854775808 id")},
	} {
		err := db.View(context.Background(), func(tx *store.Tx) error {
			_, _, tasks := tx.Tasks(context.Background(), writ.TaskFilter{Page: p})
			_, _, approvals := tx.Approvals(context.Background(), writ.ApprovalFilter{Page: p})
			wantKind(t, fmt.Sprintf("tasks, page %+v", p), tasks, writ.Invalid)
			wantKind(t, fmt.Sprintf("approvals, page %+v", p), approvals, writ.Invalid)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func leases(t *testing.T, s storeSuite) {
	db := s.open(t)
	for i, owner := range []string{"gw-1", "gw-1", "gw-2", "gw-3"} {
		task := newTask(writ.TaskRunning)
		task.ID, task.Owner = writ.TaskID(fmt.Sprint("t", i)), owner
		insert(t, db, task, newTask(writ.TaskQueued))
	}
	for owner, want := range map[string]int{"gw-1": 2, "gw-2": 1, "gw-9": 0, "": 4} {
		got := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Task, error) { return tx.Running(ctx, owner) })
		if len(got) != want {
			t.Errorf("%d running tasks of %q, want %d", len(got), owner, want)
		}
	}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		return errors.Join(
			tx.Beat(ctx, "gw-1", 0), tx.Beat(ctx, "gw-1", time.Hour), // renewed
			tx.Beat(ctx, "gw-2", 0), // over
			tx.Beat(ctx, "gw-3", time.Hour), tx.Leave(ctx, "gw-3"), tx.Leave(ctx, "gw-9"))
	})
	got := view(t, db, func(ctx context.Context, tx *store.Tx) (map[string]bool, error) { return tx.Alive(ctx) })
	if d := cmp.Diff(map[string]bool{"gw-1": true}, got); d != "" {
		t.Errorf("gateways alive (-want +got):\n%s", d)
	}
}

func newApproval(task writ.Task, state writ.ApprovalState) writ.Approval {
	return writ.Approval{
		ID: writ.ApprovalID(writ.NewID("appr")), Action: writ.ActionRun, Task: task.ID, Tenant: task.Tenant, Identity: task.Identity,
		Requester: task.Requester, State: state, Need: writ.Need{Grants: 2}, Created: epoch, Expires: epoch.Add(time.Hour),
	}
}

func approvalRoundTrip(t *testing.T, s storeSuite) {
	db := s.open(t)
	task := newTask(writ.TaskHeld)
	insert(t, db, task)
	want, other := newApproval(task, writ.ApprovalPending), newApproval(task, writ.ApprovalCancelled)
	want.Reason, want.Rules = "writes to prod", []writ.Rule{{ID: "r", File: "f", Line: 1, Effect: writ.Hold}}
	want.Need = writ.Need{Grants: 2, Reason: true, Roles: []string{"security"}}
	want.Spec, want.Policy, want.Digest, want.Replaces = "s", "p", "d", other.ID
	want.Votes = []writ.Vote{{By: writ.Ref{Kind: writ.KindOperator, ID: "olga"}, Verdict: writ.Grant, Reason: "ok ☃", Shown: "x", At: epoch}}
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		if err := errors.Join(tx.InsertApproval(ctx, other), tx.InsertApproval(ctx, want)); err != nil {
			return err
		}
		wantKind(t, "second approval with the id", tx.InsertApproval(ctx, want), writ.Conflict)
		_, err := tx.Approval(ctx, "appr_none")
		wantKind(t, "approval that is not there", err, writ.NotFound)
		got, err := tx.Approval(ctx, want.ID)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("approval changed (-stored +read):\n%s", d)
		}
		want.State, want.Decided = writ.ApprovalGranted, &epoch
		if ok, err := tx.UpdateApproval(ctx, want, writ.ApprovalQueued); ok || err != nil {
			t.Errorf("updated from a state it is not in: %v, %v", ok, err)
		}
		if ok, err := tx.UpdateApproval(ctx, want, writ.ApprovalPending); !ok || err != nil {
			t.Errorf("not updated from its state: %v, %v", ok, err)
		}
		other.State = writ.ApprovalPending
		if _, err := tx.UpdateApproval(ctx, other, writ.ApprovalCancelled); err == nil {
			t.Error("a terminal state was left")
		}
		return err
	})
	for _, c := range []struct {
		filter writ.ApprovalFilter
		want   int
	}{
		{writ.ApprovalFilter{}, 2}, {writ.ApprovalFilter{Tenant: "acme"}, 2}, {writ.ApprovalFilter{Tenant: "evil"}, 0},
		{writ.ApprovalFilter{Identity: "tester"}, 0},
		{writ.ApprovalFilter{States: []writ.ApprovalState{writ.ApprovalGranted}}, 1},
	} {
		got := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Approval, error) {
			as, _, err := tx.Approvals(ctx, c.filter)
			return as, err
		})
		if len(got) != c.want {
			t.Errorf("%+v lists %d approvals, want %d", c.filter, len(got), c.want)
		}
	}
}

// approvalVotes reads, changes and writes one approval from many transactions at
// once: none may overwrite what another has added.
func approvalVotes(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	task := newTask(writ.TaskHeld)
	a := newApproval(task, writ.ApprovalPending)
	insert(t, db, task)
	update(t, db, func(ctx context.Context, tx *store.Tx) error { return tx.InsertApproval(ctx, a) })
	got := race(8, func(i int) bool {
		err := db.Update(ctx, func(tx *store.Tx) error {
			a, err := tx.Approval(ctx, a.ID)
			if err != nil {
				return err
			}
			a.Votes = append(a.Votes, writ.Vote{By: writ.Ref{Kind: writ.KindOperator, ID: fmt.Sprint("op-", i)}, Verdict: writ.Grant, At: epoch})
			_, err = tx.UpdateApproval(ctx, a, writ.ApprovalPending)
			return err
		})
		return err == nil
	})
	kept := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Approval, error) { return tx.Approval(ctx, a.ID) })
	if len(kept.Votes) != 8 || got[true] != 8 {
		t.Errorf("%d votes kept of %d, want 8 of 8", len(kept.Votes), got[true])
	}
}

func dueApprovals(t *testing.T, s storeSuite) {
	db := s.open(t)
	task := newTask(writ.TaskHeld)
	insert(t, db, task)
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for i, state := range []writ.ApprovalState{
			writ.ApprovalPending, writ.ApprovalPending, writ.ApprovalPending, writ.ApprovalQueued, writ.ApprovalGranted,
		} {
			a := newApproval(task, state)
			a.ID, a.Expires = writ.ApprovalID(fmt.Sprint("a", i)), epoch.Add(-time.Duration(i)*time.Second)
			if i == 0 {
				a.Expires = epoch.Add(time.Millisecond)
			}
			if err := tx.InsertApproval(ctx, a); err != nil {
				return err
			}
		}
		for i, state := range writ.ApprovalStates { // of those of calls three states can be due
			h := newHold("h-"+string(state), state, writ.Digest(state))
			h.Expires = epoch.Add(time.Duration(i-20) * time.Second)
			if err := tx.InsertApproval(ctx, h); err != nil {
				return err
			}
		}
		return nil
	})
	due := func(now time.Time, limit int) (ids []writ.ApprovalID) {
		for _, a := range view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Approval, error) {
			return tx.DueApprovals(ctx, now, limit)
		}) {
			ids = append(ids, a.ID)
		}
		return ids
	}
	for _, c := range []struct {
		now   time.Time
		limit int
		want  []writ.ApprovalID
	}{
		{epoch, 10, []writ.ApprovalID{"h-pending", "h-granted", "h-queued", "a2", "a1"}},
		{epoch, 1, []writ.ApprovalID{"h-pending"}},
		{epoch.Add(time.Second), 10, []writ.ApprovalID{"h-pending", "h-granted", "h-queued", "a2", "a1", "a0"}},
		{epoch.Add(-time.Minute), 10, nil},
	} {
		if d := cmp.Diff(c.want, due(c.now, c.limit), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("due at %v, at most %d (-want +got):\n%s", c.now, c.limit, d)
		}
	}
}
