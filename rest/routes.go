package rest

import (
	"context"
	"errors"
	"net/http"

	"writ"
)

// routes is every operation of the API. openapi.yaml has the same; a test compares
// them. stopping ends what waits.
func (a *API) routes(stopping context.Context) []route {
	return []route{
		{http.MethodGet, "/healthz", true, a.health},
		{http.MethodGet, "/openapi.yaml", true, a.openAPI},
		{http.MethodGet, "/metrics", false, a.metrics},
		{http.MethodGet, "/v1/status", false, a.status},
		{http.MethodPost, "/v1/policy/explain", false, a.roomy(a.explain)},

		{http.MethodPost, "/v1/tasks", false, a.roomy(a.submitTask)},
		{http.MethodGet, "/v1/tasks", false, a.listTasks},
		{http.MethodGet, "/v1/tasks/{id}", false, a.getTask},
		{http.MethodGet, "/v1/tasks/{id}/spec", false, a.getSpec},
		{http.MethodGet, "/v1/tasks/{id}/wait", false, until(stopping, a.waitTask)},
		{http.MethodGet, "/v1/tasks/{id}/output", false, a.getOutput},
		{http.MethodGet, "/v1/tasks/{id}/events", false, until(stopping, a.watchTask)},
		{http.MethodPost, "/v1/tasks/{id}/cancel", false, a.cancelTask},
		{http.MethodDelete, "/v1/tasks/{id}/bodies", false, a.deleteBodies},

		{http.MethodGet, "/v1/approvals", false, a.listApprovals},
		{http.MethodGet, "/v1/approvals/{id}", false, a.getApproval},
		{http.MethodPost, "/v1/approvals/{id}/vote", false, a.vote},
		{http.MethodPost, "/v1/approvals/{id}/resume", false, a.resume},

		{http.MethodGet, "/v1/workspaces", false, a.listWorkspaces},
		{http.MethodGet, "/v1/operations", false, a.listOperations},
		{http.MethodGet, "/v1/operations/{id}", false, a.getOperation},
		{http.MethodPost, "/v1/operations/{id}/undo", false, a.undo},

		{http.MethodGet, "/inbox/works", false, a.listWorks},
		{http.MethodGet, "/inbox/works/{id}", false, a.getWork},
		{http.MethodGet, "/inbox/works/{id}/intents", false, a.listIntents},
		{http.MethodPost, "/inbox/works/{id}/intents", false, a.addIntent},
		{http.MethodPost, "/inbox/works/{id}/reorder", false, a.reorderIntents},
		{http.MethodPost, "/inbox/works/{id}/stop", false, a.stopWork},
		{http.MethodPatch, "/inbox/intents/{id}", false, a.editIntent},
		{http.MethodPost, "/inbox/intents/{id}/queue", false, a.queueIntent},
		{http.MethodPost, "/inbox/intents/{id}/cancel", false, a.cancelIntent},

		{http.MethodGet, "/v1/interpreter/usage", false, a.fileUsage},
		{http.MethodPost, "/v1/interpreter/removal", false, a.removeFiles},
		{http.MethodGet, "/v1/interpreter/sessions", false, a.listSessions},
		{http.MethodGet, "/v1/interpreter/sessions/{id}", false, a.getSession},
		{http.MethodDelete, "/v1/interpreter/sessions/{id}", false, a.removeSession},

		{http.MethodGet, "/v1/audit/events", false, a.listEvents},
		{http.MethodGet, "/v1/audit/checkpoint", false, a.checkpoint},
		{http.MethodGet, "/v1/audit/verifier", false, a.verifier},
		{http.MethodGet, "/v1/audit/proof/{seq}", false, a.prove},
		{http.MethodPost, "/v1/audit/verify", false, a.verify},
		{http.MethodGet, "/v1/audit/export", false, a.export},

		{http.MethodPost, "/v1/keys", false, a.createKey},
		{http.MethodGet, "/v1/keys", false, a.listKeys},
		{http.MethodDelete, "/v1/keys/{id}", false, a.revokeKey},
		{http.MethodPost, "/v1/operators", false, a.addOperator},
		{http.MethodGet, "/v1/operators", false, a.listOperators},
		{http.MethodDelete, "/v1/operators/{id}", false, a.disableOperator},
	}
}

// errStopping is in the error of a request that was cut off since the server stops:
// nobody need look into that.
var errStopping = errors.New("the server is stopping")

// until is h with a request whose context also ends with stopping.
func until(stopping context.Context, h handler) handler {
	return func(w *recorder, r *http.Request, who writ.Principal) error {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(stopping, func() {
			cancel(&writ.Error{Kind: writ.Unavailable, Msg: "the server is stopping: ask again", Err: errStopping})
		})()
		return h(w, r.WithContext(ctx), who)
	}
}

// ended is err, or in its place why ctx ended when that is for the client.
func ended(ctx context.Context, err error) error {
	if why, ok := errors.AsType[*writ.Error](context.Cause(ctx)); ok && err != nil {
		return why
	}
	return err
}

func (a *API) health(w *recorder, _ *http.Request, _ writ.Principal) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
	return nil
}

func (a *API) openAPI(w *recorder, _ *http.Request, _ writ.Principal) error {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(document)
	return nil
}

func (a *API) metrics(w *recorder, r *http.Request, who writ.Principal) error {
	switch {
	case !who.Administers():
		return &writ.Error{Kind: writ.Denied, Op: "read metrics", Msg: "metrics are for operators and the owner of the data folder"}
	case a.Metrics == nil:
		return &writ.Error{Kind: writ.NotFound, Op: "read metrics", Msg: "this server has no metrics"}
	}
	a.Metrics.ServeHTTP(w, r)
	return nil
}

func (a *API) status(w *recorder, r *http.Request, _ writ.Principal) error {
	s, err := a.Policy.Status(r.Context())
	if err != nil {
		return err
	}
	s.Active = full(s.Active)
	return send(w, http.StatusOK, s)
}

func (a *API) explain(w *recorder, r *http.Request, who writ.Principal) error {
	req, err := decode[writ.TaskRequest](w, r, maxSpecBody)
	if err != nil {
		return err
	}
	v, err := a.Policy.Explain(r.Context(), who, req)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, v)
}

// full is s as a list on the wire: never null.
func full[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
