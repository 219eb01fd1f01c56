package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

func TestScenario130_ProfileDowngraded(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
	coder := s.Agent("coder")
	a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	s.MustResolve(coder, a.ID, true)
	closed := ws
	closed.Profile = writ.ReadOnly
	s.Restart(closed)
	var first error
	for range 2 { // it is terminal, and answered again
		_, op, err := s.Resume(t.Context(), coder, a.ID)
		wantCode(t, "resume", err, "UNAUTHORIZED")
		if op.ID != "" || first != nil && writ.Message(err) != writ.Message(first) {
			t.Errorf("operation %s, %v, was %v", op.ID, err, first)
		}
		first = err
	}
	if got := s.StoredApproval(a.ID); got.State != writ.ApprovalConsumed || len(s.Operations()) != 0 {
		t.Errorf("approval is %s, %d operations", got.State, len(s.Operations()))
	}
	s.Restart(ws)
	_, _, err := s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume after the profile came back", err, "UNAUTHORIZED")
	wantDisk(t, ws, map[string]string{"a": "1\n"})
}

// PA-07, POL-05: what moved between the request and the resume is shown to whoever
// granted, in a hold of its own; the old one is over.
func TestPA07_POL05_FilesMovedBetweenGrantAndResume(t *testing.T) {
	for name, when := range map[string]string{"before the grant": "pending", "after the grant": "granted"} {
		t.Run(name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n", "b": "1\n", "c": "x\n"}, confirm)
			coder := s.Agent("coder")
			req := keyed("k", slices.Concat(edit("a", "1", "2"), edit("b", "1", "2"))...)
			a := mustHold(t, s, coder, req)
			moved := map[string]string{"a": "1\n", "b": "0\n1\n", "c": "y\n"} // the hunk of b fits elsewhere
			if when == "pending" {
				testkit.PutFiles(t, ws.Root, moved)
			}
			s.MustResolve(coder, a.ID, true)
			if when == "granted" {
				testkit.PutFiles(t, ws.Root, moved)
			}
			_, op, err := s.Resume(t.Context(), coder, a.ID)
			wantCode(t, "resume", err, "APPROVAL_REQUIRED")
			h, ok := errors.AsType[*writ.Held](err)
			if !ok || h.Approval == a.ID || op.ID != "" {
				t.Fatalf("%v", err)
			}
			msg := writ.Message(err)
			if !strings.Contains(msg, "moved on: b;") && !strings.Contains(msg, "moved on: b)") {
				t.Errorf("%q does not name the one file that moved", msg)
			}
			wantDisk(t, ws, moved)
			fresh := s.StoredApproval(h.Approval)
			if fresh.Replaces != a.ID || fresh.State != writ.ApprovalPending || s.StoredApproval(a.ID).State != writ.ApprovalCancelled {
				t.Errorf("%s replaces %s, which is %s", fresh.State, fresh.Replaces, s.StoredApproval(a.ID).State)
			}
			_, _, err = s.Resume(t.Context(), coder, a.ID)
			wantCode(t, "resume of the old one", err, "APPROVAL_CONFLICT")
			if again := mustHold(t, s, coder, req); again.ID != fresh.ID {
				t.Errorf("sent again: %s, want %s", again.ID, fresh.ID)
			}
			s.MustResolve(coder, fresh.ID, true)
			mustResume(t, s, coder, fresh.ID, writ.PatchApplied)
			wantDisk(t, ws, map[string]string{"a": "2\n", "b": "0\n2\n", "c": "y\n"})
		})
	}
}

// What moves after the resume has looked is found by the runner, and that is the end.
func TestPA07_FilesMoveAtTheLastMoment(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
	coder := s.Agent("coder")
	a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	s.MustResolve(coder, a.ID, true)
	s.Files.Before("Patch", func(context.Context) error {
		testkit.PutFiles(t, ws.Root, map[string]string{"a": "0\n1\n"})
		return nil
	})
	for range 2 {
		_, _, err := s.Resume(t.Context(), coder, a.ID)
		wantCode(t, "resume", err, "VERSION_CONFLICT")
		if op := s.Ledger(operationOf(err)); op.Result.Status != writ.PatchRejected {
			t.Errorf("the ledger has %s", op.Result.Status)
		}
	}
	if got := s.StoredApproval(a.ID); got.State != writ.ApprovalConsumed || s.Files.Calls("Patch") != 1 {
		t.Errorf("approval is %s, %d patches", got.State, s.Files.Calls("Patch"))
	}
	wantDisk(t, ws, map[string]string{"a": "0\n1\n"})
}

