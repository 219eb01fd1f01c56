package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"writ"
)

// Rules and requests are drawn from few values, so that they often meet.

func drawRule(effects ...string) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		principal := rapid.SampledFrom([]string{"principal", `principal == Identity::"a"`, `principal in Role::"r"`, `principal in Tenant::"t"`, "principal is Identity"}).Draw(t, "principal")
		resource := rapid.SampledFrom([]string{"resource", `resource == Language::"l"`, `resource in Scope::"s"`}).Draw(t, "resource")
		cond := rapid.SampledFrom([]string{
			"", "when { context.code_bytes > 10 }", "unless { context.args.contains(\"x\") }",
			`when { context.role == "r" && context.limits.wall_ms < 100 } unless { context.language == "l" }`,
			"when { context.code_bytes > 5 && " + overflows + " }",
		}).Draw(t, "condition")
		return rapid.SampledFrom(effects).Draw(t, "effect") + " (" + principal + ", action, " + resource + ") " + cond + ";"
	})
}

const (
	permit = "permit"
	forbid = "forbid"
	hold   = `@hold("x") permit`
	hold2  = `@hold("y") @grants("2") @require_reason("true") @approvers("lead") permit`
)

func drawRules(t *rapid.T, max int) []string {
	return rapid.SliceOfN(drawRule(permit, permit, forbid, hold, hold2), 1, max).Draw(t, "rules")
}

func drawRequest(t *rapid.T) Request {
	pick := func(what string) string {
		return rapid.SampledFrom([]string{"a", "r", "s", "t", "l", "x"}).Draw(t, what)
	}
	return Request{
		Principal: writ.Principal{
			Kind: rapid.SampledFrom([]writ.PrincipalKind{writ.KindAgent, writ.KindOperator}).Draw(t, "kind"),
			ID:   pick("id"), Tenant: writ.Tenant(pick("tenant")), Roles: []string{pick("role")},
		},
		Action: writ.ActionRun, Role: pick("in role"), Scope: writ.Scope(pick("scope")),
		Run: RunFacts{
			Language: writ.Language(pick("language")), CodeBytes: rapid.Int64Range(0, 20).Draw(t, "bytes"),
			Args: []string{pick("arg")}, Limits: writ.Limits{WallMS: rapid.Int64Range(50, 150).Draw(t, "wall")},
		},
	}
}

func decideWith(t *rapid.T, r Request, rules ...string) writ.Decision {
	s, err := Compile(filesOf(strings.Join(rules, "\n")))
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(rules, "\n"))
	}
	d := s.Decide(r)
	if x := s.Explain(r); x.Decision.Effect != d.Effect {
		t.Fatalf("Explain says %s, Decide %s", x.Decision.Effect, d.Effect)
	}
	return d
}

// width orders effects by how much they let through.
func width(e writ.Effect) int {
	return slices.Index([]writ.Effect{writ.Deny, writ.Hold, writ.Allow}, e)
}

func TestAForbidNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := drawRules(t, 6), drawRequest(t)
		before := decideWith(t, r, rules...)
		after := decideWith(t, r, append(rules, drawRule(forbid).Draw(t, "forbid"))...)
		if width(after.Effect) > width(before.Effect) {
			t.Fatalf("%s became %s", before.Effect, after.Effect)
		}
	})
}

// A rule that holds may let through what was denied for want of a rule, but only
// to a person; and it never makes a hold easier.
func TestAHoldNeverAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := drawRules(t, 6), drawRequest(t)
		before := decideWith(t, r, rules...)
		after := decideWith(t, r, append(rules, drawRule(hold, hold2).Draw(t, "hold"))...)
		switch {
		case before.Effect != writ.Allow && after.Effect == writ.Allow:
			t.Fatalf("%s became allow", before.Effect)
		case before.Effect == writ.Hold && after.Effect == writ.Hold:
			b, a := before.Need, after.Need
			if a.Grants < b.Grants || b.Reason && !a.Reason || len(a.Roles) < len(b.Roles) {
				t.Fatalf("need went from %+v to %+v", b, a)
			}
		case len(before.Rules) > 0 && before.Effect == writ.Deny && after.Effect != writ.Deny:
			t.Fatalf("a deny by rule became %s", after.Effect)
		}
	})
}

