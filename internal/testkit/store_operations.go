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

func newOperation(id, key string) writ.Operation {
	return writ.Operation{
		ID: writ.OperationID(id), Key: key, Workspace: "site", Root: "/srv/site", Tenant: "acme",
		By: writ.Ref{Kind: writ.KindAgent, ID: "builder"}, Fingerprint: writ.DigestOf([]byte(id)), Owner: "gw-1",
		Result: writ.PatchResult{Status: writ.PatchUnknown}, Created: epoch,
	}
}

func insertOperations(t testing.TB, db *store.DB, ops ...writ.Operation) {
	t.Helper()
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		for _, op := range ops {
			if err := tx.InsertOperation(ctx, op); err != nil {
				return err
			}
		}
		return nil
	})
}

func readOperation(t testing.TB, db *store.DB, id writ.OperationID) writ.Operation {
	t.Helper()
	return view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Operation, error) { return tx.Operation(ctx, id) })
}

func operationIDs(ops []writ.Operation) (ids []string) {
	for _, op := range ops {
		ids = append(ids, string(op.ID))
	}
	return ids
}

func operationRoundTrip(t *testing.T, s storeSuite) {
	db := s.open(t)
	want := newOperation("op-1", "k ☃ <&> \u202e")
	want.Root, want.CheckOnly, want.Undoes, want.Approval = "/srv/ä b/'site", true, "op-0", "appr-1"
	insertOperations(t, db, want)
	if d := cmp.Diff(want, readOperation(t, db, want.ID)); d != "" {
		t.Errorf("unfinished operation changed (-stored +read):\n%s", d)
	}

	finished := epoch.Add(1500 * time.Millisecond)
	want.Finished, want.Code, want.Message = &finished, "VERSION_CONFLICT", `"a" moved`
	want.Result = writ.PatchResult{Status: writ.PatchRejected, Reason: "r\x00", Changes: []writ.FileChange{{Path: "a", Before: "1", After: "2", Kind: "update"}}}
	finish := func(op writ.Operation) (ok bool) {
		update(t, db, func(ctx context.Context, tx *store.Tx) (err error) { ok, err = tx.FinishOperation(ctx, op); return err })
		return ok
	}
	if !finish(want) {
		t.Error("an unfinished operation was not finished")
	}
	byKey := view(t, db, func(ctx context.Context, tx *store.Tx) (writ.Operation, error) {
		return tx.OperationByKey(ctx, want.Tenant, want.Workspace, want.Root, want.Key)
	})
	if d := cmp.Diff(want, readOperation(t, db, want.ID)) + cmp.Diff(want, byKey); d != "" {
		t.Errorf("finished operation changed (-stored +read):\n%s", d)
	}

	again := want
	later := finished.Add(time.Hour)
	again.Finished, again.Result = &later, writ.PatchResult{Status: writ.PatchApplied}
	if finish(again) {
		t.Error("an operation was finished twice")
	}
	if finish(func() writ.Operation { o := want; o.ID = "op-none"; return o }()) {
		t.Error("an operation that is not there was finished")
	}
	if d := cmp.Diff(want, readOperation(t, db, want.ID)); d != "" {
		t.Errorf("operation changed after its end (-stored +read):\n%s", d)
	}
}

// operationIdentity finishes an operation with everything else of it changed, too.
func operationIdentity(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	op := newOperation("op-1", "k")
	insertOperations(t, db, op)
	thief := newOperation("op-1", "other")
	thief.Tenant, thief.Workspace, thief.Root, thief.By, thief.Owner = "evil", "theirs", "/root", writ.Ref{Kind: writ.KindUser, ID: "spy"}, "gw-9"
	thief.Fingerprint, thief.Created = "f", epoch.Add(time.Hour)
	err := db.Update(ctx, func(tx *store.Tx) error { _, err := tx.FinishOperation(ctx, thief); return err })
	if err == nil {
		t.Error("an operation was finished at no time")
	}
	thief.Finished, thief.Result.Status = &epoch, writ.PatchApplied
	update(t, db, func(ctx context.Context, tx *store.Tx) error { _, err := tx.FinishOperation(ctx, thief); return err })
	op.Finished, op.Result.Status = &epoch, writ.PatchApplied
	if d := cmp.Diff(op, readOperation(t, db, op.ID)); d != "" {
		t.Errorf("what identifies an operation changed with its end (-stored +read):\n%s", d)
	}
}

