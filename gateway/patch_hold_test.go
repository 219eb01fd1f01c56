package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// Scenario 115 is also TestScenario63_POL14_ReadOnly: what a client claims has no place
// in the interface.

func TestScenario116_PA15_HoldGrantResume(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, ws := app(t, map[string]string{"a": "1\n"}, confirm, on)
		ctx, coder := t.Context(), s.Agent("coder")
		req := keyed("k", edit("a", "1", "2")...)
		a := mustHold(t, s, coder, req)
		if a.State != writ.ApprovalPending || a.Action != writ.ActionPatch || a.Call == nil || a.Call.Key != "k" || a.Task != "" {
			t.Errorf("%+v", a)
		}
		if n := len(s.Operations()); n != 0 || s.Files.Calls("Patch") != 0 {
			t.Errorf("%d operations before the grant", n)
		}
		if _, _, err := s.Resume(ctx, coder, a.ID); err == nil {
			t.Error("resumed while it waits")
		} else {
			wantCode(t, "resume while it waits", err, "APPROVAL_CONFLICT")
		}
		granted, err := s.Tools.ResolveApproval(ctx, coder, a.ID, true)
		if err != nil || granted.State != writ.ApprovalGranted {
			t.Fatalf("%s, %v", granted.State, err)
		}
		wantDisk(t, ws, map[string]string{"a": "1\n"}) // it waits until it is resumed
		op := mustResume(t, s, coder, a.ID, writ.PatchApplied)
		wantDisk(t, ws, map[string]string{"a": "2\n"})

		testkit.PutFiles(t, ws.Root, map[string]string{"a": "3\n"})
		for range 3 {
			if again := mustResume(t, s, coder, a.ID, writ.PatchApplied); again.ID != op.ID {
				t.Errorf("resumed again: %s, was %s", again.ID, op.ID)
			}
		}
		// The request sent again is answered before any hold (spec/02 §16 item 12).
		got, replayed, err := s.Tools.Patch(ctx, coder, req)
		if err != nil || !replayed || got.ID != op.ID {
			t.Errorf("sent again: %s, replayed %v, %v", got.ID, replayed, err)
		}
		if n := s.Files.Calls("Patch"); n != 1 {
			t.Errorf("%d patches", n)
		}
		wantDisk(t, ws, map[string]string{"a": "3\n"})
		by, err := s.Tools.Operation(ctx, coder, "", "k")
		if err != nil || by.ID != op.ID || by.Approval != a.ID {
			t.Errorf("by key: %+v, %v", by, err)
		}
	})
}

func TestScenario117_Denied(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
	coder := s.Agent("coder")
	a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	if got, err := s.Tools.ResolveApproval(t.Context(), coder, a.ID, false); err != nil || got.State != writ.ApprovalDenied {
		t.Fatalf("%s, %v", got.State, err)
	}
	for range 2 {
		_, _, err := s.Resume(t.Context(), coder, a.ID)
		wantCode(t, "resume", err, "APPROVAL_CONFLICT")
	}
	for _, grant := range []bool{true, false} {
		_, err := s.Tools.ResolveApproval(t.Context(), coder, a.ID, grant)
		wantCode(t, "another verdict", err, "APPROVAL_CONFLICT")
	}
	// A denied one does not block the next.
	if b := mustHold(t, s, coder, change(edit("a", "1", "2")...)); b.ID == a.ID {
		t.Error("the denied hold is asked for again")
	}
	wantDisk(t, ws, map[string]string{"a": "1\n"})
	if n := len(s.Operations()); n != 0 {
		t.Errorf("%d operations", n)
	}
}

func TestScenario118_120_ApprovalsOff(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	coder := s.Agent("coder")
	mustPatch(t, s, coder, change(edit("a", "1", "2")...), writ.PatchApplied)
	// 120: an explicit hold where none is asked for.
	req := change(edit("a", "2", "3")...)
	a, err := s.CreateApproval(t.Context(), coder, req)
	if err != nil || a.State != writ.ApprovalPending {
		t.Fatalf("%+v, %v", a, err)
	}
	if b, err := s.CreateApproval(t.Context(), coder, req); err != nil || b.ID != a.ID {
		t.Errorf("another hold for the same: %s, %v", b.ID, err)
	}
	s.MustResolve(coder, a.ID, true)
	mustResume(t, s, coder, a.ID, writ.PatchApplied)
	wantDisk(t, ws, map[string]string{"a": "3\n"})
}

