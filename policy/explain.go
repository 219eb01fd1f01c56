package policy

import (
	"slices"
	"strings"

	cedar "github.com/cedar-policy/cedar-go"
	cedarast "github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"

	"writ"
)

// Explanation says why a decision is as it is.
type Explanation struct {
	Decision writ.Decision `json:"decision"`
	// Matched are all rules that matched, also those that did not decide because
	// another effect beats theirs.
	Matched []writ.Rule `json:"matched,omitempty"`
	// Nearest is the rule that would change the effect if it matched, with the
	// fewest parts that do not hold; the first by place of several. It is nil when
	// there is none: nothing that could match in addition overrides a forbid.
	Nearest *Near `json:"nearest,omitempty"`
}

// Near is a rule that did not match.
type Near struct {
	Rule writ.Rule `json:"rule"`
	// Failed are the parts of the rule that do not hold for the request: of its
	// head, and of the conjuncts of its conditions. Parts that cannot be evaluated
	// apart say so.
	Failed []string `json:"failed"`
}

// Explain decides r and says what came of every rule.
func (s *Set) Explain(r Request) Explanation {
	q, err := newQuestion(r)
	if err != nil {
		return Explanation{Decision: s.Decide(r)}
	}
	x := Explanation{Decision: s.decide(q)}
	for i := range s.rules {
		rule := &s.rules[i]
		_, diag := cedar.Authorize(s.rules[i:i+1], q, q.Request)
		switch {
		case len(diag.Reasons) > 0:
			x.Matched = append(x.Matched, rule.Rule)
		case len(diag.Errors) == 0 && rule.changes(x.Decision, q.command):
			failed := q.failed((*ast.Policy)(rule.policy.AST()))
			if x.Nearest == nil || len(failed) < len(x.Nearest.Failed) {
				x.Nearest = &Near{Rule: rule.Rule, Failed: failed}
			}
		}
	}
	return x
}

// changes reports whether d, about that command, would have another effect if r
// matched too.
func (r *rule) changes(d writ.Decision, c CommandFacts) bool {
	switch d.Effect {
	case writ.Allow:
		return r.Effect != writ.Allow
	case writ.Hold:
		unheld := len(d.Rules) == 0 && r.opaque && r.Effect == writ.Allow && !c.Unreadable
		return r.Effect == writ.Deny || unheld
	}
	return len(d.Rules) == 0 && r.Effect != writ.Deny // denied for want of a rule
}

// failed are the parts of p that do not hold for q.
func (q question) failed(p *ast.Policy) (list []string) {
	env := eval.Env{Entities: q.entities, Principal: q.Principal, Action: q.Action, Resource: q.Resource, Context: q.Context}
	head := func(name string, is types.EntityUID, scope ast.IsScopeNode, alone *ast.Policy) {
		if holds, err := evaluate(eval.PolicyToNode(alone).AsIsNode(), env); !holds {
			list = append(list, name+" "+scopeText(scope)+" (it is "+is.String()+")"+err)
		}
	}
	all := ast.ScopeTypeAll{}
	head("principal", q.Principal, p.Principal, &ast.Policy{Principal: p.Principal, Action: all, Resource: all})
	head("action", q.Action, p.Action, &ast.Policy{Principal: all, Action: p.Action, Resource: all})
	head("resource", q.Resource, p.Resource, &ast.Policy{Principal: all, Action: all, Resource: p.Resource})
	for _, c := range p.Conditions {
		if c.Condition == ast.ConditionUnless {
			// One that holds is enough to spoil the rule, so it is one part.
			if holds, err := evaluate(c.Body, env); holds || err != "" {
				list = append(list, "unless "+condition(c)+err)
			}
			continue
		}
		for _, part := range conjuncts(c.Body) {
			if holds, err := evaluate(part, env); !holds || err != "" {
				list = append(list, "when "+text(part)+err)
			}
		}
	}
	return list
}

// evaluate says whether n holds, and if that cannot be said, why, as a suffix.
func evaluate(n ast.IsNode, env eval.Env) (holds bool, fault string) {
	v, err := eval.Eval(n, env)
	if err != nil {
		return false, " (cannot be evaluated by itself: " + err.Error() + ")"
	}
	return v == types.Value(types.True), ""
}

// conjuncts are the parts of n that are joined by &&, in order.
func conjuncts(n ast.IsNode) (list []ast.IsNode) {
	for {
		and, ok := n.(ast.NodeTypeAnd)
		if !ok {
			list = append(list, n)
			slices.Reverse(list)
			return list
		}
		right := conjuncts(and.Right)
		slices.Reverse(right)
		list = append(list, right...)
		n = and.Left
	}
}

// condition is the body of c in Cedar's own words. The syntax tree can only be
// printed as a whole rule.
func condition(c ast.ConditionType) string {
	p := ast.Permit()
	p.Conditions = []ast.ConditionType{c}
	_, s, _ := strings.Cut(string(cedar.NewPolicyFromAST((*cedarast.Policy)(p)).MarshalCedar()), "{ ")
	return strings.TrimSuffix(s, " };")
}

// scopeText is what the head of a rule says of one of its three.
func scopeText(n ast.IsScopeNode) string {
	switch n := n.(type) {
	case ast.ScopeTypeEq:
		return "== " + n.Entity.String()
	case ast.ScopeTypeIn:
		return "in " + n.Entity.String()
	case ast.ScopeTypeInSet:
		var list []string
		for _, e := range n.Entities {
			list = append(list, e.String())
		}
		return "in [" + strings.Join(list, ", ") + "]"
	case ast.ScopeTypeIs:
		return "is " + string(n.Type)
	case ast.ScopeTypeIsIn:
		return "is " + string(n.Type) + " in " + n.Entity.String()
	}
	return "is anything"
}
