package auth

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxKeySet is the most bytes that a set of keys may have.
const MaxKeySet = 1 << 20

const (
	maxKeys   = 256
	minRSA    = 2048 // bits
	maxRSA    = 8192 // bits: beyond, one check takes too long
	minSecret = 32   // bytes: as long as what HS256 makes of it (RFC 7518 §3.2)
	minExpRSA = 3
)

// tokenKey is a key that checks signatures of one algorithm.
type tokenKey struct {
	alg     string
	key     any      // ed25519.PublicKey, *rsa.PublicKey, or []byte
	tenants []string // those that it signs for; nil: all
	from    string   // where it stands, for people
}

// entry is one key of a source. unusable is why it checks nothing; empty when it does.
type entry struct {
	kid      string
	key      tokenKey
	unusable string
}

// keySet is keys by their ids. It is made once and then only read.
type keySet struct {
	keys     map[string]tokenKey
	unusable map[string]string // why, by id
}

// setOf merges the entries of sources: of two with one id the later counts, and a
// key that can be used before one that cannot. An id that stands twice and is bound
// to tenants in either place is an error (spec/04 §1.2).
func setOf(entries []entry) (keySet, error) {
	set := keySet{keys: map[string]tokenKey{}, unusable: map[string]string{}}
	first := map[string]entry{}
	for _, e := range entries {
		if twin, again := first[e.kid]; again && (twin.key.tenants != nil || e.key.tenants != nil) {
			return keySet{}, fmt.Errorf("key %q is bound to tenants, and stands in %s and in %s: keep one", e.kid, twin.key.from, e.key.from)
		}
		first[e.kid] = e
		if e.unusable != "" {
			set.unusable[e.kid] = e.unusable
			continue
		}
		set.keys[e.kid] = e.key
	}
	return set, nil
}

// faults is why keys of the set cannot be used, to be put behind a sentence.
func (s keySet) faults() string {
	var b strings.Builder
	for _, kid := range slices.Sorted(maps.Keys(s.unusable)) {
		fmt.Fprintf(&b, "; %q: %s", kid, s.unusable[kid])
	}
	return b.String()
}

// parseKeySet is the keys of a JWK set, which came from there. Keys of kinds that
// are of no use here are entries that say so, since sets are shared with others;
// keys without an id are left out. An error is what no set may have: names that
// stand twice, private keys, tenants that are not tenants.
func parseKeySet(data []byte, from string) ([]entry, error) {
	if len(data) > MaxKeySet {
		return nil, fmt.Errorf("%s: a set of keys has more than %d bytes", from, MaxKeySet)
	}
	m, ok := object(data)
	if !ok {
		return nil, fmt.Errorf("%s: not a JSON object with distinct names", from)
	}
	var list []jsontext.Value
	if v := m["keys"]; v.Kind() != '[' || json.Unmarshal(v, &list) != nil {
		return nil, fmt.Errorf("%s: no list named \"keys\"", from)
	}
	if len(list) > maxKeys {
		return nil, fmt.Errorf("%s: %d keys are more than %d", from, len(list), maxKeys)
	}
	var out []entry
	for i, v := range list {
		e, err := parseJWK(v, "", fmt.Sprintf("%s, key %d", from, i+1))
		if err != nil {
			return nil, err
		}
		if e.kid != "" {
			out = append(out, e)
		}
	}
	return out, nil
}

// parseJWK is one key. kid is its id when the place where it was found says so;
// else its own is, without which the entry is empty.
func parseJWK(data []byte, kid, from string) (entry, error) {
	k, err := readJWK(data, kid)
	if err != nil {
		return entry{}, fmt.Errorf("%s: %w", from, err)
	}
	if blank(k.kid) {
		return entry{}, nil
	}
	from = fmt.Sprintf("%s (%q)", from, k.kid[:min(len(k.kid), 64)])
	if err := k.check(); err != nil {
		return entry{}, fmt.Errorf("%s: %w", from, err)
	}
	e := entry{kid: k.kid, key: tokenKey{tenants: k.tenants, from: from}}
	if e.unusable = k.otherUse(); e.unusable != "" {
		return e, nil
	}
	e.key.key, err = k.parse(data)
	switch {
	case errors.Is(err, jose.ErrUnsupportedKeyType):
		e.unusable = fmt.Sprintf("its type %q is neither Ed25519 nor RSA", k.kty)
		return e, nil
	case err != nil:
		return entry{}, fmt.Errorf("%s: not a JWK: %w", from, err)
	}
	e.key.alg, e.unusable = algOf(e.key.key)
	// RFC 9864 gives EdDSA with this curve a name of its own.
	if e.unusable == "" && k.alg != "" && k.alg != e.key.alg && (k.alg != "Ed25519" || e.key.alg != algEdDSA) {
		e.unusable = fmt.Sprintf("it is for %q, not %s", k.alg, e.key.alg)
	}
	return e, nil
}

// jwk is what a JWK says of its key.
type jwk struct {
	members            map[string]jsontext.Value
	kid, alg, use, kty string   // empty when it does not say
	tenants            []string // nil when it does not say
}

