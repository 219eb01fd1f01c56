package rest

import (
	"fmt"
	"net/http"
	"time"

	"writ"
)

func (a *API) submitTask(w *recorder, r *http.Request, who writ.Principal) error {
	req, err := decodeTask(w, r)
	if writ.KindOf(err) == writ.Exhausted {
		return err // it was not read: nothing is known of it that could be recorded
	}
	if err != nil {
		// spec/01 §5 scenario 20: of a malformed request the refusal is stored, and
		// nothing else. When that fails, its failure is the answer.
		if rerr := a.Tasks.Refuse(r.Context(), who, shorten(writ.Message(err))); rerr != nil {
			return fmt.Errorf("record a refusal: %w", rerr)
		}
		return err
	}
	t, created, err := a.Tasks.Submit(r.Context(), who, req)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
		w.Header().Set("Location", "/v1/tasks/"+string(t.ID))
		w.made = string(t.ID)
	}
	return send(w, code, t)
}

// decodeTask reads a request to create a task. Its key stands in the body or in
// the header Idempotency-Key.
func decodeTask(w http.ResponseWriter, r *http.Request) (writ.TaskRequest, error) {
	req, err := decode[writ.TaskRequest](w, r, maxSpecBody)
	if err != nil {
		return req, err
	}
	fail := func(msg string) (writ.TaskRequest, error) {
		return req, &writ.Error{Kind: writ.Invalid, Op: "read Idempotency-Key", Msg: msg}
	}
	switch keys := r.Header.Values("Idempotency-Key"); {
	case len(keys) == 0:
	case len(keys) > 1:
		return fail("the header Idempotency-Key is given more than once")
	case !writ.ValidName(keys[0]):
		return fail("the header Idempotency-Key: want 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit")
	case req.Key != "" && req.Key != keys[0]:
		return fail("the header Idempotency-Key and the member key differ: send one of them")
	default:
		req.Key = keys[0]
	}
	return req, nil
}

func (a *API) listTasks(w *recorder, r *http.Request, who writ.Principal) error {
	q := queryOf(r, "state", "identity", "limit", "cursor")
	f := writ.TaskFilter{
		Identity: writ.IdentityID(q.one("identity")),
		States:   someOf(q, "state", writ.TaskStates),
		Page:     q.page(),
	}
	if err := q.err(); err != nil {
		return err
	}
	tasks, next, err := a.Tasks.List(r.Context(), who, f)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, struct {
		Tasks []writ.Task `json:"tasks"`
		Next  string      `json:"next"`
	}{full(tasks), next})
}

func (a *API) getTask(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.TaskID](r)
	if err != nil {
		return err
	}
	t, err := a.Tasks.Get(r.Context(), who, id)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, t)
}

func (a *API) getSpec(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.TaskID](r)
	if err != nil {
		return err
	}
	s, err := a.Tasks.Spec(r.Context(), who, id)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, s)
}

const (
	defaultWaitMS = 30_000
	maxWaitMS     = 60_000
)

func (a *API) waitTask(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.TaskID](r)
	if err != nil {
		return err
	}
	q := queryOf(r, "timeout_ms")
	d := time.Duration(q.whole("timeout_ms", defaultWaitMS, 0, maxWaitMS)) * time.Millisecond
	if err := q.err(); err != nil {
		return err
	}
	t, err := a.Tasks.Wait(r.Context(), who, id, d)
	if err != nil {
		return ended(r.Context(), err)
	}
	return send(w, http.StatusOK, t)
}

func (a *API) cancelTask(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.TaskID](r)
	if err != nil {
		return err
	}
	req, err := decode[writ.CancelRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	t, err := a.Tasks.Cancel(r.Context(), who, id, req.Reason)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, t)
}

func (a *API) getOutput(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.TaskID](r)
	if err != nil {
		return err
	}
	q := queryOf(r, "stream")
	s := oneOf(q, "stream", writ.Stdout, writ.Stdout, writ.Stderr)
	if err := q.err(); err != nil {
		return err
	}
	b, err := a.Tasks.Output(r.Context(), who, id, s)
	if err != nil {
		return err
	}
	// Output is whatever the run printed: never something that a browser shows.
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", string(id)+"."+string(s)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(b)
	return nil
}

func (a *API) deleteBodies(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := pathID[writ.TaskID](r)
	if err != nil {
		return err
	}
	if err := a.Tasks.DeleteBodies(r.Context(), who, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
