package codeapi

import (
	"net/http"
	"net/url"

	"writ"
	"writ/session"
)

// place is what of whom a request names.
type place struct {
	session writ.SessionID
	object  writ.ObjectID // empty when the route names none
	entity  session.Entity
	query   url.Values // each of its parameters once
}

// placeOf reads the ids of r's path and the entity of its query, in the order of spec/03
// §11: what is no id, and a parameter that is given twice, is refused as "Bad request";
// then the entity, in the contract's words.
func placeOf(r *http.Request) (place, error) {
	p := place{session: writ.SessionID(r.PathValue("session")), object: writ.ObjectID(r.PathValue("object"))}
	query, err := url.ParseQuery(r.URL.RawQuery)
	bad := err != nil || !p.session.Valid() || p.object != "" && !p.object.Valid()
	for _, values := range query {
		bad = bad || len(values) > 1
	}
	if bad {
		return place{}, fail(http.StatusBadRequest, "Bad request")
	}
	p.query = query
	p.entity, err = session.ParseEntity(query.Get("kind"), query.Get("id"), query.Get("version"))
	return p, err
}
