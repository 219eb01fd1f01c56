package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// cat is a process that writes what it reads.
func cat(t *testing.T, s *testkit.Workshop) writ.Process {
	t.Helper()
	return mustExec(t, s, s.Agent("coder"), "cat")
}

// mustType gives input to a process.
func mustType(t *testing.T, s *testkit.Workshop, id writ.ProcessID, data string, end bool) {
	t.Helper()
	if err := s.Tools.Input(context.Background(), s.Agent("coder"), id, []byte(data), end); err != nil {
		t.Fatalf("input %q: %v", data, err)
	}
}

// mustHoldInput is the hold that answers an input.
func mustHoldInput(t *testing.T, s *testkit.Workshop, id writ.ProcessID, data string, end bool) writ.Approval {
	t.Helper()
	return heldIn(t, s, "", s.Tools.Input(context.Background(), s.Agent("coder"), id, []byte(data), end))
}

func TestScenario85_Input(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := cat(t, s)
	mustType(t, s, p.ID, "one\n", false)
	printed(t, s, coder, p.ID, "one\n")
	mustType(t, s, p.ID, "two\n", true)
	p = ends(t, s, coder, p.ID, writ.TerminationExited)
	if got := printed(t, s, coder, p.ID, "two\n"); got != "one\ntwo\n" || *p.ExitCode != 0 {
		t.Errorf("it wrote %q and ended as %+v", got, p.ProcessStatus)
	}
	wantTrace(t, s,
		"process.started effect=allow action=exec program=cat by agent:coder",
		"process.input effect=allow action=input bytes=4 by agent:coder",
		"process.input effect=allow action=input bytes=4 by agent:coder",
		"process.finished end=exited exit=(0) count=8")
	err := s.Tools.Input(t.Context(), coder, p.ID, []byte("x"), false)
	wantCode(t, "input to one that has ended", err, "PROCESS_NOT_FOUND")
	if n := s.Processes.Calls("Input"); n != 2 {
		t.Errorf("%d inputs", n)
	}
}

func TestClosedInput(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sh", "-c", "cat; sleep 25")
	mustType(t, s, p.ID, "", true)
	mustType(t, s, p.ID, "", true) // closing what is closed is no error
	wantCode(t, "input behind the end", s.Tools.Input(t.Context(), coder, p.ID, []byte("x"), false), "PROCESS_NOT_FOUND")
	kill(t, s, coder, p.ID)
}

// A program that does not read takes what fits, and it is said how much that was.
func TestFullInput(t *testing.T) {
	t.Parallel() // it waits most of the time
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := mustExec(t, s, coder, "sleep", "60")
	data := bytes.Repeat([]byte("x"), writ.MaxInputChunk)
	err := s.Tools.Input(t.Context(), coder, p.ID, data, true)
	wantKind(t, "input", err, writ.Exhausted)
	if writ.CodeOf(err) != "TIMEOUT" || !strings.Contains(writ.Message(err), fmt.Sprintf(" of %d bytes", len(data))) {
		t.Errorf("%v with code %q", err, writ.CodeOf(err))
	}
	if n := s.Processes.Calls("CloseInput"); n != 0 {
		t.Error("the input was closed behind what did not go in")
	}
	err = s.Tools.Input(t.Context(), coder, p.ID, append(data, 'x'), false)
	wantCode(t, "a byte too many", err, "INVALID_COMMAND")
	if n := s.Processes.Calls("Input"); n != 1 {
		t.Errorf("%d inputs", n)
	}
	kill(t, s, coder, p.ID)
}

