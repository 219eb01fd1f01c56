package gateway_test

import (
	"errors"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/store"
)

// granted is a workshop with a granted hold of a command that makes a file.
func granted(t *testing.T, adjust func(*writ.Workspace), on ...func(*testkit.GatewaySetup)) (*testkit.Workshop, writ.Workspace, writ.Approval) {
	t.Helper()
	s, ws := bench(t, adjust, on...)
	a := mustHoldCommand(t, s, s.Agent("coder"), "touch", "made")
	s.MustResolve(s.Operator("ann"), a.ID, true)
	return s, ws, a
}

// Scenario 130, PA-07: what the workspace allows is asked again. What moved to a refusal
// is one for good; what moved otherwise is shown to whoever decides.
func TestScenario130_TheWorkspaceMovedUnderACommand(t *testing.T) {
	for name, tt := range map[string]struct {
		move  func(t *testing.T, w *writ.Workspace)
		code  string // of the resume; empty for a new hold
		after writ.ApprovalState
	}{
		"profile": {func(_ *testing.T, w *writ.Workspace) { readOnly(w) }, "UNAUTHORIZED", writ.ApprovalConsumed},
		"environment": {func(_ *testing.T, w *writ.Workspace) {
			w.Environment, w.EnvironmentKind = "box", writ.EnvironmentContainer
		}, "UNAUTHORIZED", writ.ApprovalConsumed},
		"network":     {func(_ *testing.T, w *writ.Workspace) { w.Network = writ.NetworkEnabled }, "PROCESS_SPAWN_FAILED", writ.ApprovalConsumed},
		"resources":   {func(_ *testing.T, w *writ.Workspace) { w.Participation = writ.ParticipationRequired }, "RESOURCE_POLICY_UNSUPPORTED", writ.ApprovalConsumed},
		"rules":       {func(_ *testing.T, w *writ.Workspace) { w.Rules.DenyRead = []string{".env"} }, "", writ.ApprovalCancelled},
		"more review": {func(_ *testing.T, w *writ.Workspace) { review(w) }, "", writ.ApprovalCancelled},
		"root":        {func(t *testing.T, w *writ.Workspace) { w.Root = t.TempDir() }, "APPROVAL_CONFLICT", writ.ApprovalGranted},
		"tenant":      {func(_ *testing.T, w *writ.Workspace) { w.Tenant = "globex" }, "WORKSPACE_NOT_FOUND", writ.ApprovalGranted},
		"gone":        {func(_ *testing.T, w *writ.Workspace) { w.ID = "elsewhere" }, "WORKSPACE_NOT_FOUND", writ.ApprovalGranted},
	} {
		t.Run(name, func(t *testing.T) {
			s, ws := bench(t, confirm)
			coder := s.Agent("coder")
			a := mustHoldCommand(t, s, coder, "touch", "made")
			s.MustResolve(coder, a.ID, true)
			moved := ws
			tt.move(t, &moved)
			s.Restart(moved)
			if tt.code == "" {
				r, err := s.Tools.Resume(t.Context(), coder, a.ID)
				if r.Process != nil {
					t.Fatalf("it was started: %+v", r.Process)
				}
				b := heldIn(t, s, "", err)
				if b.ID == a.ID || b.Replaces != a.ID || b.State != writ.ApprovalPending || !strings.Contains(b.Reason, "asked again") {
					t.Errorf("%+v", b)
				}
				s.MustResolve(s.Operator("ann"), b.ID, true)
				ends(t, s, coder, mustStart(t, s, coder, b.ID).ID, writ.TerminationExited)
				wantDisk(t, ws, map[string]string{"made": ""})
			} else {
				for range 2 {
					resumeFails(t, s, coder, a.ID, tt.code)
				}
				wantNothingStarted(t, s)
				wantDisk(t, moved, map[string]string{})
				wantDisk(t, ws, map[string]string{})
			}
			wantState(t, s, a.ID, tt.after)
			s.Restart(ws)
			if tt.after != writ.ApprovalGranted {
				if r, err := s.Tools.Resume(t.Context(), coder, a.ID); err == nil || r.Process != nil {
					t.Errorf("after it came back: %+v, %v", r, err)
				}
				return
			}
			// It comes back, and so does the grant.
			ends(t, s, coder, mustStart(t, s, coder, a.ID).ID, writ.TerminationExited)
		})
	}
}

