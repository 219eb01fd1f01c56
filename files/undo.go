package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"writ"
	"writ/patch"
)

// maxMoved is how many files an error names that moved on.
const maxMoved = 100

// PlanUndo computes what undoes an applied transaction of this tree, from what the
// journals keep of it, and changes nothing: every file becomes what it was, bytes and
// permission bits. A file that was deleted, and is made again, belongs to the owner of
// its folder. Folders that the transaction made go with the undoing, when they are empty
// then. The plan is one like any other: once it is applied it can be undone.
//
// Every file must be as that transaction left it. Errors are *writ.Error:
// OPERATION_NOT_FOUND when nothing is kept of it, or it was one of another root; of kind
// Conflict, without a code, when it has not ended yet; VERSION_CONFLICT with the name of
// each file that moved on; UNAUTHORIZED for a path that the rules deny now; those of
// Read. Cancelling ctx ends it with the error of ctx.
func (t *Tree) PlanUndo(ctx context.Context, journals *Journals, id string) (Plan, error) {
	root, done, err := t.use()
	if err != nil {
		return Plan{}, err
	}
	defer done()
	record, changes, err := journals.kept(id)
	if err != nil {
		return Plan{}, err
	}
	if record.Root != t.root {
		return Plan{}, journals.notKept(id)
	}
	for _, c := range changes {
		if err := t.mayPatch(c.Path); err != nil {
			return Plan{}, err
		}
	}
	src := t.source(ctx, root)
	var moved []string
	for n := range changes {
		c := record.Changes[n]
		now, is, err := src.left(c)
		if err != nil {
			return Plan{}, err
		}
		if is != "" {
			moved = append(moved, fmt.Sprintf("%s %s", quoted(c.Path), is))
		}
		changes[n].After = now
	}
	if len(moved) > 0 {
		more := ""
		if n := len(moved) - maxMoved; n > 0 {
			moved, more = moved[:maxMoved], fmt.Sprintf(", and %d more", n)
		}
		return Plan{}, fault(CodeVersionConflict, "operation %s cannot be undone, since files moved on after it: %s%s. Look at what they are now, and make a patch that takes back what is left of it", id, strings.Join(moved, ", "), more)
	}
	plan := newPlan(t.root, patch.Reverse(changes))
	plan.emptied = record.Folders
	return plan, nil
}

// left is the file that a change left. Is says what is there instead, empty when it is
// as it was left.
func (s *source) left(c Change) (now *patch.File, is string, err error) {
	room := s.room
	content, mode, err := s.ReadFile(c.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if c.After != patch.Absent {
			return nil, "is gone", nil
		}
		return nil, "", nil
	case err != nil:
		if is = movedOn(err); is != "" {
			err = nil
		}
		return nil, is, err
	}
	now = &patch.File{Content: content, Mode: mode}
	switch version := now.Version(); {
	case c.After == patch.Absent:
		is = "is there again"
	case version != c.After:
		is = "is " + version
	case mode != c.AfterMode:
		is = "has mode " + mode.String()
	default:
		return now, "", nil
	}
	s.room = room // it is not held: the bound is for those that are as they were left
	return nil, is, nil
}

// movedOn says what an error tells of a file that was a regular one, or none; empty for
// nothing.
func movedOn(err error) string {
	switch writ.CodeOf(err) {
	case CodeSymlink:
		return "is a symbolic link, or behind one"
	case CodeSpecialFile:
		return "is no regular file"
	case CodeNotDirectory:
		return "is beneath a file"
	case CodeInvalidPatch:
		return "is much larger" // than all that the transaction left
	}
	return ""
}
