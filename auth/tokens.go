package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"writ"
)

// What a token may be at most, and what options may allow at most (spec/03 §3.3).
const (
	maxToken   = 16 << 10 // bytes
	maxSkew    = 30 * time.Second
	maxTTL     = 300 * time.Second
	maxRefresh = 300 * time.Second
)

// The algorithms that a token may be signed with.
const (
	algEdDSA = "EdDSA"
	algRS256 = "RS256"
	algHS256 = "HS256"
)

// TokenOptions says which tokens are accepted.
type TokenOptions struct {
	Issuer   string
	Audience string
	Algs     []string      // of EdDSA, RS256, HS256
	Skew     time.Duration // by how much clocks may differ: 0 to 30 s
	MaxTTL   time.Duration // for how long a token may be valid: at most 300 s
	Refresh  time.Duration // for how long keys are kept before they are read again: at most 300 s

	Strict       bool        // a token must name its tenant
	SingleTenant writ.Tenant // of tokens that name none; not used when Strict

	Scopes []writ.Scope // what every user may ask for; none means nothing
}

// DefaultTokenOptions are those of the contract. They give no scopes.
func DefaultTokenOptions() TokenOptions {
	return TokenOptions{
		Issuer: "librechat", Audience: "codeapi", Algs: []string{algEdDSA, algRS256},
		Skew: maxSkew, MaxTTL: maxTTL, Refresh: 30 * time.Second, SingleTenant: "legacy",
	}
}

// Validate reports every fault of the options at once.
func (o TokenOptions) Validate() error {
	var errs []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(blank(o.Issuer), "issuer is empty")
	fault(blank(o.Audience), "audience is empty")
	fault(len(o.Algs) == 0, "no algorithm is accepted: want some of %s, %s, %s", algEdDSA, algRS256, algHS256)
	for _, a := range o.Algs {
		fault(a != algEdDSA && a != algRS256 && a != algHS256, "algorithm %q: want %s, %s or %s", a, algEdDSA, algRS256, algHS256)
	}
	fault(o.Skew < 0 || o.Skew > maxSkew, "clock skew %v is outside [0, %v]", o.Skew, maxSkew)
	fault(o.MaxTTL <= 0 || o.MaxTTL > maxTTL, "longest life of a token %v is outside (0, %v]", o.MaxTTL, maxTTL)
	fault(o.Refresh <= 0 || o.Refresh > maxRefresh, "time that keys are kept %v is outside (0, %v]", o.Refresh, maxRefresh)
	fault(!o.Strict && !name(string(o.SingleTenant)), "tenant %q of tokens that name none: want 1 to 256 bytes without control characters, not all blank", o.SingleTenant)
	return errors.Join(errs...)
}

// Tokens checks bearer tokens that a front end such as LibreChat signs for its
// users (spec/03 §3.3, spec/04 §1.2). It is safe for concurrent use.
type Tokens struct {
	opt    TokenOptions
	static *staticKeys
	remote *remoteKeys // nil without an address
}

// NewTokens checks tokens by the keys of src, which it reads at once, but for the
// address: that is asked when the first token comes. The error is of kind Invalid
// and names every fault; keys of which none can be used are one.
func NewTokens(src KeySources, opt TokenOptions, now time.Time) (*Tokens, error) {
	errs := []error{opt.Validate(), src.validate(opt.Algs)}
	opt.Algs, opt.Scopes = slices.Clone(opt.Algs), slices.Clone(opt.Scopes)
	t := &Tokens{opt: opt, static: &staticKeys{src: src, refresh: opt.Refresh}}
	set, err := t.static.get(now)
	switch {
	case err != nil:
		errs = append(errs, err)
	case len(set.keys) == 0 && src.URL == "":
		errs = append(errs, fmt.Errorf("no key can check a token%s", set.faults()))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "read token keys", Msg: err.Error()}
	}
	if src.URL != "" {
		t.remote = &remoteKeys{url: src.URL, fetch: src.Fetch, failed: src.Failed, refresh: opt.Refresh}
	}
	return t, nil
}

