package files

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"writ/patch"
)

// rename makes a change visible, in one step. What it displaces is looked at: when it
// is not what the plan has read, it is put back and the change fails.
func (x *transaction) rename(ctx context.Context, c *change) error {
	switch {
	case c.After == patch.Absent:
		if err := rename(c.dir, c.base, c.old); err != nil {
			return systemFault("delete", c.Path, err)
		}
		return c.displaced(ctx, c.old, func() error { return renameNew(c.dir, c.old, c.base) })
	case c.Before == patch.Absent:
		err := link(c.dir, c.fresh, c.base)
		if err == unix.EPERM || without(err) { // no hard links here
			err = renameNew(c.dir, c.fresh, c.base)
		}
		if err != nil {
			return systemFault("add", c.Path, err)
		}
		c.renamed = true
		return nil
	}
	err := error(unix.EINVAL)
	if !x.tree.plain {
		err = exchange(c.dir, c.fresh, c.base)
	}
	if !without(err) {
		if err != nil {
			return systemFault("update", c.Path, err)
		}
		return c.displaced(ctx, c.fresh, func() error { return exchange(c.dir, c.fresh, c.base) })
	}
	if err := link(c.dir, c.base, c.old); err != nil {
		return systemFault("update", c.Path, err)
	}
	if s := stateAt(ctx, c.dir, c.old); !s.is(c.Before, c.BeforeMode) {
		return c.moved(s)
	}
	if err := rename(c.dir, c.fresh, c.base); err != nil {
		return systemFault("update", c.Path, err)
	}
	c.renamed = true
	return nil
}

// displaced looks at what a rename has moved to the name aside. If it is not what the
// plan has read, putBack is called.
func (c *change) displaced(ctx context.Context, aside string, putBack func() error) error {
	s := stateAt(ctx, c.dir, aside)
	if s.is(c.Before, c.BeforeMode) {
		c.renamed = true
		return nil
	}
	if err := putBack(); err != nil {
		return fault(CodeOperationFailed, "%s was changed at the same time and cannot be put back: what it holds is in %s (%v)", quoted(c.Path), aside, err)
	}
	return c.moved(s)
}

// evidence is what a transaction left of one change.
type evidence struct {
	now, fresh, old state
}

func (c *change) evidence(ctx context.Context) evidence {
	if c.dir < 0 {
		absent := state{version: patch.Absent}
		return evidence{absent, absent, absent}
	}
	return evidence{
		now:   stateAt(ctx, c.dir, c.base),
		fresh: stateAt(ctx, c.dir, c.fresh),
		old:   stateAt(ctx, c.dir, c.old),
	}
}

// complete reports whether the change is there as it was meant, and whatever it
// displaced was what the plan had read.
func (c *change) complete(e evidence) bool {
	if !e.now.is(c.After, c.AfterMode) {
		return false
	}
	before := func(s state) bool { return s.absent() || s.is(c.Before, c.BeforeMode) }
	switch {
	case c.After == patch.Absent:
		return before(e.old)
	case c.Before == patch.Absent:
		return true
	}
	return before(e.fresh) && before(e.old)
}

// undo takes a change back that became visible, by what it set aside. It does nothing
// for one that did not. Left says what could not be restored; empty when nothing of the
// change remains.
func (x *transaction) undo(ctx context.Context, c *change) (left string) {
	e := c.evidence(ctx)
	switch {
	case c.After == patch.Absent:
		return x.undoDelete(ctx, c, e)
	case c.Before == patch.Absent:
		return c.undoAdd(ctx, e)
	}
	return x.undoUpdate(ctx, c, e)
}

func (x *transaction) undoDelete(ctx context.Context, c *change, e evidence) string {
	aside := c.old
	if e.old.absent() {
		if !c.renamed || !e.now.absent() {
			return "" // it never went, or somebody has another file there
		}
		if !x.restage(c, c.content.Before) {
			return c.leave("it is deleted, and what was kept of it is gone")
		}
		aside = c.fresh
	}
	if err := renameNew(c.dir, aside, c.base); err != nil {
		return c.leave("what it was is in %s: %v", aside, err)
	}
	return ""
}

