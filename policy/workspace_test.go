package policy

import (
	"testing"
	"time"

	"writ"
)

func patching(id writ.WorkspaceID, tenant writ.Tenant, paths ...string) Request {
	return Request{
		Principal: writ.Principal{Kind: writ.KindAgent, ID: "coder", Tenant: tenant, Scopes: []writ.Scope{writ.ScopePatch}},
		Requester: writ.Principal{Kind: writ.KindAgent, ID: "coder", Tenant: tenant},
		Action:    writ.ActionPatch, Scope: writ.ScopePatch, Now: time.Unix(1_800_000_000, 0),
		Workspace: WorkspaceFacts{
			Workspace: writ.Workspace{ID: id, Tenant: tenant, Profile: writ.WorkspaceWrite, Approvals: writ.ApprovalsOff},
			Paths:     paths,
		},
	}
}

func TestWorkspaceRules(t *testing.T) {
	set, err := Compile([]File{{Name: "10.cedar", Content: []byte(`
@id("tools") permit (principal in Tenant::"acme", action in [Action::"read", Action::"patch"], resource in Tenant::"acme");
@id("ci") @hold("the pipeline changes") permit (principal, action == Action::"patch", resource) when { context.paths.contains(".ci/run") };
@id("frozen") forbid (principal, action == Action::"patch", resource == Workspace::"release");
@id("big") forbid (principal, action, resource) when { context.path_count > 3 };
@id("runs") permit (principal, action == Action::"run", resource);
`)}})
	if err != nil {
		t.Fatal(err)
	}
	reading := patching("app", "acme", "a.go")
	reading.Action, reading.Scope = writ.ActionRead, writ.ScopeRead
	foreign := patching("app", "acme", "a.go")
	foreign.Principal.Tenant = "globex"
	for name, tt := range map[string]struct {
		r    Request
		want writ.Effect
		rule string
	}{
		"read":           {reading, writ.Allow, "tools"},
		"patch":          {patching("app", "acme", "a.go"), writ.Allow, "tools"},
		"held by path":   {patching("app", "acme", "a.go", ".ci/run"), writ.Hold, "ci"},
		"denied":         {patching("release", "acme", ".ci/run"), writ.Deny, "frozen"},
		"denied by size": {patching("app", "acme", "a", "b", "c", "d"), writ.Deny, "big"},
		"other tenant":   {foreign, writ.Deny, ""},
		"no run rule":    {patching("app", "globex", "a"), writ.Deny, ""},
	} {
		d := set.Decide(tt.r)
		rule := ""
		if len(d.Rules) > 0 {
			rule = d.Rules[0].ID
		}
		if d.Effect != tt.want || rule != tt.rule {
			t.Errorf("%s: %s by %q (%s), want %s by %q", name, d.Effect, rule, d.Reason, tt.want, tt.rule)
		}
	}
}

func TestDefaultLetsWorkspaceToolsBe(t *testing.T) {
	set, err := Compile(Default())
	if err != nil {
		t.Fatal(err)
	}
	local := patching("default", "default")
	local.Principal = writ.Principal{Kind: writ.KindLocal, ID: "uid-1000", Tenant: "default"}
	operator := patching("default", "default")
	operator.Principal.Kind = writ.KindOperator
	for want, r := range map[writ.Effect]Request{writ.Allow: local, writ.Deny: operator} {
		if d := set.Decide(r); d.Effect != want {
			t.Errorf("%s: %s (%s), want %s", r.Principal.Kind, d.Effect, d.Reason, want)
		}
	}
}
