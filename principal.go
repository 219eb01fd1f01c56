package writ

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

type (
	// Tenant is who owns a thing; nothing is shared between tenants.
	Tenant string
	// IdentityID names a registered identity, unique over all tenants.
	IdentityID string
	// Scope is a kind of thing that a principal may ask for at all: "python", "shell", ...
	Scope string
	// Action is what a request wants done, in the words of policy.
	Action string
)

// ActionRun is the execution of code in a sandbox.
const ActionRun Action = "run"

// DefaultTenant owns what nobody assigned to another tenant.
const DefaultTenant Tenant = "default"

// PrincipalKind says how a principal was authenticated and what it is.
type PrincipalKind string

const (
	KindUser     PrincipalKind = "user"      // a person, by token
	KindAgent    PrincipalKind = "agent"     // a registered identity, by API key
	KindAgentRun PrincipalKind = "agent_run" // one run of a company Agent
	KindOperator PrincipalKind = "operator"  // a person who decides and administers, by operator key
	KindLocal    PrincipalKind = "local"     // the owner of the data folder, by the socket's peer credentials
)

// Principal is who asks. It is made by authentication only, never from the words
// of a request.
type Principal struct {
	Kind   PrincipalKind `json:"kind"`
	ID     string        `json:"id"`
	Tenant Tenant        `json:"tenant"`
	Roles  []string      `json:"roles,omitempty"`
	Scopes []Scope       `json:"scopes,omitempty"`
	// Plan is what a user pays for, which sets limits; empty is the default one.
	Plan string `json:"plan,omitempty"`
	// Synthetic is the user of an operator's tests (spec/03 §3.2): nothing of one run is
	// there in another.
	Synthetic bool `json:"synthetic,omitempty"`
}

// Ref is a principal's name without its rights, for records.
func (p Principal) Ref() Ref { return Ref{Kind: p.Kind, ID: p.ID} }

// Has reports whether p holds scope s.
func (p Principal) Has(s Scope) bool { return slices.Contains(p.Scopes, s) }

// Administers reports whether p may see and manage what belongs to others of its
// tenant: operators and the owner of the data folder.
func (p Principal) Administers() bool { return p.Kind == KindOperator || p.Kind == KindLocal }

// Owner is under which name the things of p are kept: that of the identity for an agent,
// and "kind:id" for all others, which is no identity's name, whatever a token says.
func (p Principal) Owner() IdentityID {
	if p.Kind == KindAgent {
		return IdentityID(p.ID)
	}
	return IdentityID(string(p.Kind) + ":" + p.ID)
}

// Sees reports whether p may see what belongs to owner (Owner) of tenant t: its own, or
// its tenant's if it administers. The owner of the data folder sees all.
func (p Principal) Sees(t Tenant, owner IdentityID) bool {
	switch p.Kind {
	case KindLocal:
		return true
	case KindOperator:
		return p.Tenant == t
	}
	return p.Tenant == t && p.Owner() == owner
}

// Narrow is the tenant and the owner, empty meaning all, to which a list for p
// is bounded that asks for t and id. It is Sees for lists: the owner of the data
// folder gets what it asks for, an operator its own tenant whichever it asks for,
// and everybody else its own things. p must have an ID and a tenant, as
// authentication gives it.
func (p Principal) Narrow(t Tenant, id IdentityID) (Tenant, IdentityID) {
	switch p.Kind {
	case KindLocal:
		return t, id
	case KindOperator:
		return p.Tenant, id
	}
	return p.Tenant, p.Owner()
}

// Ref names a principal in a record.
type Ref struct {
	Kind PrincipalKind `json:"kind"`
	ID   string        `json:"id"`
}

func (r Ref) String() string { return string(r.Kind) + ":" + r.ID }

// Identity is an agent that an operator registered. Without scopes it can do
// nothing (spec/01 §2 rule 4).
type Identity struct {
	ID     IdentityID `json:"id"`
	Tenant Tenant     `json:"tenant"`
	Roles  []string   `json:"roles,omitempty"`
	Scopes []Scope    `json:"scopes,omitempty"`
}

// Principal is the identity as one who asks.
func (i Identity) Principal() Principal {
	return Principal{Kind: KindAgent, ID: string(i.ID), Tenant: i.Tenant, Roles: i.Roles, Scopes: i.Scopes}
}

var namePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

// ValidName reports whether s may name a tenant, an identity, a role, a scope or
// an operator: 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or a digit. Such a
// name is safe in a path, a log line and a cgroup.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// ValidForeignName reports whether s may name a user, or a tenant, whose name is somebody
// else's to choose, in our records: 1 to 256 bytes of UTF-8, not all white space, and nothing
// that moves a cursor.
func ValidForeignName(s string) bool {
	blank := strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' }) == ""
	return !blank && len(s) <= 256 && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// Validate reports every fault of the identity at once.
func (i Identity) Validate() error {
	var errs []error
	check := func(what, s string) {
		if !ValidName(s) {
			errs = append(errs, fmt.Errorf("%s %q: want 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit", what, s))
		}
	}
	check("identity", string(i.ID))
	check("tenant", string(i.Tenant))
	for _, r := range i.Roles {
		check("role", r)
	}
	for _, s := range i.Scopes {
		check("scope", string(s))
	}
	return errors.Join(errs...)
}
