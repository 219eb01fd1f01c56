package gateway_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
)

// Rules beside testkit.WorkspacePolicy.
const (
	protectCI = `@id("ci") @reason("the pipeline is not for agents")
forbid (principal, action == Action::"patch", resource) when { context.paths.contains(".ci/run") };
`
	secretFile = `@id("secret") @reason("keys are not read")
forbid (principal, action == Action::"read", resource) when { context.paths.contains("sub/secret") };
`
	leadsLook = `@id("look") @hold("production") @grants("2") @approvers("lead") @require_reason("true")
permit (principal, action == Action::"patch", resource) when { context.paths.contains("prod") };
`
	holdPatches = `@id("look-at-all") @hold("a person looks")
permit (principal, action == Action::"patch", resource);
`
	holdReads = `@id("look-at-reads") @hold("a person looks")
permit (principal, action == Action::"read", resource);
`
	noPatches = `@id("frozen") @reason("the freeze is on")
forbid (principal, action == Action::"patch", resource);
`
)

func withPolicy(rules ...string) func(*testkit.GatewaySetup) {
	return func(g *testkit.GatewaySetup) { g.Policy = testkit.WorkspacePolicy + strings.Join(rules, "") }
}

// PA-17, POL-15: a rule about a path holds in every spelling of it, for each way to
// change it, and is asked before anybody else is.
func TestPA17_POL15_DenyByPath(t *testing.T) {
	s, ws := app(t, map[string]string{".ci/run": "1\n", "a": "1\n"}, confirm, withPolicy(protectCI))
	coder := s.Agent("coder")
	for name, lines := range map[string][]string{
		"update":            edit(".ci/run", "1", "2"),
		"another spelling":  edit("./x/../.ci//run", "1", "2"),
		"absolute":          edit(ws.Root+"/.ci/run", "1", "2"),
		"delete":            {"*** Delete File: .ci/run"},
		"move away":         {"*** Update File: .ci/run", "*** Move to: b", "@@", "-1", "+2"},
		"among others":      slices.Concat(edit("a", "1", "2"), edit(".ci/run", "1", "2")),
		"deleted and added": slices.Concat([]string{"*** Delete File: .ci/run"}, add(".ci/run", "1")),
	} {
		for _, check := range []bool{false, true} {
			req := change(lines...)
			req.CheckOnly = check
			_, _, err := s.Tools.Patch(t.Context(), coder, req)
			wantCode(t, name, err, "UNAUTHORIZED")
			if !strings.Contains(writ.Message(err), "the pipeline is not for agents") {
				t.Errorf("%s: %q does not say why", name, writ.Message(err))
			}
			_, err = s.CreateApproval(t.Context(), coder, req)
			wantCode(t, name+", held", err, "UNAUTHORIZED")
		}
	}
	// Through a move onto it, which the runner would refuse as well.
	_, _, err := s.Tools.Patch(t.Context(), coder, change("*** Update File: a", "*** Move to: .ci/run", "@@", "-1", "+2"))
	wantCode(t, "move onto it", err, "UNAUTHORIZED")
	// Taking back what an operator's own change made is a change of it, too.
	if n := len(s.Operations()); n != 0 || s.Files.Calls("Patch")+s.Files.Calls("Plan") != 0 {
		t.Errorf("%d operations, %d calls", n, s.Files.Calls("Patch")+s.Files.Calls("Plan"))
	}
	// Approval mode: one request, which names the path; after a denial nothing is written.
	a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	v, err := s.Approval(t.Context(), coder, a.ID)
	if err != nil || !strings.Contains(v.Text, "a") {
		t.Errorf("%q, %v", v.Text, err)
	}
	s.MustResolve(coder, a.ID, false)
	wantDisk(t, ws, map[string]string{".ci/run": "1\n", "a": "1\n"})
}