// POL-01, PA-09: policy is asked about each write, by the program and not for the process
// once and for all.
func TestInputIsDecided(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := cat(t, s)
	mustType(t, s, p.ID, "one\n", false)
	for name, rules := range map[string]string{
		"forbidden": noInputs,
		"by program": `@id("no-cats") forbid (principal, action == Action::"input", resource) when { context.program == "cat" };
`,
		"by size": `@id("short") forbid (principal, action == Action::"input", resource) when { context.input_bytes > 3 };
`,
	} {
		setPolicy(t, s.System, testkit.WorkspacePolicy+rules)
		wantCode(t, name, s.Tools.Input(t.Context(), coder, p.ID, []byte("two\n"), false), "UNAUTHORIZED")
	}
	if n := s.Processes.Calls("Input"); n != 1 {
		t.Errorf("%d inputs", n)
	}
	setPolicy(t, s.System, testkit.WorkspacePolicy)
	mustType(t, s, p.ID, "three\n", false)
	if got := printed(t, s, coder, p.ID, "three\n"); got != "one\nthree\n" {
		t.Errorf("it wrote %q", got)
	}
	kill(t, s, coder, p.ID)
}

// What is held arrives once, when it is resumed, and not before.
func TestHeldInput(t *testing.T) {
	s, _ := bench(t, nil, withPolicy(holdInputs))
	coder, ann := s.Agent("coder"), s.Operator("ann")
	p := cat(t, s)
	a := mustHoldInput(t, s, p.ID, "one\n", false)
	if a.Action != writ.ActionInput || a.Call == nil || a.Call.Process != p.ID || a.Call.Mode != writ.ApprovalsReview || a.Call.Workspace != "app" {
		t.Errorf("%+v", a)
	}
	if b := mustHoldInput(t, s, p.ID, "one\n", false); b.ID != a.ID {
		t.Error("two holds of one input")
	}
	end := mustHoldInput(t, s, p.ID, "one\n", true)
	if end.ID == a.ID {
		t.Error("one hold for an input and for one that ends behind it")
	}
	v, err := s.Approval(t.Context(), ann, a.ID)
	if err != nil || !strings.Contains(v.Text, "one") || !strings.Contains(v.Text, string(p.ID)) {
		t.Errorf("shown is %q, %v", v.Text, err)
	}
	_, err = s.Tools.ResolveApproval(t.Context(), coder, a.ID, true)
	wantCode(t, "the requester's own grant", err, "UNAUTHORIZED")
	resumeFails(t, s, coder, a.ID, "APPROVAL_CONFLICT")
	s.MustResolve(ann, a.ID, true)
	if s.Processes.Calls("Input") != 0 {
		t.Error("it was written before it was resumed")
	}
	for range 3 {
		r, err := s.Tools.Resume(t.Context(), coder, a.ID)
		if err != nil || r.Process == nil || r.Process.ID != p.ID || r.Approval.State != writ.ApprovalConsumed {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	s.MustResolve(ann, end.ID, true)
	if _, err := s.Tools.Resume(t.Context(), ann, end.ID); err != nil {
		t.Fatal(err)
	}
	ends(t, s, coder, p.ID, writ.TerminationExited)
	if got := printed(t, s, coder, p.ID, "one\n"); got != "one\none\n" || s.Processes.Calls("Input") != 2 {
		t.Errorf("it wrote %q, of %d inputs", got, s.Processes.Calls("Input"))
	}
	wantTrace(t, s,
		"process.started effect=allow action=exec program=cat by agent:coder",
		"approval.requested status=pending held",
		"approval.requested status=pending held",
		"approval.voted status=pending held by agent:coder", // who may not
		"approval.voted status=granted held by operator:ann",
		"approval.decided status=granted held by operator:ann",
		"process.input effect=hold action=input bytes=4 held by agent:coder",
		"approval.voted status=granted held by operator:ann",
		"approval.decided status=granted held by operator:ann",
		"process.input effect=hold action=input bytes=4 held by operator:ann",
		"process.finished end=exited exit=(0) count=8")
}

// Between the grant and the resume the process ends, or the rules move.
func TestHeldInputOfWhatMoved(t *testing.T) {
	for name, tt := range map[string]struct {
		move  func(t *testing.T, s *testkit.Workshop, id writ.ProcessID)
		code  string
		after writ.ApprovalState
	}{
		"the process ended": {func(t *testing.T, s *testkit.Workshop, id writ.ProcessID) { kill(t, s, s.Agent("coder"), id) },
			"APPROVAL_CONFLICT", writ.ApprovalCancelled},
		"the rules deny": {func(t *testing.T, s *testkit.Workshop, _ writ.ProcessID) {
			setPolicy(t, s.System, testkit.WorkspacePolicy+noInputs)
		}, "UNAUTHORIZED", writ.ApprovalConsumed},
		"another version": {func(t *testing.T, s *testkit.Workshop, _ writ.ProcessID) {
			setPolicy(t, s.System, testkit.WorkspacePolicy+holdInputs+"// another\n")
		}, "APPROVAL_CONFLICT", writ.ApprovalCancelled},
		"its input closed": {func(t *testing.T, s *testkit.Workshop, id writ.ProcessID) {
			if err := s.Processes.Real().CloseInput(t.Context(), id); err != nil {
				t.Fatal(err)
			}
		}, "PROCESS_NOT_FOUND", writ.ApprovalConsumed},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := bench(t, nil, withPolicy(holdInputs))
			coder := s.Agent("coder")
			p := mustExec(t, s, coder, "sh", "-c", "cat; sleep 25")
			a := mustHoldInput(t, s, p.ID, "MARKER\n", false)
			s.MustResolve(s.Operator("ann"), a.ID, true)
			tt.move(t, s, p.ID)
			resumeFails(t, s, coder, a.ID, tt.code)
			wantState(t, s, a.ID, tt.after)
			if r, err := s.Tools.Resume(t.Context(), coder, a.ID); err == nil {
				t.Errorf("resumed again: %+v", r)
			}
			if got := killed(t, s, p.ID); strings.Contains(got, "MARKER") {
				t.Errorf("it got the input: %q", got)
			}
		})
	}
}

