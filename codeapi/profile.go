package codeapi

import (
	"fmt"
	"net/http"
	"strings"

	"writ/interpreter"
)

// The profiles of a deployment (spec/03 §13).
const (
	profileDefault  = "default"
	profileStateful = "stateful" // there are runtime sessions
)

// profileFault is the body of a refusal for another profile than the client expects.
type profileFault struct {
	Error    string `json:"error"`
	Message  string `json:"message"`
	Expected string `json:"expected_profile"`
	Actual   string `json:"actual_profile"`
}

// checkProfile has the answer name the profile, and refuses a request that expects
// another: what it would find here is not what it left elsewhere.
func (a *API) checkProfile(w http.ResponseWriter, r *http.Request) error {
	actual := profileDefault
	if a.svc.Runs.Mode() != interpreter.Stateless {
		actual = profileStateful
	}
	w.Header().Set("X-CodeAPI-Execution-Profile", actual)
	values := r.Header.Values("X-CodeAPI-Expected-Profile")
	if len(values) == 0 || len(values) == 1 && values[0] == actual {
		return nil
	}
	expected := shorten(strings.Join(values, ","))
	if expected == profileDefault || expected == profileStateful {
		return &refusal{status: http.StatusConflict, body: profileFault{"execution_profile_mismatch",
			fmt.Sprintf("Expected the %s execution profile, but reached %s", expected, actual), expected, actual}}
	}
	return &refusal{status: http.StatusBadRequest, body: profileFault{"invalid_execution_profile",
		fmt.Sprintf("Invalid execution profile: %s", expected), expected, actual}}
}
