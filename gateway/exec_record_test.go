package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// The records of one held command name each other, and all that decided.
func TestEventsOfACommandBindTogether(t *testing.T) {
	s, _ := bench(t, confirm)
	coder := s.Agent("coder")
	a := mustHoldCommand(t, s, coder, "bash", "-c", "true | cat")
	s.MustResolve(s.Operator("ann"), a.ID, true)
	p := mustStart(t, s, coder, a.ID)
	ends(t, s, coder, p.ID, writ.TerminationExited)
	wantTrace(t, s,
		"approval.requested status=pending held",
		"approval.voted status=granted held by operator:ann",
		"approval.decided status=granted held by operator:ann",
		"process.started effect=hold action=exec program=bash args=2 held by agent:coder",
		"process.finished end=exited exit=(0) held")
	e := s.Events("")
	for _, e := range e {
		if e.Approval != a.ID {
			t.Errorf("%s is not of the approval", e.Type)
		}
	}
	asked, granted, started, finished := e[0].Data, e[2].Data, e[3].Data, e[4].Data
	if asked.Binds != a.Digest || asked.Spec != a.Spec || granted.Binds != a.Digest || len(granted.Votes) != 1 || granted.Votes[0].Shown == "" {
		t.Errorf("asked %+v\ngranted %+v", asked, granted)
	}
	if started.Process != p.ID || started.Binds != a.Digest || started.Spec != p.Fingerprint || started.Spec != a.Spec ||
		started.Workspace != "app" || started.Policy == "" || len(started.Rules) == 0 || !slices.Equal(started.Programs, []string{"bash", "cat", "true"}) {
		t.Errorf("started %+v", started)
	}
	if finished.Process != p.ID || finished.Workspace != "app" {
		t.Errorf("finished %+v", finished)
	}
}

// PA-12, spec/02 §15 invariant 15: of arguments, inputs and outputs nothing is in the log,
// in what is listed, or in the server's own log, whatever became of them.
func TestPA12_NoTextOfCommandsIsRecorded(t *testing.T) {
	const marker = "MARKER"
	for name, tt := range map[string]struct {
		argv  []string
		input string
	}{
		"exits":         {[]string{"echo", marker}, ""},
		"fails":         {[]string{"sh", "-c", "echo MARKER >&2; exit 3"}, ""},
		"reads":         {[]string{"cat"}, "MARKER\n"},
		"not started":   {[]string{"no-such-program", marker}, ""},
		"opaque":        {[]string{"python3", "-c", "print('MARKER')"}, ""},
		"cannot parse":  {[]string{"bash", "-c", "echo MARKER ("}, ""},
		"computed":      {[]string{"bash", "-c", "$MARKER x"}, ""},
		"a variable":    {[]string{"bash", "-c", "TOKEN=MARKER true"}, ""},
		"redirected":    {[]string{"bash", "-c", "cat <<< MARKER"}, ""},
		"forbidden":     {[]string{"sudo", marker}, ""},
		"in a wrapper":  {[]string{"env", "TOKEN=MARKER", "true"}, ""},
		"in a function": {[]string{"bash", "-c", "f() { echo MARKER; }; f"}, ""},
	} {
		for _, adjust := range []func(*writ.Workspace){nil, confirm} {
			t.Run(name, func(t *testing.T) {
				s, _ := bench(t, adjust, withPolicy(noSudo, holdInputs))
				coder, ann := s.Agent("coder"), s.Operator("ann")
				p, err := s.Tools.Exec(t.Context(), coder, command(tt.argv...))
				if writ.CodeOf(err) == "APPROVAL_REQUIRED" {
					a := heldIn(t, s, p.ID, err)
					s.MustResolve(ann, a.ID, true)
					var r writ.Resumed
					if r, err = s.Tools.Resume(t.Context(), coder, a.ID); r.Process != nil {
						p = *r.Process
					}
				}
				if (err == nil) != (p.ID != "") {
					t.Fatalf("%+v, %v", p, err)
				}
				if tt.input != "" {
					a := mustHoldInput(t, s, p.ID, tt.input, true)
					s.MustResolve(ann, a.ID, true)
					if _, err := s.Tools.Resume(t.Context(), coder, a.ID); err != nil {
						t.Fatal(err)
					}
				}
				if p.ID != "" {
					over(t, s, coder, p.ID)
				}
				list, err := s.Tools.Processes(t.Context(), testkit.Local(), "")
				if err != nil {
					t.Fatal(err)
				}
				approvals, _, err := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{})
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal([]any{s.Events(""), s.StoredProcesses(), list, approvals})
				if err != nil {
					t.Fatal(err)
				}
				text = append(text, s.Slog.String()...)
				if i := strings.Index(string(text), marker); i >= 0 {
					t.Errorf("…%.300s", text[max(0, i-100):])
				}
			})
		}
	}
}

