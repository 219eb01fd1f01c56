package gateway_test

import (
	"context"
	"errors"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// crashSteps are the points of a patch at which the gateway can die, beside those within
// the runner, and what the ledger then comes to. at has the call hang there.
var crashSteps = []struct {
	name    string
	at      func(f *testkit.FaultyFiles) (arrived <-chan struct{}, die func())
	want    writ.PatchStatus
	changed bool
}{
	// Scenario 60: the runner has no trace of it, and the ledger does not guess.
	{"before the runner is called", hangsBefore("Patch"), writ.PatchUnknown, false},
	{"before the end is recorded", hangsAfterPatch, writ.PatchApplied, true},
	{"before the runner forgets", hangsBefore("Forget"), writ.PatchApplied, true},
}

var errDied = errors.New("the process is gone")

// hangsBefore holds a call up for good. die ends it without the files being called.
func hangsBefore(call string) func(f *testkit.FaultyFiles) (<-chan struct{}, func()) {
	return func(f *testkit.FaultyFiles) (<-chan struct{}, func()) {
		arrived, dead := make(chan struct{}, 1), make(chan struct{})
		f.Before(call, func(context.Context) error { arrived <- struct{}{}; <-dead; return errDied })
		return arrived, func() { close(dead) }
	}
}

func hangsAfterPatch(f *testkit.FaultyFiles) (<-chan struct{}, func()) {
	arrived, dead := make(chan struct{}, 1), make(chan struct{})
	f.Answer(func(r writ.PatchResult, err error) (writ.PatchResult, error) {
		arrived <- struct{}{}
		<-dead
		return r, err
	})
	return arrived, func() { close(dead) }
}

func TestScenario60_124_CrashAtEachStep(t *testing.T) {
	for _, step := range crashSteps {
		for _, held := range []bool{false, true} {
			name := step.name
			if held {
				name += ", of a held patch"
			}
			t.Run(name, func(t *testing.T) {
				adjust := func(*writ.Workspace) {}
				if held {
					adjust = confirm
				}
				s, ws := app(t, map[string]string{"a": "1\n"}, adjust)
				coder, req := s.Agent("coder"), keyed("k", edit("a", "1", "2")...)
				var approval writ.ApprovalID
				call := func() error { _, _, err := s.Tools.Patch(context.Background(), coder, req); return err }
				if held {
					approval = mustHold(t, s, coder, req).ID
					s.MustResolve(coder, approval, true)
					call = func() error { _, _, err := s.Resume(context.Background(), coder, approval); return err }
				}
				arrived, die := step.at(s.Files)
				ended := make(chan error, 1)
				go func() { ended <- call() }()
				testkit.Receive(t, "it comes to the step", arrived)
				defer func() { die(); testkit.Receive(t, "the dead one's call ends", ended) }()
				checkCrashed(t, s.Crashed(), ws, req, approval, step.want, step.changed)
			})
		}
	}
}

// checkCrashed holds what a restarted server says of the one patch that its predecessor
// died in against the disk.
func checkCrashed(t *testing.T, s *testkit.Workshop, ws writ.Workspace, req writ.PatchRequest, approval writ.ApprovalID, want writ.PatchStatus, changed bool) {
	t.Helper()
	ops := s.Operations()
	if len(ops) != 1 {
		t.Fatalf("%d operations", len(ops))
	}
	op := ops[0]
	if op.Finished == nil || op.Result.Status != want || op.Approval != approval {
		t.Fatalf("operation is %s (%s), finished %v, want %s", op.Result.Status, op.Result.Reason, op.Finished, want)
	}
	disk := map[string]string{"a": "1\n"}
	if changed {
		disk["a"] = "2\n"
	}
	wantDisk(t, ws, disk)
	if left := s.Journals(); left != nil {
		t.Errorf("journals are left: %v", left)
	}
	// Sent again, and resumed again, it is the same, and nothing is done.
	got, replayed, err := s.Tools.Patch(t.Context(), s.Agent("coder"), req)
	if err != nil || !replayed || got.ID != op.ID {
		t.Errorf("sent again: %s, replayed %v, %v", got.ID, replayed, err)
	}
	if approval != "" {
		if again := mustResume(t, s, s.Agent("coder"), approval, want); again.ID != op.ID {
			t.Errorf("resumed: %s, want %s", again.ID, op.ID)
		}
	}
	if s.Files.Calls("Patch") != 0 {
		t.Error("it was done again")
	}
	wantDisk(t, ws, disk)
	var ends int
	for _, e := range s.Events("") {
		if e.Type == writ.EventPatchFinished {
			ends++
			if e.Data.Patch != want || e.Data.Operation != op.ID {
				t.Errorf("the log says %s of %s", e.Data.Patch, e.Data.Operation)
			}
		}
	}
	if ends != 1 {
		t.Errorf("%d ends in the log", ends)
	}
	mustPatchNext(t, s)
}

// mustPatchNext fails t if the workspace is not free for the next patch.
func mustPatchNext(t *testing.T, s *testkit.Workshop) {
	t.Helper()
	req := change(add("next", "x")...)
	req.CheckOnly = true
	op, _, err := s.Tools.Patch(context.Background(), s.Agent("coder"), req)
	if h, ok := errors.AsType[*writ.Held](err); ok {
		s.MustResolve(s.Agent("coder"), h.Approval, true)
		_, op, err = s.Resume(context.Background(), s.Agent("coder"), h.Approval)
	}
	if err != nil || op.Result.Status != writ.PatchChecked {
		t.Errorf("the next patch: %s, %v", op.Result.Status, err)
	}
}

// A sweep leaves alone what a call is carrying out, also when the runner has it settled.
func TestSweepLeavesWhatIsUnderWay(t *testing.T) {
	for _, step := range crashSteps {
		t.Run(step.name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n"}, nil)
			arrived, die := step.at(s.Files)
			patch := goPatch(s, s.Agent("coder"), keyed("k", edit("a", "1", "2")...))
			testkit.Receive(t, "it comes to the step", arrived)
			before := s.Operations()
			for range 3 {
				s.Settle()
			}
			if len(before) != 1 || s.Ledger(before[0].ID).Finished == nil != (before[0].Finished == nil) {
				t.Errorf("a sweep ended %+v", before)
			}
			die()
			p := testkit.Receive(t, "it ends", patch)
			wantLedger(t, s, p.op)
			if !step.changed {
				return
			}
			if p.err != nil || p.op.Result.Status != writ.PatchApplied {
				t.Errorf("%s, %v", p.op.Result.Status, p.err)
			}
			wantDisk(t, ws, map[string]string{"a": "2\n"})
		})
	}
}

