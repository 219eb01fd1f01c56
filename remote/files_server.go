package remote

import (
	"context"

	"google.golang.org/grpc"

	"writ"
)

// noFiles are the files of a runner that has no workspaces.
type noFiles struct{}

func (noFiles) err() error {
	return &writ.Error{Kind: writ.Unavailable, Op: "open workspace", Msg: "this runner serves no workspaces: start it with --state"}
}

func (n noFiles) Read(context.Context, writ.Workspace, string, int64, int64) (writ.FileWindow, error) {
	return writ.FileWindow{}, n.err()
}

func (n noFiles) Find(context.Context, writ.Workspace, writ.FileQuery) (writ.FileListing, error) {
	return writ.FileListing{}, n.err()
}

func (n noFiles) Plan(context.Context, writ.Workspace, writ.PatchRequest) (writ.PatchPlan, error) {
	return writ.PatchPlan{}, n.err()
}

func (n noFiles) Patch(context.Context, writ.Workspace, writ.OperationID, writ.PatchRequest, writ.Digest) (writ.PatchResult, error) {
	return writ.PatchResult{}, n.err()
}

func (n noFiles) Recover(context.Context) ([]writ.Settlement, error) { return nil, n.err() }

func (n noFiles) Forget(context.Context, writ.OperationID) error { return n.err() }

// fileMethods are the calls to files.
func fileMethods() []grpc.MethodDesc {
	return []grpc.MethodDesc{
		{MethodName: methodFilesRead, Handler: unary(func(s served, ctx context.Context, o *readOrder) (writ.FileWindow, error) {
			return s.files.Read(ctx, o.Workspace, o.Path, o.Offset, o.Limit)
		})},
		{MethodName: methodFilesFind, Handler: unary(func(s served, ctx context.Context, o *findOrder) (writ.FileListing, error) {
			return s.files.Find(ctx, o.Workspace, o.Query)
		})},
		{MethodName: methodFilesPlan, Handler: unary(func(s served, ctx context.Context, o *patchOrder) (writ.PatchPlan, error) {
			return s.files.Plan(ctx, o.Workspace, o.Request)
		})},
		{MethodName: methodFilesPatch, Handler: unary(func(s served, ctx context.Context, o *patchOrder) (writ.PatchResult, error) {
			return s.files.Patch(ctx, o.Workspace, o.Operation, o.Request, o.Bound)
		})},
		{MethodName: methodFilesRecover, Handler: unary(func(s served, ctx context.Context, _ *empty) ([]writ.Settlement, error) {
			return s.files.Recover(ctx)
		})},
		{MethodName: methodFilesForget, Handler: unary(func(s served, ctx context.Context, o *forgetOrder) (empty, error) {
			return empty{}, s.files.Forget(ctx, o.Operation)
		})},
	}
}
