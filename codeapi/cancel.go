package codeapi

import (
	"net/http"

	"writ"
)

// cancel ends the run that who sent with the id of the body (spec/03 §13). A run of
// somebody else is none.
func (a *API) cancel(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	var b struct {
		ID text `json:"request_id"`
	}
	if err := decode(r, &b); err != nil {
		refuse(w, err)
		return
	}
	if !requestID.MatchString(b.ID.value) {
		refuse(w, invalid("Invalid or missing request_id"))
		return
	}
	found, err := a.svc.Runs.Cancel(r.Context(), who, b.ID.value)
	if err != nil {
		refuse(w, err)
		return
	}
	answer := struct {
		Status string `json:"status"`
	}{"already_completed"}
	status := http.StatusOK
	if found {
		answer.Status, status = "cancellation_requested", http.StatusAccepted
	}
	reply(w, status, answer)
}
