package auth_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/auth"
)

const frontSecret = "synthetic-token-0123456789-0123456789"

// fresh is the window of a token that is checked now.
func fresh(change map[string]any) map[string]any {
	now := time.Now().Unix()
	out := map[string]any{"iat": now, "nbf": now, "exp": now + 300}
	for k, v := range change {
		out[k] = v
	}
	return out
}

// refusals is what a Front tells of.
type refusals struct{ why []auth.Reason }

func (f *refusals) refused(_ context.Context, why auth.Reason, _ string) { f.why = append(f.why, why) }

func front(t testing.TB, opt auth.FrontOptions) (*auth.Front, *refusals) {
	t.Helper()
	told := &refusals{}
	opt.Refused = told.refused
	opt.Scopes = []writ.Scope{"python"}
	f, err := auth.NewFront(opt)
	if err != nil {
		t.Fatal(err)
	}
	return f, told
}

// TestFront: who asks, by the rules of spec/03 §3.1 and §3.2, with the texts of the
// answers that the contract's reference gave.
func TestFront(t *testing.T) {
	s := ed25519Signer(t, "k1")
	good := "Bearer " + s.token(t, fresh(nil))
	checked := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)}, func(o *auth.TokenOptions) { o.Scopes = []writ.Scope{"shell"} })
	synthetic := auth.DefaultSynthetic()
	synthetic.Secret = frontSecret
	byToken := auth.FrontOptions{Provider: auth.ProviderTokens, Tokens: checked, Synthetic: synthetic}
	noSecret := auth.FrontOptions{Provider: auth.ProviderTokens, Tokens: checked}
	byName := auth.FrontOptions{Provider: auth.ProviderNone, Synthetic: synthetic}
	local := auth.FrontOptions{Provider: auth.ProviderLocal, Synthetic: synthetic}

	user := func(id string, tenant writ.Tenant, plan string) writ.Principal {
		return writ.Principal{Kind: writ.KindUser, ID: id, Tenant: tenant, Plan: plan, Scopes: []writ.Scope{"python"}}
	}
	everyone := user("local-test-user", "local", "local-plan")
	tester := user("synthetic-tests", "synthetic", "")
	tester.Synthetic = true
	person := writ.Principal{Kind: writ.KindUser, ID: "user-1", Tenant: "acme", Roles: []string{"USER"}, Scopes: []writ.Scope{"shell"}}
	const (
		required  = "Bearer token is required"
		ambiguous = "Ambiguous authentication headers"
		invalid   = "Invalid bearer token"
		execOnly  = "Synthetic auth is only allowed for CodeAPI exec"
		noTester  = "Invalid synthetic token"
	)
	const bearer, key, test, id = "Authorization", "X-API-Key", "X-CodeAPI-Synthetic-Token", "User-Id"
	type headers map[string][]string
	for name, tt := range map[string]struct {
		opt     auth.FrontOptions
		headers headers
		body    string // user_id
		other   bool   // it asks for something else than a run
		want    writ.Principal
		kind    writ.Kind
		message string
		why     auth.Reason
	}{
		"token":                       {opt: byToken, headers: headers{bearer: {good}}, want: person},
		"token, JW-14":                {opt: byToken, headers: headers{bearer: {good}, id: {"victim"}}, body: "victim", want: person},
		"no credential":               {opt: byToken, kind: writ.Unauthenticated, message: required, why: auth.ReasonMissing},
		"CP-02 a name alone":          {opt: byToken, headers: headers{id: {"victim"}}, body: "victim", kind: writ.Unauthenticated, message: required, why: auth.ReasonMissing},
		"API key":                     {opt: byToken, headers: headers{key: {"k"}}, kind: writ.Unauthenticated, message: required, why: auth.ReasonMissing},
		"API key and token":           {opt: byToken, headers: headers{key: {"k"}, bearer: {good}}, kind: writ.Invalid, message: ambiguous, why: auth.ReasonAmbiguous},
		"junk":                        {opt: byToken, headers: headers{bearer: {"Bearer abc"}}, kind: writ.Unauthenticated, message: invalid, why: auth.ReasonMalformed},
		"expired":                     {opt: byToken, headers: headers{bearer: {"Bearer " + s.token(t, map[string]any{"iat": 1, "nbf": 1, "exp": 300})}}, kind: writ.Unauthenticated, message: invalid, why: auth.ReasonExpired},
		"agent's run":                 {opt: byToken, headers: headers{bearer: {"Bearer " + s.token(t, fresh(map[string]any{"principal_source": "agent_run"}))}}, kind: writ.Unauthenticated, message: invalid, why: auth.ReasonMalformedClaims},
		"synthetic":                   {opt: byToken, headers: headers{test: {frontSecret}}, want: tester},
		"synthetic elsewhere":         {opt: byToken, headers: headers{test: {frontSecret}}, other: true, kind: writ.Denied, message: execOnly, why: auth.ReasonSynthetic},
		"synthetic wrong":             {opt: byToken, headers: headers{test: {frontSecret + "x"}}, kind: writ.Unauthenticated, message: noTester, why: auth.ReasonSynthetic},
		"synthetic cut":               {opt: byToken, headers: headers{test: {frontSecret[:36]}}, kind: writ.Unauthenticated, message: noTester, why: auth.ReasonSynthetic},
		"synthetic not configured":    {opt: noSecret, headers: headers{test: {frontSecret}}, kind: writ.Unauthenticated, message: noTester, why: auth.ReasonSynthetic},
		"synthetic and token":         {opt: byToken, headers: headers{test: {frontSecret}, bearer: {good}}, kind: writ.Invalid, message: ambiguous, why: auth.ReasonAmbiguous},
		"none: header":                {opt: byName, headers: headers{id: {"u1"}}, body: "u2", want: user("u1", "local", "")},
		"none: body":                  {opt: byName, body: "u2", want: user("u2", "local", "")},
		"none: blank header":          {opt: byName, headers: headers{id: {" "}}, body: "u2", want: user("u2", "local", "")},
		"none: nobody":                {opt: byName, want: user("anonymous", "local", "")},
		"none: junk token":            {opt: byName, headers: headers{bearer: {"Bearer junk"}, id: {"u1"}}, want: user("u1", "local", "")},
		"none: API key":               {opt: byName, headers: headers{key: {"k"}, id: {"u1"}}, kind: writ.Unauthenticated, message: required, why: auth.ReasonMissing},
		"none: API key and junk":      {opt: byName, headers: headers{key: {"k"}, bearer: {"Bearer junk"}}, kind: writ.Invalid, message: ambiguous, why: auth.ReasonAmbiguous},
		"none: synthetic":             {opt: byName, headers: headers{test: {frontSecret}}, want: tester},
		"none: synthetic, wrong":      {opt: byName, headers: headers{test: {"nope"}}, kind: writ.Unauthenticated, message: noTester, why: auth.ReasonSynthetic},
		"none: two users":             {opt: byName, headers: headers{id: {"u1", "u2"}}, kind: writ.Invalid, message: ambiguous, why: auth.ReasonAmbiguous},
		"none: a cursor in the name":  {opt: byName, headers: headers{id: {"u\x1b[2J"}}, kind: writ.Invalid, message: "the user id must be 1 to 256 bytes without control characters", why: auth.ReasonBadUser},
		"none: a name without end":    {opt: byName, body: strings.Repeat("u", 257), kind: writ.Invalid, message: "the user id must be 1 to 256 bytes without control characters", why: auth.ReasonBadUser},
		"local":                       {opt: local, want: everyone},
		"local: two credentials":      {opt: local, headers: headers{key: {"k"}, bearer: {"Bearer junk"}}, want: everyone},
		"local: synthetic, elsewhere": {opt: local, headers: headers{test: {"nope"}}, other: true, want: everyone},
		"local: a name":               {opt: local, headers: headers{id: {"u1"}}, body: "u2", want: everyone},
	} {
		t.Run(name, func(t *testing.T) {
			f, told := front(t, tt.opt)
			got, err := f.User(t.Context(), func(name string) []string { return tt.headers[name] }, !tt.other, func() string { return tt.body })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("principal (want -, got +):\n%s", diff)
			}
			if tt.message == "" {
				if err != nil || len(told.why) > 0 {
					t.Errorf("refused for %v: %v", told.why, err)
				}
				return
			}
			if err == nil || writ.KindOf(err) != tt.kind || writ.Message(err) != tt.message {
				t.Errorf("%v, want %v %q", err, tt.kind, tt.message)
			}
			if diff := cmp.Diff([]auth.Reason{tt.why}, told.why); diff != "" {
				t.Errorf("reasons for the record (want -, got +):\n%s", diff)
			}
		})
	}
}

