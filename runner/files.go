package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"writ"
	"writ/files"
)

// FilesOptions are the settings of Files. Zero fields mean what their comments say.
type FilesOptions struct {
	// State is the folder for what must outlive the process: absolute, private to it,
	// and beneath no workspace. It is made with mode 0700 when it is missing.
	State string
	Roots int // roots of workspaces kept open, and watched; 0 means 64
	Plans int // patches planned or carried out at one time; 0 means 4
	// What the last patches replaced is kept in State, to undo them: of Undos patches, 0
	// means 256, and UndoBytes in all, 0 means 256 MiB. Negative ones keep nothing.
	Undos     int
	UndoBytes int64

	Log *slog.Logger // nil means none
}

// What a caller gets at most, beside the limits of package files. Both fit a message of
// the wire several times.
const (
	maxPageBytes = 4 << 20 // of a page's paths and lines together
	maxDiffBytes = 2 << 20 // of a plan's diff
)

// The codes of errors (spec/02 §5.14) that are made here.
const codeUnauthorized = "UNAUTHORIZED"

// Files are the files of workspaces: what file tools and patches do, and nothing of who
// may. It is safe for concurrent use. It must be closed.
//
// Each call is given the workspace, whose rules hold. A workspace in an environment that
// is not this host is refused with kind writ.Denied and code UNAUTHORIZED (spec/02
// §3.1). All errors that a caller can act on are *writ.Error with the codes of spec/02
// §5.14; an error from Patch means that nothing in the workspace changed.
type Files struct {
	trees    *trees
	journals *files.Journals
	patches  *patches
	plans    chan struct{} // holds a token for each plan: it has its files in memory

	calls calls
}

// OpenFiles opens the state folder and settles every patch that an earlier process has
// left (see Recover). An error is of the state folder or of ctx.
func OpenFiles(ctx context.Context, opt FilesOptions) (*Files, error) {
	keep := files.Keep{Operations: max(cmp.Or(opt.Undos, 256), 0), Bytes: max(cmp.Or(opt.UndoBytes, 256<<20), 0)}
	journals, err := files.OpenJournals(filepath.Join(opt.State, "journals"), keep)
	if err != nil {
		return nil, fmt.Errorf("open files: %w", err)
	}
	f := &Files{
		trees:    newTrees(max(cmp.Or(opt.Roots, 64), 1)),
		journals: journals,
		patches:  newPatches(journals),
		plans:    make(chan struct{}, max(cmp.Or(opt.Plans, 4), 1)),
	}
	f.trees.watches = newWatches(opt.Log)
	if _, err := f.patches.recover(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open files: %w", err), f.Close())
	}
	return f, nil
}

// Close waits for the calls under way, which it does not end, and closes all that is
// open. Later calls are refused.
func (f *Files) Close() error {
	first := f.calls.close()
	f.calls.wait()
	if !first {
		return nil
	}
	f.trees.close()
	return f.journals.Close()
}

// borrow lends the tree of a workspace to one call. Without an error done must be called.
func (f *Files) borrow(w writ.Workspace) (tree *files.Tree, done func(), err error) {
	if w.EnvironmentKind != writ.EnvironmentHost {
		return nil, nil, &writ.Error{
			Kind: writ.Denied, Code: codeUnauthorized, Op: "open workspace",
			Msg: fmt.Sprintf("workspace %s is in an environment of kind %q, whose files nothing here reaches", w.ID, w.EnvironmentKind),
		}
	}
	if err := f.calls.enter("open workspace"); err != nil {
		return nil, nil, err
	}
	lent, err := f.trees.get(w)
	if err != nil {
		f.calls.leave()
		return nil, nil, err
	}
	return lent.Tree, func() { f.trees.put(lent); f.calls.leave() }, nil
}

// Read is a window of a file (spec/02 §5.2), as files.Tree.Read.
func (f *Files) Read(ctx context.Context, w writ.Workspace, path string, offset, limit int64) (writ.FileWindow, error) {
	tree, done, err := f.borrow(w)
	if err != nil {
		return writ.FileWindow{}, err
	}
	defer done()
	win, err := tree.Read(ctx, path, offset, limit)
	if err != nil {
		return writ.FileWindow{}, err
	}
	return writ.FileWindow{Path: win.Path, Version: win.Version, Offset: win.Offset, Content: win.Content, Next: win.Next}, nil
}

// Find is a page of the files that match (spec/02 §5.3), as files.Tree.Find. A page may
// be shorter than its limit where paths are very long; Next then says where it goes on.
func (f *Files) Find(ctx context.Context, w writ.Workspace, q writ.FileQuery) (writ.FileListing, error) {
	tree, done, err := f.borrow(w)
	if err != nil {
		return writ.FileListing{}, err
	}
	defer done()
	l, err := tree.Find(ctx, files.Query{Glob: q.Glob, Content: q.Content, Offset: q.Offset, Limit: q.Limit})
	if err != nil {
		return writ.FileListing{}, err
	}
	return page(q.Offset, l), nil
}

