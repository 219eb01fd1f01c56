package auth_test

import (
	"crypto"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/auth"
)

// at is when the tests' tokens are checked.
var at = time.Unix(1_795_963_510, 0)

// signer signs tokens as a front end does, and also as none should.
type signer struct {
	kid  string
	alg  string
	sign func(input []byte) []byte
	jwk  map[string]any // its public half
}

func ed25519Signer(t testing.TB, kid string) signer {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{kid: kid, alg: "EdDSA", sign: func(in []byte) []byte { return ed25519.Sign(key, in) },
		jwk: map[string]any{"kty": "OKP", "crv": "Ed25519", "kid": kid, "alg": "EdDSA", "x": b64(pub)}}
}

// rsaKeys are made once: they take long.
var rsaKeys = sync.OnceValue(func() (keys [3]*rsa.PrivateKey) {
	for i, bits := range []int{2048, 2048, 1024} {
		var err error
		if keys[i], err = rsa.GenerateKey(rand.Reader, bits); err != nil {
			panic(err)
		}
	}
	return keys
})

func rsaSigner(t testing.TB, kid string, i int) signer {
	t.Helper()
	key := rsaKeys()[i]
	return signer{kid: kid, alg: "RS256", sign: func(in []byte) []byte {
		sum := sha256.Sum256(in)
		sig, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		return sig
	}, jwk: map[string]any{"kty": "RSA", "kid": kid, "alg": "RS256", "use": "sig", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())}}
}

func hmacSigner(kid string, secret []byte) signer {
	return signer{kid: kid, alg: "HS256", sign: func(in []byte) []byte {
		mac := hmac.New(sha256.New, secret)
		mac.Write(in)
		return mac.Sum(nil)
	}}
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

// raw is a token of exactly this header and payload.
func (s signer) raw(header, payload string) string {
	in := b64([]byte(header)) + "." + b64([]byte(payload))
	return in + "." + b64(s.sign([]byte(in)))
}

func (s signer) header() string { return fmt.Sprintf(`{"alg":%q,"typ":"JWT","kid":%q}`, s.alg, s.kid) }

// token is one of the claims of a good token, changed.
func (s signer) token(t testing.TB, change map[string]any) string {
	t.Helper()
	return s.raw(s.header(), payload(t, change))
}

// absent as a claim's value leaves the claim out.
type absent struct{}

// payload is that of a token as LibreChat signs it (spec/03 §3.4), changed.
func payload(t testing.TB, change map[string]any) string {
	t.Helper()
	now := at.Unix()
	m := map[string]any{
		"iss": "librechat", "aud": "codeapi", "sub": "user-1", "iat": now, "nbf": now, "exp": now + 300,
		"jti": "67f65e43-3de6-421e-b014-f75e4951413d", "tenant_id": "acme", "role": "USER",
		"principal_source": "librechat_jwt", "auth_context_hash": "h1",
	}
	maps.Copy(m, change)
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == absent{} })
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func jwks(t testing.TB, keys ...map[string]any) string {
	t.Helper()
	data, err := json.Marshal(map[string]any{"keys": append([]map[string]any{}, keys...)})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// with is jwk, changed.
func with(jwk map[string]any, member string, v any) map[string]any {
	out := maps.Clone(jwk)
	out[member] = v
	return out
}

func tokens(t testing.TB, src auth.KeySources, change ...func(*auth.TokenOptions)) *auth.Tokens {
	t.Helper()
	opt := auth.DefaultTokenOptions()
	for _, f := range change {
		f(&opt)
	}
	c, err := auth.NewTokens(src, opt, at)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// wantReason fails when token is not refused for that reason, which its caller must
// not be able to tell from others; an empty reason is one for which it is accepted.
func wantReason(t *testing.T, c *auth.Tokens, token string, now time.Time, want auth.Reason) {
	t.Helper()
	u, err := c.Verify(t.Context(), token, now)
	if auth.ReasonOf(err) != want || (err == nil) != (want == "") {
		t.Errorf("Verify = %+v, %v, want reason %q", u, err, want)
		return
	}
	if err == nil {
		return
	}
	if diff := cmp.Diff(auth.User{}, u); diff != "" {
		t.Errorf("a user came with the error:\n%s", diff)
	}
	kind, message := writ.Unauthenticated, "Invalid bearer token"
	switch want {
	case auth.ReasonConfig:
		kind, message = writ.Internal, "internal error"
	case auth.ReasonKeysUnavailable:
		kind, message = writ.Unavailable, "the keys that tokens are signed with cannot be had now: try again in a minute"
	}
	if writ.KindOf(err) != kind || writ.Message(err) != message {
		t.Errorf("for %s the caller gets %v %q, want %v %q", want, writ.KindOf(err), writ.Message(err), kind, message)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for _, part := range strings.Split(token, ".") {
			if len(part) > 8 && strings.Contains(fmt.Sprintf("%+v", e), part[:8]) {
				t.Errorf("%v has a part of the token in it", e)
			}
		}
	}
}