// TestFrontTellsNoCredential (case CP-03): what goes to the log has nothing of what was
// sent.
func TestFrontTellsNoCredential(t *testing.T) {
	s, other := ed25519Signer(t, "k1"), ed25519Signer(t, "k1")
	var told strings.Builder
	f, err := auth.NewFront(auth.FrontOptions{
		Provider: auth.ProviderTokens, Tokens: tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)}), Synthetic: auth.DefaultSynthetic(),
		Refused: func(_ context.Context, why auth.Reason, detail string) {
			told.WriteString(string(why) + ": " + detail + "\n")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	forged := other.token(t, fresh(map[string]any{"sub": "hush-user"}))
	for _, h := range []map[string][]string{
		{"Authorization": {"Bearer " + forged}}, {"Authorization": {"Bearer hush-token"}}, {"X-API-Key": {"hush-key"}},
		{"X-CodeAPI-Synthetic-Token": {"hush-secret"}}, {"X-API-Key": {"hush-key"}, "Authorization": {"Bearer hush-token"}},
	} {
		if _, err := f.User(t.Context(), func(name string) []string { return h[name] }, true, func() string { return "hush-body" }); err == nil {
			t.Fatalf("%v was accepted", h)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("the error tells: %v", err)
		}
	}
	if n := strings.Count(told.String(), "\n"); n != 5 {
		t.Errorf("told of %d refusals, want 5:\n%s", n, told.String())
	}
	if strings.Contains(told.String(), "hush") || strings.Contains(told.String(), forged[:20]) {
		t.Errorf("told a credential:\n%s", told.String())
	}
}

