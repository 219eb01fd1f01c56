package codeapi

import (
	"context"
	"net/http"

	"writ"
	"writ/session"
)

// listFiles is GET /files/{session}: all objects of a session, in the detail that is asked
// for (spec/03 §11).
func (a *API) listFiles(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	p, err := placeOf(r)
	if err != nil {
		refuse(w, err)
		return
	}
	objects, err := a.svc.Sessions.List(r.Context(), who, p.entity, p.session)
	if err != nil {
		refuse(w, noSession(err))
		return
	}
	reply(w, http.StatusOK, session.Listing(objects, session.Detail(p.query.Get("detail"))))
}

// metadata is GET /sessions/{session}/objects/{object} (spec/03 §11).
func (a *API) metadata(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	o, err := a.object(r, who, fail(http.StatusNotFound, "File not found"))
	if err != nil {
		refuse(w, err)
		return
	}
	reply(w, http.StatusOK, session.MetadataOf(o))
}

// object is the one that r names, if who may use its session. absent is the error when the
// session, which who may use, has none of that id.
func (a *API) object(r *http.Request, who writ.Principal, absent error) (writ.Object, error) {
	p, err := placeOf(r)
	if err != nil {
		return writ.Object{}, err
	}
	if err := a.enterSession(r.Context(), who, p); err != nil {
		return writ.Object{}, err
	}
	o, err := a.svc.Sessions.Get(r.Context(), who, p.entity, p.session, p.object)
	if writ.KindOf(err) == writ.NotFound {
		return writ.Object{}, absent
	}
	return o, err
}

// enterSession reports why who may not use the session of p. It is asked before the
// session's objects are: so all that is not for who is one answer, in one time.
func (a *API) enterSession(ctx context.Context, who writ.Principal, p place) error {
	_, err := a.svc.Sessions.Find(ctx, who, p.entity, p.session)
	return noSession(err)
}

// noSession is the contract's answer for a session that is another's, or over, or was
// never there: which of these is not told.
func noSession(err error) error {
	if writ.KindOf(err) == writ.NotFound {
		return fail(http.StatusForbidden, "Unauthorized")
	}
	return err
}