// Scenario 121, and weakness 13 of spec/02: another key is another hold, and so is
// another requester.
func TestScenario121_OneHoldForOneRequest(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, _ := app(t, map[string]string{"a": "1\n"}, confirm, on)
		coder := s.Agent("coder")
		req := keyed("k", edit("a", "1", "2")...)
		first := mustHold(t, s, coder, req)
		others := map[string]writ.Approval{
			"other key":       mustHold(t, s, coder, keyed("other", edit("a", "1", "2")...)),
			"no key":          mustHold(t, s, coder, change(edit("a", "1", "2")...)),
			"other content":   mustHold(t, s, coder, keyed("k", edit("a", "1", "3")...)),
			"other requester": mustHold(t, s, s.Agent("mate"), req),
		}
		ids := map[writ.ApprovalID]bool{first.ID: true}
		for what, a := range others {
			if ids[a.ID] {
				t.Errorf("%s: the same hold", what)
			}
			ids[a.ID] = true
		}
		s.Restart()
		for _, want := range []writ.ApprovalState{writ.ApprovalPending, writ.ApprovalGranted} {
			if again := mustHold(t, s, coder, req); again.ID != first.ID || again.State != want {
				t.Errorf("sent again: %s is %s, want %s", again.ID, again.State, want)
			}
			if want == writ.ApprovalPending {
				s.MustResolve(coder, first.ID, true)
			}
		}
		if list, _, err := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{}); err != nil || len(list) != 5 {
			t.Errorf("%d approvals, %v", len(list), err)
		}
	})
}

func TestScenario121_TheSameRequestAtOneMoment(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, _ := app(t, map[string]string{"a": "1\n"}, confirm, on)
		for round := range 10 {
			req := keyed(fmt.Sprint(round), edit("a", "1", "2")...)
			var got [6]writ.ApprovalID
			together(6, func(i int) {
				_, _, err := s.Tools.Patch(context.Background(), s.Agent("coder"), req)
				if h, ok := errors.AsType[*writ.Held](err); ok {
					got[i] = h.Approval
				} else {
					t.Error(err)
				}
			})
			if n := len(slices.Compact(got[:])); n != 1 {
				t.Errorf("round %d: %v", round, got)
			}
		}
	})
}

func TestScenario122_PA06_ResumesAtOneMoment(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, ws := app(t, map[string]string{"n": "0\n"}, confirm, on)
		coder := s.Agent("coder")
		for round := range 10 {
			a := mustHold(t, s, coder, change(edit("n", fmt.Sprint(round), fmt.Sprint(round+1))...))
			s.MustResolve(coder, a.ID, true)
			var ids [4]writ.OperationID
			together(4, func(i int) {
				_, op, err := s.Resume(context.Background(), coder, a.ID)
				switch {
				case err == nil:
					ids[i] = op.ID
				case writ.CodeOf(err) != "APPROVAL_CONFLICT":
					t.Errorf("round %d: %v", round, err)
				}
			})
			done := slices.DeleteFunc(ids[:], func(id writ.OperationID) bool { return id == "" })
			if slices.Sort(done); len(done) == 0 || len(slices.Compact(done)) != 1 {
				t.Errorf("round %d: operations %v", round, done)
			}
		}
		if n := s.Files.Calls("Patch"); n != 10 {
			t.Errorf("%d patches", n)
		}
		wantDisk(t, ws, map[string]string{"n": "10\n"})
	})
}

// Two servers on one database, which do not know of each other's calls.
func TestScenario122_ResumesOnTwoServers(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, ws := app(t, map[string]string{"n": "0\n"}, confirm, on)
		both := []*testkit.Workshop{s, s.Sibling("gw_other")}
		coder := s.Agent("coder")
		for round := range 15 {
			a := mustHold(t, s, coder, change(edit("n", fmt.Sprint(round), fmt.Sprint(round+1))...))
			s.MustResolve(coder, a.ID, true)
			var won atomic.Int32
			together(4, func(i int) {
				_, op, err := both[i%2].Resume(context.Background(), coder, a.ID)
				switch code := writ.CodeOf(err); {
				case err == nil && op.Result.Status == writ.PatchApplied:
					won.Add(1)
				case code != "APPROVAL_CONFLICT" && code != "APPROVAL_AMBIGUOUS":
					t.Errorf("round %d: %s, %v with code %q", round, op.Result.Status, err, code)
				}
			})
			if won.Load() == 0 || s.StoredApproval(a.ID).State != writ.ApprovalConsumed {
				t.Errorf("round %d: %d won, approval is %s", round, won.Load(), s.StoredApproval(a.ID).State)
			}
			wantDisk(t, ws, map[string]string{"n": fmt.Sprint(round+1) + "\n"})
		}
		if n := len(s.Operations()); n != 15 {
			t.Errorf("%d operations", n)
		}
	})
}

