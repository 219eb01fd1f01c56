package auth_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"writ"
	"writ/auth"
)

func TestJW09_EncryptionKeyIsNoSigningKey(t *testing.T) {
	e1, s1 := rsaSigner(t, "e1", 0), rsaSigner(t, "s1", 1)
	enc := with(with(e1.jwk, "use", "enc"), "alg", "RSA-OAEP")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, enc, s1.jwk)})
	wantReason(t, c, e1.token(t, nil), at, auth.ReasonUnknownKid)
	wantReason(t, c, s1.token(t, nil), at, "")
	wantReason(t, c, s1.raw(`{"alg":"RS256","typ":"JWT"}`, payload(t, nil)), at, auth.ReasonMalformedClaims)

	_, err := c.Verify(t.Context(), e1.token(t, nil), at)
	if why, ok := errors.AsType[*auth.TokenError](err); !ok || !strings.Contains(why.Error(), `its use is "enc"`) {
		t.Errorf("%v does not say why the key cannot be used", why)
	}
}

// Of keys that are of no use here, none lets a token in, and none makes the others
// useless: sets are shared with other clients.
func TestKeysOfNoUse(t *testing.T) {
	s, r, weak, good := ed25519Signer(t, "k1"), rsaSigner(t, "k1", 0), rsaSigner(t, "k1", 2), ed25519Signer(t, "good")
	for name, tt := range map[string]struct {
		key map[string]any
		by  signer
	}{
		"for encryption":        {with(s.jwk, "use", "enc"), s},
		"for signing only":      {with(s.jwk, "key_ops", []string{"sign"}), s},
		"operations of no form": {with(s.jwk, "key_ops", "verify"), s},
		"for RS512":             {with(r.jwk, "alg", "RS512"), r},
		"for PS256":             {with(r.jwk, "alg", "PS256"), r},
		"for HS256":             {with(r.jwk, "alg", "HS256"), r},
		"RSA of 1024 bits":      {weak.jwk, weak},
		"RSA, even exponent":    {with(r.jwk, "e", b64([]byte{1, 0, 0})), r},
		"another curve":         {with(s.jwk, "crv", "X25519"), s},
		"another type":          {with(s.jwk, "kty", "ZZ"), s},
		"EC":                    {map[string]any{"kty": "EC", "crv": "P-256", "kid": "k1", "x": "AAAA", "y": "AAAA"}, s},
		"no id":                 {with(s.jwk, "kid", ""), s},
	} {
		t.Run(name, func(t *testing.T) {
			c := tokens(t, auth.KeySources{JWKS: jwks(t, tt.key, good.jwk)})
			wantReason(t, c, tt.by.token(t, nil), at, auth.ReasonUnknownKid)
			wantReason(t, c, good.token(t, nil), at, "")
			if _, err := auth.NewTokens(auth.KeySources{JWKS: jwks(t, tt.key)}, auth.DefaultTokenOptions(), at); writ.KindOf(err) != writ.Invalid {
				t.Errorf("alone: %v, want Invalid", err)
			}
		})
	}
	for name, key := range map[string]map[string]any{
		"named as in RFC 9864": with(s.jwk, "alg", "Ed25519"),
		"for verifying":        with(s.jwk, "key_ops", []string{"sign", "verify"}),
	} {
		t.Run(name, func(t *testing.T) {
			wantReason(t, tokens(t, auth.KeySources{JWKS: jwks(t, key)}), s.token(t, nil), at, "")
		})
	}
	noAlg := with(r.jwk, "kid", "k1")
	delete(noAlg, "alg")
	wantReason(t, tokens(t, auth.KeySources{JWKS: jwks(t, noAlg)}), r.token(t, nil), at, "")
}

