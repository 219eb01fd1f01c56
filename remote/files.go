package remote

import (
	"context"

	"writ"
)

// Files is what is served of workspaces, and what a FilesClient is. The contracts of its
// methods are those of package runner.
type Files interface {
	Read(ctx context.Context, w writ.Workspace, path string, offset, limit int64) (writ.FileWindow, error)
	Find(ctx context.Context, w writ.Workspace, q writ.FileQuery) (writ.FileListing, error)
	Plan(ctx context.Context, w writ.Workspace, req writ.PatchRequest) (writ.PatchPlan, error)
	Patch(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error)
	Recover(ctx context.Context) ([]writ.Settlement, error)
	Forget(ctx context.Context, id writ.OperationID) error
}

const (
	methodFilesRead    = "FilesRead"
	methodFilesFind    = "FilesFind"
	methodFilesPlan    = "FilesPlan"
	methodFilesPatch   = "FilesPatch"
	methodFilesRecover = "FilesRecover"
	methodFilesForget  = "FilesForget"
)

// readOrder is the request of FilesRead.
type readOrder struct {
	Workspace writ.Workspace `json:"workspace"`
	Path      string         `json:"path"`
	Offset    int64          `json:"offset"`
	Limit     int64          `json:"limit"`
}

// findOrder is the request of FilesFind.
type findOrder struct {
	Workspace writ.Workspace `json:"workspace"`
	Query     writ.FileQuery `json:"query"`
}

// patchOrder is the request of FilesPlan, which has no operation and no bound, and of
// FilesPatch.
type patchOrder struct {
	Workspace writ.Workspace    `json:"workspace"`
	Operation writ.OperationID  `json:"operation_id,omitempty"`
	Request   writ.PatchRequest `json:"request"`
	Bound     writ.Digest       `json:"bound,omitempty"`
}

// forgetOrder is the request of FilesForget.
type forgetOrder struct {
	Operation writ.OperationID `json:"operation_id"`
}