func TestAnErringRuleAlwaysDenies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := drawRules(t, 6), drawRequest(t)
		r.Run.CodeBytes = 3 // enough to overflow
		erring := rapid.SampledFrom([]string{permit, forbid, hold}).Draw(t, "effect") + " (principal, action, resource) when { " + overflows + " };"
		at := rapid.IntRange(0, len(rules)).Draw(t, "at")
		d := decideWith(t, r, slices.Insert(rules, at, erring)...)
		if d.Effect != writ.Deny || !slices.ContainsFunc(d.Rules, func(r writ.Rule) bool { return r.Line == at+1 }) {
			t.Fatalf("rule at line %d errs, decision is %+v", at+1, d)
		}
	})
}

func TestOrderMeansNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := drawRules(t, 6), drawRequest(t)
		files := filesOf(rules...)
		a, err := Compile(files)
		if err != nil {
			t.Fatal(err)
		}
		b, err := Compile(rapid.Permutation(files).Draw(t, "files"))
		if err != nil {
			t.Fatal(err)
		}
		if x, y := fmt.Sprintf("%+v", a.Decide(r)), fmt.Sprintf("%+v", b.Decide(r)); strip(x) != strip(y) {
			t.Fatalf("file order decides:\n%s\n%s", x, y)
		}
		shuffled := rapid.Permutation(rules).Draw(t, "rules")
		if x, y := decideWith(t, r, rules...), decideWith(t, r, shuffled...); x.Effect != y.Effect || len(x.Rules) != len(y.Rules) {
			t.Fatalf("rule order decides:\n%+v\n%+v", x, y)
		}
	})
}

// strip takes the address of Need out of a printed decision.
func strip(s string) string {
	before, _, _ := strings.Cut(s, " Need:")
	return before
}

// The decision of many rules is the strictest of what each says alone, where "no
// rule" is no word at all.
func TestRulesDecideApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, r := drawRules(t, 8), drawRequest(t)
		want, said := writ.Allow, false
		for _, rule := range rules {
			alone := decideWith(t, r, rule)
			if alone.Effect == writ.Deny && len(alone.Rules) == 0 {
				continue
			}
			said = true
			if width(alone.Effect) < width(want) {
				want = alone.Effect
			}
		}
		if !said {
			want = writ.Deny
		}
		if got := decideWith(t, r, rules...).Effect; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

// A command more never widens the answer to a line, and the order of commands means
// nothing.
func TestACommandMoreNeverWidens(t *testing.T) {
	set, err := Compile(filesOf(allowExec + `permit (principal, action, resource) when { context.opaque && context.program == "a" };
@hold("x") permit (principal, action, resource) when { context.program == "b" };
@hold("y") @grants("2") permit (principal, action, resource) when { context.args.contains("b") };
forbid (principal, action, resource) when { context.program == "c" && !context.args.contains("a") };`))
	if err != nil {
		t.Fatal(err)
	}
	names := rapid.SampledFrom([]string{"a", "b", "c", "d", ""})
	command := rapid.Custom(func(t *rapid.T) CommandFacts {
		c := CommandFacts{Program: names.Draw(t, "program"), Args: []string{names.Draw(t, "arg")}, Unreadable: rapid.IntRange(0, 9).Draw(t, "unreadable") == 0}
		if rapid.Bool().Draw(t, "opaque") {
			c.Opaque = []string{"code"}
		}
		return c
	})
	rapid.Check(t, func(t *rapid.T) {
		r, _ := executing("a")
		commands := rapid.SliceOfN(command, 1, 5).Draw(t, "commands")
		before := set.DecideCommand(r, commands)
		more := rapid.Permutation(append(slices.Clone(commands), command.Draw(t, "more"))).Draw(t, "order")
		after := set.DecideCommand(r, more)
		if width(after.Effect) > width(before.Effect) {
			t.Fatalf("%s became %s", before.Effect, after.Effect)
		}
		if before.Effect == writ.Hold && after.Effect == writ.Hold && after.Need.Grants < before.Need.Grants {
			t.Fatalf("need went from %+v to %+v", before.Need, after.Need)
		}
		for _, c := range more {
			r.Command = c
			if alone := set.Decide(r); width(after.Effect) > width(alone.Effect) {
				t.Fatalf("the line is %s, and %+v alone %s", after.Effect, c, alone.Effect)
			}
		}
	})
}