// Nobody is asked about what cannot be done.
func TestNoHoldForWhatCannotBeApplied(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, confirm)
	for want, req := range map[string]writ.PatchRequest{
		"INVALID_PATCH":    change(edit("a", "9", "2")...),
		"FILE_NOT_FOUND":   change("*** Delete File: none"),
		"ADD_FILE_EXISTS":  change(add("a", "2")...),
		"PATH_ESCAPE":      change(add("../x", "2")...),
		"VERSION_CONFLICT": {Workspace: "app", Patch: testkit.PatchText(edit("a", "1", "2")...), Expected: map[string]string{"a": "absent"}},
	} {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req)
		wantCode(t, "patch", err, want)
		_, err2 := s.CreateApproval(t.Context(), s.Agent("coder"), req)
		wantCode(t, "create an approval", err2, want)
		if operationOf(err) != "" {
			t.Errorf("%s: there is an operation", want)
		}
	}
	list, _, err := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{})
	if err != nil || len(list) != 0 || len(s.Operations()) != 0 {
		t.Errorf("%d approvals, %d operations, %v", len(list), len(s.Operations()), err)
	}
}

func TestPOL07_HoldsExpire(t *testing.T) {
	for name, grant := range map[string]bool{"pending": false, "granted": true} {
		t.Run(name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
			coder := s.Agent("coder")
			a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
			if grant {
				s.MustResolve(coder, a.ID, true)
			}
			expire(t, s, a.ID)
			if got := s.StoredApproval(a.ID); got.State != writ.ApprovalExpired {
				t.Fatalf("it is %s", got.State)
			}
			_, _, err := s.Resume(t.Context(), coder, a.ID)
			wantCode(t, "resume", err, "APPROVAL_CONFLICT")
			_, err = s.Tools.ResolveApproval(t.Context(), coder, a.ID, true)
			wantCode(t, "grant", err, "APPROVAL_CONFLICT")
			if b := mustHold(t, s, coder, change(edit("a", "1", "2")...)); b.ID == a.ID {
				t.Error("sent again it is the expired hold")
			}
			wantDisk(t, ws, map[string]string{"a": "1\n"})
		})
	}
}

// A hold whose time is over is so before anybody has noticed.
func TestPOL07_ExpiredAndNotNoticed(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm, func(g *testkit.GatewaySetup) { g.Options.ApprovalTTL = time.Millisecond })
	coder := s.Agent("coder")
	first := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	testkit.Eventually(t, "its time is over", func() bool { return writ.Now().After(first.Expires) })
	_, err := s.Tools.ResolveApproval(t.Context(), coder, first.ID, true)
	wantCode(t, "grant", err, "APPROVAL_CONFLICT")
	// Sent again it is a hold that can be decided, or the caller could do nothing.
	if again := mustHold(t, s, coder, change(edit("a", "1", "2")...)); again.ID == first.ID {
		t.Error("the answer is a hold that nobody can decide")
	}
	wantDisk(t, ws, map[string]string{"a": "1\n"})
}

func TestAnotherRootDoesNotResume(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
	coder := s.Agent("coder")
	a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	s.MustResolve(coder, a.ID, true)
	other := testkit.Workspace(t, "app", map[string]string{"a": "1\n"}, confirm)
	s.Restart(other)
	_, _, err := s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume", err, "APPROVAL_CONFLICT")
	// Nor is the open hold that of a request for the other folder.
	if b := mustHold(t, s, coder, change(edit("a", "1", "2")...)); b.ID == a.ID {
		t.Error("one hold for two folders")
	}
	gone := testkit.Workspace(t, "elsewhere", nil)
	s.Restart(gone)
	_, _, err = s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume without the workspace", err, "WORKSPACE_NOT_FOUND")
	for _, w := range []writ.Workspace{ws, other} {
		wantDisk(t, w, map[string]string{"a": "1\n"})
	}
	// It comes back, and so does the grant.
	s.Restart(ws)
	mustResume(t, s, coder, a.ID, writ.PatchApplied)
}

