package auth

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"writ"
)

const (
	tokenPrefix = "writ_"
	idBytes     = 10 // 16 characters
	secretBytes = 32 // 43 characters
)

var (
	idEncoding     = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
	secretEncoding = base64.RawURLEncoding.Strict()

	idLength     = idEncoding.EncodedLen(idBytes)
	secretLength = secretEncoding.EncodedLen(secretBytes)
)

// NewKey makes a key for an identity (KindAgent) or an operator (KindOperator).
// Nil expires means never. What is returned holds the token, and is the only thing
// that ever does; store its Key. The error is of kind Invalid and names every fault.
func NewKey(kind writ.PrincipalKind, subject string, tenant writ.Tenant, expires *time.Time, now time.Time) (writ.NewKey, error) {
	var faults []error
	if err := (writ.KeyRequest{Kind: kind, Subject: subject, Expires: expires}).Validate(); err != nil {
		faults = append(faults, err)
	}
	if !writ.ValidName(string(tenant)) {
		faults = append(faults, fmt.Errorf("tenant %q is not a name", tenant))
	}
	if expires != nil && !expires.After(now) {
		faults = append(faults, fmt.Errorf("expires: %s is not in the future", expires.UTC().Format(time.RFC3339)))
	}
	if err := errors.Join(faults...); err != nil {
		return writ.NewKey{}, &writ.Error{Kind: writ.Invalid, Op: "make key", Msg: err.Error()}
	}
	random := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(random) // never fails: it ends the program instead
	id := idEncoding.EncodeToString(random[:idBytes])
	secret := secretEncoding.EncodeToString(random[idBytes:])
	return writ.NewKey{
		Key: writ.Key{
			ID: writ.KeyID(id), Kind: kind, Subject: subject, Tenant: tenant,
			Hash: hashOf(secret), Created: now, Expires: expires,
		},
		Token: tokenPrefix + id + "_" + secret,
	}, nil
}

// hashOf is how a secret is kept.
func hashOf(secret string) writ.Digest { return writ.DigestOf([]byte(secret)) }

// parseToken takes a token apart. ok is false when it is not one by its form; a
// secret has exactly one spelling.
func parseToken(token string) (id writ.KeyID, secret string, ok bool) {
	rest, found := strings.CutPrefix(token, tokenPrefix)
	if !found || len(rest) != idLength+1+secretLength || rest[idLength] != '_' {
		return "", "", false
	}
	name, secret := rest[:idLength], rest[idLength+1:]
	if raw, err := idEncoding.DecodeString(name); err != nil || idEncoding.EncodeToString(raw) != name {
		return "", "", false
	}
	// Strict, but for line ends, which the decoder skips: the length shows those.
	if raw, err := secretEncoding.DecodeString(secret); err != nil || len(raw) != secretBytes {
		return "", "", false
	}
	return writ.KeyID(name), secret, true
}