func TestUndoIsDecidedByItsPaths(t *testing.T) {
	s, ws := app(t, map[string]string{".ci/run": "1\n"}, nil)
	coder := s.Agent("coder")
	op := mustPatch(t, s, coder, change(edit(".ci/run", "1", "2")...), writ.PatchApplied)
	setPolicy(t, s.System, testkit.WorkspacePolicy+protectCI)
	_, err := s.Tools.Undo(t.Context(), coder, op.ID, writ.UndoRequest{})
	wantCode(t, "undo", err, "UNAUTHORIZED")
	setPolicy(t, s.System, testkit.WorkspacePolicy)
	undone, err := s.Tools.Undo(t.Context(), coder, op.ID, writ.UndoRequest{Key: "u"})
	if err != nil || undone.Result.Status != writ.PatchApplied || undone.Undoes != op.ID {
		t.Fatalf("%+v, %v", undone, err)
	}
	wantDisk(t, ws, map[string]string{".ci/run": "1\n"})
	// Once, and by its key the same.
	if again, err := s.Tools.Undo(t.Context(), coder, op.ID, writ.UndoRequest{Key: "u"}); err != nil || again.ID != undone.ID {
		t.Errorf("%s, %v", again.ID, err)
	}
	_, err = s.Tools.Undo(t.Context(), coder, op.ID, writ.UndoRequest{})
	wantCode(t, "undo again", err, "VERSION_CONFLICT")
	// The undoing is an operation like others.
	redone, err := s.Tools.Undo(t.Context(), coder, undone.ID, writ.UndoRequest{})
	if err != nil || redone.Result.Status != writ.PatchApplied {
		t.Errorf("%+v, %v", redone, err)
	}
	wantDisk(t, ws, map[string]string{".ci/run": "2\n"})
	rejected, _, _ := s.Tools.Patch(t.Context(), coder, change(edit(".ci/run", "9", "2")...))
	_, err = s.Tools.Undo(t.Context(), coder, rejected.ID, writ.UndoRequest{})
	wantCode(t, "undo of what was not applied", err, "INVALID_PATCH")
}

func TestUndoIsHeldAndResumed(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, nil)
	coder := s.Agent("coder")
	op := mustPatch(t, s, coder, change(edit("a", "1", "2")...), writ.PatchApplied)
	setPolicy(t, s.System, testkit.WorkspacePolicy+holdPatches)
	_, err := s.Tools.Undo(t.Context(), coder, op.ID, writ.UndoRequest{})
	h, ok := errors.AsType[*writ.Held](err)
	if !ok || h.Self {
		t.Fatalf("%v", err)
	}
	s.MustResolve(s.Operator("ann"), h.Approval, true)
	undone := mustResume(t, s, coder, h.Approval, writ.PatchApplied)
	if undone.Undoes != op.ID {
		t.Errorf("%+v", undone)
	}
	wantDisk(t, ws, map[string]string{"a": "1\n"})
}

func TestPOL15_ReadDenied(t *testing.T) {
	s, _ := app(t, map[string]string{"sub/secret": "key\n", "sub/open": "o\n"}, nil, withPolicy(secretFile))
	coder := s.Agent("coder")
	for _, name := range []string{"sub/secret", "./sub/secret", "sub/../sub/secret", "sub//secret", "x/../sub/./secret"} {
		_, err := s.Tools.Read(t.Context(), coder, "app", name, 0, 100)
		wantCode(t, name, err, "UNAUTHORIZED")
	}
	if s.Files.Calls("Read") != 0 {
		t.Error("the runner was asked")
	}
	if win, err := s.Tools.Read(t.Context(), coder, "app", "sub/open", 0, 100); err != nil || string(win.Content) != "o\n" {
		t.Errorf("%q, %v", win.Content, err)
	}
	// Reading cannot wait for a person: a rule that holds it denies it.
	setPolicy(t, s.System, testkit.WorkspacePolicy+holdReads)
	_, err := s.Tools.Read(t.Context(), coder, "app", "sub/open", 0, 100)
	wantCode(t, "a held read", err, "UNAUTHORIZED")
	_, err = s.Tools.Find(t.Context(), coder, "app", writ.FileQuery{Limit: 10})
	wantCode(t, "a held find", err, "UNAUTHORIZED")
	if list, _, err := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{}); err != nil || len(list) != 0 {
		t.Errorf("%d approvals, %v", len(list), err)
	}
}

