package rest

import (
	"net/http"

	"writ"
)

func (a *API) listWorkspaces(w *recorder, _ *http.Request, who writ.Principal) error {
	return send(w, http.StatusOK, struct {
		Workspaces []writ.Workspace `json:"workspaces"`
	}{full(a.Workspaces.Workspaces(who))})
}

func (a *API) listOperations(w *recorder, r *http.Request, who writ.Principal) error {
	q := queryOf(r, "workspace", "by", "limit", "cursor")
	f := writ.OperationFilter{
		By:        q.ref("by"),
		Workspace: writ.WorkspaceID(q.one("workspace")),
		Page:      q.page(),
	}
	if err := q.err(); err != nil {
		return err
	}
	operations, next, err := a.Workspaces.Operations(r.Context(), who, f)
	if err != nil {
		return err
	}
	for i := range operations {
		operations[i] = wired(operations[i])
	}
	return send(w, http.StatusOK, struct {
		Operations []writ.Operation `json:"operations"`
		Next       string           `json:"next"`
	}{full(operations), next})
}

func (a *API) getOperation(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.OperationID](r)
	if err != nil {
		return err
	}
	op, err := a.Workspaces.Operation(r.Context(), who, id, "")
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, wired(op))
}

func (a *API) undo(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.OperationID](r)
	if err != nil {
		return err
	}
	req, err := decode[writ.UndoRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	op, err := a.Workspaces.Undo(r.Context(), who, id, req)
	if err != nil {
		return err
	}
	w.made = string(op.ID)
	return send(w, http.StatusOK, wired(op))
}

func (a *API) resume(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.ApprovalID](r)
	if err != nil {
		return err
	}
	v, err := a.Workspaces.Resume(r.Context(), who, id)
	if err != nil {
		return err
	}
	v.Approval.Rules = full(v.Approval.Rules)
	if v.Operation != nil {
		op := wired(*v.Operation)
		v.Operation, w.made = &op, string(op.ID)
	}
	if v.Process != nil {
		w.made = string(v.Process.ID)
	}
	return send(w, http.StatusOK, v)
}

// wired is op as it goes over the wire.
func wired(op writ.Operation) writ.Operation {
	op.Result.Changes = full(op.Result.Changes)
	return op
}
