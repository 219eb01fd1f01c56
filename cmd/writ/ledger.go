package main

import (
	"context"

	"writ"
	"writ/gateway"
	"writ/workspace"
)

// ledger is the workspaces as the API has them: those that are registered and, for the
// owner of the data folder, those that only a session had (session.go), as far as the
// ledger or an approval names their folder. What was done there can so be taken back, or
// carried out, after the session's end.
type ledger struct {
	registered *gateway.Workspaces
	places     places
	gw         *gateway.Gateway
}

// Workspaces is gateway.Workspaces.Workspaces.
func (l ledger) Workspaces(who writ.Principal) []writ.Workspace {
	return l.registered.Workspaces(who)
}

// Operations is gateway.Workspaces.Operations.
func (l ledger) Operations(ctx context.Context, who writ.Principal, f writ.OperationFilter) ([]writ.Operation, string, error) {
	return l.registered.Operations(ctx, who, f)
}

// Operation is gateway.Workspaces.Operation.
func (l ledger) Operation(ctx context.Context, who writ.Principal, id writ.OperationID, key string) (writ.Operation, error) {
	return l.registered.Operation(ctx, who, id, key)
}

// Undo is gateway.Workspaces.Undo. In a folder that only a session had it is not held.
func (l ledger) Undo(ctx context.Context, who writ.Principal, id writ.OperationID, req writ.UndoRequest) (writ.Operation, error) {
	op, err := l.Operation(ctx, who, id, "")
	if err != nil {
		return op, err
	}
	w, err := l.with(who, op.Workspace, op.Root, writ.ApprovalsOff)
	if err != nil {
		return writ.Operation{}, err
	}
	return w.Undo(ctx, who, id, req)
}

// Resume is gateway.Workspaces.Resume.
func (l ledger) Resume(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.Resumed, error) {
	a, err := l.gw.Approval(ctx, who, id)
	if err != nil || a.Call == nil {
		return l.registered.Resume(ctx, who, id) // it says what is wrong
	}
	w, err := l.with(who, a.Call.Workspace, a.Call.Root, a.Call.Mode)
	if err != nil {
		return writ.Resumed{}, err
	}
	return w.Resume(ctx, who, id)
}

// with is the workspaces with one of that id at root among them, as far as who may have
// it. A folder that an operator has registered since is what its registration says.
func (l ledger) with(who writ.Principal, id writ.WorkspaceID, root string, mode writ.ApprovalMode) (*gateway.Workspaces, error) {
	if who.Kind != writ.KindLocal || len(l.places.registry.Overlapping(root)) > 0 {
		return l.registered, nil
	}
	if _, err := l.places.registry.Get(who, id); err == nil && id != workspace.FolderID {
		return l.registered, nil // another folder has the name now
	}
	folder, err := workspace.Folder(root, homeFolder(), l.places.private...)
	if err != nil {
		return nil, err
	}
	folder.ID, folder.Approvals = id, mode
	registry, err := workspace.NewRegistry([]writ.Workspace{folder}, l.places.private...)
	if err != nil {
		return nil, err
	}
	return l.registered.With(registry), nil
}
