package writ

import (
	"fmt"
	"log/slog"
	"time"
)

// Secret is a string that redacts itself in every format, log and encoding that
// asks its methods. Reveal is the only way to its value.
//
// Package fmt does not ask the methods of what an unexported field holds: a struct
// with a Secret in one prints it in clear. Keep it there behind a pointer, which
// prints as an address.
type Secret string

const redacted = "[secret]"

// Reveal is the secret itself.
func (s Secret) Reveal() string { return string(s) }

func (Secret) String() string               { return redacted }
func (Secret) GoString() string             { return redacted }
func (Secret) LogValue() slog.Value         { return slog.StringValue(redacted) }
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Format answers the mask for every verb, also %x and %q.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// KeyID names an API key. It is not secret.
type KeyID string

// Key is an API key as it is kept: bound to one principal, the secret hashed.
type Key struct {
	ID      KeyID         `json:"id"`
	Kind    PrincipalKind `json:"kind"`    // agent or operator
	Subject string        `json:"subject"` // the identity or the operator
	Tenant  Tenant        `json:"tenant"`
	Hash    Digest        `json:"-"` // of the secret part
	Created time.Time     `json:"created"`
	Expires *time.Time    `json:"expires,omitempty"`
	Revoked *time.Time    `json:"revoked,omitempty"`
}

// NewKey is a key as it is shown, once, when it is created.
type NewKey struct {
	Key
	Token string `json:"token"` // the whole credential: writ_ID_SECRET
}

// Operator is a person who may decide approvals and administer a tenant.
type Operator struct {
	ID       string     `json:"id"`
	Tenant   Tenant     `json:"tenant"`
	Roles    []string   `json:"roles,omitempty"`
	Created  time.Time  `json:"created"`
	Disabled *time.Time `json:"disabled,omitempty"`
}

// Principal is the operator as one who asks.
func (o Operator) Principal() Principal {
	return Principal{Kind: KindOperator, ID: o.ID, Tenant: o.Tenant, Roles: o.Roles}
}
