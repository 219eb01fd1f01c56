package runner

import (
	"context"
	"errors"
	"fmt"

	"writ"
	"writ/files"
	"writ/patch"
)

// Plan says what a patch would do now, and changes nothing (spec/02 §6, steps 5 and 6).
// Changes have the versions before and after; of no file there is none. All paths of a
// patch are relative: an absolute one is PATH_ESCAPE.
//
// With Undo it is the patch that takes that operation back, exactly, as
// files.Tree.PlanUndo: possible as long as all its files are as it left them, and what it
// replaced is kept (see FilesOptions). Otherwise the error is of code VERSION_CONFLICT, or
// of kind writ.NotFound with code OPERATION_NOT_FOUND. A request that has a patch or
// expected versions too is Invalid.
func (f *Files) Plan(ctx context.Context, w writ.Workspace, req writ.PatchRequest) (writ.PatchPlan, error) {
	tree, done, err := f.borrow(w)
	if err != nil {
		return writ.PatchPlan{}, err
	}
	defer done()
	if err := f.turn(ctx); err != nil {
		return writ.PatchPlan{}, err
	}
	defer f.over()
	plan, err := f.plan(ctx, tree, w, req)
	if err != nil {
		return writ.PatchPlan{}, err
	}
	return shown(plan), nil
}

// turn waits for room to plan a patch, which over gives back.
func (f *Files) turn(ctx context.Context) error {
	select {
	case f.plans <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Files) over() { <-f.plans }

// plan is what a request asks for.
func (f *Files) plan(ctx context.Context, tree *files.Tree, w writ.Workspace, req writ.PatchRequest) (files.Plan, error) {
	if req.Undo != "" {
		if req.Patch != "" || len(req.Expected) > 0 {
			return files.Plan{}, &writ.Error{
				Kind: writ.Invalid, Code: files.CodeInvalidPatch, Op: "undo patch",
				Msg: "the request has an operation to undo, and a patch or expected versions too: send one or the other",
			}
		}
		return tree.PlanUndo(ctx, f.journals, string(req.Undo))
	}
	p, err := parse(req.Patch, w.Root, tree.Root())
	if err != nil {
		return files.Plan{}, err
	}
	return tree.Plan(ctx, p, req.Expected)
}

// parse reads a patch for a workspace tool, whose paths are relative (spec/02 §4): an
// absolute one is PATH_ESCAPE, also beneath the workspace's own root. Of such a one the
// error says which relative path is the same file.
func parse(text string, roots ...string) (patch.Patch, error) {
	p, err := patch.Parse(text)
	e, ok := errors.AsType[*patch.Error](err)
	if !ok || e.Code != patch.PathEscape {
		return p, err
	}
	known, knownErr := patch.Parse(text, roots...)
	if knownErr != nil {
		return p, err
	}
	for _, s := range known.Sections {
		name := ""
		switch e.Line {
		case s.Line:
			name = s.Path
		case s.Line + 1:
			name = s.MoveTo
		}
		if name != "" {
			e.Msg += fmt.Sprintf(", as %q", name)
		}
	}
	return p, err
}

// shown is a plan as it leaves this process.
func shown(p files.Plan) writ.PatchPlan {
	out := writ.PatchPlan{Changes: changesOf(p.Changes), Diff: p.Diff}
	if len(out.Diff) > maxDiffBytes {
		out.Diff, out.Cut = string(writ.CutRune([]byte(out.Diff[:maxDiffBytes]))), true
	}
	return out
}

func changesOf(changes []files.Change) []writ.FileChange {
	version := func(v string) string {
		if v == patch.Absent {
			return ""
		}
		return v
	}
	out := make([]writ.FileChange, len(changes))
	for i, c := range changes {
		out[i] = writ.FileChange{Path: c.Path, Before: version(c.Before), After: version(c.After), Kind: string(c.Kind)}
	}
	return out
}
