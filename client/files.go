package client

import (
	"context"
	"net/http"
	"net/url"

	"writ"
)

// FileUsage is what the code interpreter keeps. It is for the owner of the data folder.
func (c *Client) FileUsage(ctx context.Context) (writ.FileUsage, error) {
	return get[writ.FileUsage](ctx, c, "/v1/interpreter/usage", nil)
}

// RemoveFiles removes what of that is over, or, with DryRun, counts it. It is for the
// owner of the data folder.
func (c *Client) RemoveFiles(ctx context.Context, req writ.FileRemovalRequest) (writ.FileRemoval, error) {
	return post[writ.FileRemoval](ctx, c, "/v1/interpreter/removal", req)
}

// Sessions is one page of the storage sessions of f's tenant, newest first, and the cursor
// of the next, which is empty after the last. An operator gets those of its own tenant.
func (c *Client) Sessions(ctx context.Context, f writ.SessionFilter) ([]writ.Session, string, error) {
	q := url.Values{}
	if f.Tenant != "" {
		q.Set("tenant", string(f.Tenant))
	}
	setPage(q, f.Page)
	r, err := get[struct {
		Sessions []writ.Session `json:"sessions"`
		Next     string         `json:"next"`
	}](ctx, c, "/v1/interpreter/sessions", q)
	return r.Sessions, r.Next, err
}

// Session is a storage session and the files in it.
func (c *Client) Session(ctx context.Context, id writ.SessionID) (writ.SessionContents, error) {
	return get[writ.SessionContents](ctx, c, at("/v1/interpreter/sessions/", id, ""), nil)
}

// RemoveSession removes a storage session with what is in it, and answers what is gone.
func (c *Client) RemoveSession(ctx context.Context, id writ.SessionID) (writ.FileRemoval, error) {
	r, _, err := call[writ.FileRemoval](ctx, c, http.MethodDelete, at("/v1/interpreter/sessions/", id, ""), nil, nil)
	return r, err
}
