package mcp

import (
	"context"
	"time"

	"writ"
)

// The interfaces below are what the tools call. Every method answers a *writ.Error
// with a Code of spec/02 §5.14 for what the client can act on, decides itself what who
// may see or do, and is safe for concurrent use.

// Authenticator turns a key into who it belongs to.
type Authenticator interface {
	// Bearer answers the principal of the key token, or an error of kind
	// Unauthenticated that has one message for every cause.
	Bearer(ctx context.Context, token string, now time.Time) (writ.Principal, error)
}

// Workspaces are the registered roots and what may be done in them.
type Workspaces interface {
	// Workspaces are those that who may see, by id.
	Workspaces(who writ.Principal) []writ.Workspace
	// Workspace is one of them, or WORKSPACE_NOT_FOUND.
	Workspace(who writ.Principal, id writ.WorkspaceID) (writ.Workspace, error)
	// Read answers a window of a file (spec/02 §5.2). A limit or offset out of bounds
	// is OUTPUT_LIMIT.
	Read(ctx context.Context, who writ.Principal, id writ.WorkspaceID, path string, offset, limit int64) (writ.FileWindow, error)
	// Find answers one page of a listing (spec/02 §5.3), with the bounds of Read.
	Find(ctx context.Context, who writ.Principal, id writ.WorkspaceID, q writ.FileQuery) (writ.FileListing, error)
	// Patch carries out req (spec/02 §6). replayed says that its key named an operation
	// of the same content, which is then the answer. A held request is an error with a
	// *writ.Held in its chain; an error after the operation is in the ledger has a
	// *writ.OperationError in its chain.
	Patch(ctx context.Context, who writ.Principal, req writ.PatchRequest) (op writ.Operation, replayed bool, err error)
	// Operation is one row of the ledger, by id or, when that is empty, by key; or
	// OPERATION_NOT_FOUND.
	Operation(ctx context.Context, who writ.Principal, id writ.OperationID, key string) (writ.Operation, error)
	// CreateApproval opens a hold for req, or answers the one that is open for the same.
	CreateApproval(ctx context.Context, who writ.Principal, tool string, req writ.PatchRequest) (writ.Approval, error)
	// ResolveApproval grants or denies a pending hold; APPROVAL_CONFLICT when it is not
	// pending.
	ResolveApproval(ctx context.Context, who writ.Principal, id writ.ApprovalID, grant bool) (writ.Approval, error)
	// Resume carries out what a granted hold waits with, at most once; it answers again
	// what it answered. Errors are those of Patch and APPROVAL_CONFLICT, APPROVAL_AMBIGUOUS.
	Resume(ctx context.Context, who writ.Principal, id writ.ApprovalID) (writ.Approval, writ.Operation, error)
}
