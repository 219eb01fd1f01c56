package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"writ"
	"writ/internal/testkit"
)

func TestScenario119_PA15_ConfirmedCommandStartsOnResume(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, ws := bench(t, confirm, on)
		coder := s.Agent("coder")
		a := mustHoldCommand(t, s, coder, "touch", "made")
		if a.State != writ.ApprovalPending || a.Action != writ.ActionExec || a.Call == nil || a.Call.Mode != writ.ApprovalsConfirm || a.Call.Root != ws.Root || a.Call.Process != "" || a.Task != "" {
			t.Errorf("%+v", a)
		}
		resumeFails(t, s, coder, a.ID, "APPROVAL_CONFLICT")
		if _, err := s.Tools.ResolveApproval(t.Context(), coder, a.ID, true); err != nil {
			t.Fatal(err)
		}
		wantNothingStarted(t, s)
		wantDisk(t, ws, map[string]string{})
		p := mustStart(t, s, coder, a.ID)
		ends(t, s, coder, p.ID, writ.TerminationExited)
		wantDisk(t, ws, map[string]string{"made": ""})
		// Again it answers the same process, as it stands now.
		for range 2 {
			r, err := s.Tools.Resume(t.Context(), coder, a.ID)
			if err != nil || r.Process == nil || r.Process.ID != p.ID || r.Process.State != writ.ProcessExited {
				t.Errorf("resumed again: %+v, %v", r.Process, err)
			}
		}
		if n := s.Processes.Calls("Start"); n != 1 {
			t.Errorf("%d starts", n)
		}
		// Sent again it is another hold: one grant is for one command.
		if b := mustHoldCommand(t, s, coder, "touch", "made"); b.ID == a.ID {
			t.Error("a used approval holds again")
		}
	})
}

func TestScenario117_DeniedCommand(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	a := mustHoldCommand(t, s, coder, "touch", "made")
	s.MustResolve(coder, a.ID, false)
	for range 2 {
		resumeFails(t, s, coder, a.ID, "APPROVAL_CONFLICT")
	}
	if b := mustHoldCommand(t, s, coder, "touch", "made"); b.ID == a.ID {
		t.Error("the denied hold is asked for again")
	}
	wantNothingStarted(t, s)
}

func TestScenario120_ExplicitHoldOfACommand(t *testing.T) {
	s, ws := bench(t, nil)
	coder := s.Agent("coder")
	req := command("touch", "made")
	a, err := s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req})
	if err != nil || a.State != writ.ApprovalPending || a.Call.Mode != writ.ApprovalsConfirm {
		t.Fatalf("%+v, %v", a, err)
	}
	if b, err := s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req}); err != nil || b.ID != a.ID {
		t.Errorf("another hold for the same: %s, %v", b.ID, err)
	}
	wantNothingStarted(t, s)
	s.MustResolve(coder, a.ID, true)
	ends(t, s, coder, mustStart(t, s, coder, a.ID).ID, writ.TerminationExited)
	wantDisk(t, ws, map[string]string{"made": ""})
}

// Scenario 121: one hold for one request, also after a restart; whatever the request
// does differently is another one.
func TestScenario121_OneHoldForOneCommand(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	first := mustHoldCommand(t, s, coder, "touch", "made")
	tty, dir := command("touch", "made"), command("touch", "made")
	tty.TTY, dir.Dir = true, "sub"
	seen := map[writ.ApprovalID]bool{first.ID: true}
	for name, ask := range map[string]func() (writ.Process, error){
		"arguments": func() (writ.Process, error) { return s.Tools.Exec(t.Context(), coder, command("touch", "made", "")) },
		"split":     func() (writ.Process, error) { return s.Tools.Exec(t.Context(), coder, command("touch made")) },
		"terminal":  func() (writ.Process, error) { return s.Tools.Exec(t.Context(), coder, tty) },
		"folder":    func() (writ.Process, error) { return s.Tools.Exec(t.Context(), coder, dir) },
		"another asker": func() (writ.Process, error) {
			return s.Tools.Exec(t.Context(), testkit.Local(), command("touch", "made"))
		},
	} {
		p, err := ask()
		if a := heldIn(t, s, p.ID, err); seen[a.ID] {
			t.Errorf("%s: it is the hold of another request", name)
		} else {
			seen[a.ID] = true
		}
	}
	s.Restart()
	if again := mustHoldCommand(t, s, coder, "touch", "made"); again.ID != first.ID {
		t.Errorf("after a restart it is %s, was %s", again.ID, first.ID)
	}
	wantNothingStarted(t, s)
}