// page is a listing as far as its bytes are bounded, and at least one path of it.
func page(offset int, l files.Listing) writ.FileListing {
	out := writ.FileListing{Paths: l.Paths, Next: l.Next, Total: l.Total, Version: l.Version, Incomplete: l.Incomplete, Skipped: l.Skipped}
	matches := l.Matches
	size := 0
	for i, path := range l.Paths {
		lines := 0
		size += len(path)
		for lines < len(matches) && matches[lines].Path == path {
			size += len(path) + len(matches[lines].Text)
			lines++
		}
		if size > maxPageBytes && i > 0 {
			out.Paths, out.Next = l.Paths[:i], offset+i
			break
		}
		for _, m := range matches[:lines] {
			out.Matches = append(out.Matches, writ.FileMatch{Path: m.Path, Line: m.Line, Text: m.Text})
		}
		matches = matches[lines:]
	}
	return out
}

// Patch carries what Plan says out as one transaction, as files.Tree.Apply, under the id
// of its operation (spec/02 §6, steps 5 to 10); an undoing is an operation like any other,
// and can be undone. It does so once: a call with an id that has an
// outcome answers that, whatever else it asks for, also after a crash, and
// writ.PatchUnknown while that cannot be settled; one with an id that is under way waits
// for it. Forget ends that: an id must not be used after it.
//
// When bound is not empty, the plan must have that digest, as writ.PatchPlan.Digest gives
// it: else the files are no longer what somebody agreed to, and the error is of code
// VERSION_CONFLICT.
//
// With CheckOnly nothing is written, no journal either: the result is writ.PatchChecked,
// with versions before and none after. A workspace that is read-only is refused as
// UNAUTHORIZED. Cancelling ctx ends the call with the error of ctx before the first file
// has changed; after that it is carried to its end.
func (f *Files) Patch(ctx context.Context, w writ.Workspace, id writ.OperationID, req writ.PatchRequest, bound writ.Digest) (writ.PatchResult, error) {
	none := writ.PatchResult{}
	if !writ.ValidName(string(id)) {
		return none, &writ.Error{Kind: writ.Invalid, Op: "apply patch", Msg: fmt.Sprintf("%.80q is not the id of an operation", string(id))}
	}
	if err := f.calls.enter("open workspace"); err != nil {
		return none, err
	}
	defer f.calls.leave()
	// Before anything that can fail: an error would say that nothing has changed.
	if result, known := f.patches.outcome(ctx, id); known {
		return result, nil
	}
	if w.Profile != writ.WorkspaceWrite {
		return none, &writ.Error{Kind: writ.Denied, Code: codeUnauthorized, Op: "apply patch", Msg: fmt.Sprintf("workspace %s is read-only", w.ID)}
	}
	tree, done, err := f.borrow(w)
	if err != nil {
		return none, err
	}
	defer done()
	return f.patches.once(ctx, id, tree.Root(), func() (writ.PatchResult, bool, error) {
		if err := f.turn(ctx); err != nil {
			return none, false, err
		}
		defer f.over()
		plan, err := f.plan(ctx, tree, w, req)
		if err != nil {
			return none, false, err
		}
		changes := changesOf(plan.Changes)
		if digest := (writ.PatchPlan{Changes: changes}).Digest(); bound != "" && bound != digest {
			return none, false, &writ.Error{
				Kind: writ.Conflict, Code: files.CodeVersionConflict, Op: "apply patch",
				Msg: "the files are no longer what the patch was agreed for: look at what it would do now, and ask again",
			}
		}
		if req.CheckOnly {
			for i := range changes {
				changes[i].After = ""
			}
			return writ.PatchResult{Status: writ.PatchChecked, Changes: changes}, false, nil
		}
		outcome, err := tree.Apply(ctx, plan, f.journals, string(id))
		if err != nil {
			return none, false, err
		}
		return resultOf(plan.Changes, outcome), true, nil
	})
}

// Recover settles the patches that a crash has interrupted, as files.Journals.Recover,
// and answers all that have an outcome which nobody has forgotten, in the order of their
// ids: also those that this process has carried out. One that cannot be settled yet has
// status writ.PatchUnknown. An error is of the state folder or of ctx.
func (f *Files) Recover(ctx context.Context) ([]writ.Settlement, error) {
	if err := f.calls.enter("open workspace"); err != nil {
		return nil, err
	}
	defer f.calls.leave()
	return f.patches.recover(ctx)
}

// Forget drops the outcome of a patch, once it is recorded elsewhere. What an applied one
// replaced stays, until it is the oldest beyond the bounds. An id that has none is no
// error; one that is under way, or not settled yet, is one of kind
// writ.Conflict.
func (f *Files) Forget(_ context.Context, id writ.OperationID) error {
	if err := f.calls.enter("open workspace"); err != nil {
		return err
	}
	defer f.calls.leave()
	return f.patches.forget(id)
}
