package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"google.golang.org/grpc/status"

	"writ"
)

// FilesClient is the files of workspaces that a runner in another process serves. It is
// part of a Client and is used and closed with it. Beside the errors of package runner
// each call has one more, of kind writ.Unavailable with code TIMEOUT (spec/02 §5.14):
// the runner cannot be reached.
type FilesClient struct{ c *Client }

// Files is the way to the files that the runner serves.
func (c *Client) Files() *FilesClient { return &FilesClient{c} }

// Read is runner.Files.Read.
func (f *FilesClient) Read(ctx context.Context, w writ.Workspace, path string, offset, limit int64) (writ.FileWindow, error) {
	if err := onlyText("PATH_ESCAPE", "the path", path); err != nil {
		return writ.FileWindow{}, err
	}
	return filesCall[writ.FileWindow](ctx, f.c, methodFilesRead, &readOrder{w, path, offset, limit})
}

// Find is runner.Files.Find.
func (f *FilesClient) Find(ctx context.Context, w writ.Workspace, q writ.FileQuery) (writ.FileListing, error) {
	if err := onlyText("PATH_ESCAPE", "the glob or the content", q.Glob, q.Content); err != nil {
		return writ.FileListing{}, err
	}
	return filesCall[writ.FileListing](ctx, f.c, methodFilesFind, &findOrder{w, q})
}

// Plan is runner.Files.Plan.
func (f *FilesClient) Plan(ctx context.Context, w writ.Workspace, req writ.PatchRequest) (writ.PatchPlan, error) {
	if err := checkPatch(req); err != nil {
		return writ.PatchPlan{}, err
	}
	return filesCall[writ.PatchPlan](ctx, f.c, methodFilesPlan, &patchOrder{Workspace: w, Request: req})
}

// Recover is runner.Files.Recover.
func (f *FilesClient) Recover(ctx context.Context) ([]writ.Settlement, error) {
	return filesCall[[]writ.Settlement](ctx, f.c, methodFilesRecover, &empty{})
}

// Forget is runner.Files.Forget.
func (f *FilesClient) Forget(ctx context.Context, id writ.OperationID) error {
	_, err := filesCall[empty](ctx, f.c, methodFilesForget, &forgetOrder{id})
	return err
}

// Patch is runner.Files.Patch, never repeated. Beside its outcomes there is one more:
// when contact is lost after the order was sent and before an answer came, the result is
// writ.PatchUnknown, without an error, since files may have changed. A call with the same
// id, or Recover, says later how it ended. When the runner could not be reached at all,
// the error is of kind writ.Unavailable.
//
// A patch that was sent goes to its end. When ctx ends first, Patch waits ten seconds
// more for the answer and gives up then, with writ.PatchUnknown.
func (f *FilesClient) Patch(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error) {
	const op = "apply patch"
	if err := checkPatch(req); err != nil {
		return writ.PatchResult{}, err
	}
	result, _, lost, err := once[writ.PatchResult](ctx, f.c, op, methodFilesPatch, &patchOrder{w, id, req, bound})
	switch {
	case lost != nil:
		return unknownPatch(lost), nil
	case err != nil:
		return writ.PatchResult{}, err
	case !slices.Contains(patchStatuses, result.Status):
		return unknownPatch(errors.New("it sent a message that is none of the protocol")), nil
	}
	return result, nil
}

// patchStatuses are what a runner answers. A patch that it refuses is an error.
var patchStatuses = []writ.PatchStatus{
	writ.PatchApplied, writ.PatchChecked, writ.PatchRolledBack, writ.PatchPartial, writ.PatchUnknown,
}

func unknownPatch(err error) writ.PatchResult {
	return writ.PatchResult{
		Status: writ.PatchUnknown,
		Reason: "contact with the runner was lost before it said how the patch ended: " + status.Convert(err).Message(),
	}
}

// filesCall is call, for file tools.
func filesCall[T any](ctx context.Context, c *Client, method string, req any) (T, error) {
	out, lost, err := invoke[T](ctx, c, method, req)
	if lost != nil {
		return out, unanswered(method, lost)
	}
	return out, err
}

// unanswered is unreachable, for file tools.
func unanswered(op string, err error) error {
	return &writ.Error{Kind: writ.Unavailable, Code: codeTimeout, Op: op, Msg: "the runner cannot be reached, so nothing was done; try again later", Err: err}
}

// maxPatchText bounds the text of a patch's request: JSON may write a byte as six.
const maxPatchText = MaxMessage/6 - 1<<20

// checkPatch refuses what would not cross the wire as it is. Package runner refuses the
// same.
func checkPatch(req writ.PatchRequest) error {
	const code = "INVALID_PATCH"
	if err := onlyText(code, "the patch", req.Patch); err != nil {
		return err
	}
	size := len(req.Patch) + len(req.Undo)
	for path, version := range req.Expected {
		if err := onlyText("PATH_ESCAPE", "a path of expected_versions", path); err != nil {
			return err
		}
		if err := onlyText(code, "a version of expected_versions", version); err != nil {
			return err
		}
		size += len(path) + len(version) + 6 // the marks between them
	}
	if size > maxPatchText {
		return &writ.Error{Kind: writ.Invalid, Code: code, Op: "send patch", Msg: fmt.Sprintf("the patch and its expected versions have %d bytes, the most is %d: send it in parts", size, maxPatchText)}
	}
	return nil
}

// onlyText refuses text that is not UTF-8, which JSON would turn into other text.
func onlyText(code, what string, texts ...string) error {
	for _, text := range texts {
		if utf8.ValidString(text) {
			continue
		}
		kind := writ.Invalid
		if code == "PATH_ESCAPE" {
			kind = writ.Denied
		}
		return &writ.Error{Kind: kind, Code: code, Op: "call the runner", Msg: what + " is not UTF-8"}
	}
	return nil
}
