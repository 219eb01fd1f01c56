package rest

import (
	"net/http"

	"writ"
)

func (a *API) fileUsage(w *recorder, r *http.Request, who writ.Principal) error {
	u, err := a.Files.Usage(r.Context(), who)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, u)
}

func (a *API) removeFiles(w *recorder, r *http.Request, who writ.Principal) error {
	req, err := decode[writ.FileRemovalRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	removed, err := a.Files.Remove(r.Context(), who, req)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, removed)
}

func (a *API) listSessions(w *recorder, r *http.Request, who writ.Principal) error {
	q := queryOf(r, "tenant", "limit", "cursor")
	f := writ.SessionFilter{Tenant: writ.Tenant(q.one("tenant")), Page: q.page()}
	if err := q.err(); err != nil {
		return err
	}
	sessions, next, err := a.Files.Sessions(r.Context(), who, f)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, struct {
		Sessions []writ.Session `json:"sessions"`
		Next     string         `json:"next"`
	}{full(sessions), next})
}

func (a *API) getSession(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	c, err := a.Files.Contents(r.Context(), who, id)
	if err != nil {
		return err
	}
	c.Files = full(c.Files)
	return send(w, http.StatusOK, c)
}

func (a *API) removeSession(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := sessionID(r)
	if err != nil {
		return err
	}
	removed, err := a.Files.RemoveSession(r.Context(), who, id)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, removed)
}

// sessionID is pathID for sessions, whose ids may begin as no other does.
func sessionID(r *http.Request) (writ.SessionID, error) {
	id := writ.SessionID(r.PathValue("id"))
	if !id.Valid() {
		return "", noRoute(r)
	}
	return id, nil
}
