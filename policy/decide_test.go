package policy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func TestDecide(t *testing.T) {
	tests := []struct {
		name   string
		rules  string
		req    Request
		want   writ.Effect
		by     []string // ids
		reason string   // contained in the reason
	}{
		{"no rule matches", holdShell, python(), writ.Deny, nil, "no rule allows it"},
		{"allow", permitAll, python(), writ.Allow, []string{"all"}, "allowed by rule all (a.cedar:1)"},
		{"hold beats allow", permitAll + holdShell, bash(), writ.Hold, []string{"hold"}, "look"},
		{"deny beats hold", permitAll + holdShell + denyAcme, bash(), writ.Deny, []string{"deny"}, "rule deny (a.cedar:1) forbids it: not here"},
		{"deny beats allow whatever the order", denyAcme + permitAll, python(), writ.Deny, []string{"deny"}, "not here"},
		{"forbid of another tenant", permitAll + strings.Replace(denyAcme, "acme", "other", 1), python(), writ.Allow, []string{"all"}, ""},
		{"role", `@id("r") permit (principal in Role::"dev", action, resource);`, python(), writ.Allow, []string{"r"}, ""},
		{"other role", `@id("r") permit (principal in Role::"ops", action, resource);`, python(), writ.Deny, nil, ""},
		{"identity", `@id("i") permit (principal == Identity::"coder", action == Action::"run", resource == Language::"python");`, python(), writ.Allow, []string{"i"}, ""},
		{"kind", `@id("k") permit (principal is Operator, action, resource);`, python(), writ.Deny, nil, ""},
		{"without an id", "permit (principal,\n action, resource);\n\n@hold(\"x\")\npermit (principal, action, resource);", python(), writ.Hold, []string{"a.cedar:4"}, "x"},
		{"no language given", permitAll, Request{Principal: python().Principal, Action: writ.ActionRun}, writ.Allow, []string{"all"}, ""},
		{"unknown action", `@id("x") permit (principal, action == Action::"run", resource);`, Request{Principal: python().Principal, Action: "fly"}, writ.Deny, nil, ""},
		{"unknown principal kind", permitAll, Request{Principal: writ.Principal{Kind: "ghost", ID: "x"}}, writ.Deny, nil, `kind "ghost"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, tt.rules)
			d := s.Decide(tt.req)
			var by []string
			for _, r := range d.Rules {
				by = append(by, r.ID)
				if r.Effect != d.Effect || r.File != "a.cedar" || r.Line < 1 {
					t.Errorf("rule %+v made a decision to %s", r, d.Effect)
				}
			}
			if d.Effect != tt.want || !cmp.Equal(by, tt.by) || !strings.Contains(d.Reason, tt.reason) || d.Reason == "" {
				t.Errorf("got %s by %q (%s), want %s by %q (...%s...)", d.Effect, by, d.Reason, tt.want, tt.by, tt.reason)
			}
			if (d.Need != nil) != (d.Effect == writ.Hold) {
				t.Errorf("effect %s with need %v", d.Effect, d.Need)
			}
			if d.Policy != s.Version() {
				t.Errorf("policy is %q", d.Policy)
			}
		})
	}
}

// Every attribute of the context, once with a condition that holds and once with
// one that does not.
func TestConditionsSeeTheFacts(t *testing.T) {
	r := python()
	r.Run.StdinBytes = 7
	conditions := map[string]string{
		`context.now == datetime("2026-03-04T10:30:00Z")`:                            `context.now > datetime("2026-03-05")`,
		`context.now.toTime() < duration("11h")`:                                     `context.now.toTime() < duration("10h")`,
		`context.requester.kind == "operator"`:                                       `context.requester.kind == "agent"`,
		`context.requester.id == "anna" && context.requester.tenant=="acme"`:         `context.requester.id == principal.id`,
		`context.role == "dev"`:                                                      `context.role == ""`,
		`context.scopes.contains("python")`:                                          `context.scopes.contains("shell")`,
		`context.scope == "python" && resource in Scope::"python"`:                   `resource in Scope::"shell"`,
		`context.language == "python" && resource == Language::"python"`:             `context.language == "bash"`,
		`context.code_digest == "` + string(writ.DigestOf([]byte("print(1)"))) + `"`: `context.code_digest == ""`,
		`context.code_bytes == 8`:                                                    `context.code_bytes > 8`,
		`context.stdin_bytes == 7`:                                                   `context.stdin_bytes == 0`,
		`context.args.containsAll(["a", "-v"]) && context.arg_count == 2`:            `context.args.contains("-v a")`,
		`context.env == ["TZ"]`:                                                      `context.env.contains("UTC")`,
		`context.inputs.contains("data/x.csv") && context.input_count == 1`:          `context.inputs.isEmpty()`,
		`context.input_bytes == 3`:                                                   `context.input_bytes == 0`,
		`context.limits.wall_ms == 60000`:                                            `context.limits.memory_bytes > 536870912`,
		`principal.id like "cod*" && principal.tenant == "acme"`:                     `principal.id like "*x"`,
	}
	for holds, fails := range conditions {
		for cond, want := range map[string]writ.Effect{holds: writ.Allow, fails: writ.Deny} {
			s := compile(t, "permit (principal, action, resource) when { "+cond+" };")
			if d := s.Decide(r); d.Effect != want {
				t.Errorf("%s: got %s (%s), want %s", cond, d.Effect, d.Reason, want)
			}
		}
	}
}

func TestScenario06_ForbidNamesFileAndLine(t *testing.T) {
	s := mustCompile(t, []File{
		{"10-base.cedar", []byte(permitAll)},
		{"20-acme.cedar", []byte("// The tenant acme stopped all of its agents.\n\n@reason(\"acme is paused\")\nforbid (\n  principal in Tenant::\"acme\",\n  action,\n  resource\n);\n")},
	})
	got := s.Decide(python())
	want := writ.Decision{
		Effect: writ.Deny,
		Rules:  []writ.Rule{{ID: "20-acme.cedar:3", File: "20-acme.cedar", Line: 3, Effect: writ.Deny}},
		Reason: "rule 20-acme.cedar:3 forbids it: acme is paused",
		Policy: s.Version(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decision differs (-want +got):\n%s", diff)
	}
}

func TestHoldsNeedTheStrictestOfAll(t *testing.T) {
	s := compile(t, permitAll,
		`@hold("two eyes") @approvers("lead, sec") permit (principal, action, resource);`,
		`@hold("four eyes") @grants("2") @approvers("sec,ops") permit (principal, action, resource);`,
		`@hold("two eyes") @require_reason("true") permit (principal, action, resource);`,
		`@hold("shell only") @grants("5") permit (principal, action, resource in Scope::"shell");`)
	d := s.Decide(python())
	want := &writ.Need{Grants: 2, Reason: true, Roles: []string{"lead", "ops", "sec"}}
	if diff := cmp.Diff(want, d.Need); diff != "" {
		t.Errorf("need differs (-want +got):\n%s", diff)
	}
	if d.Effect != writ.Hold || d.Reason != "two eyes; four eyes" || len(d.Rules) != 3 {
		t.Errorf("decision is %+v", d)
	}
}

// Cedar skips a policy that errs, so that a forbid would vanish.
func TestRuleThatErrsDenies(t *testing.T) {
	for _, src := range []string{
		`@id("errs") forbid (principal, action, resource) when { ` + overflows + ` };`,
		`@id("errs") permit (principal, action, resource) when { ` + overflows + ` };`,
		`@id("errs") @hold("x") permit (principal, action, resource) unless { ` + overflows + ` };`,
	} {
		d := compile(t, permitAll, src).Decide(python())
		if d.Effect != writ.Deny || len(d.Rules) != 1 || d.Rules[0].ID != "errs" || d.Rules[0].Effect != writ.Deny ||
			!strings.Contains(d.Reason, "rule errs (b.cedar:1) cannot be evaluated") || !strings.Contains(d.Reason, "overflow") {
			t.Errorf("%s: decision is %+v", src, d)
		}
	}
	both := compile(t, permitAll, denyAcme, `@id("errs") permit (principal, action, resource) when { `+overflows+` };`).Decide(python())
	if len(both.Rules) != 2 || !strings.Contains(both.Reason, "not here") {
		t.Errorf("decision is %+v", both)
	}
}

// Names are an agent's: they must not be able to be anything but names.
func TestHostileNamesMatchOnlyThemselves(t *testing.T) {
	s := compile(t, `permit (principal == Identity::"coder", action, resource == Language::"python") when { context.role == "dev" };`)
	for _, name := range []string{"coder\x00", "Coder", `coder"`, "*", "coder\n", "", "cоder", "\xff", strings.Repeat("coder", 10_000)} {
		for _, set := range []func(*Request){
			func(r *Request) { r.Principal.ID = name },
			func(r *Request) { r.Run.Language = writ.Language(name) },
			func(r *Request) { r.Role = name },
		} {
			r := python()
			set(&r)
			if d := s.Decide(r); d.Effect != writ.Deny {
				t.Errorf("%.20q passes as another name", name)
			}
		}
	}
}