func TestScenario122_PA06_ResumesOfACommandAtOneMoment(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	for range 5 {
		a := mustHoldCommand(t, s, coder, "true")
		s.MustResolve(coder, a.ID, true)
		var started atomic.Int32
		before := s.Processes.Calls("Start")
		ids := make([]writ.ProcessID, 8)
		together(8, func(i int) {
			r, err := s.Tools.Resume(context.Background(), coder, a.ID)
			switch {
			case err == nil && r.Process != nil:
				ids[i] = r.Process.ID
				started.Add(1)
			case writ.CodeOf(err) != "APPROVAL_CONFLICT":
				t.Errorf("%+v, %v", r, err)
			}
		})
		p := s.StoredApproval(a.ID).Call.Process
		for _, id := range ids {
			if id != "" && id != p {
				t.Errorf("answered %s, the approval has %s", id, p)
			}
		}
		if n := s.Processes.Calls("Start") - before; n != 1 || started.Load() == 0 {
			t.Errorf("%d starts, %d answers with a process", n, started.Load())
		}
		ends(t, s, coder, p, writ.TerminationExited)
	}
}

// Two servers on one store: one of them starts it.
func TestScenario122_ResumesOfACommandOnTwoServers(t *testing.T) {
	engines(t, func(t *testing.T, on func(*testkit.GatewaySetup)) {
		s, _ := bench(t, confirm, on)
		other := s.Sibling("gw_other")
		coder := s.Agent("coder")
		for range 4 {
			a := mustHoldCommand(t, s, coder, "true")
			s.MustResolve(coder, a.ID, true)
			before := s.Processes.Calls("Start") + other.Processes.Calls("Start")
			together(2, func(i int) {
				r, err := []*testkit.Workshop{s, other}[i].Tools.Resume(context.Background(), coder, a.ID)
				if err != nil && writ.CodeOf(err) != "APPROVAL_CONFLICT" {
					t.Errorf("%+v, %v", r, err)
				}
			})
			if n := s.Processes.Calls("Start") + other.Processes.Calls("Start") - before; n != 1 {
				t.Errorf("%d starts", n)
			}
			p := s.StoredProcess(s.StoredApproval(a.ID).Call.Process)
			over(t, map[string]*testkit.Workshop{"gw_test": s, "gw_other": other}[p.Owner], coder, p.ID)
		}
	})
}

// PA-13, POL-03: deny beats hold, hold beats allow, for each command of a line.
func TestTheStrictestOfALine(t *testing.T) {
	s, ws := bench(t, nil, withPolicy(noSudo), func(g *testkit.GatewaySetup) {
		g.Operators[0].Roles = []string{"lead"}
	})
	coder := s.Agent("coder")
	for _, argv := range [][]string{
		{"sudo", "ls"}, {"/usr/bin/sudo", "ls"}, {"bash", "-c", "ls && sudo x"}, {"env", "A=1", "sudo", "x"},
		{"sh", "-c", "true; (sudo id) | cat"}, {"bash", "-c", "python3 -c 'x' ; sudo y"}, {"nice", "sh", "-c", "sudo z"},
	} {
		_, err := s.Tools.Exec(t.Context(), coder, command(argv...))
		wantCode(t, strings.Join(argv, " "), err, "UNAUTHORIZED")
		if !strings.Contains(writ.Message(err), "nobody is root here") {
			t.Errorf("%q does not say why", writ.Message(err))
		}
	}
	// What cannot be known is held, for an operator.
	for _, argv := range [][]string{
		{"python3", "-c", "print(1)"}, {"bash", "-c", "ls; $x"}, {"bash", "script.sh"}, {"sh", "-c", "make"}, {"bash", "-c", "if"},
	} {
		a := mustHoldCommand(t, s, coder, argv...)
		if a.Call.Mode != writ.ApprovalsReview || a.Need.Grants != 1 || !strings.Contains(a.Reason, "it cannot be known what ") {
			t.Errorf("%q: %+v", argv, a)
		}
		_, err := s.Tools.ResolveApproval(t.Context(), coder, a.ID, true)
		wantCode(t, "the requester's own grant", err, "UNAUTHORIZED")
	}
	wantNothingStarted(t, s)
	wantDisk(t, ws, map[string]string{})
	a := mustHoldCommand(t, s, coder, "python3", "-c", "open('made', 'w')")
	v, err := s.Approval(t.Context(), s.Operator("ann"), a.ID)
	if err != nil || !strings.Contains(v.Text, "open('made', 'w')") {
		t.Errorf("shown is %q, %v", v.Text, err)
	}
	s.MustResolve(s.Operator("ann"), a.ID, true)
	p := mustStart(t, s, coder, a.ID)
	ends(t, s, coder, p.ID, writ.TerminationExited)
	wantDisk(t, ws, map[string]string{"made": ""})
	// And what is known runs at once.
	p = mustExec(t, s, coder, "bash", "-c", "ls && true")
	ends(t, s, coder, p.ID, writ.TerminationExited)
}