// Path rules of the workspace hold beneath the policy's.
func TestPathRulesOfTheWorkspace(t *testing.T) {
	s, ws := app(t, map[string]string{"docs/a": "1\n", "src/a": "1\n", ".env": "k\n"}, func(w *writ.Workspace) {
		w.Rules = writ.PathRules{Write: []string{"docs/**"}, DenyRead: []string{".env"}}
	})
	coder := s.Agent("coder")
	_, _, err := s.Tools.Patch(t.Context(), coder, change(edit("src/a", "1", "2")...))
	wantCode(t, "outside of write", err, "UNAUTHORIZED")
	_, err = s.Tools.Read(t.Context(), coder, "app", ".env", 0, 10)
	wantCode(t, "deny_read", err, "UNAUTHORIZED")
	req := change(edit("docs/a", "1", "2")...)
	req.Expected = map[string]string{".env": version("k\n")}
	_, _, err = s.Tools.Patch(t.Context(), coder, req)
	wantCode(t, "the version of what may not be read", err, "UNAUTHORIZED")
	mustPatch(t, s, coder, change(edit("docs/a", "1", "2")...), writ.PatchApplied)
	wantDisk(t, ws, map[string]string{"docs/a": "2\n", "src/a": "1\n", ".env": "k\n"})
}

func TestScopesOfAnIdentity(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, nil)
	for _, tt := range []struct {
		who         writ.Principal
		read, patch string
	}{
		{s.Agent("coder"), "", ""},
		{s.Agent("reader"), "", "UNAUTHORIZED"},
		{s.Agent("idle"), "UNAUTHORIZED", "UNAUTHORIZED"},
		{s.Operator("ann"), "UNAUTHORIZED", "UNAUTHORIZED"}, // no rule of this policy is for operators
		{testkit.Local(), "", ""},
		// Claims of scopes that the registry does not have; a name of nobody; of a tenant
		// that the identity is not of.
		{writ.Principal{Kind: writ.KindAgent, ID: "idle", Tenant: "acme", Scopes: []writ.Scope{"read", "patch"}}, "UNAUTHORIZED", "UNAUTHORIZED"},
		{writ.Principal{Kind: writ.KindAgent, ID: "ghost", Tenant: "acme", Scopes: []writ.Scope{"read", "patch"}}, "UNAUTHORIZED", "UNAUTHORIZED"},
		{writ.Principal{Kind: writ.KindAgent, ID: "guest", Tenant: "acme"}, "UNAUTHORIZED", "UNAUTHORIZED"},
		{writ.Principal{Kind: "root", ID: "coder", Tenant: "acme"}, "UNAUTHORIZED", "UNAUTHORIZED"},
	} {
		_, err := s.Tools.Read(t.Context(), tt.who, "app", "a", 0, 10)
		if writ.CodeOf(err) != tt.read {
			t.Errorf("%s reads: %v", tt.who.Ref(), err)
		}
		_, err = s.Tools.Find(t.Context(), tt.who, "app", writ.FileQuery{Limit: 10})
		if writ.CodeOf(err) != tt.read {
			t.Errorf("%s finds: %v", tt.who.Ref(), err)
		}
		req := change(edit("a", "1", "2")...)
		req.CheckOnly = true
		_, _, err = s.Tools.Patch(t.Context(), tt.who, req)
		if writ.CodeOf(err) != tt.patch {
			t.Errorf("%s patches: %v", tt.who.Ref(), err)
		}
	}
}