// operationKeys is scenarios 56 to 59 and spec/02 §16 item 18 as far as they are the
// store's: whose a key is.
func operationKeys(t *testing.T, s storeSuite) {
	db := s.open(t)
	first, tenant, workspace, root := newOperation("op-1", "k"), newOperation("op-2", "k"), newOperation("op-3", "k"), newOperation("op-4", "k")
	tenant.Tenant, workspace.Workspace, root.Root = "evil", "docs", "/srv/moved"
	for i, op := range []*writ.Operation{&first, &tenant, &workspace, &root} {
		op.Created = epoch.Add(time.Duration(i) * time.Second)
	}
	bare := newOperation("op-5", "")
	insertOperations(t, db, first, tenant, workspace, root, bare, newOperation("op-6", "")) // without a key nothing collides
	update(t, db, func(ctx context.Context, tx *store.Tx) error {
		wantKind(t, "second operation with the key", tx.InsertOperation(ctx, newOperation("op-7", "k")), writ.Conflict)
		wantKind(t, "second operation with the id", tx.InsertOperation(ctx, newOperation("op-5", "new")), writ.Conflict)
		got, err := tx.OperationByKey(ctx, first.Tenant, first.Workspace, first.Root, "k") // the transaction goes on
		if got.ID != first.ID {
			t.Errorf("key names %s, want the first operation", got.ID)
		}
		_, none := tx.OperationByKey(ctx, first.Tenant, first.Workspace, first.Root, "K")
		wantKind(t, "operation with a key that nobody gave", none, writ.NotFound)
		_, none = tx.OperationByKey(ctx, bare.Tenant, bare.Workspace, bare.Root, "")
		wantKind(t, "operation with the empty key", none, writ.NotFound)
		return err
	})
	for _, c := range []struct {
		tenant writ.Tenant
		key    string
		want   []string
	}{
		{"", "k", []string{"op-4", "op-3", "op-2", "op-1"}},
		{"acme", "k", []string{"op-4", "op-3", "op-1"}},
		{"evil", "k", []string{"op-2"}},
		{"nobody", "k", nil}, {"", "none", nil}, {"", "", nil}, {"acme", "", nil}, {"", "a\x00b", nil},
	} {
		got := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Operation, error) {
			return tx.OperationsWithKey(ctx, c.tenant, c.key)
		})
		if !slices.Equal(operationIDs(got), c.want) {
			t.Errorf("operations of %q with key %q: %v, want %v", c.tenant, c.key, operationIDs(got), c.want)
		}
	}
}

func operationsWithKeyAreBounded(t *testing.T, s storeSuite) {
	db := s.open(t)
	var ops []writ.Operation
	for i := range 103 {
		op := newOperation(fmt.Sprintf("op-%03d", i), "k")
		op.Workspace, op.Created = writ.WorkspaceID(fmt.Sprint("w", i)), epoch.Add(time.Duration(i)*time.Second)
		ops = append(ops, op)
	}
	insertOperations(t, db, ops...)
	got := operationIDs(view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Operation, error) {
		return tx.OperationsWithKey(ctx, "", "k")
	}))
	if len(got) != 100 || got[0] != "op-102" || got[99] != "op-003" {
		t.Errorf("%d operations with the key, from %s to %s; want the newest 100", len(got), got[0], got[len(got)-1])
	}
}

func operationKeyRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	got := race(8, func(i int) string {
		op := newOperation(fmt.Sprint("op-", i), "k")
		var named writ.Operation
		err := db.Update(ctx, func(tx *store.Tx) error {
			inserted := tx.InsertOperation(ctx, op)
			if inserted != nil && writ.KindOf(inserted) != writ.Conflict {
				return inserted
			}
			var err error
			named, err = tx.OperationByKey(ctx, op.Tenant, op.Workspace, op.Root, op.Key)
			return err
		})
		if err != nil {
			return err.Error()
		}
		return string(named.ID)
	})
	all := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Operation, error) {
		return tx.UnfinishedOperations(ctx, "")
	})
	if len(all) != 1 || got[string(all[0].ID)] != 8 {
		t.Errorf("8 operations with one key: %v stored, the key named %v; want one, and all to be told of it", operationIDs(all), got)
	}
}

func operationFinishRace(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	insertOperations(t, db, newOperation("op-1", ""))
	got := race(8, func(i int) string {
		mine := newOperation("op-1", "")
		mine.Finished, mine.Message = &epoch, fmt.Sprint(i)
		var won bool
		if err := db.Update(ctx, func(tx *store.Tx) (err error) { won, err = tx.FinishOperation(ctx, mine); return err }); err != nil {
			return err.Error()
		}
		if won {
			return "won " + mine.Message
		}
		return "lost"
	})
	if by := readOperation(t, db, "op-1").Message; got["lost"] != 7 || got["won "+by] != 1 {
		t.Errorf("8 ends: %v, stored that of %s; want one winner, stored", got, by)
	}
}