// killed ends a process, if it runs, and answers what it wrote.
func killed(t *testing.T, s *testkit.Workshop, id writ.ProcessID) string {
	t.Helper()
	kill(t, s, s.Agent("coder"), id)
	out, err := s.Tools.Output(t.Context(), s.Agent("coder"), id, writ.OutputQuery{})
	if err != nil {
		t.Fatal(err)
	}
	return string(out.Chunk)
}

// A hold outlives trouble that passes: only an end of its process ends it.
func TestHeldInputWhenTheStoreFails(t *testing.T) {
	s, _ := bench(t, nil, withPolicy(holdInputs))
	coder := s.Agent("coder")
	p := cat(t, s)
	a := mustHoldInput(t, s, p.ID, "one\n", true)
	s.MustResolve(s.Operator("ann"), a.ID, true)
	mend := failOn(t, s.System, writ.EventProcessInput)
	if r, err := s.Tools.Resume(t.Context(), coder, a.ID); err == nil || s.Processes.Calls("Input") != 0 {
		t.Errorf("%+v, %v, %d inputs", r, err, s.Processes.Calls("Input"))
	}
	wantState(t, s, a.ID, writ.ApprovalQueued)
	mend()
	if _, err := s.Tools.Resume(t.Context(), coder, a.ID); err != nil {
		t.Fatal(err)
	}
	printed(t, s, coder, p.ID, "one\n")
}

// Spec/02 §15 invariant 2 in the words of a log: what is not recorded is not written.
func TestNoRecordNoInput(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := cat(t, s)
	mend := failOn(t, s.System, writ.EventProcessInput)
	if err := s.Tools.Input(t.Context(), coder, p.ID, []byte("one\n"), true); err == nil {
		t.Error("it was written")
	}
	if s.Processes.Calls("Input")+s.Processes.Calls("CloseInput") != 0 {
		t.Error("the runner was told")
	}
	mend()
	mustType(t, s, p.ID, "two\n", true)
	ends(t, s, coder, p.ID, writ.TerminationExited)
	if got := printed(t, s, coder, p.ID, "two\n"); got != "two\n" {
		t.Errorf("it wrote %q", got)
	}
}