// POL-06: a hold that a rule asks for is an operator's to lift, with all that the rule
// needs, and never the requester's.
func TestPOL06_HeldByARule(t *testing.T) {
	s, ws := app(t, map[string]string{"prod": "1\n", "a": "1\n"}, confirm, withPolicy(leadsLook), func(g *testkit.GatewaySetup) {
		for i := range g.Operators {
			g.Operators[i].Roles = []string{"lead"}
		}
		g.Operators = append(g.Operators, writ.Operator{ID: "kim", Tenant: "acme"})
	})
	ctx, coder := t.Context(), s.Agent("coder")
	a := mustHold(t, s, coder, change(edit("prod", "1", "2")...))
	if a.Call.Mode != writ.ApprovalsReview || a.Need.Grants != 2 || !a.Need.Reason || len(a.Rules) != 1 || a.Rules[0].ID != "look" {
		t.Errorf("%+v", a)
	}
	for _, who := range []writ.Principal{coder, s.Operator("kim")} {
		_, err := s.Verdict(who, a.ID, writ.Grant, "yes")
		wantKind(t, who.ID, err, writ.Denied)
		_, err = s.Tools.ResolveApproval(ctx, who, a.ID, true)
		wantCode(t, who.ID, err, "UNAUTHORIZED")
	}
	for _, who := range []writ.Principal{s.Agent("mate"), s.Operator("eve")} {
		_, err := s.Tools.ResolveApproval(ctx, who, a.ID, true)
		wantCode(t, who.ID, err, "APPROVAL_NOT_FOUND")
	}
	_, err := s.Verdict(s.Operator("ann"), a.ID, writ.Grant, "")
	wantKind(t, "a grant without a reason", err, writ.Invalid)
	// Over the tools an operator grants without having been shown what it is.
	_, err = s.Tools.ResolveApproval(ctx, s.Operator("ann"), a.ID, true)
	if err == nil {
		t.Error("granted unread")
	}
	for i, who := range []string{"ann", "bob"} {
		got, err := s.Verdict(s.Operator(who), a.ID, writ.Grant, "because")
		if want := []writ.ApprovalState{writ.ApprovalPending, writ.ApprovalGranted}[i]; err != nil || got.State != want {
			t.Fatalf("%s: %s, %v", who, got.State, err)
		}
		if i == 0 {
			_, _, err := s.Resume(ctx, coder, a.ID)
			wantCode(t, "resume with one grant of two", err, "APPROVAL_CONFLICT")
		}
	}
	mustResume(t, s, coder, a.ID, writ.PatchApplied)
	// What the rule is not about is confirmed by the caller.
	b := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	if b.Call.Mode != writ.ApprovalsConfirm {
		t.Errorf("mode %s", b.Call.Mode)
	}
	wantDisk(t, ws, map[string]string{"prod": "2\n", "a": "1\n"})
}

func TestReviewNeedsAnOperatorWhoDidNotAsk(t *testing.T) {
	s, ws := app(t, map[string]string{"a": "1\n"}, review)
	coder := s.Agent("coder")
	a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
	_, err := s.Tools.ResolveApproval(t.Context(), coder, a.ID, true)
	wantCode(t, "the requester's own grant", err, "UNAUTHORIZED")
	s.MustResolve(s.Operator("ann"), a.ID, true)
	mustResume(t, s, s.Operator("bob"), a.ID, writ.PatchApplied) // whoever sees it may carry it out
	if op := s.Operations()[0]; op.By != coder.Ref() {
		t.Errorf("it is %s's", op.By)
	}
	wantDisk(t, ws, map[string]string{"a": "2\n"})
}