// Here an approval is resuming exactly when its operation is in the ledger: the two are
// one transaction. One of another version of writ may be otherwise.
func TestScenario123_ResumingWithoutAnOperation(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
	coder := s.Agent("coder")
	a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	s.MustResolve(coder, a.ID, true)
	stored := s.StoredApproval(a.ID)
	stored.State = writ.ApprovalResuming
	err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.UpdateApproval(t.Context(), stored, writ.ApprovalGranted)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Restart()
	op := mustResume(t, s, coder, a.ID, writ.PatchApplied)
	if again := mustResume(t, s, coder, a.ID, writ.PatchApplied); again.ID != op.ID || s.Files.Calls("Patch") != 1 {
		t.Errorf("resumed again: %s, %d patches", again.ID, s.Files.Calls("Patch"))
	}
	wantDisk(t, ws, map[string]string{"a": "2\n"})
}

// Scenario 124 is TestCrashAtEachStep. Scenarios 119 and 125 are of commands.

func TestScenario126_127_QueuedWaitsForTheLease(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n", "b": "1\n"}, nil)
	coder := s.Agent("coder")
	a, err := s.CreateApproval(t.Context(), coder, change(edit("a", "1", "2")...))
	if err != nil {
		t.Fatal(err)
	}
	s.MustResolve(coder, a.ID, true)

	// 127: the workspace is busy, for as long as the caller waits and for one too many.
	arrived, release := s.Files.Hangs("Patch")
	holder := goPatch(s, coder, change(edit("b", "1", "2")...))
	testkit.Receive(t, "a patch holds the lease", arrived)
	ctx, cancel := context.WithCancel(t.Context())
	resumed := make(chan error, 1)
	go func() { _, _, err := s.Resume(ctx, coder, a.ID); resumed <- err }()
	testkit.Eventually(t, "it is queued", func() bool { return s.StoredApproval(a.ID).State == writ.ApprovalQueued })
	_, _, err = s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resumed while it is", err, "APPROVAL_CONFLICT")
	cancel()
	if err := testkit.Receive(t, "the call ends", resumed); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	stop := fillQueue(t, s, coder)
	_, _, err = s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume with a full queue", err, "RESOURCE_QUEUE_FULL")
	stop()
	if got := s.StoredApproval(a.ID); got.State != writ.ApprovalQueued {
		t.Fatalf("approval is %s", got.State)
	}
	release()
	testkit.Receive(t, "the lease is given up", holder)

	// 126
	s.Restart()
	if got := s.StoredApproval(a.ID); got.State != writ.ApprovalQueued {
		t.Fatalf("after a restart the approval is %s", got.State)
	}
	mustResume(t, s, coder, a.ID, writ.PatchApplied)
	wantDisk(t, ws, map[string]string{"a": "2\n", "b": "2\n"})
}

// An end that cannot be recorded is an ambiguous one, whatever it was.
func TestScenario128_TheEndIsNotRecorded(t *testing.T) {
	for name, tt := range map[string]struct {
		move bool // a file, so that the patch is rejected
		want writ.PatchStatus
	}{"applied": {false, writ.PatchApplied}, "rejected": {true, writ.PatchUnknown}} {
		t.Run(name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n"}, confirm, impatient)
			coder := s.Agent("coder")
			a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
			s.MustResolve(coder, a.ID, true)
			if tt.move {
				testkit.PutFiles(t, ws.Root, map[string]string{"a": "other\n"})
			}
			mend := failOn(t, s.System, writ.EventPatchFinished)
			_, _, err := s.Resume(t.Context(), coder, a.ID)
			wantCode(t, "resume", err, "APPROVAL_AMBIGUOUS")
			id := operationOf(err)
			if got := s.StoredApproval(a.ID); got.State != writ.ApprovalResuming || got.Call.Operation != id || id == "" {
				t.Errorf("approval is %s with operation %q, the error names %q", got.State, got.Call.Operation, id)
			}
			if op := s.Ledger(id); op.Finished != nil || op.Result.Status != writ.PatchUnknown {
				t.Errorf("the ledger has %s", op.Result.Status)
			}
			mend()
			// Whoever asks again is told, and nothing is done twice.
			op := mustResume(t, s, coder, a.ID, tt.want)
			if op.ID != id || s.Files.Calls("Patch") > 1 {
				t.Errorf("operation %s, %d patches", op.ID, s.Files.Calls("Patch"))
			}
		})
	}
}

// The same of a patch that nothing held.
func TestTheEndOfAPatchIsNotRecorded(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil, impatient)
	coder, req := s.Agent("coder"), keyed("k", edit("a", "1", "2")...)
	mend := failOn(t, s.System, writ.EventPatchFinished)
	_, _, err := s.Tools.Patch(t.Context(), coder, req)
	if writ.KindOf(err) != writ.Unavailable || operationOf(err) == "" {
		t.Fatalf("%v", err)
	}
	got, replayed, err := s.Tools.Patch(t.Context(), coder, req)
	if err != nil || !replayed || got.Result.Status != writ.PatchUnknown || got.Finished != nil {
		t.Errorf("sent again meanwhile: %+v, replayed %v, %v", got, replayed, err)
	}
	mend()
	s.Settle()
	if op := s.Ledger(got.ID); op.Result.Status != writ.PatchApplied || op.Finished == nil {
		t.Errorf("settled: %+v", op)
	}
	if left := s.Journals(); left != nil {
		t.Errorf("journals are left: %v", left)
	}
	wantDisk(t, ws, map[string]string{"a": "2\n"})
}

