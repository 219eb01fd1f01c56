package rest_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"writ"
	"writ/client"
	"writ/response"
)

// TestClientReadsEveryStatus: the client's table from statuses to kinds, for answers
// that do not say their kind, inverts that of the API.
func TestClientReadsEveryStatus(t *testing.T) {
	for _, k := range writ.Kinds {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(response.Status(k))
		}))
		c, err := client.New(srv.URL, token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Status(t.Context()); err == nil || writ.KindOf(err) != k {
			t.Errorf("status %d of kind %s is read as %s: %v", response.Status(k), k, writ.KindOf(err), err)
		}
		c.Close()
		srv.Close()
	}
}

// TestListsCanBeNarrowedToEveryValue: every state of an approval and of a task, and
// every type of event, can be asked for.
func TestListsCanBeNarrowedToEveryValue(t *testing.T) {
	s := start(t, time.Minute)
	ask := func(path, value string) {
		t.Helper()
		if a := s.send(t, "GET", path+value, ""); a.status != http.StatusOK {
			t.Errorf("%s%s answers %d %s", path, value, a.status, a.body)
		}
	}
	for _, v := range writ.EventTypes {
		ask("/v1/audit/events?type=", string(v))
		ask("/v1/audit/export?type=", string(v))
	}
	for _, v := range writ.ApprovalStates {
		ask("/v1/approvals?state=", string(v))
	}
	for _, v := range writ.WorkStates {
		ask("/inbox/works?state=", string(v))
	}
	for _, v := range writ.TaskStates {
		ask("/v1/tasks?state=", string(v))
	}
}