// TestFrontMisconfigured: keys that cannot be read any more are the operator's matter, and
// the caller gets the contract's words for that.
func TestFrontMisconfigured(t *testing.T) {
	s := ed25519Signer(t, "k1")
	bound := with(s.jwk, "tenants", []string{"acme"})
	fetch := func(context.Context, string) ([]byte, error) { return []byte(jwks(t, s.jwk)), nil }
	f, told := front(t, auth.FrontOptions{Provider: auth.ProviderTokens,
		Tokens: tokens(t, auth.KeySources{JWKS: jwks(t, bound), URL: "https://keys.example.com/", Fetch: fetch}), Synthetic: auth.DefaultSynthetic()})
	free := ed25519Signer(t, "unknown")
	var err error
	ask := func(token string) {
		_, err = f.User(t.Context(), func(name string) []string { return map[string][]string{"Authorization": {"Bearer " + token}}[name] }, true, func() string { return "" })
	}
	ask(free.token(t, fresh(nil))) // has the address asked, which answers the bound key again, without its tenants
	ask(s.token(t, fresh(nil)))
	if writ.KindOf(err) != writ.Internal || writ.CodeOf(err) != writ.CodeMisconfigured || err == nil || !strings.Contains(err.Error(), "CodeAPI JWT auth is misconfigured") {
		t.Errorf("%v, want Internal %s", err, writ.CodeMisconfigured)
	}
	if diff := cmp.Diff([]auth.Reason{auth.ReasonUnknownKid, auth.ReasonConfig}, told.why); diff != "" {
		t.Errorf("reasons (want -, got +):\n%s", diff)
	}
}

// TestNewFront: what cannot work is refused at the start, all of it at once.
func TestNewFront(t *testing.T) {
	short := auth.Synthetic{Secret: frontSecret[:31], User: "s", Tenant: "t"}
	nameless := auth.Synthetic{Secret: frontSecret, User: " ", Tenant: "t"}
	for name, tt := range map[string]struct {
		opt  auth.FrontOptions
		want []string
	}{
		"unknown":   {auth.FrontOptions{Provider: "oauth", Synthetic: short}, []string{`provider "oauth"`, "31 bytes"}},
		"none set":  {auth.FrontOptions{}, []string{`provider ""`}},
		"no tokens": {auth.FrontOptions{Provider: auth.ProviderTokens}, []string{"nothing that checks"}},
		"nameless":  {auth.FrontOptions{Provider: auth.ProviderNone, Synthetic: nameless}, []string{"a user and a tenant"}},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := auth.NewFront(tt.opt)
			if f != nil || writ.KindOf(err) != writ.Invalid {
				t.Fatalf("NewFront = %v, %v, want Invalid", f, err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), frontSecret[:20]) {
				t.Errorf("%v has the secret", err)
			}
		})
	}
}