// A review that nobody could give is a denial (spec/01 §2 rule 3).
func TestReviewWithoutOperators(t *testing.T) {
	s, _ := app(t, map[string]string{"a": "1\n"}, review, func(g *testkit.GatewaySetup) { g.Operators = nil })
	for range 2 {
		_, _, err := s.Tools.Patch(t.Context(), s.Agent("coder"), change(edit("a", "1", "2")...))
		wantCode(t, "patch", err, "UNAUTHORIZED")
	}
	if list, _, err := s.Approvals(t.Context(), testkit.Local(), writ.ApprovalFilter{}); err != nil || len(list) != 0 {
		t.Errorf("%d approvals, %v", len(list), err)
	}
}

func TestPA07_PolicyMovedBetweenHoldAndResume(t *testing.T) {
	t.Run("to a denial", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
		coder := s.Agent("coder")
		a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
		s.MustResolve(coder, a.ID, true)
		setPolicy(t, s.System, testkit.WorkspacePolicy+noPatches)
		for range 2 {
			_, _, err := s.Resume(t.Context(), coder, a.ID)
			wantCode(t, "resume", err, "UNAUTHORIZED")
		}
		if got := s.StoredApproval(a.ID); got.State != writ.ApprovalConsumed {
			t.Errorf("approval is %s", got.State)
		}
		wantDisk(t, ws, map[string]string{"a": "1\n"})
	})
	t.Run("to a review", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, confirm)
		coder := s.Agent("coder")
		a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
		s.MustResolve(coder, a.ID, true)
		setPolicy(t, s.System, testkit.WorkspacePolicy+holdPatches)
		_, _, err := s.Resume(t.Context(), coder, a.ID)
		h, ok := errors.AsType[*writ.Held](err)
		if !ok || h.Self || h.Approval == a.ID {
			t.Fatalf("%v", err)
		}
		_, err = s.Tools.ResolveApproval(t.Context(), coder, h.Approval, true)
		wantCode(t, "the requester's grant", err, "UNAUTHORIZED")
		s.MustResolve(s.Operator("ann"), h.Approval, true)
		mustResume(t, s, coder, h.Approval, writ.PatchApplied)
		wantDisk(t, ws, map[string]string{"a": "2\n"})
	})
	t.Run("of a review to another version", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, nil, withPolicy(holdPatches))
		coder := s.Agent("coder")
		a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
		s.MustResolve(s.Operator("ann"), a.ID, true)
		setPolicy(t, s.System, testkit.WorkspacePolicy+holdPatches+"// another version\n")
		_, _, err := s.Resume(t.Context(), coder, a.ID)
		h, ok := errors.AsType[*writ.Held](err)
		if !ok || h.Approval == a.ID {
			t.Fatalf("%v", err)
		}
		wantDisk(t, ws, map[string]string{"a": "1\n"})
	})
	t.Run("to no hold at all", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, nil, withPolicy(holdPatches))
		coder := s.Agent("coder")
		a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
		s.MustResolve(s.Operator("ann"), a.ID, true)
		setPolicy(t, s.System, testkit.WorkspacePolicy)
		mustResume(t, s, coder, a.ID, writ.PatchApplied)
		wantDisk(t, ws, map[string]string{"a": "2\n"})
	})
	t.Run("to more grants", func(t *testing.T) {
		s, ws := app(t, map[string]string{"a": "1\n"}, nil, withPolicy(holdPatches))
		coder := s.Agent("coder")
		a := mustHold(t, s, coder, change(edit("a", "1", "2")...))
		s.MustResolve(s.Operator("ann"), a.ID, true)
		setPolicy(t, s.System, testkit.WorkspacePolicy+strings.Replace(holdPatches, `@hold`, `@grants("2") @hold`, 1))
		_, _, err := s.Resume(t.Context(), coder, a.ID)
		h, ok := errors.AsType[*writ.Held](err)
		if !ok || s.StoredApproval(h.Approval).Need.Grants != 2 {
			t.Fatalf("%v", err)
		}
		wantDisk(t, ws, map[string]string{"a": "1\n"})
	})
}

