package remote

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
)

const killedFiles = 300

// killedTree is a workspace of many files, the patch that changes all of them, and what
// they are after it.
func killedTree(t *testing.T) (w writ.Workspace, req writ.PatchRequest, before, after map[string]string) {
	t.Helper()
	before, after = map[string]string{}, map[string]string{}
	var lines []string
	for i := range killedFiles {
		name := fmt.Sprintf("d%d/f%03d", i%7, i)
		before[name], after[name] = "old\n", "new\n"
		lines = append(lines, "*** Update File: "+name, "@@", "-old", "+new")
	}
	w = testkit.WorkspaceAt(t.TempDir())
	testkit.PutFiles(t, w.Root, before)
	return w, writ.PatchRequest{Workspace: w.ID, Patch: testkit.PatchText(lines...)}, before, after
}

// changed counts the files that are as the patch makes them.
func changed(w writ.Workspace, after map[string]string) (n int) {
	for name, want := range after {
		if b, err := os.ReadFile(filepath.Join(w.Root, name)); err == nil && string(b) == want {
			n++
		}
	}
	return n
}

// begun reports whether anything of a patch is in the workspace.
func begun(w writ.Workspace) bool {
	names, _ := filepath.Glob(filepath.Join(w.Root, "d*", ".writ-*"))
	return len(names) > 0
}

// A runner that is killed in the middle of a patch: the caller is told that nobody
// knows, and the next runner says how it ended, which is what is on the disk.
func TestScenario62_ARunnerKilledInAPatch(t *testing.T) {
	for name, far := range map[string]func(w writ.Workspace, after map[string]string) bool{
		"staging": func(w writ.Workspace, _ map[string]string) bool { return begun(w) },
		"first":   func(w writ.Workspace, after map[string]string) bool { return changed(w, after) > 0 },
		"half":    func(w writ.Workspace, after map[string]string) bool { return changed(w, after) > killedFiles/2 },
		"last":    func(w writ.Workspace, after map[string]string) bool { return changed(w, after) == killedFiles },
	} {
		t.Run(name, func(t *testing.T) {
			state := filepath.Join(t.TempDir(), "state")
			w, req, before, after := killedTree(t)
			id := writ.NewOperationID()
			p := startProcess(t, "--state", state)
			done := make(chan outcome, 1)
			go func() { // ends with its call
				res, err := p.Client().Files().Patch(context.Background(), w, id, req, "")
				done <- outcome{res, err}
			}()
			for !far(w, after) && len(done) == 0 {
			}
			_ = p.kill()
			o := testkit.Receive(t, "the call ends", done)
			if o.err != nil || o.res.Status != writ.PatchUnknown && o.res.Status != writ.PatchApplied {
				t.Fatalf("the call: %+v", o)
			}
			if o.res.Status == writ.PatchApplied {
				t.Logf("the patch was quicker than the kill")
			}

			next := startProcess(t, "--state", state).Client().Files()
			all, err := next.Recover(t.Context())
			if err != nil || len(all) != 1 || all[0].Operation != id {
				t.Fatalf("the next runner knows %+v, %v", all, err)
			}
			settled := all[0].Result
			want := map[writ.PatchStatus]map[string]string{writ.PatchApplied: after, writ.PatchRolledBack: before}[settled.Status]
			if got := testkit.FilesBeneath(t, w.Root); want == nil || !maps.Equal(got, want) {
				t.Errorf("settled as %s (%s), and %d of %d files are changed; %d names are there", settled.Status, settled.Reason, changed(w, after), killedFiles, len(got))
			}
			if o.res.Status == writ.PatchApplied && settled.Status != writ.PatchApplied {
				t.Errorf("the caller was told applied, it is %s", settled.Status)
			}
			if begun(w) {
				t.Error("names that were set aside are left")
			}

			// The same operation again answers that, and carries nothing out.
			again, err := next.Patch(t.Context(), w, id, req, "")
			if err != nil || again.Status != settled.Status || again.Reason != settled.Reason || len(again.Changes) != len(settled.Changes) {
				t.Errorf("asked again: %s (%s), %v", again.Status, again.Reason, err)
			}
			if err := next.Forget(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if all, err := next.Recover(t.Context()); err != nil || len(all) != 0 {
				t.Errorf("after Forget: %+v, %v", all, err)
			}
			// And a new one goes on from there.
			if settled.Status == writ.PatchRolledBack {
				fresh, err := next.Patch(t.Context(), w, writ.NewOperationID(), req, "")
				if err != nil || fresh.Status != writ.PatchApplied || strings.Contains(fresh.Reason, "restored") {
					t.Errorf("a new operation: %+v, %v", fresh, err)
				}
			}
		})
	}
}