func TestScenario129_WhatIsOverIsScrubbed(t *testing.T) {
	const marker = "MARKER-of-the-text-of-a-patch"
	for name, end := range map[string]func(s *testkit.Workshop, ws writ.Workspace, a writ.Approval){
		"consumed": func(s *testkit.Workshop, _ writ.Workspace, a writ.Approval) {
			s.MustResolve(s.Agent("coder"), a.ID, true)
			mustResume(t, s, s.Agent("coder"), a.ID, writ.PatchApplied)
		},
		"denied": func(s *testkit.Workshop, _ writ.Workspace, a writ.Approval) {
			s.MustResolve(s.Agent("coder"), a.ID, false)
		},
		"expired": func(s *testkit.Workshop, _ writ.Workspace, a writ.Approval) {
			expire(t, s, a.ID)
		},
		"replaced, then denied": func(s *testkit.Workshop, ws writ.Workspace, a writ.Approval) {
			s.MustResolve(s.Agent("coder"), a.ID, true)
			testkit.PutFiles(t, ws.Root, map[string]string{"a": "1\nmoved\n"})
			_, _, err := s.Resume(context.Background(), s.Agent("coder"), a.ID)
			h, _ := errors.AsType[*writ.Held](err)
			s.MustResolve(s.Agent("coder"), h.Approval, false)
		},
		"rejected": func(s *testkit.Workshop, ws writ.Workspace, a writ.Approval) {
			s.MustResolve(s.Agent("coder"), a.ID, true)
			testkit.PutFiles(t, ws.Root, map[string]string{"a": "MARKER-other\n"})
			_, _, err := s.Resume(context.Background(), s.Agent("coder"), a.ID)
			wantCode(t, "resume", err, "INVALID_PATCH")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
			a := mustHold(t, s, s.Agent("coder"), change("*** Update File: a", "@@", " 1", "+"+marker))
			if !stored(t, s, marker) {
				t.Fatal("what is held is not in the store: this test shows nothing")
			}
			end(s, ws, a)
			if got := s.StoredApproval(a.ID); !got.State.Terminal() {
				t.Fatalf("approval is %s", got.State)
			}
			if v, err := s.Approval(t.Context(), s.Agent("coder"), a.ID); err != nil || v.Text != "" {
				t.Errorf("it shows %q, %v", v.Text, err)
			}
			s.Stop()
			if stored(t, s, "MARKER") {
				t.Error("the text of the patch is still in the store's files")
			}
		})
	}
}

// stored reports whether text is anywhere in the files of the store.
func stored(t *testing.T, s *testkit.Workshop, text string) bool {
	t.Helper()
	found := false
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(s.File() + suffix)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		found = found || bytes.Contains(b, []byte(text))
	}
	return found
}

// expire ends the time of an approval, and has that noticed.
func expire(t *testing.T, s *testkit.Workshop, id writ.ApprovalID) {
	t.Helper()
	backdate(t, s, id)
	sweep(t, s.System)
}

// backdate makes an approval one whose time is over.
func backdate(t *testing.T, s *testkit.Workshop, id writ.ApprovalID) {
	t.Helper()
	a := s.StoredApproval(id)
	a.Expires = writ.Now().Add(-time.Second)
	err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
		ok, err := tx.UpdateApproval(t.Context(), a, a.State)
		if err == nil && !ok {
			err = errors.New("it moved")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// While a call works out what it wants held, another opens a hold for the same, whose time
// is over before the first finds it: that one opens a hold of its own, and is not told that
// something is not there.
func TestAHoldForTheSameComesAndGoes(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, confirm)
	coder, req := s.Agent("coder"), change(edit("a", "1", "2")...)
	var first writ.Approval
	s.Files.Before("Plan", func(context.Context) error {
		s.Files.Mend()
		first = mustHold(t, s, coder, req)
		backdate(t, s, first.ID)
		return nil
	})
	second := mustHold(t, s, coder, req)
	if first.ID == "" || second.ID == first.ID || second.State != writ.ApprovalPending {
		t.Errorf("the first hold is %q, the second %q, which is %s", first.ID, second.ID, second.State)
	}
	if got := s.StoredApproval(first.ID); got.State != writ.ApprovalExpired {
		t.Errorf("the first is %s", got.State)
	}
}