// POL-06: what a rule asks for is asked for, whatever the workspace says.
func TestPOL06_ACommandHeldByARule(t *testing.T) {
	for name, adjust := range map[string]func(*writ.Workspace){"off": nil, "confirm": confirm, "review": review} {
		t.Run(name, func(t *testing.T) {
			s, ws := bench(t, adjust, withPolicy(leadsLookAtTouch), func(g *testkit.GatewaySetup) {
				for i := range g.Operators {
					g.Operators[i].Roles = []string{"lead"}
				}
				g.Operators = append(g.Operators, writ.Operator{ID: "kim", Tenant: "acme"})
			})
			coder := s.Agent("coder")
			a := mustHoldCommand(t, s, coder, "bash", "-c", "true && touch made")
			if a.Call.Mode != writ.ApprovalsReview || a.Need.Grants != 2 || !a.Need.Reason || len(a.Rules) != 1 || a.Rules[0].ID != "touch" {
				t.Errorf("%+v", a)
			}
			for _, who := range []writ.Principal{coder, s.Operator("kim")} {
				_, err := s.Verdict(who, a.ID, writ.Grant, "yes")
				wantKind(t, who.ID, err, writ.Denied)
			}
			_, err := s.Verdict(s.Operator("ann"), a.ID, writ.Grant, "")
			wantKind(t, "a grant without a reason", err, writ.Invalid)
			for _, who := range []string{"ann", "bob"} {
				resumeFails(t, s, coder, a.ID, "APPROVAL_CONFLICT")
				if _, err := s.Verdict(s.Operator(who), a.ID, writ.Grant, "because"); err != nil {
					t.Fatal(err)
				}
			}
			wantNothingStarted(t, s)
			p := mustStart(t, s, s.Operator("bob"), a.ID) // whoever sees it may carry it out
			if p.By != coder.Ref() {
				t.Errorf("it is %s's", p.By)
			}
			ends(t, s, coder, p.ID, writ.TerminationExited)
			wantDisk(t, ws, map[string]string{"made": ""})
		})
	}
}

func TestReviewOfACommand(t *testing.T) {
	s, ws := bench(t, review)
	coder := s.Agent("coder")
	a := mustHoldCommand(t, s, coder, "touch", "made")
	_, err := s.Tools.ResolveApproval(t.Context(), coder, a.ID, true)
	wantCode(t, "the requester's own grant", err, "UNAUTHORIZED")
	s.MustResolve(s.Operator("ann"), a.ID, true)
	ends(t, s, coder, mustStart(t, s, coder, a.ID).ID, writ.TerminationExited)
	wantDisk(t, ws, map[string]string{"made": ""})
}

// A review that nobody could give is a denial (spec/01 §2 rule 3).
func TestReviewOfACommandWithoutOperators(t *testing.T) {
	s, _ := bench(t, review, func(g *testkit.GatewaySetup) { g.Operators = nil })
	_, err := s.Tools.Exec(t.Context(), s.Agent("coder"), command("true"))
	wantCode(t, "exec", err, "UNAUTHORIZED")
	_, err = s.Tools.Exec(t.Context(), s.Agent("coder"), command("python3", "-c", "x"))
	wantCode(t, "an opaque one", err, "UNAUTHORIZED")
	wantNothingStarted(t, s)
}

// An approval of somebody else is as if there was none.
func TestWhoseHeldCommand(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	a := mustHoldCommand(t, s, coder, "true")
	for _, state := range []writ.ApprovalState{writ.ApprovalPending, writ.ApprovalGranted, writ.ApprovalConsumed} {
		wantState(t, s, a.ID, state)
		for _, who := range []writ.Principal{s.Agent("mate"), s.Agent("guest"), s.Operator("eve")} {
			err := resumeFails(t, s, who, a.ID, "APPROVAL_NOT_FOUND")
			never := resumeFails(t, s, who, "appr-none", "APPROVAL_NOT_FOUND")
			if strings.ReplaceAll(writ.Message(err), string(a.ID), "") != strings.ReplaceAll(writ.Message(never), "appr-none", "") {
				t.Errorf("%q of one that is there, %q of one that is not", writ.Message(err), writ.Message(never))
			}
			_, err = s.Tools.ResolveApproval(t.Context(), who, a.ID, true)
			wantCode(t, "grant by "+who.ID, err, "APPROVAL_NOT_FOUND")
			if _, err := s.Approval(t.Context(), who, a.ID); writ.KindOf(err) != writ.NotFound {
				t.Errorf("%s is shown it: %v", who.ID, err)
			}
		}
		switch state {
		case writ.ApprovalPending:
			s.MustResolve(coder, a.ID, true)
		case writ.ApprovalGranted:
			over(t, s, coder, mustStart(t, s, coder, a.ID).ID)
		}
	}
}

