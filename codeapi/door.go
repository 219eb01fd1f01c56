package codeapi

import (
	"fmt"
	"net/http"

	"writ"
	"writ/limit"
)

// enter takes a request through the contract's order (spec/03 §2): the JSON of its body,
// health, who asks, the profile, the route, whether the server works, and the limit.
func (a *API) enter(w *recorder, r *http.Request) {
	if a.opt.Hosts != nil {
		if err := checkOrigin(r, a.opt.Hosts); err != nil {
			a.turnAway(w, r, err)
			return
		}
	}
	if !beneathV1(r) {
		a.turnAway(w, r, notFound())
		return
	}
	rt := find(r)
	if rt != nil {
		w.route = rt.method + " /v1" + rt.path
	}
	body, err := a.readJSON(w, r, rt)
	if err != nil {
		a.turnAway(w, r, err)
		return
	}
	defer body.done()
	r.Body = body
	if rt != nil && rt.open {
		rt.serve(a, w, r, writ.Principal{})
		return
	}
	who, err := a.user(r, rt)
	if err != nil {
		a.turnAway(w, r, err)
		return
	}
	w.who = who.Ref()
	if err := a.checkProfile(w, r); err != nil {
		a.turnAway(w, r, err)
		return
	}
	if rt == nil {
		a.turnAway(w, r, notFound())
		return
	}
	if err := a.admit(w, r, rt, who); err != nil {
		a.turnAway(w, r, err)
		return
	}
	if body.data == nil && rt.limit != limit.Upload {
		// It has no meaning, but the client must not lose the answer over it.
		drain(r.Body)
		if err := w.body.err; err != nil { // half a request is none
			refuse(w, unread(err))
			return
		}
	}
	rt.serve(a, w, r, who)
}

// turnAway refuses a request whose body may still be coming: its client gets the answer all
// the same.
func (a *API) turnAway(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength == 0 {
		refuse(w, err)
		return
	}
	refuseEarly(w, r, err)
}

// user is who sends r.
func (a *API) user(r *http.Request, rt *route) (writ.Principal, error) {
	exec := rt != nil && rt.path == execPath
	return a.svc.Auth.User(r.Context(), r.Header.Values, exec, func() string { return userOf(r) })
}

// admit counts r, and has its answer carry the headers of the limit.
func (a *API) admit(w http.ResponseWriter, r *http.Request, rt *route, who writ.Principal) error {
	if rt.live {
		if err := a.svc.Live(r.Context()); err != nil {
			return &refusal{status: http.StatusServiceUnavailable, body: envelope{Error: shorten(writ.Message(err))}, err: err}
		}
	}
	if rt.limit == "" {
		return nil
	}
	answer, err := a.svc.Limits.Count(r.Context(), rt.limit, who)
	if err != nil {
		return fmt.Errorf("count request: %w", err)
	}
	for _, h := range answer.Headers() {
		w.Header().Set(h.Name, h.Value)
	}
	if !answer.Allowed {
		return tooMany(rt.limit, answer)
	}
	return nil
}

// tooMany is the refusal of a request beyond its limit (spec/03 §5).
func tooMany(rule string, answer limit.Answer) error {
	n := answer.RetryAfter()
	again := fmt.Sprintf("Please retry in %d seconds.", n)
	body := envelope{}
	switch rule {
	case limit.Exec:
		body = envelope{Error: "rate_limited", Message: "Too many CodeAPI execution requests. " + again, Retry: n}
	case limit.Upload:
		body.Error = "Too many file uploads. " + again
	case limit.Download:
		body.Error = "Too many file downloads. " + again
	default:
		body.Error = "Too many file list requests. " + again
	}
	return &refusal{status: http.StatusTooManyRequests, body: body}
}
