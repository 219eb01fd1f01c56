package auth_test

import (
	"testing"

	"writ"
	"writ/auth"
)

func TestPresent(t *testing.T) {
	const bearer, key, synthetic = "Authorization", "X-API-Key", "X-CodeAPI-Synthetic-Token"
	type headers map[string][]string
	const none, ambiguous = "Bearer token is required", "Ambiguous authentication headers"
	for name, tt := range map[string]struct {
		headers headers
		want    auth.Credential
		message string
	}{
		"bearer":             {headers{bearer: {"Bearer abc"}}, auth.Credential{Bearer: "abc"}, ""},
		"lower case":         {headers{bearer: {"bearer abc"}}, auth.Credential{Bearer: "abc"}, ""},
		"upper case":         {headers{bearer: {"BEARER   abc "}}, auth.Credential{Bearer: "abc"}, ""},
		"spaces inside":      {headers{bearer: {"Bearer a b"}}, auth.Credential{Bearer: "a b"}, ""},
		"synthetic":          {headers{synthetic: {"s"}}, auth.Credential{Synthetic: "s"}, ""},
		"empty ones beside":  {headers{bearer: {"Bearer abc"}, key: {""}, synthetic: {""}}, auth.Credential{Bearer: "abc"}, ""},
		"basic beside":       {headers{bearer: {"Basic Zm9v"}, synthetic: {"s"}}, auth.Credential{Synthetic: "s"}, ""},
		"nothing":            {nil, auth.Credential{}, none},
		"empty":              {headers{bearer: {""}}, auth.Credential{}, none},
		"scheme alone":       {headers{bearer: {"Bearer"}}, auth.Credential{}, none},
		"scheme and space":   {headers{bearer: {"Bearer  "}}, auth.Credential{}, none},
		"no scheme":          {headers{bearer: {"abc"}}, auth.Credential{}, none},
		"longer scheme":      {headers{bearer: {"Bearerx abc"}}, auth.Credential{}, none},
		"basic":              {headers{bearer: {"Basic Zm9v"}}, auth.Credential{}, none},
		"API key":            {headers{key: {"k"}}, auth.Credential{}, none},
		"API key and basic":  {headers{key: {"k"}, bearer: {"Basic Zm9v"}}, auth.Credential{}, none},
		"API key and bearer": {headers{key: {"k"}, bearer: {"Bearer abc"}}, auth.Credential{}, ambiguous},
		"key and synthetic":  {headers{key: {"k"}, synthetic: {"s"}}, auth.Credential{}, ambiguous},
		"synthetic, bearer":  {headers{synthetic: {"s"}, bearer: {"bearer abc"}}, auth.Credential{}, ambiguous},
		"all three":          {headers{key: {"k"}, synthetic: {"s"}, bearer: {"bearer abc"}}, auth.Credential{}, ambiguous},
		"two bearers":        {headers{bearer: {"Bearer abc", "Bearer abc"}}, auth.Credential{}, ambiguous},
		"two keys":           {headers{key: {"k", "k"}}, auth.Credential{}, ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := auth.Present(func(name string) []string { return tt.headers[name] })
			if got != tt.want || (err == nil) != (tt.message == "") {
				t.Fatalf("Present = %+v, %v, want %+v, %q", got, err, tt.want, tt.message)
			}
			kind := writ.Unauthenticated
			if tt.message == ambiguous {
				kind = writ.Invalid
			}
			if err != nil && (writ.KindOf(err) != kind || writ.Message(err) != tt.message) {
				t.Errorf("%v %q, want %v %q", writ.KindOf(err), writ.Message(err), kind, tt.message)
			}
		})
	}
}
