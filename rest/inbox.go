package rest

import (
	"errors"
	"net/http"
	"strings"

	"writ"
	"writ/response"
)

// The inbox is an API of its own (spec/02 §10.1), whose paths, statuses and error
// bodies are the contract's and not those of the rest.
const inboxPrefix = "/inbox/"

func ofInbox(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, inboxPrefix) }

// inboxFault is an error of the inbox on the wire: the body that tools have
// (spec/02 §2).
type inboxFault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// inboxCode is the code of an error that has none of its own.
func inboxCode(k writ.Kind) string {
	switch k {
	case writ.Invalid:
		return "INVALID_REQUEST"
	case writ.Unauthenticated, writ.Denied:
		return "UNAUTHORIZED"
	case writ.NotFound:
		return "NOT_FOUND"
	case writ.Conflict:
		return "CONFLICT"
	case writ.Exhausted:
		return "RESOURCE_QUEUE_FULL"
	case writ.Unavailable:
		return "UNAVAILABLE"
	}
	return "INTERNAL"
}

// inboxStatus is the status of err. It is that of its kind, but that an intent which
// can not be changed any more is a bad request in the contract.
func inboxStatus(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.status
	}
	if writ.CodeOf(err) == "INTENT_NOT_EDITABLE" {
		return http.StatusBadRequest
	}
	return response.Status(writ.KindOf(err))
}

// sendInboxFault answers err of a request to the inbox.
func sendInboxFault(w http.ResponseWriter, err error) {
	code := inboxStatus(err)
	if code == http.StatusUnauthorized { // one body for every cause (spec/02 §11)
		w.Header().Set("WWW-Authenticate", "Bearer")
		_ = send(w, code, map[string]string{"error": "unauthorized"})
		return
	}
	fault := inboxFault{writ.CodeOf(err), shorten(writ.Message(err))}
	if fault.Code == "" {
		fault.Code = inboxCode(writ.KindOf(err))
	}
	if code == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	_ = send(w, code, fault) // two strings always encode
}

// workID is the work in the path of r, intentID the intent. What cannot be one is none.
func workID(r *http.Request) (writ.WorkID, error) {
	return inboxID[writ.WorkID](r, "WORK_NOT_FOUND", "work")
}

func intentID(r *http.Request) (writ.IntentID, error) {
	return inboxID[writ.IntentID](r, "INTENT_NOT_FOUND", "intent")
}

func inboxID[T ~string](r *http.Request, code, what string) (T, error) {
	id := r.PathValue("id")
	if !writ.ValidName(id) {
		return "", &writ.Error{Kind: writ.NotFound, Code: code, Op: "read path", Msg: "there is no such " + what}
	}
	return T(id), nil
}

// nextCursor is the header with which a list says where it goes on: the list itself is
// an array.
const nextCursor = "Next-Cursor"

func (a *API) listWorks(w *recorder, r *http.Request, who writ.Principal) error {
	q := queryOf(r, "workspace_id", "state", "limit", "cursor")
	f := writ.WorkFilter{
		Workspace: writ.WorkspaceID(q.one("workspace_id")),
		States:    someOf(q, "state", writ.WorkStates),
		Page:      writ.Page{Limit: int(q.whole("limit", writ.MaxPage, 1, writ.MaxPage)), Cursor: q.one("cursor")},
	}
	if err := q.err(); err != nil {
		return err
	}
	works, next, err := a.Inbox.Works(r.Context(), who, f)
	if err != nil {
		return err
	}
	if next != "" {
		w.Header().Set(nextCursor, next)
	}
	return send(w, http.StatusOK, full(works))
}

func (a *API) getWork(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := workID(r)
	if err != nil {
		return err
	}
	work, err := a.Inbox.Work(r.Context(), who, id)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, work)
}

func (a *API) listIntents(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := workID(r)
	if err != nil {
		return err
	}
	intents, err := a.Inbox.Intents(r.Context(), who, id)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, full(intents))
}

// maxIntentBody fits an intent whose every byte is escaped.
const maxIntentBody = 6*writ.MaxIntentBytes + 1<<10

func (a *API) addIntent(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := workID(r)
	if err != nil {
		return err
	}
	req, err := decode[writ.IntentRequest](w, r, maxIntentBody)
	if err != nil {
		return err
	}
	i, err := a.Inbox.AddIntent(r.Context(), who, id, req)
	if err != nil {
		return err
	}
	w.made = string(i.ID)
	return send(w, http.StatusCreated, i)
}

func (a *API) editIntent(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := intentID(r)
	if err != nil {
		return err
	}
	req, err := decode[writ.IntentEdit](w, r, maxIntentBody)
	if err != nil {
		return err
	}
	i, err := a.Inbox.EditIntent(r.Context(), who, id, req)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, i)
}

func (a *API) queueIntent(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := intentID(r)
	if err != nil {
		return err
	}
	req, err := decode[writ.QueueRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	i, err := a.Inbox.QueueIntent(r.Context(), who, id, req.Revision)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, i)
}

func (a *API) cancelIntent(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := intentID(r)
	if err != nil {
		return err
	}
	i, err := a.Inbox.CancelIntent(r.Context(), who, id)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, i)
}

func (a *API) reorderIntents(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := workID(r)
	if err != nil {
		return err
	}
	req, err := decode[writ.ReorderRequest](w, r, maxBody)
	if err != nil {
		return err
	}
	intents, err := a.Inbox.ReorderIntents(r.Context(), who, id, req)
	if err != nil {
		return err
	}
	return send(w, http.StatusOK, full(intents))
}

func (a *API) stopWork(w *recorder, r *http.Request, who writ.Principal) error {
	id, err := workID(r)
	if err != nil {
		return err
	}
	var req writ.StopRequest
	if r.ContentLength != 0 { // a reason need not be given, nor then a body
		if req, err = decode[writ.StopRequest](w, r, maxBody); err != nil {
			return err
		}
	}
	stop, err := a.Inbox.StopWork(r.Context(), who, id, req)
	if err != nil {
		return err
	}
	w.made = string(stop.Intent.ID)
	return send(w, http.StatusOK, stop)
}