// User is whom a token speaks for, and what else it says.
type User struct {
	// Principal is of kind user, with the token's subject as its id, its tenant, its
	// plan, its role when that is a name, and the scopes of the options.
	Principal writ.Principal

	Source  string // librechat_jwt or openid_reuse
	Context string // auth_context_hash: opaque, the same for all tokens of one sitting
	TokenID string // jti; no token is refused for coming twice
	KeyID   string // what it was signed with

	// What the front end calls the user elsewhere; empty when it did not say.
	Org, Service, External string
}

// Verify is the user of token at time now.
//
// Errors: Unauthenticated with one message, whatever is wrong with the token;
// Internal when the keys that were configured cannot be used any more; Unavailable
// when their address does not answer; else ctx ended. ReasonOf tells why, for the
// log. None quotes the token.
func (t *Tokens) Verify(ctx context.Context, token string, now time.Time) (User, error) {
	u, err := t.verify(ctx, token, now)
	if err != nil {
		return User{}, answer(err)
	}
	return u, nil
}

// verify checks in the order of spec/04 §1.2, so that the reason is the first.
func (t *Tokens) verify(ctx context.Context, token string, now time.Time) (User, error) {
	h, err := parseHeader(token)
	if err != nil {
		return User{}, err
	}
	kid, err := h.check(t.opt.Algs)
	if err != nil {
		return User{}, err
	}
	key, err := t.find(ctx, kid, now)
	if err != nil {
		return User{}, err
	}
	// A key has one algorithm, by what it is: the token does not choose.
	if key.alg != h.alg {
		return User{}, refuse(ReasonWrongAlg, "key %q is for %s, the token says %s", kid, key.alg, h.alg)
	}
	payload, err := checkSignature(token, key)
	if err != nil {
		return User{}, err
	}
	u, named, err := t.opt.claims(payload, now)
	if err != nil {
		return User{}, err
	}
	if key.tenants != nil && (!named || !slices.Contains(key.tenants, string(u.Principal.Tenant))) {
		return User{}, refuse(ReasonTenantNotAllowed, "key %q signs for %s alone", kid, strings.Join(key.tenants, ", "))
	}
	u.KeyID = kid
	return u, nil
}

// find is the key of that id. What was configured here goes before what the
// address says.
func (t *Tokens) find(ctx context.Context, kid string, now time.Time) (tokenKey, error) {
	set, err := t.static.get(now)
	if err != nil {
		return tokenKey{}, refuse(ReasonConfig, "%v", err)
	}
	key, known := set.keys[kid]
	if known && t.remote != nil {
		if twin, both := t.remote.peek(kid); both && (key.tenants != nil || twin.tenants != nil) {
			return tokenKey{}, refuse(ReasonConfig, "key %q is bound to tenants, and comes from %s and from %s", kid, key.from, twin.from)
		}
	}
	if known {
		return key, nil
	}
	why := set.unusable[kid]
	if t.remote != nil {
		key, known, notUsable, err := t.remote.find(ctx, kid, now)
		if err != nil || known {
			return key, err
		}
		if why == "" {
			why = notUsable
		}
	}
	if why != "" {
		return tokenKey{}, refuse(ReasonUnknownKid, "key %q cannot be used: %s", kid, why)
	}
	return tokenKey{}, refuse(ReasonUnknownKid, "there is no key %q", kid[:min(len(kid), 64)])
}

// checkSignature is the payload of token, when key signed it.
func checkSignature(token string, key tokenKey) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.SignatureAlgorithm(key.alg)})
	if err != nil {
		return nil, refuse(ReasonMalformed, "the token is not a JWS")
	}
	payload, err := jws.Verify(key.key)
	if err != nil {
		return nil, refuse(ReasonBadSignature, "the key that the token names did not sign it")
	}
	return payload, nil
}
