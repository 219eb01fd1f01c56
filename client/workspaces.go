package client

import (
	"context"
	"net/http"
	"net/url"

	"writ"
)

// Workspaces are the registered workspaces that the caller may see, by id.
func (c *Client) Workspaces(ctx context.Context) ([]writ.Workspace, error) {
	r, err := get[struct {
		Workspaces []writ.Workspace `json:"workspaces"`
	}](ctx, c, "/v1/workspaces", nil)
	return r.Workspaces, err
}

// Operations is one page of the ledger, newest first, and the cursor of the next, which
// is empty after the last. f.Tenant is not sent: the server takes the caller's.
func (c *Client) Operations(ctx context.Context, f writ.OperationFilter) ([]writ.Operation, string, error) {
	q := url.Values{}
	if f.Workspace != "" {
		q.Set("workspace", string(f.Workspace))
	}
	if f.By != (writ.Ref{}) {
		q.Set("by", f.By.String())
	}
	setPage(q, f.Page)
	r, err := get[struct {
		Operations []writ.Operation `json:"operations"`
		Next       string           `json:"next"`
	}](ctx, c, "/v1/operations", q)
	return r.Operations, r.Next, err
}

// Operation is one row of the ledger.
func (c *Client) Operation(ctx context.Context, id writ.OperationID) (writ.Operation, error) {
	return get[writ.Operation](ctx, c, at("/v1/operations/", id, ""), nil)
}

// Undo takes back what an applied operation did. The answer is the operation that did
// so. A held one is an error with a *writ.Held in its chain, whose Self is not known
// here; one that failed has a *writ.OperationError in its chain.
func (c *Client) Undo(ctx context.Context, id writ.OperationID, req writ.UndoRequest) (writ.Operation, error) {
	return post[writ.Operation](ctx, c, at("/v1/operations/", id, "/undo"), req)
}

// Resume carries out what a granted approval of a tool's call holds, at most once: asked
// again, the answer is the same. Its errors are as those of Undo.
func (c *Client) Resume(ctx context.Context, id writ.ApprovalID) (writ.Resumed, error) {
	r, _, err := call[writ.Resumed](ctx, c, http.MethodPost, at("/v1/approvals/", id, "/resume"), nil, nil)
	return r, err
}
