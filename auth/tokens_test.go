package auth_test

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha512"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/auth"
)

func TestVerifyIsTheUser(t *testing.T) {
	s := ed25519Signer(t, "k1")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)}, func(o *auth.TokenOptions) { o.Scopes = []writ.Scope{"python"} })
	for name, tt := range map[string]struct {
		change map[string]any
		want   func(*auth.User)
	}{
		"plain":                 {nil, func(*auth.User) {}},
		"other source":          {map[string]any{"principal_source": "openid_reuse"}, func(u *auth.User) { u.Source = "openid_reuse" }},
		"no tenant":             {map[string]any{"tenant_id": absent{}}, func(u *auth.User) { u.Principal.Tenant = "legacy" }},
		"tenant with colon":     {map[string]any{"tenant_id": "a:b"}, func(u *auth.User) { u.Principal.Tenant = "a:b" }},
		"plan":                  {map[string]any{"plan_id": "pro"}, func(u *auth.User) { u.Principal.Plan = "pro" }},
		"no role":               {map[string]any{"role": absent{}}, func(u *auth.User) { u.Principal.Roles = nil }},
		"a role that is none":   {map[string]any{"role": 5}, func(u *auth.User) { u.Principal.Roles = nil }},
		"a role of two words":   {map[string]any{"role": "a b"}, func(u *auth.User) { u.Principal.Roles = nil }},
		"a role with a newline": {map[string]any{"role": "a\nb"}, func(u *auth.User) { u.Principal.Roles = nil }},
		"org and service":       {map[string]any{"org_id": "o", "service_id": "s"}, func(u *auth.User) { u.Org, u.Service = "o", "s" }},
		"org is no text":        {map[string]any{"org_id": []int{1}}, func(*auth.User) {}},
		"external":              {map[string]any{"external_user_id": "x", "chc_user_id": "y"}, func(u *auth.User) { u.External = "x" }},
		"external, as once":     {map[string]any{"chc_user_id": "y"}, func(u *auth.User) { u.External = "y" }},
		"looks like an Agent": {map[string]any{"run_id": "3f0e", "role": "AGENT", "sub": "0123456789abcdef01234567"}, func(u *auth.User) {
			u.Principal.ID, u.Principal.Roles = "0123456789abcdef01234567", []string{"AGENT"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			want := auth.User{
				Principal: writ.Principal{Kind: writ.KindUser, ID: "user-1", Tenant: "acme", Roles: []string{"USER"}, Scopes: []writ.Scope{"python"}},
				Source:    "librechat_jwt", Context: "h1", TokenID: "67f65e43-3de6-421e-b014-f75e4951413d", KeyID: "k1",
			}
			tt.want(&want)
			got, err := c.Verify(t.Context(), s.token(t, tt.change), at)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A token that LibreChat's own code made, with its key.
func TestVerifyTokenOfLibreChat(t *testing.T) {
	const token = "eyJhbGciOiJFZERTQSIsInR5cCI6IkpXVCIsImtpZCI6ImxjLWNvZGVhcGktMjAyNi0wNSJ9.eyJpc3MiOiJsaWJyZWNoYXQiLCJhdWQiOiJjb2RlYXBpIiwic3ViIjoidXNlci0xIiwiaWF0IjoxNzk1OTYzNTAwLCJuYmYiOjE3OTU5NjM1MDAsImV4cCI6MTc5NTk2MzgwMCwianRpIjoiNjdmNjVlNDMtM2RlNi00MjFlLWIwMTQtZjc1ZTQ5NTE0MTNkIiwidGVuYW50X2lkIjoibGVnYWN5Iiwicm9sZSI6IlVTRVIiLCJwcmluY2lwYWxfc291cmNlIjoibGlicmVjaGF0X2p3dCIsImF1dGhfY29udGV4dF9oYXNoIjoiaDEifQ.oS_YUxlY_6i9T2VRSeZdqFKUdh97cIxj9C3ZlGttlD-ZEJ8k8itWaC4GVgkjPHX6FBUMqoHLepg40tDciN8NBg"
	const set = `{"keys":[{"crv":"Ed25519","x":"ojiIB1Q93G7ygkNWKoHPR7yTKX2JXJyUTZG4qovLhk0","kty":"OKP","kid":"lc-codeapi-2026-05","alg":"EdDSA"}]}`
	u, err := tokens(t, auth.KeySources{JWKS: set}).Verify(t.Context(), token, at)
	if err != nil || u.Principal.ID != "user-1" || u.Principal.Tenant != "legacy" || len(u.Principal.Scopes) != 0 {
		t.Errorf("Verify = %+v, %v", u, err)
	}
}

func TestJW01_Audience(t *testing.T) {
	s := ed25519Signer(t, "k1")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
	for _, tt := range []struct {
		aud  any
		want auth.Reason
	}{
		{"codeapi", ""},
		{[]any{"x", "codeapi"}, ""},
		{[]any{"x"}, auth.ReasonWrongAudience},
		{"x", auth.ReasonWrongAudience},
		{"codeapi ", auth.ReasonWrongAudience},
		{"CODEAPI", auth.ReasonWrongAudience},
		{"", auth.ReasonWrongAudience},
		{[]any{}, auth.ReasonMalformedClaims},
		{[]any{"codeapi", 5}, auth.ReasonMalformedClaims},
		{[]any{[]any{"codeapi"}}, auth.ReasonMalformedClaims},
		{map[string]any{"codeapi": true}, auth.ReasonMalformedClaims},
		{nil, auth.ReasonMalformedClaims},
		{absent{}, auth.ReasonMalformedClaims},
	} {
		t.Run(fmt.Sprint(tt.aud), func(t *testing.T) {
			wantReason(t, c, s.token(t, map[string]any{"aud": tt.aud}), at, tt.want)
		})
	}
}

func TestJW02_ClockSkewAndWindow(t *testing.T) {
	s := ed25519Signer(t, "k1")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
	for _, tt := range []struct {
		iat, nbf, exp any
		want          auth.Reason
	}{
		{20, 20, 200, ""},
		{90, 90, 200, auth.ReasonNotYetValid},
		{-200, -200, -20, ""},
		{-250, -250, -90, auth.ReasonExpired},
		// The edges, to the second.
		{-100, -100, -29, ""},
		{-100, -100, -30, auth.ReasonExpired},
		{0, 30, 200, ""},
		{0, 31, 200, auth.ReasonNotYetValid},
		{30, 0, 200, ""},
		{31, 0, 200, auth.ReasonFutureIat},
		{0, 0, 300, ""},
		{0, 0, 301, auth.ReasonTTLTooLong},
		{-300, 0, 300, auth.ReasonTTLTooLong},
		{5, 0, 5, auth.ReasonMalformedClaims},
		{6, 0, 5, auth.ReasonMalformedClaims},
		{-0.5, -0.25, 100.75, ""},
		{0, 0, 300.5, auth.ReasonTTLTooLong},
		// What is no time.
		{nil, 0, 100, auth.ReasonMalformedClaims},
		{absent{}, 0, 100, auth.ReasonMalformedClaims},
		{0, absent{}, 100, auth.ReasonMalformedClaims},
		{0, 0, absent{}, auth.ReasonMalformedClaims},
		{"0", 0, 100, auth.ReasonMalformedClaims},
		{0, "0", 100, auth.ReasonMalformedClaims},
		{0, 0, "100", auth.ReasonMalformedClaims},
		{0, 0, true, auth.ReasonMalformedClaims},
		{0, 0, 1e300, auth.ReasonMalformedClaims},
		{-1e300, 0, 100, auth.ReasonMalformedClaims},
		{0, 0, json.Number("1e400"), auth.ReasonMalformedClaims},
	} {
		change := map[string]any{}
		for claim, v := range map[string]any{"iat": tt.iat, "nbf": tt.nbf, "exp": tt.exp} {
			switch n := v.(type) {
			case int:
				v = at.Unix() + int64(n)
			case float64:
				if n > -1e9 && n < 1e9 {
					v = float64(at.Unix()) + n
				}
			}
			change[claim] = v
		}
		t.Run(fmt.Sprint(tt.iat, tt.nbf, tt.exp), func(t *testing.T) {
			wantReason(t, c, s.token(t, change), at, tt.want)
		})
	}
	strict := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)}, func(o *auth.TokenOptions) { o.Skew, o.MaxTTL = 0, time.Minute })
	for exp, want := range map[int64]auth.Reason{0: auth.ReasonExpired, 1: "", 50: "", 51: auth.ReasonTTLTooLong} {
		wantReason(t, strict, s.token(t, map[string]any{"iat": at.Unix() - 10, "nbf": at.Unix(), "exp": at.Unix() + exp}), at, want)
	}
}

func TestJW07_AlgorithmConfusion(t *testing.T) {
	s := rsaSigner(t, "k1", 0)
	set := jwks(t, s.jwk)
	pub := rsaKeys()[0].Public()
	der, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	jwk, err := json.Marshal(s.jwk)
	if err != nil {
		t.Fatal(err)
	}
	all := func(o *auth.TokenOptions) { o.Algs = []string{"HS256", "RS256", "EdDSA"} }
	usual := tokens(t, auth.KeySources{JWKS: set})
	opted := tokens(t, auth.KeySources{JWKS: set, Secret: writ.Secret(strings.Repeat("s", 32)), SecretID: "dev"}, all)
	wantReason(t, usual, s.token(t, nil), at, "")
	wantReason(t, opted, s.token(t, nil), at, "")

	for name, secret := range map[string][]byte{"PEM": text, "PEM without its end": text[:len(text)-1], "DER": der, "JWK": jwk, "set": []byte(set), "modulus": rsaKeys()[0].N.Bytes(), "nothing": nil} {
		t.Run("HS256 with the "+name, func(t *testing.T) {
			token := hmacSigner("k1", secret).token(t, nil)
			wantReason(t, usual, token, at, auth.ReasonWrongAlg)
			wantReason(t, opted, token, at, auth.ReasonWrongAlg) // of the key
		})
	}
	unsigned := signer{sign: func([]byte) []byte { return nil }}
	for _, alg := range []string{`"none"`, `"None"`, `"NONE"`, `""`, `null`, `5`, `["RS256"]`, `"RS256 "`, `"rs256"`, `"RS512"`, `"PS256"`, `"ES256"`, `"HS512"`} {
		t.Run("alg "+alg, func(t *testing.T) {
			header := fmt.Sprintf(`{"alg":%s,"typ":"JWT","kid":"k1"}`, alg)
			wantReason(t, opted, unsigned.raw(header, payload(t, nil)), at, auth.ReasonWrongAlg)
			wantReason(t, opted, s.raw(header, payload(t, nil)), at, auth.ReasonWrongAlg)
		})
	}
	wantReason(t, opted, s.raw(`{"typ":"JWT","kid":"k1"}`, payload(t, nil)), at, auth.ReasonWrongAlg)
	wantReason(t, opted, unsigned.raw(s.header(), payload(t, nil)), at, auth.ReasonBadSignature)
	wantReason(t, opted, s.raw(`{"alg":"EdDSA","typ":"JWT","kid":"k1"}`, payload(t, nil)), at, auth.ReasonWrongAlg)
	// The kid of the secret, and a signature of the RSA key.
	wantReason(t, opted, s.raw(`{"alg":"RS256","typ":"JWT","kid":"dev"}`, payload(t, nil)), at, auth.ReasonWrongAlg)
	wantReason(t, opted, hmacSigner("dev", []byte(strings.Repeat("s", 32))).token(t, nil), at, "")
	wantReason(t, opted, hmacSigner("dev", []byte(strings.Repeat("t", 32))).token(t, nil), at, auth.ReasonBadSignature)
}

func TestJW07_ATokenBringsNoKey(t *testing.T) {
	s, thief := ed25519Signer(t, "k1"), ed25519Signer(t, "k1")
	fetches := 0
	src := auth.KeySources{URL: "https://idp.example/keys", Fetch: serve(&fetches, func() string { return jwks(t, s.jwk) })}
	c := tokens(t, src)
	jwk, err := json.Marshal(thief.jwk)
	if err != nil {
		t.Fatal(err)
	}
	for member, v := range map[string]string{"jwk": string(jwk), "jku": `"https://evil.example/keys"`, "x5u": `"https://evil.example/cert"`, "x5c": `["AAAA"]`} {
		header := fmt.Sprintf(`{"alg":"EdDSA","typ":"JWT","kid":"k1",%q:%s}`, member, v)
		wantReason(t, c, thief.raw(header, payload(t, nil)), at, auth.ReasonMalformed)
		wantReason(t, c, s.raw(header, payload(t, nil)), at, auth.ReasonMalformed)
	}
	if fetches != 0 {
		t.Errorf("%d fetches for tokens with a key in them", fetches)
	}
	wantReason(t, c, thief.token(t, nil), at, auth.ReasonBadSignature)
	wantReason(t, c, s.token(t, nil), at, "")
}

func TestJW11_TypAndCrit(t *testing.T) {
	s := ed25519Signer(t, "k1")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
	for more, want := range map[string]auth.Reason{
		`,"typ":"JWT"`:                          "",
		``:                                      "",
		`,"typ":"JWT","x":{"y":1}`:              "",
		`,"typ":"at+jwt"`:                       auth.ReasonMalformed,
		`,"typ":"jwt"`:                          auth.ReasonMalformed,
		`,"typ":5`:                              auth.ReasonMalformed,
		`,"typ":null`:                           auth.ReasonMalformed,
		`,"typ":""`:                             auth.ReasonMalformed,
		`,"crit":["exp"]`:                       auth.ReasonMalformed,
		`,"crit":["b64"],"b64":false`:           auth.ReasonMalformed,
		`,"crit":[]`:                            auth.ReasonMalformed,
		`,"crit":["unheard-of"],"unheard-of":1`: auth.ReasonMalformed,
		`,"b64":false`:                          auth.ReasonMalformed,
	} {
		t.Run(more, func(t *testing.T) {
			wantReason(t, c, s.raw(`{"alg":"EdDSA","kid":"k1"`+more+`}`, payload(t, nil)), at, want)
		})
	}
}

func TestJW12_CaseVariantsAndDuplicates(t *testing.T) {
	s := ed25519Signer(t, "k1")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
	good := payload(t, nil)
	front := func(claims string) string { return "{" + claims + "," + good[1:] }
	behind := func(claims string) string { return good[:len(good)-1] + "," + claims + "}" }

	for name, body := range map[string]string{"in front": front(`"TENANT_ID":"t2","Sub":"eve","EXP":1`), "behind": behind(`"TENANT_ID":"t2","Sub":"eve","EXP":1`)} {
		u, err := c.Verify(t.Context(), s.raw(s.header(), body), at)
		if err != nil || u.Principal.Tenant != "acme" || u.Principal.ID != "user-1" {
			t.Errorf("case variants %s: %+v, %v", name, u, err)
		}
	}
	for name, body := range map[string]string{
		"sub in front":   front(`"sub":"u2"`),
		"sub behind":     behind(`"sub":"u2"`),
		"the same twice": behind(`"sub":"user-1"`),
		"escaped":        behind(`"\u0073ub":"u2"`),
		"aud":            behind(`"aud":"codeapi"`),
		"deep":           behind(`"x":{"a":1,"a":2}`),
	} {
		t.Run(name, func(t *testing.T) { wantReason(t, c, s.raw(s.header(), body), at, auth.ReasonMalformed) })
	}
	// A claim is looked for under its own name only.
	wantReason(t, c, s.raw(s.header(), strings.Replace(good, `"sub"`, `"SUB"`, 1)), at, auth.ReasonMalformedClaims)

	wantReason(t, c, s.raw(`{"alg":"EdDSA","ALG":"none","kid":"k1","KID":"k2"}`, good), at, "")
	wantReason(t, c, s.raw(`{"ALG":"EdDSA","kid":"k1"}`, good), at, auth.ReasonWrongAlg)
	wantReason(t, c, s.raw(`{"alg":"EdDSA","alg":"none","kid":"k1"}`, good), at, auth.ReasonMalformed)
	wantReason(t, c, s.raw(`{"alg":"EdDSA","kid":"k2","kid":"k1"}`, good), at, auth.ReasonMalformed)
}

func TestClaimsAreRefusedNotRepaired(t *testing.T) {
	s := ed25519Signer(t, "k1")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
	long := strings.Repeat("x", 257)
	malformed := map[string][]any{
		"iss":               {absent{}, "", " ", 5, nil},
		"sub":               {absent{}, "", " \ufeff", 5, nil, long, "a\nb", "a\x00b", "a\u0085b"},
		"jti":               {absent{}, "", " ", 5, long},
		"principal_source":  {absent{}, "", "agent_run", "LIBRECHAT_JWT", 5, []string{"librechat_jwt"}},
		"auth_context_hash": {absent{}, "", " ", 5, nil},
		"tenant_id":         {"", " ", 5, nil, long, []string{"acme"}, "a\x1b[2Jb"},
		"plan_id":           {"", " ", 5, nil, long},
		"file_delete":       {nil, "", map[string]any{}, false},
	}
	for claim, values := range malformed {
		for i, v := range values {
			t.Run(fmt.Sprint(claim, " ", i), func(t *testing.T) {
				wantReason(t, c, s.token(t, map[string]any{claim: v}), at, auth.ReasonMalformedClaims)
			})
		}
	}
	wantReason(t, c, s.token(t, map[string]any{"jti": strings.Repeat("é", 256), "sub": strings.Repeat("x", 256)}), at, "")
	for _, iss := range []string{"librechat ", "LibreChat", "evil"} {
		wantReason(t, c, s.token(t, map[string]any{"iss": iss}), at, auth.ReasonWrongIssuer)
	}
	// What is wrong first is the reason.
	wantReason(t, c, s.token(t, map[string]any{"file_delete": nil, "exp": at.Unix() - 90, "iat": at.Unix() - 200}), at, auth.ReasonExpired)
	strict := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)}, func(o *auth.TokenOptions) { o.Strict = true })
	wantReason(t, strict, s.token(t, map[string]any{"tenant_id": absent{}}), at, auth.ReasonMalformedClaims)
	wantReason(t, strict, s.token(t, nil), at, "")
}

