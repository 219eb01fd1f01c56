package gateway

import (
	"context"

	"writ"
)

// Readable is a workspace in which who may read, as policy decides now, for what is the
// workspace's and not beneath its root. Errors: WORKSPACE_NOT_FOUND; UNAUTHORIZED, which
// is recorded with what as the thing that was asked for.
func (w *Workspaces) Readable(ctx context.Context, who writ.Principal, id writ.WorkspaceID, what string) (writ.Workspace, error) {
	return w.readable(ctx, who, id, what, nil)
}

// readable is Readable for what is asked of the files at paths.
func (w *Workspaces) readable(ctx context.Context, who writ.Principal, id writ.WorkspaceID, what string, paths []string) (writ.Workspace, error) {
	ws, err := w.registry.Get(who, id)
	if err != nil {
		return ws, err
	}
	d := w.decide(who, ws, writ.ActionRead, paths)
	if d.Effect == writ.Hold {
		d.Effect, d.Reason = writ.Deny, d.Reason+" (a rule holds this, and reading cannot wait for a person: let the rule deny or allow it)"
	}
	if d.Effect != writ.Allow {
		return writ.Workspace{}, w.refuse(ctx, who, ws, writ.ActionRead, []string{what}, d)
	}
	return ws, nil
}