// Scenario 129: what was held is in the store until it is decided for good, and then not
// in one byte of its files.
func TestScenario129_HeldCommandsAndInputsAreScrubbed(t *testing.T) {
	for _, way := range []string{"consumed", "denied", "expired", "replaced", "not started"} {
		t.Run("command "+way, func(t *testing.T) {
			s, ws := bench(t, confirm)
			coder := s.Agent("coder")
			program := "true"
			if way == "not started" {
				program = "no-such-program"
			}
			a := mustHoldCommand(t, s, coder, program, "MARK-ARG")
			if !stored(t, s, "MARK-ARG") {
				t.Fatal("what is held is not in the files: this test sees nothing")
			}
			if way != "denied" {
				s.MustResolve(coder, a.ID, true)
			}
			switch way {
			case "consumed":
				ends(t, s, coder, mustStart(t, s, coder, a.ID).ID, writ.TerminationExited)
			case "denied":
				s.MustResolve(coder, a.ID, false)
			case "expired":
				expire(t, s, a.ID)
			case "not started":
				resumeFails(t, s, coder, a.ID, "PROCESS_SPAWN_FAILED")
			case "replaced":
				ws.Rules.DenyRead = []string{".env"}
				s.Restart(ws)
				_, err := s.Tools.Resume(t.Context(), coder, a.ID)
				s.MustResolve(coder, heldIn(t, s, "", err).ID, false)
			}
			if !s.StoredApproval(a.ID).State.Terminal() {
				t.Fatalf("it is %s", s.StoredApproval(a.ID).State)
			}
			scrubbed(t, s, "MARK-ARG")
			if v, err := s.Approval(t.Context(), coder, a.ID); err != nil || v.Text != "" {
				t.Errorf("shown is %q, %v", v.Text, err)
			}
		})
	}
	for _, way := range []string{"consumed", "denied", "expired", "void"} {
		t.Run("input "+way, func(t *testing.T) {
			s, _ := bench(t, nil, withPolicy(holdInputs))
			coder, ann := s.Agent("coder"), s.Operator("ann")
			p := mustExec(t, s, coder, "sh", "-c", "wc -c; sleep 60")
			a := mustHoldInput(t, s, p.ID, "MARK-INPUT", true)
			const held = "TUFSSy1JTlBVV" // the body is base64 in JSON
			if !stored(t, s, held) {
				t.Fatal("what is held is not in the files: this test sees nothing")
			}
			if way != "denied" {
				s.MustResolve(ann, a.ID, true)
			}
			switch way {
			case "consumed":
				if _, err := s.Tools.Resume(t.Context(), coder, a.ID); err != nil {
					t.Fatal(err)
				}
				printed(t, s, coder, p.ID, "10\n")
			case "denied":
				s.MustResolve(ann, a.ID, false)
			case "expired":
				expire(t, s, a.ID)
			case "void":
				kill(t, s, coder, p.ID)
				resumeFails(t, s, coder, a.ID, "APPROVAL_CONFLICT")
			}
			scrubbed(t, s, held)
			scrubbed(t, s, "MARK-INPUT")
			if way != "void" {
				kill(t, s, coder, p.ID)
			}
		})
	}
}

// scrubbed fails t if the files of the store come to hold that text no more.
func scrubbed(t *testing.T, s *testkit.Workshop, text string) {
	t.Helper()
	testkit.Eventually(t, text+" is gone from the files", func() bool { return !stored(t, s, text) })
}

// Bounds of what one record says of what agents chose.
func TestRecordsOfCommandsAreBounded(t *testing.T) {
	s, _ := bench(t, nil)
	coder := s.Agent("coder")
	long := "./" + strings.Repeat("x", 5000)
	_, err := s.Tools.Exec(t.Context(), coder, command(long))
	wantCode(t, "exec", err, "PROCESS_SPAWN_FAILED")
	var line strings.Builder
	for i := range 150 {
		fmt.Fprintf(&line, "program%d ; ", i)
	}
	_, err = s.Tools.Exec(t.Context(), coder, command("bash", "-c", line.String()))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Events("") {
		b, err := json.Marshal(e)
		if err != nil || len(b) > 8<<10 || len(e.Data.Programs) > 100 {
			t.Errorf("%s has %d bytes, %d programs, %v", e.Type, len(b), len(e.Data.Programs), err)
		}
	}
	over(t, s, coder, s.StoredProcesses()[0].ID)
}
