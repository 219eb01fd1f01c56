package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"writ"
)

// Works is one page of the works that the caller may steer, newest first, and the
// cursor of the next, which is empty after the last. f.Tenant is not sent: the server
// takes the caller's. A Limit of 0 means MaxPage.
func (c *Client) Works(ctx context.Context, f writ.WorkFilter) ([]writ.Work, string, error) {
	q := url.Values{}
	if f.Workspace != "" {
		q.Set("workspace_id", string(f.Workspace))
	}
	for _, s := range f.States {
		q.Add("state", string(s))
	}
	setPage(q, f.Page)
	resp, err := c.do(ctx, http.MethodGet, "/inbox/works", q, nil)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	b, err := readAll(resp.Body, maxReply)
	if err != nil {
		return nil, "", c.broken(ctx, "GET /inbox/works", err)
	}
	var works []writ.Work
	if err := json.Unmarshal(b, &works); err != nil {
		return nil, "", fmt.Errorf("decode the answer to GET /inbox/works: %w", err)
	}
	return works, resp.Header.Get("Next-Cursor"), nil
}

// Work is one work.
func (c *Client) Work(ctx context.Context, id writ.WorkID) (writ.Work, error) {
	return get[writ.Work](ctx, c, at("/inbox/works/", id, ""), nil)
}

// Intents are those of a work, and those of its workspace that have no work: claimed,
// queued, drafts, then the rest.
func (c *Client) Intents(ctx context.Context, id writ.WorkID) ([]writ.Intent, error) {
	return get[[]writ.Intent](ctx, c, at("/inbox/works/", id, "/intents"), nil)
}

// AddIntent writes a draft.
func (c *Client) AddIntent(ctx context.Context, id writ.WorkID, req writ.IntentRequest) (writ.Intent, error) {
	return post[writ.Intent](ctx, c, at("/inbox/works/", id, "/intents"), req)
}

// EditIntent changes a draft or a queued intent.
func (c *Client) EditIntent(ctx context.Context, id writ.IntentID, req writ.IntentEdit) (writ.Intent, error) {
	i, _, err := call[writ.Intent](ctx, c, http.MethodPatch, at("/inbox/intents/", id, ""), nil, req)
	return i, err
}

// QueueIntent makes the draft with that revision an instruction.
func (c *Client) QueueIntent(ctx context.Context, id writ.IntentID, revision int64) (writ.Intent, error) {
	return post[writ.Intent](ctx, c, at("/inbox/intents/", id, "/queue"), writ.QueueRequest{Revision: revision})
}

// CancelIntent withdraws a draft or a queued intent.
func (c *Client) CancelIntent(ctx context.Context, id writ.IntentID) (writ.Intent, error) {
	return post[writ.Intent](ctx, c, at("/inbox/intents/", id, "/cancel"), nil)
}

// ReorderIntents puts the queued intents of a work, all of them, in the order of ids. The
// answer is as that of Intents.
func (c *Client) ReorderIntents(ctx context.Context, id writ.WorkID, ids []writ.IntentID) ([]writ.Intent, error) {
	return post[[]writ.Intent](ctx, c, at("/inbox/works/", id, "/reorder"), writ.ReorderRequest{Intents: ids})
}

// StopWork ends the processes of a work's workspace and leaves its agent the notice.
func (c *Client) StopWork(ctx context.Context, id writ.WorkID, reason string) (writ.Stop, error) {
	return post[writ.Stop](ctx, c, at("/inbox/works/", id, "/stop"), writ.StopRequest{Reason: reason})
}

// fault is what the body b of an error of the inbox says, in e.
func fault(b []byte, e *writ.Error) error {
	var f struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Error   string `json:"error"` // of a request without a credential
	}
	if json.Unmarshal(b, &f) == nil {
		e.Code, e.Msg = f.Code, cmp.Or(f.Message, f.Error, e.Msg)
	}
	return e
}