// Scenarios 126 and 127: who finds the workspace busy stays queued, over a restart too,
// and can be resumed when it is free.
func TestScenario126_127_QueuedCommandWaits(t *testing.T) {
	s, ws := bench(t, confirm)
	coder := s.Agent("coder")
	first, second := mustHoldCommand(t, s, coder, "sleep", "25"), mustHoldCommand(t, s, coder, "touch", "made")
	for _, a := range []writ.Approval{first, second} {
		s.MustResolve(coder, a.ID, true)
	}
	p := mustStart(t, s, coder, first.ID)
	for range 2 {
		resumeFails(t, s, coder, second.ID, "WORKSPACE_BUSY")
		wantState(t, s, second.ID, writ.ApprovalQueued)
	}
	if again := mustHoldCommand(t, s, coder, "touch", "made"); again.ID != second.ID {
		t.Error("sent again while it is queued it is another hold")
	}
	s.Tools.EndProcesses(t.Context())
	ends(t, s, coder, p.ID, writ.TerminationTerminated)
	s.Restart()
	wantState(t, s, second.ID, writ.ApprovalQueued)
	wantDisk(t, ws, map[string]string{})
	ends(t, s, coder, mustStart(t, s, coder, second.ID).ID, writ.TerminationExited)
	wantDisk(t, ws, map[string]string{"made": ""})
}

func TestScenario127_QueueIsFull(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	req := command("true")
	a, err := s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req})
	if err != nil {
		t.Fatal(err)
	}
	s.MustResolve(coder, a.ID, true)
	arrived, release := s.Files.Hangs("Patch")
	holder := goPatch(s, coder, change(add("x", "x")...))
	testkit.Receive(t, "a patch holds the lease", arrived)
	stop := fillQueue(t, s, coder)
	resumeFails(t, s, coder, a.ID, "RESOURCE_QUEUE_FULL")
	wantState(t, s, a.ID, writ.ApprovalQueued)
	_, err = s.Tools.Exec(t.Context(), coder, command("true"))
	wantCode(t, "a command nobody holds", err, "RESOURCE_QUEUE_FULL")
	stop()
	release()
	testkit.Receive(t, "the patch ends", holder)
	ends(t, s, coder, mustStart(t, s, coder, a.ID).ID, writ.TerminationExited)
}

// POL-07: a hold that is not decided, not resumed, or resumed and not carried out in its
// time is over.
func TestPOL07_HoldsOfCommandsExpire(t *testing.T) {
	for _, state := range []writ.ApprovalState{writ.ApprovalPending, writ.ApprovalGranted, writ.ApprovalQueued} {
		for _, noticed := range []bool{true, false} {
			t.Run(string(state), func(t *testing.T) {
				s, _ := bench(t, confirm)
				coder := s.Agent("coder")
				a := mustHoldCommand(t, s, coder, "touch", "made-MARKER")
				if state != writ.ApprovalPending {
					s.MustResolve(coder, a.ID, true)
				}
				if state == writ.ApprovalQueued {
					b := mustHoldCommand(t, s, coder, "sleep", "25")
					s.MustResolve(coder, b.ID, true)
					p := mustStart(t, s, coder, b.ID)
					resumeFails(t, s, coder, a.ID, "WORKSPACE_BUSY")
					kill(t, s, coder, p.ID)
				}
				wantState(t, s, a.ID, state)
				backdate(t, s, a.ID)
				if noticed {
					sweep(t, s.System)
					wantState(t, s, a.ID, writ.ApprovalExpired)
				}
				resumeFails(t, s, coder, a.ID, "APPROVAL_CONFLICT")
				_, err := s.Tools.ResolveApproval(t.Context(), coder, a.ID, true)
				wantCode(t, "grant", err, "APPROVAL_CONFLICT")
				if b := mustHoldCommand(t, s, coder, "touch", "made-MARKER"); b.ID == a.ID {
					t.Error("sent again it is the expired hold")
				}
				wantState(t, s, a.ID, writ.ApprovalExpired)
			})
		}
	}
}

