package rest

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"writ"
)

// query reads the parameters of a request and collects what is wrong with them.
type query struct {
	values url.Values
	errs   []error
}

const maxParam = 1024 // bytes of one value

// queryOf reads the query of r, which may have the parameters named and no other.
func queryOf(r *http.Request, names ...string) *query {
	q := &query{}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		q.fault("it is not well-formed")
		return q
	}
	q.values = values
	for name, vs := range values {
		if !slices.Contains(names, name) {
			q.fault("parameter %q is not known here: there are %s", shorten(name), strings.Join(names, ", "))
		}
		for _, v := range vs {
			if len(v) > maxParam || !utf8.ValidString(v) || strings.IndexByte(v, 0) >= 0 {
				q.fault("parameter %q: want UTF-8 text of at most %d bytes", shorten(name), maxParam)
			}
		}
	}
	return q
}

func (q *query) fault(format string, args ...any) {
	q.errs = append(q.errs, fmt.Errorf(format, args...))
}

// err is all that is wrong, as one error of kind Invalid, or nil.
func (q *query) err() error {
	if len(q.errs) == 0 {
		return nil
	}
	err := errors.Join(q.errs...)
	return &writ.Error{Kind: writ.Invalid, Op: "read query", Msg: "query: " + err.Error(), Err: err}
}

// one is the value of a parameter that may be given once; empty when it is not.
func (q *query) one(name string) string {
	vs := q.values[name]
	if len(vs) > 1 {
		q.fault("parameter %q is given %d times", name, len(vs))
	}
	return q.values.Get(name)
}

// whole is a parameter that is a whole number from low to high, or def when it is
// not given.
func (q *query) whole(name string, def, low, high int64) int64 {
	s := q.one(name)
	if s == "" {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < low || n > high {
		q.fault("parameter %q: want a whole number from %d to %d", name, low, high)
		return def
	}
	return n
}

// ref is a parameter that names a principal as writ.Ref.String does; zero when it is
// not given.
func (q *query) ref(name string) writ.Ref {
	s := q.one(name)
	if s == "" {
		return writ.Ref{}
	}
	kind, id, ok := strings.Cut(s, ":")
	if !ok || kind == "" || id == "" {
		q.fault("parameter %q: want a principal as kind:id, such as \"agent:coder\"", name)
	}
	return writ.Ref{Kind: writ.PrincipalKind(kind), ID: id}
}

// page is the parameters limit and cursor.
func (q *query) page() writ.Page {
	return writ.Page{Limit: int(q.whole("limit", writ.DefaultPage, 1, writ.MaxPage)), Cursor: q.one("cursor")}
}

// oneOf is a parameter that is one of known, or def when it is not given.
func oneOf[T ~string](q *query, name string, def T, known ...T) T {
	v := T(q.one(name))
	if v == "" {
		return def
	}
	if !slices.Contains(known, v) {
		q.fault("parameter %q: %q is none of %s", name, string(v), list(known))
	}
	return v
}

// someOf is a parameter that may be given several times, each one of known.
func someOf[T ~string](q *query, name string, known []T) []T {
	var out []T
	for _, s := range q.values[name] {
		if !slices.Contains(known, T(s)) {
			q.fault("parameter %q: %q is none of %s", name, s, list(known))
		}
		out = append(out, T(s))
	}
	return out
}

func list[T ~string](known []T) string {
	s := make([]string, len(known))
	for i, k := range known {
		s[i] = string(k)
	}
	return strings.Join(s, ", ")
}

// pathID is the id in the path of r. What cannot be an id names nothing.
func pathID[T ~string](r *http.Request) (T, error) {
	id := r.PathValue("id")
	if !writ.ValidName(id) {
		return "", noRoute(r)
	}
	return T(id), nil
}
