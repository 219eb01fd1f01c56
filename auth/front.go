package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"

	"writ"
)

// Provider says how the users of a front end are known (spec/03 §3.2).
type Provider string

const (
	ProviderTokens Provider = "jwt"   // by tokens that the front end signs
	ProviderNone   Provider = "none"  // the front end is believed who its user is
	ProviderLocal  Provider = "local" // everybody is one and the same user, whatever is sent
)

// Principals that no token names.
const (
	localTenant = "local"
	localUser   = "local-test-user"
	localPlan   = "local-plan"
	anonymous   = "anonymous"
)

// minSynthetic is how many bytes the secret of synthetic tests must have.
const minSynthetic = 32

// Synthetic is the user of synthetic tests, which have a secret of their own and may do
// nothing but run code. Without a secret there is none.
type Synthetic struct {
	Secret string // 32 bytes or more
	User   string
	Tenant writ.Tenant
}

// DefaultSynthetic is that of the contract, without a secret.
func DefaultSynthetic() Synthetic {
	return Synthetic{User: "synthetic-tests", Tenant: "synthetic"}
}

// FrontOptions are the settings of a Front.
type FrontOptions struct {
	Provider Provider
	// Tokens checks the tokens of ProviderTokens; nil for the others.
	Tokens    *Tokens
	Synthetic Synthetic
	// Scopes are what users may ask for who are known without a token, and the user of
	// synthetic tests; those of tokens are in TokenOptions.
	Scopes []writ.Scope
	// Refused, if it is not nil, is told of each request that is refused, for the record:
	// why, and for people what was seen. Neither has anything of a credential. It is called
	// as often as requests come: it bounds itself what it keeps.
	Refused func(ctx context.Context, why Reason, detail string)
}

// Front says who sends a request of the code interpreter's API (spec/03 §3). It is safe
// for concurrent use.
type Front struct {
	opt       FrontOptions
	synthetic [sha256.Size]byte // of the secret
}

// NewFront makes a Front. The error is of kind Invalid and names every fault.
func NewFront(opt FrontOptions) (*Front, error) {
	var errs []error
	switch opt.Provider {
	case ProviderTokens:
		if opt.Tokens == nil {
			errs = append(errs, errors.New("tokens are to be checked, and there is nothing that checks them"))
		}
	case ProviderNone, ProviderLocal:
	default:
		errs = append(errs, fmt.Errorf("auth provider %q: want %s, %s or %s", opt.Provider, ProviderTokens, ProviderNone, ProviderLocal))
	}
	if s := opt.Synthetic; s.Secret != "" {
		if len(s.Secret) < minSynthetic {
			errs = append(errs, fmt.Errorf("the token of synthetic tests has %d bytes: want %d or more", len(s.Secret), minSynthetic))
		}
		if !name(s.User) || !name(string(s.Tenant)) {
			errs = append(errs, errors.New("synthetic tests want a user and a tenant: 1 to 256 bytes without control characters, not all blank"))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "set up the front end's users", Msg: err.Error()}
	}
	opt.Scopes = slices.Clone(opt.Scopes)
	return &Front{opt: opt, synthetic: sha256.Sum256([]byte(opt.Synthetic.Secret))}, nil
}

// User is who sends a request: header answers the values of a header under whatever case
// its name was sent, body is user_id of the JSON body, and exec tells that the request
// is to run code, which is all that synthetic tests may. All are of kind user.
//
// Errors have the contract's words: Invalid, when there are two credentials or a name that
// is none; Unauthenticated; Denied, of synthetic tests elsewhere; Internal with
// writ.CodeMisconfigured; Unavailable; else ctx ended.
func (f *Front) User(ctx context.Context, header func(name string) []string, exec bool, body func() string) (writ.Principal, error) {
	who, err := f.user(ctx, header, exec, body)
	if err == nil {
		return who, nil
	}
	if t, ok := errors.AsType[*TokenError](err); ok && f.opt.Refused != nil {
		f.opt.Refused(ctx, t.Reason, t.Detail)
	}
	return writ.Principal{}, err
}

func (f *Front) user(ctx context.Context, header func(name string) []string, exec bool, body func() string) (writ.Principal, error) {
	if f.opt.Provider == ProviderLocal {
		return f.principal(localUser, localTenant, localPlan), nil
	}
	c, err := Present(header)
	switch {
	case writ.KindOf(err) == writ.Invalid:
		return writ.Principal{}, because(err, ReasonAmbiguous, "there are two credentials or more")
	case c.Synthetic != "":
		return f.syntheticUser(c.Synthetic, exec)
	case f.opt.Provider == ProviderNone && !slices.ContainsFunc(header("X-API-Key"), func(v string) bool { return v != "" }):
		return f.named(header("User-Id"), body)
	case err != nil:
		return writ.Principal{}, because(err, ReasonMissing, "there is no bearer token")
	}
	u, err := f.opt.Tokens.Verify(ctx, c.Bearer, time.Now())
	return u.Principal, err
}

// syntheticUser is the user of synthetic tests, if secret is theirs.
func (f *Front) syntheticUser(secret string, exec bool) (writ.Principal, error) {
	const op = "authenticate"
	sum := sha256.Sum256([]byte(secret))
	switch s := f.opt.Synthetic; {
	case !exec:
		return writ.Principal{}, because(&writ.Error{Kind: writ.Denied, Op: op, Msg: "Synthetic auth is only allowed for CodeAPI exec"},
			ReasonSynthetic, "a synthetic test asks for something else than a run")
	case s.Secret == "" || subtle.ConstantTimeCompare(sum[:], f.synthetic[:]) != 1:
		return writ.Principal{}, because(&writ.Error{Kind: writ.Unauthenticated, Op: op, Msg: "Invalid synthetic token"},
			ReasonSynthetic, "the token of synthetic tests is another one, or there is none")
	default:
		who := f.principal(s.User, s.Tenant, "")
		who.Synthetic = true
		return who, nil
	}
}

// named is the user that the front end names without proof: in the header, else in the
// body.
func (f *Front) named(header []string, body func() string) (writ.Principal, error) {
	id := ""
	switch len(header) {
	case 0:
	case 1:
		id = header[0]
	default:
		return writ.Principal{}, because(&writ.Error{Kind: writ.Invalid, Op: "authenticate", Msg: "Ambiguous authentication headers"},
			ReasonAmbiguous, "there are two User-Id headers or more")
	}
	if blank(id) {
		id = body()
	}
	if blank(id) {
		id = anonymous
	}
	if !name(id) {
		return writ.Principal{}, because(&writ.Error{Kind: writ.Invalid, Op: "authenticate", Msg: "the user id must be 1 to 256 bytes without control characters"},
			ReasonBadUser, "the user id is not a name")
	}
	return f.principal(id, localTenant, ""), nil
}

func (f *Front) principal(id string, tenant writ.Tenant, plan string) writ.Principal {
	return writ.Principal{Kind: writ.KindUser, ID: id, Tenant: tenant, Plan: plan, Scopes: slices.Clone(f.opt.Scopes)}
}

// because is err with why, for the record, as its cause.
func because(err error, why Reason, detail string) error {
	if e, ok := errors.AsType[*writ.Error](err); ok {
		return &writ.Error{Kind: e.Kind, Op: e.Op, Msg: e.Msg, Err: refuse(why, "%s", detail)}
	}
	return err
}
