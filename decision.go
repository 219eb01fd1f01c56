package writ

import "fmt"

// Effect is what policy decides. Deny beats Hold, Hold beats Allow, and no rule
// means Deny.
type Effect string

const (
	Allow Effect = "allow"
	Hold  Effect = "hold"
	Deny  Effect = "deny"
)

// Rule names one policy rule that decided, by where it stands.
type Rule struct {
	ID     string `json:"id"` // its @id, or file:line
	File   string `json:"file"`
	Line   int    `json:"line"`
	Effect Effect `json:"effect"`
}

// String is the rule's name and place; of a rule without a name the place alone.
func (r Rule) String() string {
	place := fmt.Sprintf("%s:%d", r.File, r.Line)
	if r.ID == place {
		return place
	}
	return fmt.Sprintf("%s (%s)", r.ID, place)
}

// Decision is the answer of policy to one request.
type Decision struct {
	Effect Effect `json:"effect"`
	Rules  []Rule `json:"rules,omitempty"` // those that made it, sorted by place; empty when none matched
	Reason string `json:"reason"`          // in words, for the caller
	// Policy is the version of the policy set: a digest over all its files.
	Policy Digest `json:"policy"`
	// Need is set when Effect is Hold.
	Need *Need `json:"need,omitempty"`
}

// Need is what a held request needs to be granted: the strictest union of what
// each holding rule asks for.
type Need struct {
	Grants int      `json:"grants"`           // different approvers, at least 1
	Reason bool     `json:"reason,omitempty"` // each grant must say why
	Roles  []string `json:"roles,omitempty"`  // an approver must have every one of these
}
