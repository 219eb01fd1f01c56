package auth

import (
	"strings"

	"writ"
)

// Credential is what a request of the code interpreter's API brought: exactly one
// of the two is set.
type Credential struct {
	Bearer    string // a token, not checked yet
	Synthetic string // the secret of synthetic tests, not checked yet
}

// Present is the credential among a request's headers, by the rules of spec/03
// §3.1; values are the values of a header, under whatever case its name was sent.
// An API key is known here only to be refused. A header that is empty, or of a
// scheme other than Bearer, is not there.
//
// Errors: Invalid when there are two credentials or more, also of one sort;
// Unauthenticated when there is none, or an API key.
func Present(values func(name string) []string) (Credential, error) {
	const op = "authenticate"
	var found []Credential
	for _, v := range values("Authorization") {
		scheme, token, _ := strings.Cut(strings.TrimLeft(v, " \t"), " ")
		if token = strings.Trim(token, " \t"); token != "" && strings.EqualFold(scheme, "Bearer") {
			found = append(found, Credential{Bearer: token})
		}
	}
	for _, v := range values("X-CodeAPI-Synthetic-Token") {
		if v != "" {
			found = append(found, Credential{Synthetic: v})
		}
	}
	for _, v := range values("X-API-Key") {
		if v != "" {
			found = append(found, Credential{})
		}
	}
	switch {
	case len(found) > 1:
		return Credential{}, &writ.Error{Kind: writ.Invalid, Op: op, Msg: "Ambiguous authentication headers"}
	case len(found) == 0 || found[0] == Credential{}:
		return Credential{}, &writ.Error{Kind: writ.Unauthenticated, Op: op, Msg: "Bearer token is required"}
	}
	return found[0], nil
}