func TestPolicyMovedWhileItWaitsForTheLease(t *testing.T) {
	for name, tt := range map[string]struct{ rules, want string }{
		"to a denial": {noPatches, "UNAUTHORIZED"}, "to a hold": {holdPatches, "APPROVAL_REQUIRED"}, "to the same": {"// moved\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, ws := app(t, map[string]string{"a": "1\n", "b": "1\n"}, nil)
			coder := s.Agent("coder")
			arrived, release := s.Files.Hangs("Patch")
			holder := goPatch(s, coder, change(edit("a", "1", "2")...))
			testkit.Receive(t, "a patch holds the lease", arrived)
			waiter := goPatch(s, coder, change(edit("b", "1", "2")...))
			// It was decided once the first has its row, and before it has one of its own.
			waits(t, 1)
			setPolicy(t, s.System, testkit.WorkspacePolicy+tt.rules)
			release()
			if p := testkit.Receive(t, "the first", holder); p.err != nil {
				t.Error(p.err)
			}
			p := testkit.Receive(t, "the second", waiter)
			if writ.CodeOf(p.err) != tt.want {
				t.Errorf("%v, want code %q", p.err, tt.want)
			}
			want := map[string]string{"a": "2\n", "b": "1\n"}
			if tt.want == "" {
				want["b"] = "2\n"
			}
			wantDisk(t, ws, want)
		})
	}
}

