package policy

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
)

func TestExplain(t *testing.T) {
	const ops = `@id("ops")
permit (principal is Identity in Role::"ops", action == Action::"run", resource in Scope::"shell")
when { context.code_bytes < 5 && (context.role == "dev" || context.role == "x") && context.arg_count == 0 }
unless { context.stdin_bytes == 0 };`
	tests := []struct {
		name    string
		rules   string
		req     Request
		matched []string
		nearest string
		failed  []string
	}{
		{"what a permit lacks", ops + `
@id("far") permit (principal == Identity::"x", action, resource == Language::"x")
when { context.code_bytes < 1 && context.code_bytes < 2 && context.code_bytes < 3 && context.code_bytes < 4 };`, python(), nil, "ops", []string{
			`principal is Identity in Role::"ops" (it is Identity::"coder")`,
			`resource in Scope::"shell" (it is Language::"python")`,
			`when context.code_bytes < 5`,
			`when context.arg_count == 0`,
			`unless context.stdin_bytes == 0`,
		}},
		{"the nearest of two, first by place on a tie", `
@id("one") permit (principal, action, resource) when { context.code_bytes < 1 };
@id("two") permit (principal, action, resource) when { context.code_bytes < 2 };`, python(), nil, "one", []string{"when context.code_bytes < 1"}},
		{"allowed: what would hold or deny", permitAll + holdShell + `@id("far") forbid (principal == Identity::"x", action, resource in Scope::"shell");`,
			python(), []string{"all"}, "hold", []string{`resource in Scope::"shell" (it is Language::"python")`}},
		{"held: only a forbid", permitAll + holdShell + `@id("no") forbid (principal, action, resource == Language::"node");
@id("more") @hold("x") permit (principal, action, resource) when { context.code_bytes < 1 };`,
			bash(), []string{"all", "hold"}, "no", []string{`resource == Language::"node" (it is Language::"bash")`}},
		{"forbidden: nothing that is added helps", permitAll + holdShell + denyAcme, bash(), []string{"all", "hold", "deny"}, "", nil},
		{"an erring rule is not near", `@id("errs") permit (principal, action, resource) when { ` + overflows + ` };` + ops, python(), nil, "", nil},
		{"a part that cannot be evaluated apart", `@id("g") permit (principal, action, resource) when { context.code_bytes == 0 && ` + overflows + ` };`, python(), nil, "g", []string{
			`when context.code_bytes == 0`,
			`when context.code_bytes * 9223372036854775807 > 0 (cannot be evaluated by itself: integer overflow while attempting to multiply ` + "`8` by `9223372036854775807`)",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := compile(t, tt.rules)
			x := s.Explain(tt.req)
			if diff := cmp.Diff(s.Decide(tt.req), x.Decision); diff != "" {
				t.Errorf("Explain decides otherwise than Decide:\n%s", diff)
			}
			var matched []string
			for _, r := range x.Matched {
				matched = append(matched, r.ID)
			}
			if diff := cmp.Diff(tt.matched, matched); diff != "" {
				t.Errorf("matched differ (-want +got):\n%s", diff)
			}
			near := Near{}
			if x.Nearest != nil {
				near = *x.Nearest
			}
			if near.Rule.ID != tt.nearest {
				t.Fatalf("nearest is %q, want %q", near.Rule.ID, tt.nearest)
			}
			if diff := cmp.Diff(tt.failed, near.Failed); diff != "" {
				t.Errorf("failed parts differ (-want +got):\n%s", diff)
			}
		})
	}
	if x := compile(t, permitAll).Explain(Request{Principal: writ.Principal{Kind: "ghost"}}); x.Decision.Effect != writ.Deny || x.Nearest != nil {
		t.Errorf("explanation of an unknown kind is %+v", x)
	}
}
