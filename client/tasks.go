package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"writ"
)

// at is a path with an id in it.
func at[T ~string](before string, id T, after string) string {
	return before + url.PathEscape(string(id)) + after
}

// Submit sends a request. created is false when its key named an earlier task of
// the same content, which is then the answer. A task that policy denied or holds
// is an answer, not an error.
func (c *Client) Submit(ctx context.Context, req writ.TaskRequest) (t writ.Task, created bool, err error) {
	t, status, err := call[writ.Task](ctx, c, http.MethodPost, "/v1/tasks", nil, req)
	return t, status == http.StatusCreated, err
}

// Task is the task as it stands.
func (c *Client) Task(ctx context.Context, id writ.TaskID) (writ.Task, error) {
	return get[writ.Task](ctx, c, at("/v1/tasks/", id, ""), nil)
}

// Spec is what a task runs, as it was admitted. It is NotFound once its bodies are
// deleted.
func (c *Client) Spec(ctx context.Context, id writ.TaskID) (writ.RunSpec, error) {
	return get[writ.RunSpec](ctx, c, at("/v1/tasks/", id, "/spec"), nil)
}

// Tasks is one page of a list, newest first, and the cursor of the next, which is
// empty after the last. f.Tenant is not sent: the server takes the caller's.
func (c *Client) Tasks(ctx context.Context, f writ.TaskFilter) ([]writ.Task, string, error) {
	r, err := get[struct {
		Tasks []writ.Task `json:"tasks"`
		Next  string      `json:"next"`
	}](ctx, c, "/v1/tasks", listQuery(f.States, f.Identity, f.Page))
	return r.Tasks, r.Next, err
}

// Cancel ends a task. Its answer is the task as it then stands: a task that runs is
// over a moment later.
func (c *Client) Cancel(ctx context.Context, id writ.TaskID, reason string) (writ.Task, error) {
	return post[writ.Task](ctx, c, at("/v1/tasks/", id, "/cancel"), writ.CancelRequest{Reason: reason})
}

// maxWait is the most that the server waits in one request.
const maxWait = 60 * time.Second

// Wait answers the task once it is over, or as it stands after d. A d that is
// longer than one request may wait takes several.
func (c *Client) Wait(ctx context.Context, id writ.TaskID, d time.Duration) (writ.Task, error) {
	end := time.Now().Add(d)
	for {
		step := min(max(time.Until(end), 0), maxWait)
		q := url.Values{"timeout_ms": {strconv.FormatInt(step.Milliseconds(), 10)}}
		t, err := get[writ.Task](ctx, c, at("/v1/tasks/", id, "/wait"), q)
		if err != nil || t.State.Terminal() || step < maxWait {
			return t, err
		}
	}
}

// Output is the kept bytes of one stream of a task that ran.
func (c *Client) Output(ctx context.Context, id writ.TaskID, s writ.Stream) ([]byte, error) {
	path := at("/v1/tasks/", id, "/output")
	resp, err := c.do(ctx, http.MethodGet, path, url.Values{"stream": {string(s)}}, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := readAll(resp.Body, maxOutput)
	if err != nil {
		return nil, c.broken(ctx, "GET "+path, err)
	}
	return b, nil
}

// DeleteBodies removes code, inputs and output of a task that is over. The record
// of them stays.
func (c *Client) DeleteBodies(ctx context.Context, id writ.TaskID) error {
	return c.del(ctx, at("/v1/tasks/", id, "/bodies"))
}

func listQuery[T ~string](states []T, identity writ.IdentityID, p writ.Page) url.Values {
	q := url.Values{}
	for _, s := range states {
		q.Add("state", string(s))
	}
	if identity != "" {
		q.Set("identity", string(identity))
	}
	setPage(q, p)
	return q
}

// setPage asks for one page of a list.
func setPage(q url.Values, p writ.Page) {
	if p.Limit != 0 {
		q.Set("limit", strconv.Itoa(p.Limit))
	}
	if p.Cursor != "" {
		q.Set("cursor", p.Cursor)
	}
}