// What the store says of a held patch is not believed where it is not what was granted.
func TestPA07_StoredPatchWasChanged(t *testing.T) {
	for name, tt := range map[string]struct{ body, from, to string }{
		"the patch":    {store.BodyPatch, "+2", "+9"},
		"its key":      {store.BodyPatch, `"operation_key":"k"`, `"operation_key":"x"`},
		"a path of it": {store.BodyPlan, `"path":"a"`, `"path":"b"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
			coder := s.Agent("coder")
			a := mustHold(t, s, coder, keyed("k", edit("a", "1", "2")...))
			s.MustResolve(coder, a.ID, true)
			err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
				b, err := tx.ApprovalBody(t.Context(), a.ID, tt.body)
				if err != nil {
					return err
				}
				changed := bytes.Replace(b, []byte(tt.from), []byte(tt.to), 1)
				if bytes.Equal(b, changed) {
					return fmt.Errorf("%q is not in %s", tt.from, b)
				}
				if _, err := tx.DeleteApprovalBodies(t.Context(), a.ID, tt.body); err != nil {
					return err
				}
				return tx.PutApprovalBody(t.Context(), a.ID, tt.body, changed)
			})
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = s.Resume(t.Context(), coder, a.ID)
			wantCode(t, "resume", err, "APPROVAL_CONFLICT")
			if got := s.StoredApproval(a.ID); got.State != writ.ApprovalCancelled || len(s.Operations()) != 0 {
				t.Errorf("approval is %s, %d operations", got.State, len(s.Operations()))
			}
			wantDisk(t, ws, map[string]string{"a": "1\n"})
		})
	}
}

// The key was used for the same meanwhile, or for something else.
func TestKeyIsUsedWhileItIsHeld(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	coder := s.Agent("coder")
	same, other := keyed("same", edit("a", "1", "2")...), keyed("other", add("b", "x")...)
	var held []writ.Approval
	for _, req := range []writ.PatchRequest{same, other} {
		a, err := s.CreateApproval(t.Context(), coder, req)
		if err != nil {
			t.Fatal(err)
		}
		s.MustResolve(coder, a.ID, true)
		held = append(held, a)
	}
	done := mustPatch(t, s, coder, same, writ.PatchApplied)
	mustPatch(t, s, coder, keyed("other", add("c", "x")...), writ.PatchApplied)
	want := map[string]string{"a": "2\n", "c": "x\n"}
	for range 2 {
		a, op, err := s.Resume(t.Context(), coder, held[0].ID)
		if err != nil || op.ID != done.ID || a.State != writ.ApprovalConsumed {
			t.Errorf("the same: %s of %s, %v", a.State, op.ID, err)
		}
		_, op, err = s.Resume(t.Context(), coder, held[1].ID)
		wantCode(t, "the other", err, "OPERATION_KEY_CONFLICT")
		if op.ID != "" {
			t.Errorf("operation %s", op.ID)
		}
		wantDisk(t, ws, want)
	}
	_, err := s.CreateApproval(t.Context(), coder, keyed("other", add("d", "x")...))
	wantCode(t, "a hold under a key that is taken", err, "OPERATION_KEY_CONFLICT")
	if d := cmp.Diff(2, s.Files.Calls("Patch")); d != "" {
		t.Error(d)
	}
}

// The key was used for the same meanwhile, and nobody knows yet how that ended: nor does
// the hold, which is not used up by it.
func TestKeyIsUsedAndNotOver(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil, impatient)
	coder, req := s.Agent("coder"), keyed("k", edit("a", "1", "2")...)
	a, err := s.CreateApproval(t.Context(), coder, req)
	if err != nil {
		t.Fatal(err)
	}
	s.MustResolve(coder, a.ID, true)
	mend := failOn(t, s.System, writ.EventPatchFinished)
	_, _, err = s.Tools.Patch(t.Context(), coder, req)
	id := operationOf(err)
	if id == "" {
		t.Fatal(err)
	}
	mend()
	_, _, err = s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume", err, "APPROVAL_AMBIGUOUS")
	if got := s.StoredApproval(a.ID); got.State != writ.ApprovalQueued || operationOf(err) != id {
		t.Errorf("approval is %s, the error names %q, want %s", got.State, operationOf(err), id)
	}
	s.Settle()
	got, op, err := s.Resume(t.Context(), coder, a.ID)
	if err != nil || got.State != writ.ApprovalConsumed || op.ID != id || op.Result.Status != writ.PatchApplied || s.Files.Calls("Patch") != 1 {
		t.Errorf("%s of %s, approval %s, %v, %d patches", op.Result.Status, op.ID, got.State, err, s.Files.Calls("Patch"))
	}
	wantDisk(t, ws, map[string]string{"a": "2\n"})
}
