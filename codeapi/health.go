package codeapi

import (
	"net/http"

	"writ"
)

// health answers whether the server works, to anybody.
func (a *API) health(w http.ResponseWriter, r *http.Request, _ writ.Principal) {
	const plain = "text/plain; charset=utf-8"
	if err := a.svc.Live(r.Context()); err != nil {
		note(w, err)
		send(w, http.StatusServiceUnavailable, plain, []byte("Service Unavailable"))
		return
	}
	send(w, http.StatusOK, plain, []byte("OK"))
}