// What cannot be settled yet stays open: neither the ledger nor the approval guesses.
func TestWhatCannotBeSettledYet(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, confirm, impatient)
	coder := s.Agent("coder")
	a := mustHold(t, s, coder, keyed("k", edit("a", "1", "2")...))
	s.MustResolve(coder, a.ID, true)
	mend := failOn(t, s.System, writ.EventPatchFinished)
	_, _, err := s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume", err, "APPROVAL_AMBIGUOUS")
	mend()
	s.Files.Before("Recover", func(context.Context) error { return &writ.Error{Kind: writ.Unavailable, Msg: "no runner"} })
	_, _, err = s.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume without a runner", err, "APPROVAL_AMBIGUOUS")
	if err := s.Tools.Sweep(t.Context(), false); err == nil {
		t.Error("a sweep without a runner is no error")
	}
	if op := s.Operations()[0]; op.Finished != nil || s.StoredApproval(a.ID).State != writ.ApprovalResuming {
		t.Errorf("operation %s, approval %s", op.Result.Status, s.StoredApproval(a.ID).State)
	}
	s.Files.Mend()
	s.Settle()
	mustResume(t, s, coder, a.ID, writ.PatchApplied)
	wantDisk(t, ws, map[string]string{"a": "2\n"})
}

// What the runner could not forget is forgotten at the next start.
func TestForgetIsMadeUpFor(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, nil)
	s.Files.Before("Forget", func(context.Context) error { return &writ.Error{Kind: writ.Unavailable, Msg: "no runner"} })
	op := mustPatch(t, s, s.Agent("coder"), change(edit("a", "1", "2")...), writ.PatchApplied)
	if left := s.Journals(); len(left) != 1 || left[0] != string(op.ID) {
		t.Fatalf("journals: %v", left)
	}
	s.Restart()
	if left := s.Journals(); left != nil {
		t.Errorf("journals are left: %v", left)
	}
}

// A journal of an operation that this ledger does not know is somebody else's.
func TestJournalOfAnotherLedger(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	if _, err := s.Files.Patch(t.Context(), ws, "op-of-another", change(edit("a", "1", "2")...), ""); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if left := s.Journals(); len(left) != 1 {
		t.Errorf("journals: %v", left)
	}
	mustPatch(t, s, s.Agent("coder"), change(edit("a", "2", "3")...), writ.PatchApplied)
}
