package auth

import (
	"errors"
	"fmt"

	"writ"
)

// Reason is why a credential of a front end was refused, in the words of the contract
// (spec/04 §1.2, §1.3) where it is a token. It is for the log: a caller learns only that
// its token is not valid.
type Reason string

const (
	ReasonMalformed        Reason = "malformed"          // not three segments of JSON, or a header that nothing here may carry
	ReasonWrongAlg         Reason = "wrong_alg"          // not an accepted algorithm, or not the one of the key
	ReasonMalformedClaims  Reason = "malformed_claims"   // a claim is missing, or not of its form
	ReasonUnknownKid       Reason = "unknown_kid"        // no key of that id may check signatures
	ReasonBadSignature     Reason = "bad_signature"      // the key that it names did not sign it
	ReasonWrongIssuer      Reason = "wrong_issuer"       // not the one that is configured
	ReasonWrongAudience    Reason = "wrong_audience"     // likewise
	ReasonExpired          Reason = "expired"            //
	ReasonNotYetValid      Reason = "not_yet_valid"      //
	ReasonFutureIat        Reason = "future_iat"         // issued later than now
	ReasonTTLTooLong       Reason = "ttl_too_long"       // valid for longer than is accepted
	ReasonTenantNotAllowed Reason = "tenant_not_allowed" // the key does not sign for that tenant

	// Of requests whose credential is no token (Front).
	ReasonMissing   Reason = "missing"   // there is none, or an API key
	ReasonAmbiguous Reason = "ambiguous" // there are two
	ReasonSynthetic Reason = "synthetic" // not the secret of synthetic tests, or not for what they may do
	ReasonBadUser   Reason = "bad_user"  // a front end names a user in a way that no record can hold

	// The last two are no fault of the caller's.
	ReasonConfig          Reason = "config"           // the keys that were configured cannot be used
	ReasonKeysUnavailable Reason = "keys_unavailable" // the address of the keys does not answer
)

// TokenError is why a token, or what stands in its place, was not accepted. It has neither
// the token nor a part of it, but for its key's id when there is no such key, cut to 64
// bytes.
type TokenError struct {
	Reason Reason
	Detail string // for people: what was seen, and what was wanted
}

func (e *TokenError) Error() string { return string(e.Reason) + ": " + e.Detail }

// ReasonOf is the reason of the first *TokenError in err's chain, or empty.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*TokenError](err); ok {
		return e.Reason
	}
	return ""
}

func refuse(r Reason, format string, args ...any) error {
	return &TokenError{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// answer is cause as a caller gets it: one and the same for all that a token can
// have wrong (spec/03 §3.1).
func answer(cause error) error {
	const op = "authenticate"
	switch ReasonOf(cause) {
	case ReasonConfig:
		return &writ.Error{Kind: writ.Internal, Code: writ.CodeMisconfigured, Op: op, Msg: "CodeAPI JWT auth is misconfigured", Err: cause}
	case ReasonKeysUnavailable:
		return &writ.Error{Kind: writ.Unavailable, Op: op, Err: cause,
			Msg: "the keys that tokens are signed with cannot be had now: try again in a minute"}
	case "":
		return fmt.Errorf("check token: %w", cause) // the caller went away
	}
	return &writ.Error{Kind: writ.Unauthenticated, Op: op, Msg: "Invalid bearer token", Err: cause}
}
