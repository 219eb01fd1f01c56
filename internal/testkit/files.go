package testkit

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"writ"
	"writ/runner"
)

// AnyFiles is what the suite calls: the files of workspaces in this process, or behind
// a wire.
type AnyFiles interface {
	Read(ctx context.Context, w writ.Workspace, path string, offset, limit int64) (writ.FileWindow, error)
	Find(ctx context.Context, w writ.Workspace, q writ.FileQuery) (writ.FileListing, error)
	Plan(ctx context.Context, w writ.Workspace, req writ.PatchRequest) (writ.PatchPlan, error)
	Patch(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error)
	Recover(ctx context.Context) ([]writ.Settlement, error)
	Forget(ctx context.Context, id writ.OperationID) error
}

// Files is the conformance suite of the files of workspaces. start begins to serve them
// with opt; stop ends that in good order, as t's cleanup does otherwise.
func Files(t *testing.T, start func(t *testing.T, opt runner.FilesOptions) (f AnyFiles, stop func())) {
	s := filesSuite{start}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"Scenario68_Windows", s.windows},
		{"Scenario69_PastTheEnd", s.pastTheEnd},
		{"Scenario70_Limits", s.limits},
		{"Scenario71_BytesAreExact", s.bytes},
		{"Scenario72_CodesOfPaths", s.codes},
		{"Scenario73_FindPages", s.find},
		{"FindContent", s.content},
		{"Scenario74_DeletedRoot", s.deletedRoot},
		{"RootIsReplaced", s.replacedRoot},
		{"RootIsALink", s.linkedRoot},
		{"Rules", s.rules},
		{"Scenario64_ContainerEnvironment", s.container},
		{"Scenario63_ReadOnly", s.readOnly},
		{"PlanChangesNothing", s.plan},
		{"LongDiffIsCut", s.longDiff},
		{"Scenario52_CheckOnly", s.checkOnly},
		{"PatchOfEachKind", s.patch},
		{"Scenario54_VersionConflict", s.versionConflict},
		{"PatchFaultsHaveCodes", s.patchFaults},
		{"PatchIsBoundToItsPlan", s.bound},
		{"Scenario56_SecondCallAnswersTheOutcome", s.twice},
		{"ManyCallsOneOperation", s.sameOperation},
		{"ForgetAndRecover", s.forget},
		{"OutcomesOutliveTheProcess", s.restart},
		{"CancelledCallChangesNothing", s.cancelled},
		{"ManyRoots", s.manyRoots},
		{"Scenario50_AbsolutePaths", s.absolute},
		{"UndoIsExact", s.undo},
		{"UndoIsRefusedWhenFilesMovedOn", s.undoMovedOn},
		{"UndoChecksAndIsBound", s.undoChecked},
		{"UndoOfWhatIsNotKept", s.undoNotKept},
		{"UndoIsBounded", s.undoBounds},
	} {
		t.Run(c.name, c.run)
	}
}

type filesSuite struct {
	start func(t *testing.T, opt runner.FilesOptions) (f AnyFiles, stop func())
}

// files serves with a state folder of its own.
func (s filesSuite) files(t *testing.T) AnyFiles {
	t.Helper()
	f, _ := s.start(t, runner.FilesOptions{State: filepath.Join(t.TempDir(), "state")})
	return f
}

// WorkspaceAt is a workspace at root that may be written.
func WorkspaceAt(root string) writ.Workspace {
	return writ.Workspace{
		ID: "w", Tenant: writ.DefaultTenant, Root: root, Profile: writ.WorkspaceWrite,
		Environment: "local", EnvironmentKind: writ.EnvironmentHost,
		Network: writ.NetworkRestricted, Approvals: writ.ApprovalsOff,
	}
}

// tree is a workspace in a new folder with these files.
func tree(t *testing.T, content map[string]string) writ.Workspace {
	t.Helper()
	dir := t.TempDir()
	PutFiles(t, dir, content)
	return WorkspaceAt(dir)
}

// PutFiles writes files beneath dir.
func PutFiles(t testing.TB, dir string, content map[string]string) {
	t.Helper()
	for name, text := range content {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// FilesBeneath is the content of every regular file beneath dir.
func FilesBeneath(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		out[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wantFault fails when err is not one for a client, with this code and kind.
func wantFault(t *testing.T, what string, err error, kind writ.Kind, code string) {
	t.Helper()
	if writ.KindOf(err) != kind || writ.CodeOf(err) != code || writ.Message(err) == "internal error" {
		t.Errorf("%s: %v of kind %v with code %q, want %v with %s and words for a client", what, err, writ.KindOf(err), writ.CodeOf(err), kind, code)
	}
}
