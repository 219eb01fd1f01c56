package rest

import (
	"math"
	"net/http"
	"strconv"

	"writ"
)

// eventFilter reads the parameters that narrow a list of events.
func eventFilter(q *query, defaultLimit, maxLimit int64) writ.EventFilter {
	return writ.EventFilter{
		Tenant: writ.Tenant(q.one("tenant")),
		Task:   writ.TaskID(q.one("task")),
		Types:  someOf(q, "type", writ.EventTypes),
		After:  q.whole("after", -1, -1, math.MaxInt64),
		Limit:  int(q.whole("limit", defaultLimit, 1, maxLimit)),
	}
}

func (a *API) listEvents(w *recorder, r *http.Request, who writ.Principal) error {
	q := queryOf(r, "after", "limit", "tenant", "task", "type")
	f := eventFilter(q, writ.DefaultPage, writ.MaxPage)
	if err := q.err(); err != nil {
		return err
	}
	events, more, err := a.Audit.Events(r.Context(), who, f)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, struct {
		Events []writ.Event `json:"events"`
		More   bool         `json:"more"`
	}{full(events), more})
}

func (a *API) checkpoint(w *recorder, r *http.Request, who writ.Principal) error {
	c, err := a.Audit.Checkpoint(r.Context(), who)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, c)
}

func (a *API) verifier(w *recorder, _ *http.Request, _ writ.Principal) error {
	return send(w, http.StatusOK, struct {
		Verifier string `json:"verifier"`
	}{a.Audit.Verifier()})
}

func (a *API) prove(w *recorder, r *http.Request, who writ.Principal) error {
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 63)
	if err != nil {
		return noRoute(r)
	}
	p, err := a.Audit.Prove(r.Context(), who, int64(seq))
	if err != nil {
		return err
	}
	p.Hashes = full(p.Hashes)
	return send(w, http.StatusOK, p)
}

func (a *API) verify(w *recorder, r *http.Request, who writ.Principal) error {
	req, err := decode[writ.VerifyRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	report, err := a.Audit.Verify(r.Context(), who, req.Anchors)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, report)
}

func (a *API) export(w *recorder, r *http.Request, who writ.Principal) error {
	q := queryOf(r, "format", "after", "limit", "tenant", "task", "type")
	format := oneOf(q, "format", "jsonl", "jsonl", "cloudevents")
	f := eventFilter(q, 0, math.MaxInt32) // without a limit: all of them
	if err := q.err(); err != nil {
		return err
	}
	// A failure before the first byte replaces this; a later one breaks the
	// connection, so that a part is not taken for the whole.
	w.Header().Set("Content-Type", "application/x-ndjson")
	return a.Audit.Export(r.Context(), who, w, format, f)
}