// readJWK reads the members of data. kid goes before its own id.
func readJWK(data []byte, kid string) (k jwk, err error) {
	var ok bool
	if k.members, ok = object(data); !ok {
		return jwk{}, errors.New("not a JSON object with distinct names")
	}
	for member := range k.members {
		// Read past, they would leave a key unbound that is meant to be bound.
		if low := strings.ToLower(member); member != "tenants" && (low == "tenants" || low == "tenant") {
			return jwk{}, fmt.Errorf("%q: write \"tenants\"", member)
		}
	}
	for member, to := range map[string]*string{"kid": &k.kid, "alg": &k.alg, "use": &k.use, "kty": &k.kty} {
		if v, has := k.members[member]; has {
			if *to, ok = text(v); !ok {
				return jwk{}, fmt.Errorf("%s is not a text", member)
			}
		}
	}
	k.kid = cmp.Or(kid, k.kid)
	if v, has := k.members["tenants"]; has {
		if k.kid == "" {
			return jwk{}, errors.New("it has tenants and no kid")
		}
		if k.tenants, ok = texts(v); !ok || len(k.tenants) == 0 || slices.ContainsFunc(k.tenants, func(s string) bool { return s == "" || s != trim(s) }) {
			return jwk{}, errors.New("tenants is not a list of at least one name, without space around it")
		}
	}
	return k, nil
}

// check refuses what no set may have: an id that no token can name, and secrets.
func (k jwk) check() error {
	if len(k.kid) > maxKid {
		return fmt.Errorf("its id has more than %d bytes", maxKid)
	}
	for _, private := range []string{"d", "p", "q", "k", "priv"} {
		if _, has := k.members[private]; has {
			return fmt.Errorf("it holds a secret part (%q): give the public key alone, and change the key if others have seen this", private)
		}
	}
	return nil
}

// otherUse is what the key is for, as why it checks no token, empty when it may.
func (k jwk) otherUse() (unusable string) {
	if k.use != "" && k.use != "sig" {
		return fmt.Sprintf("its use is %q, not \"sig\"", k.use)
	}
	if v, has := k.members["key_ops"]; has {
		if ops, ok := texts(v); !ok || !slices.Contains(ops, "verify") {
			return `its key_ops are without "verify"`
		}
	}
	return ""
}

// parse is the key of data. The error is jose.ErrUnsupportedKeyType for types of no use here.
func (k jwk) parse(data []byte) (any, error) {
	if k.kty != "RSA" && k.kty != "OKP" {
		return nil, jose.ErrUnsupportedKeyType
	}
	var parsed jose.JSONWebKey
	err := parsed.UnmarshalJSON(data)
	return parsed.Key, err
}

// algOf is the algorithm of a public key, or why it has none here.
func algOf(key any) (alg, unusable string) {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return algEdDSA, ""
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSA || bits > maxRSA {
			return "", fmt.Sprintf("RSA of %d bits is outside [%d, %d]", bits, minRSA, maxRSA)
		}
		if k.E < minExpRSA || k.E%2 == 0 {
			return "", "its RSA exponent is not odd and above 1"
		}
		return algRS256, ""
	}
	return "", "it is neither of Ed25519 nor of RSA"
}

// parsePublic is a key in PEM, or a JWK, whose id is kid. One that cannot be used
// is an error: it stands alone, so that somebody meant it.
func parsePublic(data []byte, kid, from string) (entry, error) {
	if len(data) > MaxKeySet {
		return entry{}, fmt.Errorf("%s: a key has more than %d bytes", from, MaxKeySet)
	}
	var e entry
	if body := strings.TrimSpace(string(data)); strings.HasPrefix(body, "{") {
		var err error
		if e, err = parseJWK(data, kid, from); err != nil {
			return entry{}, err
		}
	} else {
		key, err := parsePEM(data)
		if err != nil {
			return entry{}, fmt.Errorf("%s: %w", from, err)
		}
		e = entry{kid: kid, key: tokenKey{key: key, from: fmt.Sprintf("%s (%q)", from, kid)}}
		e.key.alg, e.unusable = algOf(key)
	}
	if e.unusable != "" {
		return entry{}, fmt.Errorf("%s: %s", from, e.unusable)
	}
	return e, nil
}

func parsePEM(data []byte) (any, error) {
	block, rest := pem.Decode(data)
	if block == nil {
		return nil, errors.New("neither PEM nor a JWK")
	}
	if next, _ := pem.Decode(rest); next != nil {
		return nil, errors.New("more than one key: give each its own id")
	}
	switch block.Type {
	case "PUBLIC KEY":
		return x509.ParsePKIXPublicKey(block.Bytes)
	case "RSA PUBLIC KEY":
		return x509.ParsePKCS1PublicKey(block.Bytes)
	}
	return nil, fmt.Errorf("it is a PEM of %.40q: want a public key", block.Type)
}

// texts is v, when that is a list of JSON strings.
func texts(v jsontext.Value) ([]string, bool) {
	var list []jsontext.Value
	if v.Kind() != '[' || json.Unmarshal(v, &list) != nil {
		return nil, false
	}
	out := make([]string, len(list))
	for i, e := range list {
		var ok bool
		if out[i], ok = text(e); !ok {
			return nil, false
		}
	}
	return out, true
}