func operationLists(t *testing.T, s storeSuite) {
	db := s.open(t)
	add := func(id string, age time.Duration, change func(*writ.Operation)) {
		op := newOperation(id, "")
		op.Created = epoch.Add(-age)
		change(&op)
		insertOperations(t, db, op)
	}
	end := epoch.Add(time.Hour)
	add("op-1", 3*time.Second, func(op *writ.Operation) { op.Owner = "gw-2" })
	add("op-2", 2*time.Second, func(op *writ.Operation) { op.By.ID = "tester" })
	add("op-3", 2*time.Second, func(op *writ.Operation) { op.Workspace, op.Finished = "docs", &end })
	add("op-4", time.Second, func(op *writ.Operation) { op.By.Kind = writ.KindUser })
	add("op-5", 0, func(op *writ.Operation) { op.Tenant = "evil" })
	builder := writ.Ref{Kind: writ.KindAgent, ID: "builder"}
	list := func(f writ.OperationFilter) (ids []string, next string) {
		ops := view(t, db, func(ctx context.Context, tx *store.Tx) (ops []writ.Operation, err error) {
			ops, next, err = tx.Operations(ctx, f)
			return ops, err
		})
		return operationIDs(ops), next
	}
	for _, c := range []struct {
		filter writ.OperationFilter
		want   []string
	}{
		{writ.OperationFilter{}, []string{"op-5", "op-4", "op-3", "op-2", "op-1"}},
		{writ.OperationFilter{Tenant: "acme"}, []string{"op-4", "op-3", "op-2", "op-1"}},
		{writ.OperationFilter{Tenant: "acme", By: builder}, []string{"op-3", "op-1"}},
		{writ.OperationFilter{Tenant: "evil", By: builder}, []string{"op-5"}},
		{writ.OperationFilter{Tenant: "acme", Workspace: "docs"}, []string{"op-3"}},
		{writ.OperationFilter{Workspace: "none"}, nil},
		{writ.OperationFilter{By: writ.Ref{ID: "a\x00b"}}, nil},
	} {
		if got, next := list(c.filter); !slices.Equal(got, c.want) || next != "" {
			t.Errorf("%+v: got %v, then %q, want %v", c.filter, got, next, c.want)
		}
	}
	f := writ.OperationFilter{Page: writ.Page{Limit: 2}}
	var pages []string
	for {
		ids, next := list(f)
		pages = append(pages, strings.Join(ids, " "))
		if f.Page.Cursor = next; next == "" || len(pages) > 3 {
			break
		}
	}
	if d := cmp.Diff([]string{"op-5 op-4", "op-3 op-2", "op-1"}, pages); d != "" {
		t.Errorf("pages (-want +got):\n%s", d)
	}
	err := db.View(context.Background(), func(tx *store.Tx) error {
		_, _, err := tx.Operations(context.Background(), writ.OperationFilter{Page: writ.Page{Cursor: "x"}})
		return err
	})
	wantKind(t, "operations from a cursor that is not ours", err, writ.Invalid)
	for owner, want := range map[string][]string{"gw-1": {"op-2", "op-4", "op-5"}, "gw-2": {"op-1"}, "gw-9": nil, "": {"op-1", "op-2", "op-4", "op-5"}} {
		got := view(t, db, func(ctx context.Context, tx *store.Tx) ([]writ.Operation, error) {
			return tx.UnfinishedOperations(ctx, owner)
		})
		if !slices.Equal(operationIDs(got), want) {
			t.Errorf("unfinished operations of %q: %v, want %v", owner, operationIDs(got), want)
		}
	}
}

// operationLocked decides from what it has read, in many transactions at once; often,
// since the moment between reading and writing is short.
func operationLocked(t *testing.T, s storeSuite) {
	db, ctx := s.open(t), context.Background()
	read := map[string]func(*store.Tx, string) (writ.Operation, error){
		"id": func(tx *store.Tx, key string) (writ.Operation, error) {
			return tx.Operation(ctx, writ.OperationID("op-"+key))
		},
		"key": func(tx *store.Tx, key string) (writ.Operation, error) {
			return tx.OperationByKey(ctx, "acme", "site", "/srv/site", key)
		},
	}
	for by, read := range read {
		for round := range 20 {
			key := fmt.Sprint(by, round)
			insertOperations(t, db, newOperation("op-"+key, key))
			got := race(8, func(int) string {
				var did bool
				err := db.Update(ctx, func(tx *store.Tx) error {
					did = false
					op, err := read(tx, key)
					if err != nil || op.Finished != nil {
						return err
					}
					op.Finished = &epoch
					did, err = tx.FinishOperation(ctx, op)
					if err == nil && !did {
						err = errors.New("it was finished by another since it was read")
					}
					return err
				})
				return fmt.Sprint(did, err)
			})
			if got["true <nil>"] != 1 || got["false <nil>"] != 7 {
				t.Fatalf("8 read an operation by its %s and finish it: %v, want one to do it and the rest to see it done", by, got)
			}
		}
	}
}
