package policy

import (
	"fmt"
	"strings"
	"testing"

	"writ"
)

func TestDefaultPolicyPassesItsExamples(t *testing.T) {
	s := mustCompile(t, Default())
	results, err := s.Check(DefaultExamples())
	if err != nil {
		t.Fatal(err)
	}
	if len(results) < 8 {
		t.Errorf("only %d examples", len(results))
	}
	for _, r := range results {
		if !r.OK {
			t.Errorf("%s: %s: %s", r.File, r.Name, r.Fault)
		}
	}
	if d := s.Decide(Request{}); d.Effect != writ.Deny {
		t.Errorf("nobody may %s nothing", d.Effect)
	}
}

// The rules that the default policy shows in comments are ones that load and do what
// their names say.
func TestDefaultPolicyShowsRulesThatWork(t *testing.T) {
	_, shown, _ := strings.Cut(defaultRules, "// Rules of your own")
	var src strings.Builder
	for line := range strings.Lines(shown) {
		if rule, ok := strings.CutPrefix(line, "//   "); ok {
			src.WriteString(rule)
		}
	}
	s := mustCompile(t, append(Default(), File{"20-own.cedar", []byte(src.String())}))
	const example = "- {name: x, identity: {id: a, scopes: [exec]}, exec: {command: [bash, -c, %q]}, want: %s, rules: [%s]}\n"
	results, err := s.Check([]File{{"own.test.yaml", []byte(fmt.Sprintf(strings.Repeat(example, 6),
		"ls; env /usr/bin/sudo ls", "deny", "no-sudo", "git push origin", "hold", "hold-push", "git $x", "hold", "hold-push",
		"git log", "allow", "allow-workspace-tools", "echo x > .env", "deny", "no-writes-to-env-files", "cat .env", "allow", "allow-workspace-tools") +
		"- {name: x, identity: {id: a, scopes: [exec]}, input: {program: bash}, want: hold, rules: [hold-typing-into-shells]}\n")}})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if !r.OK {
			t.Errorf("example %d: %s", i+1, r.Fault)
		}
	}
}

func TestCheck(t *testing.T) {
	s := compile(t, permitAll+holdShell+denyAcme+`@id("late") forbid (principal, action, resource) when { context.now.toTime() >= duration("18h") };
@id("self") forbid (principal, action, resource) when { context.requester.kind == "user" };
@id("big") forbid (principal, action, resource) when { context.code_bytes > 1000 || context.limits.wall_ms > 60000 };`)
	const identity = "  identity: {id: a, scopes: [python, shell]}\n"
	const run = "  run: {language: python, scope: python}\n"
	tests := []struct {
		name, example string
		fault         string // contained; empty when it passes
	}{
		{"passes", "- name: x\n" + identity + run + "  want: allow\n  rules: [all]\n", ""},
		{"json", `[{"name": "x", "identity": {"id": "a", "scopes": ["shell"]}, "run": {"language": "bash", "scope": "shell"}, "want": "hold"}]`, ""},
		{"now", "- name: x\n  now: 2026-01-01T18:00:00Z\n" + identity + run + "  want: deny\n  rules: [late]\n", ""},
		{"requester", "- name: x\n  requester: {kind: user, id: u}\n" + identity + run + "  want: deny\n  rules: [self]\n", ""},
		{"code bytes", "- name: x\n" + identity + "  run: {language: python, scope: python, code_bytes: 2000}\n  want: deny\n  rules: [big]\n", ""},
		{"limits", "- name: x\n" + identity + "  run: {language: python, scope: python, limits: {wall_ms: 61000}}\n  want: deny\n", ""},
		{"tenant", "- name: x\n  identity: {id: a, tenant: acme}\n" + run + "  want: deny\n  rules: [deny]\n", ""},
		{"other effect", "- name: x\n" + identity + run + "  want: deny\n", "want deny, got allow: allowed by rule all"},
		{"other rules", "- name: x\n" + identity + run + "  want: allow\n  rules: [all, hold]\n", "want the rules [all, hold], got [all]"},
		{"no rules wanted", "- name: x\n" + identity + run + "  want: allow\n  rules: []\n", "want the rules [], got [all]"},
		{"scope is missing", "- name: x\n  identity: {id: a}\n" + run + "  want: allow\n", `lacks the scope "python"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			results, err := s.Check([]File{{"e.test.yaml", []byte(tt.example)}})
			if err != nil {
				t.Fatal(err)
			}
			if len(results) != 1 {
				t.Fatalf("%d results", len(results))
			}
			r := results[0]
			if r.OK != (tt.fault == "") || !strings.Contains(r.Fault, tt.fault) || r.Name != "x" {
				t.Errorf("result is %+v, want fault %q", r, tt.fault)
			}
		})
	}
}

func TestCheckRefusesBrokenExamples(t *testing.T) {
	s := compile(t, permitAll)
	for src, want := range map[string]string{
		"":                            "no example in it",
		"[]":                          "no example in it",
		"# nothing\n":                 "no example in it",
		"- name: x\n  wants: allow\n": `line 2, column 3: unknown field "wants"`,
		"- name: x\n  name: y\n":      "line 2, column 3",
		"- name: [\n":                 "line 1",
		"name: x\n":                   "line 1",
		"- name: x\n---\n- name: y\n": "second document",
		"- {name: x, want: maybe}":    `example 1 ("x"): identity.id is missing`,
		"- {name: x, identity: {id: a}, run: {language: a, scope: a}, want: permit}":                        `want is "permit"`,
		"- {name: x, identity: {id: a, kind: god}, run: {language: a, scope: a}, want: deny}":               `principal kind "god"`,
		"- {name: x, identity: {id: a}, run: {language: a, scope: a}, want: deny, now: noon}":               `now is "noon"`,
		"- {name: x, identity: {id: a}, requester: {kind: user}, run: {language: a, scope: a}, want: deny}": "requester.id is missing",
		"- {name: x, identity: {id: a}, run: {language: a, scope: a, limits: {wall: 1}}, want: deny}":       `unknown field "wall"`,
		strings.Repeat("#", MaxFileBytes+1): "the most is",
	} {
		_, err := s.Check([]File{{"e.test.yaml", []byte(src)}})
		if err == nil || writ.KindOf(err) != writ.Invalid || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "e.test.yaml: ") {
			t.Errorf("%.60q: error is %v, want one with %q", src, err, want)
		}
	}
}
