package auth

import (
	"cmp"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ"
)

// maxTokenID bounds jti in UTF-16 code units, as the contract's own language counts.
const maxTokenID = 256

// claims is the user that payload speaks of, and whether it names a tenant itself.
// First the form of each claim, then the window, in the order of spec/04 §1.3 row
// 12, so that the reason is the same for every front end.
func (o TokenOptions) claims(payload []byte, now time.Time) (u User, named bool, err error) {
	c, err := o.parseClaims(payload)
	if err != nil {
		return User{}, false, err
	}
	if err := o.accept(c, now); err != nil {
		return User{}, false, err
	}
	return o.user(c), c.named, nil
}

// claimSet is the claims of a payload, of which each is of its form.
type claimSet struct {
	all map[string]jsontext.Value

	iss, sub, jti, source, hash string
	iat, nbf, exp               float64 // seconds since 1970
	tenant                      string
	named                       bool   // it says its tenant itself
	plan                        string // empty when it does not say
}

func badClaim(claim, want string) error {
	return refuse(ReasonMalformedClaims, "%s is not %s", claim, want)
}

// parseClaims checks the form of each claim that has one.
func (o TokenOptions) parseClaims(payload []byte) (c claimSet, err error) {
	var ok bool
	if c.all, ok = object(payload); !ok {
		return c, refuse(ReasonMalformed, "the payload is not a JSON object with distinct names")
	}
	if c.iss, ok = text(c.all["iss"]); !ok || blank(c.iss) {
		return c, badClaim("iss", "a text")
	}
	if c.sub, ok = text(c.all["sub"]); !ok || !name(c.sub) {
		return c, badClaim("sub", "a name")
	}
	if c.jti, ok = text(c.all["jti"]); !ok || blank(c.jti) {
		return c, badClaim("jti", "a text")
	}
	if c.source, _ = text(c.all["principal_source"]); c.source != "librechat_jwt" && c.source != "openid_reuse" {
		return c, badClaim("principal_source", "librechat_jwt or openid_reuse")
	}
	if c.hash, ok = text(c.all["auth_context_hash"]); !ok || !name(c.hash) {
		return c, badClaim("auth_context_hash", "a text")
	}
	if c.iat, ok = number(c.all["iat"]); !ok {
		return c, badClaim("iat", "a number")
	}
	if c.nbf, ok = number(c.all["nbf"]); !ok {
		return c, badClaim("nbf", "a number")
	}
	if c.exp, ok = number(c.all["exp"]); !ok {
		return c, badClaim("exp", "a number")
	}
	c.tenant = string(o.SingleTenant)
	if v, has := c.all["tenant_id"]; has {
		if c.tenant, c.named = text(v); !c.named || !name(c.tenant) {
			return c, badClaim("tenant_id", "a name")
		}
	} else if o.Strict {
		return c, badClaim("tenant_id", "there, and tenants are kept apart strictly")
	}
	if v, has := c.all["plan_id"]; has {
		if c.plan, ok = text(v); !ok || !name(c.plan) {
			return c, badClaim("plan_id", "a name")
		}
	}
	return c, nil
}

// accept reports why a token with these claims is not accepted now.
func (o TokenOptions) accept(c claimSet, now time.Time) error {
	if len(utf16.Encode([]rune(c.jti))) > maxTokenID {
		return badClaim("jti", "at most 256 characters long")
	}
	if c.iss != o.Issuer {
		return refuse(ReasonWrongIssuer, "want %q", o.Issuer)
	}
	if err := o.audience(c.all["aud"]); err != nil {
		return err
	}
	if err := o.window(c.iat, c.nbf, c.exp, now); err != nil {
		return err
	}
	// A right of company Agents, which a person's token cannot carry.
	if _, has := c.all["file_delete"]; has {
		return badClaim("file_delete", "for a person's token")
	}
	return nil
}

// user is whom the claims speak of. What it says besides may be anything.
func (o TokenOptions) user(c claimSet) User {
	u := User{
		Principal: writ.Principal{
			Kind: writ.KindUser, ID: c.sub, Tenant: writ.Tenant(c.tenant), Plan: c.plan,
			Scopes: append([]writ.Scope(nil), o.Scopes...),
		},
		Source: c.source, Context: c.hash, TokenID: c.jti,
		Org: optional(c.all, "org_id"), Service: optional(c.all, "service_id"),
		// The second is how it was called once.
		External: cmp.Or(optional(c.all, "external_user_id"), optional(c.all, "chc_user_id")),
	}
	if role := optional(c.all, "role"); writ.ValidName(role) {
		u.Principal.Roles = []string{role}
	}
	return u
}

// audience wants a text that is ours, or texts that ours is one of.
func (o TokenOptions) audience(v jsontext.Value) error {
	if s, ok := text(v); ok {
		if s != o.Audience {
			return refuse(ReasonWrongAudience, "want %q", o.Audience)
		}
		return nil
	}
	var list []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &list) != nil || len(list) == 0 {
		return refuse(ReasonMalformedClaims, "aud is neither a text nor a list of texts")
	}
	found := false
	for _, e := range list {
		s, ok := text(e)
		if !ok {
			return refuse(ReasonMalformedClaims, "aud has something that is not a text")
		}
		found = found || s == o.Audience
	}
	if !found {
		return refuse(ReasonWrongAudience, "want %q among them", o.Audience)
	}
	return nil
}

// window compares the times of a token, in seconds since 1970, with now.
func (o TokenOptions) window(iat, nbf, exp float64, now time.Time) error {
	at, skew := float64(now.UnixMicro())/1e6, o.Skew.Seconds()
	switch {
	case exp <= at-skew:
		return refuse(ReasonExpired, "%.0f s ago, %.0f s are forgiven", at-exp, skew)
	case nbf > at+skew:
		return refuse(ReasonNotYetValid, "for %.0f s more, %.0f s are forgiven", nbf-at, skew)
	case iat > at+skew:
		return refuse(ReasonFutureIat, "by %.0f s, %.0f s are forgiven", iat-at, skew)
	case exp <= iat:
		return refuse(ReasonMalformedClaims, "exp is not after iat")
	case exp-iat > o.MaxTTL.Seconds():
		return refuse(ReasonTTLTooLong, "%.0f s, at most %.0f s are accepted", exp-iat, o.MaxTTL.Seconds())
	}
	return nil
}

// number is v, when that is a JSON number, and one that seconds can be counted in.
func number(v jsontext.Value) (float64, bool) {
	if v.Kind() != '0' {
		return 0, false
	}
	var f float64
	err := json.Unmarshal(v, &f)
	return f, err == nil && math.Abs(f) < 1<<53
}

// optional is a claim that may be anything: what is not a name is as if not there.
func optional(m map[string]jsontext.Value, claim string) string {
	if s, ok := text(m[claim]); ok && name(s) {
		return s
	}
	return ""
}

// name reports whether s may name somebody in our records. A front end's ids are its own,
// so that no more is asked of them.
func name(s string) bool { return writ.ValidForeignName(s) }

// blank reports whether s has nothing but white space.
func blank(s string) bool { return trim(s) == "" }

// trim is s without white space around it, as the front ends' language counts that.
func trim(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '\ufeff' })
}