// Whether an input arrived is not known when contact was lost, and it is not given again.
func TestInputIsLostSightOf(t *testing.T) {
	s, _ := bench(t, nil, withPolicy(holdInputs))
	coder := s.Agent("coder")
	p := cat(t, s)
	a := mustHoldInput(t, s, p.ID, "one\n", false)
	s.MustResolve(s.Operator("ann"), a.ID, true)
	s.Processes.After("Input", func(error) error { return lostContact() })
	var first error
	for range 3 {
		_, err := s.Tools.Resume(t.Context(), coder, a.ID)
		if err == nil || first != nil && writ.Message(err) != writ.Message(first) {
			t.Errorf("%v, was %v", err, first)
		}
		first = err
		wantState(t, s, a.ID, writ.ApprovalConsumed)
	}
	if !strings.Contains(writ.Message(first), "not known") {
		t.Errorf("%q does not say that nobody knows", writ.Message(first))
	}
	s.Processes.Mend()
	if got := printed(t, s, coder, p.ID, "one\n"); got != "one\n" || s.Processes.Calls("Input") != 1 {
		t.Errorf("it wrote %q, of %d inputs", got, s.Processes.Calls("Input"))
	}
	kill(t, s, coder, p.ID)
}

// The server stops while an input is given: nobody knows, and it is not given again.
func TestScenario125_InputIsAmbiguousAfterACrash(t *testing.T) {
	s, _ := bench(t, nil, withPolicy(holdInputs))
	coder := s.Agent("coder")
	p := cat(t, s)
	a := mustHoldInput(t, s, p.ID, "one\n", false)
	s.MustResolve(s.Operator("ann"), a.ID, true)
	arrived, release := s.Processes.Hangs("Input")
	resumed := make(chan error, 1)
	go func() { _, err := s.Tools.Resume(context.Background(), coder, a.ID); resumed <- err }()
	testkit.Receive(t, "the input is on its way", arrived)
	next := s.Crashed()
	for range 2 {
		resumeFails(t, next, coder, a.ID, "APPROVAL_AMBIGUOUS")
		wantState(t, next, a.ID, writ.ApprovalConsumed)
	}
	if n := next.Processes.Calls("Input"); n != 0 {
		t.Errorf("%d inputs", n)
	}
	release()
	if err := testkit.Receive(t, "the first resume", resumed); err != nil {
		t.Error(err)
	}
	kill(t, s, coder, p.ID)
}

// Two inputs at one moment do not mix.
func TestInputsDoNotMix(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	p := cat(t, s)
	const n, size = 8, 20_000
	together(n, func(i int) {
		line := strings.Repeat(string(rune('a'+i)), size) + "\n"
		if err := s.Tools.Input(context.Background(), coder, p.ID, []byte(line), false); err != nil {
			t.Error(err)
		}
	})
	mustType(t, s, p.ID, "", true)
	ends(t, s, coder, p.ID, writ.TerminationExited)
	out, err := s.Tools.Output(t.Context(), coder, p.ID, writ.OutputQuery{})
	lines := strings.Fields(string(out.Chunk))
	if err != nil || len(lines) != n {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	for _, l := range lines {
		if l != strings.Repeat(l[:1], size) {
			t.Errorf("a line of %d bytes is mixed", len(l))
		}
	}
}

// A held input is resumed at the server that has the process; another leaves it as it is.
func TestHeldInputAtAnotherServer(t *testing.T) {
	s, _ := bench(t, nil, withPolicy(holdInputs))
	other := s.Sibling("gw_other")
	coder := s.Agent("coder")
	p := cat(t, s)
	a := mustHoldInput(t, s, p.ID, "one\n", true)
	s.MustResolve(s.Operator("ann"), a.ID, true)
	_, err := other.Tools.Resume(t.Context(), coder, a.ID)
	wantKind(t, "resume at another server", err, writ.Unavailable)
	wantState(t, s, a.ID, writ.ApprovalGranted)
	if _, err := s.Tools.Resume(t.Context(), coder, a.ID); err != nil {
		t.Fatal(err)
	}
	ends(t, s, coder, p.ID, writ.TerminationExited)
	printed(t, s, coder, p.ID, "one\n")
}