// What no set may have stops the start, and says where it stands.
func TestSetsThatAreRefused(t *testing.T) {
	s := ed25519Signer(t, "k1")
	key, err := json.Marshal(s.jwk)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ set, want string }{
		"not JSON":           {`keys`, "not a JSON object"},
		"a list":             {`[]`, "not a JSON object"},
		"no keys":            {`{}`, `no list named "keys"`},
		"keys is null":       {`{"keys":null}`, `no list named "keys"`},
		"keys is an object":  {`{"keys":{}}`, `no list named "keys"`},
		"keys twice":         {`{"keys":[],"keys":[]}`, "distinct names"},
		"none":               {`{"keys":[]}`, "no key can check a token"},
		"a key is a text":    {`{"keys":["x"]}`, "key 1: not a JSON object"},
		"kid twice in a key": {`{"keys":[{"kid":"a","kid":"b","kty":"OKP"}]}`, "not a JSON object"},
		"kid is a number":    {`{"keys":[{"kid":5,"kty":"OKP"}]}`, "kid is not a text"},
		"kid is huge":        {jwks(t, with(s.jwk, "kid", strings.Repeat("k", 257))), "more than 256 bytes"},
		"too short a point":  {jwks(t, with(s.jwk, "x", "AAAA")), "not a JWK"},
		"RSA, exponent 1":    {jwks(t, with(rsaSigner(t, "k1", 0).jwk, "e", "AQ")), "not a JWK"},
		"private":            {jwks(t, with(s.jwk, "d", "AAAA")), "secret part"},
		"symmetric":          {`{"keys":[{"kty":"oct","kid":"k1","k":"` + strings.Repeat("A", 43) + `"}]}`, "secret part"},
		"too many":           {`{"keys":[` + strings.Repeat(string(key)+",", 256) + string(key) + `]}`, "257 keys"},
		"huge":               {`{"keys":[],"x":"` + strings.Repeat("x", auth.MaxKeySet) + `"}`, "more than"},

		// spec/04 §1.2: tenants that are not tenants.
		"tenants is a text":       {jwks(t, with(s.jwk, "tenants", "acme")), "tenants is not a list"},
		"tenants is null":         {jwks(t, with(s.jwk, "tenants", nil)), "tenants is not a list"},
		"tenants is empty":        {jwks(t, with(s.jwk, "tenants", []any{})), "tenants is not a list"},
		"tenants has a number":    {jwks(t, with(s.jwk, "tenants", []any{"acme", 5})), "tenants is not a list"},
		"tenants has a blank":     {jwks(t, with(s.jwk, "tenants", []any{"acme", ""})), "tenants is not a list"},
		"tenants has a space":     {jwks(t, with(s.jwk, "tenants", []any{" acme"})), "tenants is not a list"},
		"tenants without kid":     {jwks(t, with(with(s.jwk, "tenants", []any{"acme"}), "kid", "")), "no kid"},
		"tenants by another case": {jwks(t, with(s.jwk, "Tenants", []any{"acme"})), `write "tenants"`},
		"one tenant":              {jwks(t, with(s.jwk, "tenant", "acme")), `write "tenants"`},
		"bound and twice":         {jwks(t, with(s.jwk, "tenants", []any{"acme"}), s.jwk), "keep one"},
		"twice and bound":         {jwks(t, s.jwk, with(s.jwk, "tenants", []any{"acme"})), "keep one"},
		"bound, and of no use":    {jwks(t, with(with(s.jwk, "tenants", []any{"acme"}), "use", "enc"), s.jwk), "keep one"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := auth.NewTokens(auth.KeySources{JWKS: tt.set}, auth.DefaultTokenOptions(), at)
			if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), tt.want) {
				t.Errorf("%v, want Invalid with %q in it", err, tt.want)
			}
		})
	}
}