func (c *change) undoAdd(ctx context.Context, e evidence) string {
	ours := e.now.sameFile(e.fresh) || c.renamed && e.fresh.absent()
	switch {
	case e.now.absent():
		return "" // it never came, or is gone
	case !ours && e.fresh.absent() && e.old.absent() && e.now.is(c.After, c.AfterMode):
		return c.leave("it is what the patch would make, and nothing tells who made it")
	case !ours:
		return "" // somebody else's
	}
	if !e.now.is(c.After, c.AfterMode) {
		return c.leave("it is new, and somebody has changed it since")
	}
	// Away first, then look: what is there now may be another file already.
	if err := rename(c.dir, c.base, c.old); err != nil {
		return c.leave("it is new: %v", err)
	}
	if s := stateAt(ctx, c.dir, c.old); !s.is(c.After, c.AfterMode) {
		if err := renameNew(c.dir, c.old, c.base); err != nil {
			return c.leave("what it holds is in %s: %v", c.old, err)
		}
		return c.leave("it is new, and somebody has changed it since")
	}
	return ""
}

func (x *transaction) undoUpdate(ctx context.Context, c *change, e evidence) string {
	swapped := !e.fresh.absent() && !e.fresh.is(c.After, c.AfterMode)
	linked := e.fresh.absent() && !e.old.absent()
	if !swapped && !linked && !c.renamed {
		return "" // it never came
	}
	if !e.now.is(c.After, c.AfterMode) {
		if !swapped && !linked {
			return ""
		}
		return c.leave("somebody has changed it since; what it was is in %s", c.aside(swapped))
	}
	switch {
	case swapped:
	case linked:
		if err := rename(c.dir, c.old, c.base); err != nil {
			return c.leave("what it was is in %s: %v", c.old, err)
		}
		return ""
	case !x.restage(c, c.content.Before):
		return c.leave("it is changed, and what was kept of it is gone")
	}
	if x.tree.plain {
		if err := rename(c.dir, c.fresh, c.base); err != nil {
			return c.leave("what it was is in %s: %v", c.fresh, err)
		}
		return ""
	}
	if err := exchange(c.dir, c.fresh, c.base); err != nil {
		return c.leave("what it was is in %s: %v", c.fresh, err)
	}
	if s := stateAt(ctx, c.dir, c.fresh); !s.is(c.After, c.AfterMode) {
		_ = exchange(c.dir, c.fresh, c.base) // theirs is the newer one
		return c.leave("somebody has changed it since; what it was is in %s", c.fresh)
	}
	return ""
}

// disposable reports whether what is set aside is of no more use, beside what is at
// the file's name now: it is our own, the same as what is there, or, once the patch is
// applied, what the plan had read. Whatever else may be somebody's only copy.
func (c *change) disposable(s, now state, applied bool) bool {
	return s.version != "" && (s.is(c.After, c.AfterMode) || s.is(now.version, now.mode) || applied && s.is(c.Before, c.BeforeMode))
}

// remains says what an undone change leaves aside that somebody may want; empty for
// nothing.
func (c *change) remains(ctx context.Context) string {
	e := c.evidence(ctx)
	switch {
	case !e.fresh.absent() && !c.disposable(e.fresh, e.now, false):
		return c.leave("somebody changed it at the same time; what it was is in %s", c.fresh)
	case !e.old.absent() && !c.disposable(e.old, e.now, false):
		return c.leave("somebody changed it at the same time; what it was is in %s", c.old)
	}
	return ""
}

func (c *change) aside(swapped bool) string {
	if swapped {
		return c.fresh
	}
	return c.old
}

// restage writes what a file held to .new again, from memory. It reports whether
// that is possible.
func (x *transaction) restage(c *change, f *patch.File) bool {
	if f == nil {
		return false
	}
	_ = unlink(c.dir, c.part)
	_ = unlink(c.dir, c.fresh)
	fd, err := x.write(c, f)
	if err != nil {
		return false
	}
	err = syncFile(fd)
	closeAll(fd)
	return err == nil
}

func (c *change) leave(format string, args ...any) string {
	return fmt.Sprintf("%s: %s", c.Path, fmt.Sprintf(format, args...))
}

// undoAll takes every change back, the last one first.
func (x *transaction) undoAll(ctx context.Context) Outcome {
	o := Outcome{Status: RolledBack}
	for _, c := range slices.Backward(x.changes) {
		if c.dir < 0 {
			continue
		}
		left := x.undo(ctx, c)
		if left == "" {
			left = c.remains(ctx)
		}
		if left != "" {
			o.Left = append(o.Left, left)
		}
		x.step(StepUndo)
	}
	if len(o.Left) > 0 {
		o.Status = Partial
		slices.Reverse(o.Left)
	}
	return o
}
