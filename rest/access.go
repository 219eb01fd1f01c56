package rest

import (
	"net/http"

	"writ"
)

func (a *API) createKey(w *recorder, r *http.Request, who writ.Principal) error {
	req, err := decode[writ.KeyRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	k, err := a.Access.CreateKey(r.Context(), who, req)
	if err != nil {
		return err
	}
	return sendKey(w, k)
}

func (a *API) listKeys(w *recorder, r *http.Request, who writ.Principal) error {
	keys, err := a.Access.Keys(r.Context(), who)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, struct {
		Keys []writ.Key `json:"keys"`
	}{full(keys)})
}

func (a *API) revokeKey(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.KeyID](r)
	if err != nil {
		return err
	}
	if err := a.Access.RevokeKey(r.Context(), who, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) addOperator(w *recorder, r *http.Request, who writ.Principal) error {
	req, err := decode[writ.OperatorRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	k, err := a.Access.AddOperator(r.Context(), who, writ.Operator{ID: req.ID, Tenant: req.Tenant, Roles: req.Roles})
	if err != nil {
		return err
	}
	return sendKey(w, k)
}

func (a *API) listOperators(w *recorder, r *http.Request, who writ.Principal) error {
	operators, err := a.Access.Operators(r.Context(), who)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, struct {
		Operators []writ.Operator `json:"operators"`
	}{full(operators)})
}

func (a *API) disableOperator(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[string](r)
	if err != nil {
		return err
	}
	if err := a.Access.DisableOperator(r.Context(), who, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// sendKey answers a key that was made: the only answer with a credential in it.
func sendKey(w *recorder, k writ.NewKey) error {
	w.made = string(k.ID)
	return send(w, http.StatusCreated, k)
}