// What another tenant has is as if it were not there, for each way to ask.
func TestTenantsDoNotSeeEachOther(t *testing.T) {
	acme := testkit.Workspace(t, "acme-app", map[string]string{"a": "1\n"}, confirm)
	globex := testkit.Workspace(t, "globex-app", map[string]string{"a": "1\n"}, func(w *writ.Workspace) { w.Tenant = "globex" })
	s := testkit.Workspaces(t, []writ.Workspace{acme, globex})
	ctx := t.Context()
	ofAcme := func(key string, lines ...string) writ.PatchRequest {
		req := keyed(key, lines...)
		req.Workspace = "acme-app"
		return req
	}
	req := ofAcme("k", edit("a", "1", "2")...)
	a := mustHold(t, s, s.Agent("coder"), req)
	pending := mustHold(t, s, s.Agent("coder"), ofAcme("p", edit("a", "1", "3")...))
	s.MustResolve(s.Agent("coder"), a.ID, true)
	op := mustResume(t, s, s.Agent("coder"), a.ID, writ.PatchApplied)

	for _, who := range []writ.Principal{
		s.Agent("guest"), s.Operator("eve"),
		{Kind: writ.KindAgent, ID: "coder", Tenant: "globex"}, // a name is not enough
		{Kind: writ.KindUser, ID: "coder", Tenant: "globex"},
		{},
	} {
		for what, call := range map[string]func() error{
			"WORKSPACE_NOT_FOUND workspace": func() error { _, err := s.Tools.Workspace(who, "acme-app"); return err },
			"WORKSPACE_NOT_FOUND read":      func() error { _, err := s.Tools.Read(ctx, who, "acme-app", "a", 0, 1); return err },
			"WORKSPACE_NOT_FOUND find": func() error {
				_, err := s.Tools.Find(ctx, who, "acme-app", writ.FileQuery{Limit: 1})
				return err
			},
			"WORKSPACE_NOT_FOUND patch": func() error { _, _, err := s.Tools.Patch(ctx, who, req); return err },
			"WORKSPACE_NOT_FOUND hold": func() error {
				_, err := s.CreateApproval(ctx, who, req)
				return err
			},
			"OPERATION_NOT_FOUND by id":  func() error { _, err := s.Tools.Operation(ctx, who, op.ID, ""); return err },
			"OPERATION_NOT_FOUND by key": func() error { _, err := s.Tools.Operation(ctx, who, "", "k"); return err },
			"OPERATION_NOT_FOUND undo":   func() error { _, err := s.Tools.Undo(ctx, who, op.ID, writ.UndoRequest{}); return err },
			"OPERATION_NOT_FOUND undo as a patch": func() error {
				_, _, err := s.Tools.Patch(ctx, who, writ.PatchRequest{Workspace: "globex-app", Undo: op.ID})
				if writ.CodeOf(err) == "WORKSPACE_NOT_FOUND" && len(s.Tools.Workspaces(who)) == 0 {
					return &writ.Error{Kind: writ.NotFound, Code: "OPERATION_NOT_FOUND", Msg: "not even the workspace"}
				}
				return err
			},
			"APPROVAL_NOT_FOUND resolve": func() error {
				_, err := s.Tools.ResolveApproval(ctx, who, pending.ID, false)
				return err
			},
			"APPROVAL_NOT_FOUND resume": func() error { _, _, err := s.Resume(ctx, who, a.ID); return err },
			"APPROVAL_NOT_FOUND none":   func() error { _, _, err := s.Resume(ctx, who, "appr-none"); return err },
		} {
			want, name, _ := strings.Cut(what, " ")
			err := call()
			if writ.KindOf(err) != writ.NotFound || writ.CodeOf(err) != want {
				t.Errorf("%s: %s: %v with code %q", who.Ref(), name, err, writ.CodeOf(err))
			}
			for _, secret := range []string{"acme-app", acme.Root, string(pending.Call.Plan)} {
				// A caller's own words come back to it, and no others.
				if err != nil && strings.Contains(strings.ReplaceAll(writ.Message(err), `"acme-app"`, ""), secret) {
					t.Errorf("%s: %s tells %q: %v", who.Ref(), name, secret, err)
				}
			}
		}
		list, _, err := s.Tools.Operations(ctx, who, writ.OperationFilter{Tenant: "acme", By: s.Agent("coder").Ref()})
		if who.ID != "" && (err != nil || len(list) != 0) {
			t.Errorf("%s lists %d operations, %v", who.Ref(), len(list), err)
		}
		approvals, _, err := s.Approvals(ctx, who, writ.ApprovalFilter{Tenant: "acme", Identity: "coder"})
		if who.ID != "" && (err != nil || len(approvals) != 0) {
			t.Errorf("%s lists %d approvals, %v", who.Ref(), len(approvals), err)
		}
	}
	// The same tenant, and another's things.
	mate := s.Agent("mate")
	_, err := s.Tools.Operation(ctx, mate, op.ID, "")
	wantCode(t, "another identity's operation", err, "OPERATION_NOT_FOUND")
	_, _, err = s.Resume(ctx, mate, a.ID)
	wantCode(t, "another identity's hold", err, "APPROVAL_NOT_FOUND")
	for _, who := range []writ.Principal{s.Operator("ann"), testkit.Local()} {
		if got, err := s.Tools.Operation(ctx, who, op.ID, ""); err != nil || got.ID != op.ID {
			t.Errorf("%s: %v", who.Ref(), err)
		}
		if list, _, err := s.Tools.Operations(ctx, who, writ.OperationFilter{}); err != nil || len(list) != 1 {
			t.Errorf("%s lists %d, %v", who.Ref(), len(list), err)
		}
	}
	if got := s.StoredApproval(pending.ID); got.State != writ.ApprovalPending {
		t.Errorf("the hold is %s", got.State)
	}
}

// The bound of what one identity may have people look at is one of patches, too.
func TestHoldsAreBounded(t *testing.T) {
	s, _ := app(t, nil, confirm, func(g *testkit.GatewaySetup) { g.Options.Held = 3 })
	coder := s.Agent("coder")
	for _, name := range []string{"a", "b", "c"} {
		mustHold(t, s, coder, change(add(name, "1")...))
	}
	_, _, err := s.Tools.Patch(context.Background(), coder, change(add("d", "1")...))
	wantKind(t, "one more", err, writ.Exhausted)
	mustHold(t, s, coder, change(add("a", "1")...)) // one that is open
	mustHold(t, s, s.Agent("mate"), change(add("d", "1")...))
}