func TestKeysSignForTheirTenantsOnly(t *testing.T) {
	bound, free := ed25519Signer(t, "bound"), ed25519Signer(t, "free")
	c := tokens(t, auth.KeySources{JWKS: jwks(t, with(bound.jwk, "tenants", []any{"acme", "legacy"}), free.jwk)})
	for _, tt := range []struct {
		tenant any
		want   auth.Reason
	}{
		{"acme", ""},
		{"legacy", ""},
		{"globex", auth.ReasonTenantNotAllowed},
		{"acme ", auth.ReasonTenantNotAllowed},
		{"ACME", auth.ReasonTenantNotAllowed},
		{absent{}, auth.ReasonTenantNotAllowed}, // though "legacy" is listed
	} {
		t.Run(fmt.Sprint(tt.tenant), func(t *testing.T) {
			wantReason(t, c, bound.token(t, map[string]any{"tenant_id": tt.tenant}), at, tt.want)
			wantReason(t, c, free.token(t, map[string]any{"tenant_id": tt.tenant}), at, "")
		})
	}
	// After all checks of claims.
	wantReason(t, c, bound.token(t, map[string]any{"tenant_id": "globex", "exp": at.Unix() - 40, "iat": at.Unix() - 50}), at, auth.ReasonExpired)
}

func TestKidIsNoPath(t *testing.T) {
	dir := t.TempDir()
	s := rsaSigner(t, "prod", 0)
	write(t, filepath.Join(dir, "keys", "prod.pem"), publicPEM(t))
	write(t, filepath.Join(dir, "outside.pem"), publicPEM(t))
	c := tokens(t, auth.KeySources{Folder: filepath.Join(dir, "keys")})
	wantReason(t, c, s.token(t, nil), at, "")
	for _, kid := range []string{"../outside", "keys/../prod", "./prod", "prod.pem", "PROD", "prod\x00", " prod", "prod' OR '1'='1", "/dev/null", "../../../../dev/null", "%2e%2e/outside", "\u202eprod"} {
		s.kid = kid
		quoted, err := json.Marshal(kid)
		if err != nil {
			t.Fatal(err)
		}
		wantReason(t, c, s.raw(`{"alg":"RS256","kid":`+string(quoted)+`}`, payload(t, nil)), at, auth.ReasonUnknownKid)
	}
	for _, kid := range []string{`""`, `" "`, `5`, `null`, `["prod"]`, `"` + strings.Repeat("k", 257) + `"`} {
		wantReason(t, c, s.raw(`{"alg":"RS256","kid":`+kid+`}`, payload(t, nil)), at, auth.ReasonMalformedClaims)
	}
}

func TestFolderOfKeys(t *testing.T) {
	dir := t.TempDir()
	pem1, own := rsaSigner(t, "prod-1.a", 0), ed25519Signer(t, "its-own")
	jwk, err := json.Marshal(with(own.jwk, "tenants", []string{"acme"}))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "prod-1.a.pem"), publicPEM(t))
	write(t, filepath.Join(dir, "staging.json"), jwk)
	write(t, filepath.Join(dir, ".hidden"), []byte("nonsense"))
	write(t, filepath.Join(dir, "folder", "x.pem"), []byte("nonsense"))
	if err := os.Symlink("prod-1.a.pem", filepath.Join(dir, "linked.pem")); err != nil {
		t.Fatal(err)
	}
	c := tokens(t, auth.KeySources{Folder: dir})
	wantReason(t, c, pem1.token(t, nil), at, "")
	pem1.kid = "linked"
	wantReason(t, c, pem1.token(t, nil), at, "")
	wantReason(t, c, own.token(t, nil), at, auth.ReasonUnknownKid) // the file's name is the id
	own.kid = "staging"
	wantReason(t, c, own.token(t, nil), at, "")
	wantReason(t, c, own.token(t, map[string]any{"tenant_id": "globex"}), at, auth.ReasonTenantNotAllowed)
}

