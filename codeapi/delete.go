package codeapi

import (
	"net/http"

	"writ"
)

// deleteFile is DELETE /files/{session}/{object} (spec/03 §11). The contract has 500 for
// an object that is not there.
func (a *API) deleteFile(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	p, err := placeOf(r)
	if err == nil {
		err = a.enterSession(r.Context(), who, p)
	}
	if err == nil {
		err = a.svc.Sessions.Delete(r.Context(), who, p.entity, p.session, p.object)
	}
	switch {
	case writ.KindOf(err) == writ.NotFound:
		reply(w, http.StatusInternalServerError, envelope{Error: "Error deleting file"}) // nothing failed here
	case err != nil:
		refuse(w, err)
	default:
		reply(w, http.StatusOK, struct {
			Message string         `json:"message"`
			Session writ.SessionID `json:"session_id"` // the one answer that calls it so
			Object  writ.ObjectID  `json:"fileId"`
		}{"File deleted successfully", p.session, p.object})
	}
}