func TestMalformedTokens(t *testing.T) {
	s := ed25519Signer(t, "k1")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
	good := s.token(t, nil)
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"empty":             "",
		"two segments":      parts[0] + "." + parts[1],
		"four segments":     good + "." + parts[2],
		"five segments":     good + "..",
		"only dots":         "..",
		"space in front":    " " + good,
		"space behind":      good + " ",
		"newline inside":    parts[0] + "." + parts[1][:8] + "\n" + parts[1][8:] + "." + parts[2],
		"padded":            parts[0] + "." + parts[1] + "." + parts[2] + "==",
		"bits to spare":     good[:len(good)-1] + next(good[len(good)-1]),
		"other alphabet":    parts[0] + "." + parts[1] + ".++//",
		"JSON form":         `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"no signature":      parts[0] + "." + parts[1] + ".",
		"huge":              strings.Repeat("A", 1<<20),
		"huge, but a token": s.token(t, map[string]any{"pad": strings.Repeat("x", 16<<10)}),
		"a header list":     s.raw(`[1]`, payload(t, nil)),
		"a header text":     s.raw(`"x"`, payload(t, nil)),
		"no header":         s.raw(``, payload(t, nil)),
		"header null":       s.raw(`null`, payload(t, nil)),
		"more behind":       s.raw(s.header()+"{}", payload(t, nil)),
		"payload list":      s.raw(s.header(), `[]`),
		"payload null":      s.raw(s.header(), `null`),
		"payload cut":       s.raw(s.header(), `{"iss":`),
		"payload deep":      s.raw(s.header(), `{"x":`+strings.Repeat("[", 11_000)),
		"not UTF-8":         s.raw(s.header(), "{\"sub\":\"\xff\"}"),
		"half a surrogate":  s.raw(s.header(), `{"sub":"\ud800"}`),
	} {
		want := auth.ReasonMalformed
		if name == "no signature" {
			want = auth.ReasonBadSignature
		}
		t.Run(name, func(t *testing.T) { wantReason(t, c, token, at, want) })
	}
	wantReason(t, c, s.token(t, map[string]any{"pad": strings.Repeat("x", 8<<10)}), at, "")
}

// next is the character after c in base64url's order, which differs in the last bit.
func next(c byte) string {
	const order = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	return order[strings.IndexByte(order, c)+1:][:1]
}

// One bit more or less anywhere, and it is no token of ours.
func TestNoChangedTokenIsAccepted(t *testing.T) {
	for _, s := range []signer{ed25519Signer(t, "k1"), rsaSigner(t, "k1", 0)} {
		c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
		good := []byte(s.token(t, nil))
		wantReason(t, c, string(good), at, "")
		for i := range good {
			changed := append([]byte(nil), good...)
			changed[i] ^= 1 << (i % 7)
			if u, err := c.Verify(t.Context(), string(changed), at); writ.KindOf(err) != writ.Unauthenticated {
				t.Fatalf("%s: with byte %d changed: %+v, %v", s.alg, i, u, err)
			}
		}
	}
}

func TestRS512OfAKeyForRS256(t *testing.T) {
	s := rsaSigner(t, "k1", 0)
	c := tokens(t, auth.KeySources{JWKS: jwks(t, s.jwk)})
	s.alg, s.sign = "RS512", func(in []byte) []byte {
		sum := sha512.Sum512(in)
		sig, err := rsa.SignPKCS1v15(nil, rsaKeys()[0], crypto.SHA512, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}
	wantReason(t, c, s.token(t, nil), at, auth.ReasonWrongAlg)
	s.alg = "RS256" // as it claims
	wantReason(t, c, s.token(t, nil), at, auth.ReasonBadSignature)
}

func FuzzVerify(f *testing.F) {
	s := ed25519Signer(f, "k1")
	good := s.token(f, nil)
	c := tokens(f, auth.KeySources{JWKS: jwks(f, s.jwk)})
	f.Add(good)
	f.Add("..")
	f.Add(s.raw(`{"alg":"EdDSA","alg":"none","kid":"k1"}`, payload(f, nil)))
	f.Fuzz(func(t *testing.T, token string) {
		_, err := c.Verify(t.Context(), token, at)
		if (err == nil) != (token == good) {
			t.Errorf("Verify(%q) = %v", token, err)
		}
	})
}