func TestFoldersThatAreRefused(t *testing.T) {
	der := x509.MarshalPKCS1PrivateKey(rsaKeys()[0])
	weak, err := x509.MarshalPKIXPublicKey(rsaKeys()[2].Public())
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		make func(dir string) error
		want string
	}{
		"a private key":   {func(d string) error { return put(d, "k.pem", pemOf("RSA PRIVATE KEY", der)) }, "want a public key"},
		"nonsense":        {func(d string) error { return put(d, "README", []byte("keys are here")) }, "neither PEM nor a JWK"},
		"nonsense in PEM": {func(d string) error { return put(d, "k.pem", pemOf("PUBLIC KEY", []byte("x"))) }, "k.pem"},
		"a weak key":      {func(d string) error { return put(d, "k.pem", pemOf("PUBLIC KEY", weak)) }, "1024 bits"},
		"two in a file": {func(d string) error {
			return put(d, "k.pem", append(publicPEM(t), publicPEM(t)...))
		}, "more than one key"},
		"two of one id": {func(d string) error {
			if err := put(d, "k.pem", publicPEM(t)); err != nil {
				return err
			}
			return put(d, "k.pub", publicPEM(t))
		}, "k.pem and k.pub are of one id"},
		"huge":      {func(d string) error { return put(d, "k.pem", make([]byte, auth.MaxKeySet+1)) }, "more than"},
		"a pipe":    {func(d string) error { return syscall.Mkfifo(filepath.Join(d, "k.pem"), 0o600) }, "is not a file"},
		"dangling":  {func(d string) error { return os.Symlink("gone", filepath.Join(d, "k.pem")) }, "no such file"},
		"empty":     {func(string) error { return nil }, "no key can check a token"},
		"not there": {os.Remove, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(dir); err != nil {
				t.Fatal(err)
			}
			_, err := auth.NewTokens(auth.KeySources{Folder: dir}, auth.DefaultTokenOptions(), at)
			if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), tt.want) {
				t.Errorf("%v, want Invalid with %q in it", err, tt.want)
			}
		})
	}
}

// Files are read again when their time is up, and one that broke lets nobody in by
// what it had.
func TestJW04_FilesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.json")
	k1, k2 := ed25519Signer(t, "k1"), ed25519Signer(t, "k2")
	write(t, path, []byte(jwks(t, k1.jwk)))
	c := tokens(t, auth.KeySources{File: path})
	life := map[string]any{"exp": at.Unix() + 250}
	one, two := k1.token(t, life), k2.token(t, life)
	wantReason(t, c, one, at, "")

	write(t, path, []byte(jwks(t, k1.jwk, k2.jwk)))
	wantReason(t, c, two, at.Add(29*time.Second), auth.ReasonUnknownKid)
	wantReason(t, c, two, at.Add(30*time.Second), "")
	wantReason(t, c, one, at.Add(30*time.Second), "")

	write(t, path, []byte(jwks(t, k2.jwk)))
	wantReason(t, c, one, at.Add(60*time.Second), auth.ReasonUnknownKid)

	write(t, path, []byte(`{"keys":`))
	wantReason(t, c, two, at.Add(89*time.Second), "")
	wantReason(t, c, two, at.Add(90*time.Second), auth.ReasonConfig)
	write(t, path, []byte(jwks(t, k2.jwk)))
	wantReason(t, c, two, at.Add(90500*time.Millisecond), auth.ReasonConfig)
	wantReason(t, c, two, at.Add(91*time.Second), "")
}

