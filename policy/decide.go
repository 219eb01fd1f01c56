package policy

import (
	"fmt"
	"slices"
	"strings"

	cedar "github.com/cedar-policy/cedar-go"

	"writ"
)

// Decide answers r. It cannot fail: whatever keeps a rule from being evaluated is
// a Deny that names the rule and the error.
//
//   - Deny: a forbid matched, or a rule erred, and Rules has all of these; or no
//     rule matched, and Rules is empty.
//   - Hold: a permit with @hold matched. Rules has all such, Reason their reasons,
//     and Need is the strictest union of what they ask for.
//   - Allow: permits matched, none of them holds. Rules has all of them.
//   - Hold without Rules, for one grant: permits matched a command of which it cannot be
//     known what it runs (r.Command.Opaque), and none of them names context.opaque or
//     context.opaque_why; or r.Command.Unreadable is set, whatever they name.
//
// Decide does not look at whether the principal has r.Scope.
func (s *Set) Decide(r Request) writ.Decision {
	q, err := newQuestion(r)
	if err != nil {
		return writ.Decision{Effect: writ.Deny, Reason: err.Error(), Policy: s.version}
	}
	return s.decide(q)
}

func (s *Set) decide(q question) writ.Decision {
	_, diag := cedar.Authorize(s.rules, q, q.Request)
	var hits, erred []*rule
	var faults []string
	for _, e := range diag.Errors {
		r := s.rules.rule(e.PolicyID)
		erred = append(erred, r)
		faults = append(faults, fmt.Sprintf("rule %s cannot be evaluated, and so denies: %s", r.Rule, e.Message))
	}
	for _, why := range diag.Reasons {
		hits = append(hits, s.rules.rule(why.PolicyID))
	}
	d := writ.Decision{Policy: s.version}
	of := func(e writ.Effect) (list []*rule) {
		for _, r := range hits {
			if r.Effect == e {
				list = append(list, r)
			}
		}
		return list
	}
	forbids, holds, permits := of(writ.Deny), of(writ.Hold), of(writ.Allow)
	switch {
	case len(forbids)+len(erred) > 0:
		d.Effect = writ.Deny
		for _, r := range forbids {
			faults = append(faults, denies(r))
		}
		d.Reason = strings.Join(faults, "; ")
		d.Rules = places(append(erred, forbids...), writ.Deny)
	case len(holds) > 0:
		d.Effect = writ.Hold
		d.Rules = places(holds, writ.Hold)
		d.Need, d.Reason = strictest(holds)
	case len(permits) > 0:
		if held := holdUnknown(q.command, permits); held != nil {
			held.Policy = s.version
			return *held
		}
		d.Effect = writ.Allow
		d.Rules = places(permits, writ.Allow)
		var names []string
		for _, r := range permits {
			names = append(names, r.String())
		}
		d.Reason = "allowed by rule " + strings.Join(names, ", ")
	default:
		d.Effect = writ.Deny
		d.Reason = "no rule allows it"
	}
	return d
}

func denies(r *rule) string {
	if r.why == "" {
		return fmt.Sprintf("rule %s forbids it", r.Rule)
	}
	return fmt.Sprintf("rule %s forbids it: %s", r.Rule, r.why)
}

// places are the rules by place, each with the effect that it had.
func places(rules []*rule, effect writ.Effect) []writ.Rule {
	var list []writ.Rule
	for _, r := range rules {
		place := r.Rule
		place.Effect = effect
		list = append(list, place)
	}
	slices.SortStableFunc(list, comparePlaces)
	return list
}

func comparePlaces(a, b writ.Rule) int {
	if c := strings.Compare(a.File, b.File); c != 0 {
		return c
	}
	return a.Line - b.Line
}

// strictest is what is needed to satisfy every one of holds, and their reasons.
func strictest(holds []*rule) (*writ.Need, string) {
	need := &writ.Need{}
	var why []string
	for _, r := range holds {
		need.Grants = max(need.Grants, r.need.Grants)
		need.Reason = need.Reason || r.need.Reason
		need.Roles = append(need.Roles, r.need.Roles...)
		if !slices.Contains(why, r.why) {
			why = append(why, r.why)
		}
	}
	slices.Sort(need.Roles)
	need.Roles = slices.Compact(need.Roles)
	return need, strings.Join(why, "; ")
}
