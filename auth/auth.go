package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"writ"
)

// Keys is where keys are kept.
type Keys interface {
	// Key returns the key of that id, also when it is revoked or expired. It is a
	// *writ.Error of kind NotFound when there never was one.
	Key(ctx context.Context, id writ.KeyID) (writ.Key, error)
}

// Subjects is who keys speak for.
type Subjects interface {
	// Subject returns the principal that key is bound to, with the roles and scopes
	// now in force. It is a *writ.Error of kind NotFound when the identity is not
	// registered any more, or the operator is gone or disabled.
	Subject(ctx context.Context, key writ.Key) (writ.Principal, error)
}

// Authenticator checks tokens. It is safe for concurrent use.
type Authenticator struct {
	keys     Keys
	subjects Subjects
	failures *limiter
}

// New is an authenticator over keys and the subjects that they are bound to.
func New(keys Keys, subjects Subjects) *Authenticator {
	return &Authenticator{keys: keys, subjects: subjects, failures: newLimiter()}
}

// Bearer is the principal that token authenticates at time now.
//
// Errors: Unauthenticated with one message, whatever the cause, which only Err
// tells; Exhausted, in its place, after too many of them for one key id; and what
// keys or subjects returned when they could not be asked. None quotes the token.
func (a *Authenticator) Bearer(ctx context.Context, token string, now time.Time) (writ.Principal, error) {
	id, p, cause, err := a.check(ctx, token, now)
	if err != nil {
		return writ.Principal{}, err
	}
	if cause == nil {
		return p, nil
	}
	if !a.failures.allow(string(id), now) {
		return writ.Principal{}, &writ.Error{Kind: writ.Exhausted, Op: "authenticate", Err: cause,
			Msg: "too many attempts with keys that are not valid: wait a minute, and check the key"}
	}
	return writ.Principal{}, &writ.Error{Kind: writ.Unauthenticated, Op: "authenticate", Err: cause,
		Msg: "the API key is not valid: it is malformed, unknown, revoked or expired, or its owner is gone"}
}

// check is the one path of every token of the right form: whether its id is known
// or not, a key is looked up and a secret compared. cause is why the token is
// refused; id is empty when it has none.
func (a *Authenticator) check(ctx context.Context, token string, now time.Time) (id writ.KeyID, p writ.Principal, cause, err error) {
	id, secret, ok := parseToken(token)
	if !ok {
		return "", p, errors.New("the token is malformed"), nil
	}
	key, err := a.keys.Key(ctx, id)
	known := err == nil
	if !known && writ.KindOf(err) != writ.NotFound {
		return id, p, nil, fmt.Errorf("look up API key: %w", err)
	}
	want := key.Hash
	if !known {
		want = hashOf("") // of no secret that parses
	}
	right := subtle.ConstantTimeCompare([]byte(hashOf(secret)), []byte(want)) == 1
	switch {
	case !known:
		// The id is the sender's word, which may be a secret in the wrong place.
		return id, p, errors.New("no key has this id"), nil
	case !right:
		return id, p, fmt.Errorf("key %s: the secret is wrong", key.ID), nil
	case key.Revoked != nil:
		return id, p, fmt.Errorf("key %s was revoked at %s", key.ID, key.Revoked.UTC().Format(time.RFC3339)), nil
	case key.Expires != nil && !now.Before(*key.Expires):
		return id, p, fmt.Errorf("key %s expired at %s", key.ID, key.Expires.UTC().Format(time.RFC3339)), nil
	}
	p, err = a.subjects.Subject(ctx, key)
	if writ.KindOf(err) == writ.NotFound {
		return id, writ.Principal{}, fmt.Errorf("key %s: %s %q is gone or disabled", key.ID, key.Kind, key.Subject), nil
	}
	if err != nil {
		return id, writ.Principal{}, nil, fmt.Errorf("look up the owner of key %s: %w", key.ID, err)
	}
	// A key never speaks for more than it was made for, whoever answers.
	if p.Kind != key.Kind || p.ID != key.Subject || p.Tenant != key.Tenant {
		return id, writ.Principal{}, fmt.Errorf("key %s is of %s %q of tenant %q, not of %s of tenant %q", key.ID, key.Kind, key.Subject, key.Tenant, p.Ref(), p.Tenant), nil
	}
	return id, p, nil, nil
}