// Of two keys with one id, the later source's counts.
func TestSourcesAreMerged(t *testing.T) {
	inline, file := ed25519Signer(t, "k1"), ed25519Signer(t, "k1")
	public, secret := rsaSigner(t, "k2", 0), hmacSigner("hs256-dev", []byte(strings.Repeat("s", 32)))
	path := filepath.Join(t.TempDir(), "keys.json")
	write(t, path, []byte(jwks(t, file.jwk)))
	src := auth.KeySources{
		JWKS: jwks(t, inline.jwk), File: path,
		Public: string(publicPEM(t)), PublicID: "k2",
		Secret: writ.Secret(strings.Repeat("s", 32)), SecretID: "hs256-dev",
	}
	c := tokens(t, src, func(o *auth.TokenOptions) { o.Algs = []string{"EdDSA", "RS256", "HS256"} })
	wantReason(t, c, inline.token(t, nil), at, auth.ReasonBadSignature)
	for _, s := range []signer{file, public, secret} {
		wantReason(t, c, s.token(t, nil), at, "")
	}
	// Bound in one place, it may stand in no other.
	write(t, path, []byte(jwks(t, with(file.jwk, "tenants", []string{"acme"}))))
	if _, err := auth.NewTokens(auth.KeySources{JWKS: src.JWKS, File: path}, auth.DefaultTokenOptions(), at); !strings.Contains(fmt.Sprint(err), "keep one") {
		t.Errorf("%v, want an error", err)
	}
}

func TestOptionsAndSourcesThatAreRefused(t *testing.T) {
	s := ed25519Signer(t, "k1")
	set := jwks(t, s.jwk)
	secret := writ.Secret(strings.Repeat("s", 32))
	hs := func(o *auth.TokenOptions) { o.Algs = []string{"HS256"} }
	for name, tt := range map[string]struct {
		src    auth.KeySources
		change func(*auth.TokenOptions)
		want   string
	}{
		"no keys":              {auth.KeySources{}, nil, "no key can check a token"},
		"no issuer":            {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.Issuer = " " }, "issuer is empty"},
		"no audience":          {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.Audience = "" }, "audience is empty"},
		"no algorithm":         {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.Algs = nil }, "no algorithm is accepted"},
		"none as algorithm":    {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.Algs = []string{"none"} }, `algorithm "none"`},
		"skew":                 {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.Skew = 31 * time.Second }, "clock skew"},
		"negative skew":        {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.Skew = -1 }, "clock skew"},
		"life":                 {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.MaxTTL = 301 * time.Second }, "longest life"},
		"no refresh":           {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.Refresh = 0 }, "time that keys are kept"},
		"no tenant":            {auth.KeySources{JWKS: set}, func(o *auth.TokenOptions) { o.SingleTenant = "" }, "name none"},
		"short secret":         {auth.KeySources{Secret: secret[:31], SecretID: "x"}, hs, "31 bytes"},
		"secret without id":    {auth.KeySources{Secret: secret}, hs, "needs an id"},
		"secret, not opted in": {auth.KeySources{JWKS: set, Secret: secret, SecretID: "x"}, nil, "HS256 is not among"},
		"key without id":       {auth.KeySources{Public: string(publicPEM(t))}, nil, "needs an id"},
		"no fetch":             {auth.KeySources{URL: "https://idp.example"}, nil, "nothing that fetches it"},
		"address":              {auth.KeySources{URL: "http://idp.example"}, nil, "neither https nor http on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			opt := auth.DefaultTokenOptions()
			if tt.change != nil {
				tt.change(&opt)
			}
			_, err := auth.NewTokens(tt.src, opt, at)
			if writ.KindOf(err) != writ.Invalid || !strings.Contains(writ.Message(err), tt.want) {
				t.Errorf("%v, want Invalid with %q in it", err, tt.want)
			}
			if strings.Contains(fmt.Sprintf("%+v", err), "sssss") {
				t.Errorf("%v has the secret in it", err)
			}
		})
	}
	strict := auth.DefaultTokenOptions()
	strict.Strict, strict.SingleTenant = true, ""
	if err := strict.Validate(); err != nil {
		t.Error(err)
	}
}

func publicPEM(t *testing.T) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(rsaKeys()[0].Public())
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("PUBLIC KEY", der)
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func put(dir, name string, data []byte) error {
	return os.WriteFile(filepath.Join(dir, name), data, 0o600)
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
