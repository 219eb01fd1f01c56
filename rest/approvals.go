package rest

import (
	"net/http"

	"writ"
)

func (a *API) listApprovals(w *recorder, r *http.Request, who writ.Principal) error {
	q := queryOf(r, "state", "identity", "limit", "cursor")
	f := writ.ApprovalFilter{
		Identity: writ.IdentityID(q.one("identity")),
		States:   someOf(q, "state", writ.ApprovalStates),
		Page:     q.page(),
	}
	if err := q.err(); err != nil {
		return err
	}
	approvals, next, err := a.Approvals.Approvals(r.Context(), who, f)
	if err != nil {
		return err
	}
	for i := range approvals {
		approvals[i].Rules = full(approvals[i].Rules)
	}
	return send(w, http.StatusOK, struct {
		Approvals []writ.Approval `json:"approvals"`
		Next      string          `json:"next"`
	}{full(approvals), next})
}

func (a *API) getApproval(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.ApprovalID](r)
	if err != nil {
		return err
	}
	v, err := a.Approvals.Approval(r.Context(), who, id)
	if err != nil {
		return err
	}
	v.Rules = full(v.Rules)
	return send(w, http.StatusOK, v)
}

func (a *API) vote(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.ApprovalID](r)
	if err != nil {
		return err
	}
	req, err := decode[writ.VoteRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	v, err := a.Approvals.Vote(r.Context(), who, id, req)
	if err != nil {
		return err
	}
	v.Rules = full(v.Rules)
	return send(w, http.StatusOK, v)
}