// A resume that waits for its turn when the time of its approval is over starts nothing.
func TestPOL07_ExpiresWhileItWaits(t *testing.T) {
	s, ws := bench(t, nil)
	coder := s.Agent("coder")
	req := command("touch", "made")
	a, err := s.Tools.CreateApproval(t.Context(), coder, writ.ToolCall{Command: &req})
	if err != nil {
		t.Fatal(err)
	}
	s.MustResolve(coder, a.ID, true)
	arrived, release := s.Files.Hangs("Patch")
	holder := goPatch(s, coder, change(add("x", "x")...))
	testkit.Receive(t, "a patch holds the lease", arrived)
	resumed := make(chan error, 1)
	go func() {
		_, err := s.Tools.Resume(context.Background(), coder, a.ID)
		resumed <- err
	}()
	waits(t, 1)
	expire(t, s, a.ID)
	wantState(t, s, a.ID, writ.ApprovalExpired)
	release()
	testkit.Receive(t, "the patch ends", holder)
	err = testkit.Receive(t, "the resume ends", resumed)
	wantCode(t, "resume", err, "APPROVAL_CONFLICT")
	if !strings.Contains(writ.Message(err), "expired") {
		t.Errorf("%q does not say that it expired", writ.Message(err))
	}
	wantNothingStarted(t, s)
	wantDisk(t, ws, map[string]string{"x": "x\n"})
	wantFree(t, s)
}

// Scenario 128: it was started, and that cannot be recorded: nobody knows, and it is
// not started again.
func TestScenario128_StartOfAHeldCommandIsNotRecorded(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	a := mustHoldCommand(t, s, coder, "sleep", "25")
	s.MustResolve(coder, a.ID, true)
	direct(t, s.System, `CREATE TRIGGER unused BEFORE UPDATE ON approvals WHEN NEW.state = 'consumed' BEGIN SELECT RAISE(ABORT, 'disk is full'); END`)
	r, err := s.Tools.Resume(t.Context(), coder, a.ID)
	wantCode(t, "resume", err, "APPROVAL_AMBIGUOUS")
	wantState(t, s, a.ID, writ.ApprovalResuming)
	p := s.StoredApproval(a.ID).Call.Process
	if r.Process == nil || r.Process.ID != p || !strings.Contains(writ.Message(err), string(p)) {
		t.Errorf("answered %+v, %v, started is %s", r.Process, err, p)
	}
	direct(t, s.System, `DROP TRIGGER unused`)
	for range 2 {
		err := resumeFails(t, s, coder, a.ID, "APPROVAL_AMBIGUOUS")
		if !strings.Contains(writ.Message(err), string(p)) {
			t.Errorf("%q does not name %s", writ.Message(err), p)
		}
		wantState(t, s, a.ID, writ.ApprovalConsumed)
	}
	if n := s.Processes.Calls("Start"); n != 1 {
		t.Errorf("%d starts", n)
	}
	kill(t, s, coder, p)
}

// A held command that the runner refuses is answered so, for good.
func TestHeldCommandIsNotStarted(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	a := mustHoldCommand(t, s, coder, "no-such-program")
	s.MustResolve(coder, a.ID, true)
	var first error
	for range 3 {
		err := resumeFails(t, s, coder, a.ID, "PROCESS_SPAWN_FAILED")
		if first != nil && (writ.Message(first) != writ.Message(err) || writ.KindOf(first) != writ.KindOf(err)) {
			t.Errorf("%v, was %v", err, first)
		}
		first = err
		wantState(t, s, a.ID, writ.ApprovalConsumed)
	}
	if n := s.Processes.Calls("Start"); n != 1 {
		t.Errorf("%d starts", n)
	}
	b := mustHoldCommand(t, s, coder, "true")
	s.MustResolve(coder, b.ID, true)
	ends(t, s, coder, mustStart(t, s, coder, b.ID).ID, writ.TerminationExited) // the workspace is free
}

func TestHoldsOfCommandsAreBounded(t *testing.T) {
	s, _ := bench(t, confirm, func(g *testkit.GatewaySetup) { g.Options.Held = 2 })
	coder := s.Agent("coder")
	mustHoldCommand(t, s, coder, "true", "1")
	mustHoldCommand(t, s, coder, "true", "2")
	_, err := s.Tools.Exec(t.Context(), coder, command("true", "3"))
	wantKind(t, "one hold too many", err, writ.Exhausted)
	if _, ok := errors.AsType[*writ.Held](err); ok {
		t.Error("it is held all the same")
	}
	wantNothingStarted(t, s)
}