// PA-07, POL-05: the rules of now decide.
func TestPA07_ThePolicyMovedUnderACommand(t *testing.T) {
	t.Run("to a denial", func(t *testing.T) {
		s, ws, a := granted(t, confirm)
		setPolicy(t, s.System, testkit.WorkspacePolicy+noCommands)
		for range 2 {
			resumeFails(t, s, s.Agent("coder"), a.ID, "UNAUTHORIZED")
		}
		wantState(t, s, a.ID, writ.ApprovalConsumed)
		setPolicy(t, s.System, testkit.WorkspacePolicy)
		resumeFails(t, s, s.Agent("coder"), a.ID, "UNAUTHORIZED")
		wantNothingStarted(t, s)
		wantDisk(t, ws, map[string]string{})
	})
	t.Run("to a review", func(t *testing.T) {
		s, ws := bench(t, confirm)
		coder := s.Agent("coder")
		a := mustHoldCommand(t, s, coder, "touch", "made")
		s.MustResolve(coder, a.ID, true)
		setPolicy(t, s.System, testkit.WorkspacePolicy+holdCommands)
		_, err := s.Tools.Resume(t.Context(), coder, a.ID)
		b := heldIn(t, s, "", err)
		if h, _ := errors.AsType[*writ.Held](err); h.Self || b.Replaces != a.ID || b.Call.Mode != writ.ApprovalsReview {
			t.Errorf("%+v", b)
		}
		_, err = s.Tools.ResolveApproval(t.Context(), coder, b.ID, true)
		wantCode(t, "the requester's grant", err, "UNAUTHORIZED")
		s.MustResolve(s.Operator("ann"), b.ID, true)
		ends(t, s, coder, mustStart(t, s, coder, b.ID).ID, writ.TerminationExited)
		wantDisk(t, ws, map[string]string{"made": ""})
	})
	t.Run("of a review to another version", func(t *testing.T) {
		s, _, a := granted(t, nil, withPolicy(holdCommands))
		setPolicy(t, s.System, testkit.WorkspacePolicy+holdCommands+"// another version\n")
		_, err := s.Tools.Resume(t.Context(), s.Agent("coder"), a.ID)
		if b := heldIn(t, s, "", err); b.Replaces != a.ID {
			t.Errorf("%+v", b)
		}
		wantNothingStarted(t, s)
	})
	t.Run("to more grants", func(t *testing.T) {
		s, _, a := granted(t, nil, withPolicy(holdCommands), func(g *testkit.GatewaySetup) {
			for i := range g.Operators {
				g.Operators[i].Roles = []string{"lead"}
			}
		})
		setPolicy(t, s.System, testkit.WorkspacePolicy+holdCommands+leadsLookAtTouch)
		_, err := s.Tools.Resume(t.Context(), s.Agent("coder"), a.ID)
		if b := heldIn(t, s, "", err); b.Replaces != a.ID || b.Need.Grants != 2 {
			t.Errorf("%+v", b)
		}
		wantNothingStarted(t, s)
	})
	t.Run("to no hold at all", func(t *testing.T) {
		s, ws, a := granted(t, nil, withPolicy(holdCommands))
		setPolicy(t, s.System, testkit.WorkspacePolicy)
		ends(t, s, s.Agent("coder"), mustStart(t, s, s.Agent("coder"), a.ID).ID, writ.TerminationExited)
		wantDisk(t, ws, map[string]string{"made": ""})
	})
	t.Run("the identity lost its scope", func(t *testing.T) {
		s, ws, a := granted(t, confirm)
		for i := range s.Setup.Options.Identities {
			s.Setup.Options.Identities[i].Scopes = nil
		}
		s.Restart()
		resumeFails(t, s, s.Operator("ann"), a.ID, "UNAUTHORIZED")
		wantNothingStarted(t, s)
		wantDisk(t, ws, map[string]string{})
	})
}

// PA-07: what the store says of a held command is not believed where it is not what was
// granted.
func TestPA07_StoredCommandWasChanged(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to string
		void     bool // else it is asked for again
	}{
		"the command":   {`"made"`, `"evil"`, true},
		"the folder":    {`"tty":false}`, `"tty":false,"cwd":"sub"}`, true},
		"the terminal":  {`"tty":false`, `"tty":true`, true},
		"the workspace": {`"workspace_id":"app"`, `"workspace_id":"second"`, true},
		"all of it":     {`{"request"`, `{"Request"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			second := inside(t, func(w *writ.Workspace) { w.ID = "second" })
			ws := inside(t, confirm)
			s := testkit.Workspaces(t, []writ.Workspace{ws, second})
			coder := s.Agent("coder")
			a := mustHoldCommand(t, s, coder, "touch", "made")
			s.MustResolve(coder, a.ID, true)
			err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
				b, err := tx.ApprovalBody(t.Context(), a.ID, store.BodyCommand)
				if err != nil {
					return err
				}
				text := strings.Replace(string(b), tt.from, tt.to, 1)
				if text == string(b) {
					t.Fatalf("%q is not in %s", tt.from, b)
				}
				if _, err := tx.DeleteApprovalBodies(t.Context(), a.ID, store.BodyCommand); err != nil {
					return err
				}
				return tx.PutApprovalBody(t.Context(), a.ID, store.BodyCommand, []byte(text))
			})
			if err != nil {
				t.Fatal(err)
			}
			r, err := s.Tools.Resume(t.Context(), coder, a.ID)
			if tt.void {
				wantCode(t, "resume", err, "APPROVAL_CONFLICT")
				wantState(t, s, a.ID, writ.ApprovalCancelled)
				wantNothingStarted(t, s)
				wantDisk(t, ws, map[string]string{})
				return
			}
			if err != nil { // JSON does not tell these apart, and so it is what was granted
				t.Fatal(err)
			}
			ends(t, s, coder, r.Process.ID, writ.TerminationExited)
			wantDisk(t, ws, map[string]string{"made": ""})
		})
	}
}

// A hold whose body is gone cannot be carried out.
func TestStoredCommandIsGone(t *testing.T) {
	s, _, a := granted(t, confirm)
	if err := s.DB.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.DeleteApprovalBodies(t.Context(), a.ID, store.BodyCommand)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	resumeFails(t, s, s.Agent("coder"), a.ID, "APPROVAL_AMBIGUOUS")
	wantNothingStarted(t, s)
}
