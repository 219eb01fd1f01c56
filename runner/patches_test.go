package runner

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"writ"
	"writ/files"
)

// leaveJournal puts a journal where a process left it that ended in the middle of a
// patch. Package files specifies its form.
func leaveJournal(t *testing.T, state string, id writ.OperationID, text string) {
	t.Helper()
	dir := filepath.Join(state, "journals")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, string(id)+".journal"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func openFiles(t *testing.T, state string) *Files {
	t.Helper()
	f, err := OpenFiles(t.Context(), FilesOptions{State: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

const addA = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n"

// A patch that was interrupted and cannot be settled is neither refused nor carried out
// again, and nothing else is patched on its root meanwhile.
func TestAnUnsettledPatchIsUnknown(t *testing.T) {
	dir := t.TempDir()
	state, root := filepath.Join(dir, "state"), filepath.Join(dir, "root")
	inner := filepath.Join(root, "inner")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	lost := writ.NewOperationID()
	leaveJournal(t, state, lost, `{"v":1,"id":"`+string(lost)+`","root":"`+inner+`","tx":"`+strings.Repeat("0", 32)+`","folders":[],"changes":[`+
		`{"path":"a","kind":"add","from":"","before":"absent","after":"sha256:00","before_mode":0,"after_mode":420}]}`+"\n")
	f := openFiles(t, state)
	w := hostWorkspace(root)

	all, err := f.Recover(t.Context())
	if err != nil || len(all) != 1 || all[0].Operation != lost || all[0].Result.Status != writ.PatchUnknown || all[0].Result.Reason == "" || len(all[0].Result.Changes) != 1 {
		t.Fatalf("recovered %+v, %v", all, err)
	}
	for what, w := range map[string]writ.Workspace{"there": w, "gone": hostWorkspace(inner)} {
		got, err := f.Patch(t.Context(), w, lost, writ.PatchRequest{Patch: addA}, "")
		if err != nil || got.Status != writ.PatchUnknown {
			t.Errorf("the same operation, its root %s: %+v, %v", what, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := f.Patch(ctx, w, lost, writ.PatchRequest{Patch: addA}, ""); err != nil || got.Status != writ.PatchUnknown {
		t.Errorf("the same operation, cancelled: %+v, %v", got, err)
	}
	if _, err := f.Patch(t.Context(), w, writ.NewOperationID(), writ.PatchRequest{Patch: addA}, ""); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("another one over it: %v", err)
	}
	if err := f.Forget(t.Context(), lost); writ.KindOf(err) != writ.Conflict {
		t.Errorf("forget it: %v", err)
	}

	// Its root comes back: it is settled, and others go on.
	if err := os.Mkdir(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Patch(t.Context(), w, writ.NewOperationID(), writ.PatchRequest{Patch: addA}, ""); err != nil || got.Status != writ.PatchApplied {
		t.Errorf("another one, after its root is back: %+v, %v", got, err)
	}
	if got, err := f.Patch(t.Context(), w, lost, writ.PatchRequest{Patch: addA}, ""); err != nil || got.Status != writ.PatchRolledBack {
		t.Errorf("the same operation, after its root is back: %+v, %v", got, err)
	}
	if err := f.Forget(t.Context(), lost); err != nil {
		t.Errorf("forget it: %v", err)
	}
}

// A journal that cannot be read keeps nothing else from going on.
func TestABrokenJournalIsReported(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	broken := writ.NewOperationID()
	leaveJournal(t, state, broken, "{\"v\":7}\n")
	f := openFiles(t, state)
	all, err := f.Recover(t.Context())
	if err != nil || len(all) != 1 || all[0].Result.Status != writ.PatchUnknown {
		t.Errorf("recovered %+v, %v", all, err)
	}
	got, err := f.Patch(t.Context(), hostWorkspace(t.TempDir()), writ.NewOperationID(), writ.PatchRequest{Patch: addA}, "")
	if err != nil || got.Status != writ.PatchApplied {
		t.Errorf("another patch: %+v, %v", got, err)
	}
}

func TestOpenFilesRefusesAStateOfOthers(t *testing.T) {
	dir := t.TempDir()
	open := filepath.Join(dir, "open")
	if err := os.MkdirAll(filepath.Join(open, "journals"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{open, "relative", ""} {
		if f, err := OpenFiles(t.Context(), FilesOptions{State: state}); err == nil {
			t.Errorf("%q is taken", state)
			_ = f.Close()
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	leaveJournal(t, filepath.Join(dir, "state"), writ.NewOperationID(), "")
	if f, err := OpenFiles(ctx, FilesOptions{State: filepath.Join(dir, "state")}); err == nil {
		t.Error("a call that is over opens files")
		_ = f.Close()
	}
}

func TestClosedFilesAreUnavailable(t *testing.T) {
	f, err := OpenFiles(t.Context(), FilesOptions{State: filepath.Join(t.TempDir(), "state")})
	if err != nil {
		t.Fatal(err)
	}
	w := hostWorkspace(t.TempDir())
	for range 2 {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, read := f.Read(t.Context(), w, "a", 0, 1)
	_, patch := f.Patch(t.Context(), w, writ.NewOperationID(), writ.PatchRequest{Patch: addA}, "")
	_, recover := f.Recover(t.Context())
	for what, err := range map[string]error{"read": read, "patch": patch, "recover": recover, "forget": f.Forget(t.Context(), "op-1")} {
		if writ.KindOf(err) != writ.Unavailable {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A panic in the middle of a patch must not keep others waiting for its operation.
func TestAPanicFreesTheOperation(t *testing.T) {
	p := newPatches(nil)
	func() {
		defer func() { _ = recover() }()
		_, _ = p.once(t.Context(), "op", "/", func() (writ.PatchResult, bool, error) { panic("in the middle") })
	}()
	if len(p.busy) != 0 || len(p.settled) != 0 {
		t.Errorf("busy %v, settled %v", p.busy, p.settled)
	}
}

// A journal that somebody forgets while another recovers is one that there is not; a patch
// whose root is gone is one that is not settled.
func TestAJournalThatGoesWhileOthersAreRecovered(t *testing.T) {
	p := newPatches(nil)
	gone := fmt.Errorf("open journal: %w", fs.ErrNotExist)
	out := p.settle([]files.Settled{{ID: "forgotten", Err: gone}, {ID: "rootless", Root: "/r", Err: gone}})
	if len(out) != 1 || out[0].Operation != "rootless" || out[0].Result.Status != writ.PatchUnknown || len(p.unsettled) != 1 {
		t.Errorf("settled %+v, unsettled %+v", out, p.unsettled)
	}
}
