package auth

import (
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
	m, ok := object(payload)
	if !ok {
		return User{}, false, refuse(ReasonMalformed, "the payload is not a JSON object with distinct names")
	}
	bad := func(claim, want string) (User, bool, error) {
		return User{}, false, refuse(ReasonMalformedClaims, "%s is not %s", claim, want)
	}
	iss, ok := text(m["iss"])
	if !ok || blank(iss) {
		return bad("iss", "a text")
	}
	sub, ok := text(m["sub"])
	if !ok || !name(sub) {
		return bad("sub", "a name")
	}
	jti, ok := text(m["jti"])
	if !ok || blank(jti) {
		return bad("jti", "a text")
	}
	source, _ := text(m["principal_source"])
	if source != "librechat_jwt" && source != "openid_reuse" {
		return bad("principal_source", "librechat_jwt or openid_reuse")
	}
	hash, ok := text(m["auth_context_hash"])
	if !ok || !name(hash) {
		return bad("auth_context_hash", "a text")
	}
	var when [3]float64
	for i, claim := range []string{"iat", "nbf", "exp"} {
		if when[i], ok = number(m[claim]); !ok {
			return bad(claim, "a number")
		}
	}
	tenant, named := string(o.SingleTenant), false
	if v, has := m["tenant_id"]; has {
		if tenant, named = text(v); !named || !name(tenant) {
			return bad("tenant_id", "a name")
		}
	} else if o.Strict {
		return bad("tenant_id", "there, and tenants are kept apart strictly")
	}
	plan := ""
	if v, has := m["plan_id"]; has {
		if plan, ok = text(v); !ok || !name(plan) {
			return bad("plan_id", "a name")
		}
	}

	if len(utf16.Encode([]rune(jti))) > maxTokenID {
		return bad("jti", "at most 256 characters long")
	}
	if iss != o.Issuer {
		return User{}, false, refuse(ReasonWrongIssuer, "want %q", o.Issuer)
	}
	if err := o.audience(m["aud"]); err != nil {
		return User{}, false, err
	}
	if err := o.window(when[0], when[1], when[2], now); err != nil {
		return User{}, false, err
	}
	// A right of company Agents, which a person's token cannot carry.
	if _, has := m["file_delete"]; has {
		return bad("file_delete", "for a person's token")
	}

	u = User{
		Principal: writ.Principal{
			Kind: writ.KindUser, ID: sub, Tenant: writ.Tenant(tenant), Plan: plan,
			Scopes: append([]writ.Scope(nil), o.Scopes...),
		},
		Source: source, Context: hash, TokenID: jti,
		Org: optional(m, "org_id"), Service: optional(m, "service_id"),
		External: optional(m, "external_user_id"),
	}
	if u.External == "" {
		u.External = optional(m, "chc_user_id") // as it was called once
	}
	if role := optional(m, "role"); writ.ValidName(role) {
		u.Principal.Roles = []string{role}
	}
	return u, named, nil
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
