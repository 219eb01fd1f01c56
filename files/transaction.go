package files

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"writ/patch"
)

// transaction is a patch on its way to the disk, or one that a crash left there.
type transaction struct {
	tree    *Tree
	root    int
	id, tx  string
	changes []*change       // as in the plan
	missing []string        // folders that it has to make, each after the one it is in
	emptied []string        // folders to remove once it is applied, if nothing is in them; in the same order
	theirs  map[string]bool // of those, the ones that somebody else has made
	open    map[string]int  // folders, by path
	journal *journal        // nil before it has begun

	journals *Journals
}

// change is one change with the places it works at.
type change struct {
	Change
	content          patch.Change // the zero value after a crash
	dir              int          // of the folder it is in; -1 while that is missing
	folder, base     string
	fresh, old, part string // names set aside: .new, .old, and .new while it is written
	renamed          bool   // became visible, as far as this process knows
}

func (x *transaction) add(n int, c Change) {
	folder, base := split(c.Path)
	x.changes = append(x.changes, &change{
		Change: c, dir: -1, folder: folder, base: base,
		fresh: asideName(x.tx, n, "new"), old: asideName(x.tx, n, "old"), part: asideName(x.tx, n, "part"),
	})
}

func (x *transaction) closeFolders() {
	for _, fd := range x.open {
		closeAll(fd)
	}
}

func (x *transaction) step(s Step) {
	if x.tree.at != nil {
		x.tree.at(s)
	}
}

// openFolders opens the folders of all changes, as far as they are there, and lists
// those that are missing.
func (x *transaction) openFolders() error {
	for _, c := range x.changes {
		fd, ok := x.open[c.folder]
		if !ok {
			var err error
			fd, err = openFolder(x.root, c.folder)
			if err == unix.ENOENT {
				x.miss(c.folder)
				continue
			}
			if err != nil {
				return systemFault("write", c.Path, err)
			}
			x.open[c.folder] = fd
		}
		c.dir = fd
	}
	return nil
}

// miss lists a folder that is missing, after those above it that are missing too.
func (x *transaction) miss(folder string) {
	if folder == "." || slices.Contains(x.missing, folder) {
		return
	}
	up, _ := split(folder)
	if fd, err := openFolder(x.root, up); err == nil {
		closeAll(fd)
	} else {
		x.miss(up)
	}
	x.missing = append(x.missing, folder)
}

// prepare does what changes no file: begin to look.
func (x *transaction) prepare(ctx context.Context) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := x.openFolders(); err != nil {
		return err
	}
	if x.journal, err = x.journals.begin(x.beginning()); err != nil {
		return err
	}
	x.step(StepBegin)
	for _, folder := range x.missing {
		if err := x.makeFolder(folder); err != nil {
			return err
		}
		x.step(StepFolder)
	}
	if err := x.stage(ctx); err != nil {
		return err
	}
	x.step(StepSync)
	for _, c := range x.changes {
		s := stateAt(ctx, c.dir, c.base)
		if !s.is(c.Before, c.BeforeMode) {
			if err := ctx.Err(); err != nil {
				return err
			}
			return c.moved(s)
		}
	}
	x.step(StepLook)
	return ctx.Err()
}

// moved is the error for a file that is not what the plan has read.
func (c *change) moved(s state) error {
	now := s.version
	switch {
	case now == "":
		now = "no file that can be read"
	case now == c.Before:
		now += " with mode " + s.mode.String()
	}
	return fault(CodeVersionConflict, "%s is %s now, the patch was made for %s: read it again", quoted(c.Path), now, c.Before)
}

// makeFolder makes a folder that was missing, and opens it for the changes in it.
func (x *transaction) makeFolder(folder string) error {
	up, base := split(folder)
	parent, ok := x.open[up]
	if !ok {
		fd, err := openFolder(x.root, up)
		if err != nil {
			return systemFault("make folder", folder, err)
		}
		x.open[up], parent = fd, fd
	}
	err := retry(func() error { return unix.Mkdirat(parent, base, 0o777) })
	made := err == nil
	if err == unix.EEXIST {
		x.theirs[folder] = true // somebody was quicker
	} else if err != nil {
		return systemFault("make folder", folder, err)
	}
	fd, err := openFolder(parent, base)
	if err != nil {
		return systemFault("make folder", folder, err)
	}
	x.open[folder] = fd
	if made {
		if err := giveToParent(parent, fd); err != nil {
			return systemFault("make folder", folder, err)
		}
	}
	for _, c := range x.changes {
		if c.folder == folder {
			c.dir = fd
		}
	}
	return nil
}

// giveToParent gives what root made to the owner of the folder it is in: a workspace
// is its owner's, whoever serves it.
func giveToParent(parent, fd int) error {
	if os.Geteuid() != 0 {
		return nil
	}
	st, err := statOf(parent)
	if err != nil {
		return err
	}
	return retry(func() error { return unix.Fchown(fd, int(st.Uid), int(st.Gid)) })
}

// syncAtOnce is how many files are flushed at the same time: the disk then writes its
// own journal once for all of them.
const syncAtOnce = 16

// stage writes the new contents beside their targets, and to the journals' folder what
// is to be kept of the former ones. It flushes them, and the journal: there is no order
// among them, as long as nothing is renamed.
func (x *transaction) stage(ctx context.Context) error {
	var fds []int // written and not flushed
	defer func() { closeAll(fds...) }()
	flush := func(more ...int) error {
		err := syncAll(append(more, fds...)...)
		closeAll(fds...)
		fds = nil
		return err
	}
	record, err := x.keep()
	if err != nil {
		return systemFault("keep what is replaced by", x.id, err)
	}
	if record >= 0 {
		fds = append(fds, record)
		x.step(StepKeep)
	}
	for _, c := range x.changes {
		if c.content.After == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		fd, err := x.write(c, c.content.After)
		if err != nil {
			return systemFault("write", c.Path, err)
		}
		fds = append(fds, fd)
		x.step(StepStage)
		if len(fds) == syncAtOnce {
			if err := flush(); err != nil {
				return systemFault("write", c.Path, err)
			}
		}
	}
	if err := flush(x.journal.fd, x.journals.fd); err != nil {
		return systemFault("write", x.changes[0].Path, err)
	}
	return nil
}

// write makes .new with the content and mode of f. Owner and attributes are those of
// the file that is there, or that moves there; a new file gets the owner of its folder.
// It is whole once it has its name. The caller flushes and closes it.
func (x *transaction) write(c *change, f *patch.File) (_ int, err error) {
	fd, err := createFile(c.dir, c.part)
	if err != nil {
		return -1, err
	}
	defer func() {
		if err != nil {
			closeAll(fd)
		}
	}()
	if err := writeAt(fd, f.Content, 0); err != nil {
		return -1, err
	}
	beginSync(fd)
	if like := x.like(c); like >= 0 {
		err = copyAttributes(like, fd)
		closeAll(like)
	} else {
		err = giveToParent(c.dir, fd)
	}
	if err != nil {
		return -1, err
	}
	// After the owner: a change of owner may clear bits of the mode.
	if err := retry(func() error { return unix.Fchmod(fd, uint32(f.Mode.Perm())) }); err != nil {
		return -1, err
	}
	return fd, rename(c.dir, c.part, c.fresh)
}

// like opens the file whose owner and attributes the new one of c keeps; -1 for none.
func (x *transaction) like(c *change) int {
	dir, base := c.dir, c.base
	if c.From != "" {
		folder, name := split(c.From)
		if fd, ok := x.open[folder]; ok {
			dir, base = fd, name
		}
	}
	f, err := openFile(dir, base)
	if err != nil {
		return -1
	}
	return f.fd
}

// carryOut makes the changes visible, and sees that they are.
func (x *transaction) carryOut(ctx context.Context) error {
	for _, last := range []bool{false, true} { // what is deleted goes last: a file that moves is never nowhere
		for _, c := range x.changes {
			if (c.After == patch.Absent) != last {
				continue
			}
			if err := x.rename(ctx, c); err != nil {
				return err
			}
			x.step(StepRename)
		}
	}
	for _, c := range x.changes {
		if s := stateAt(ctx, x.root, c.Path); !s.is(c.After, c.AfterMode) {
			return fault(CodeVersionConflict, "%s is not what the patch made of it: somebody changed it at the same time", quoted(c.Path))
		}
	}
	x.step(StepVerify)
	if err := x.journals.name(x.id); err != nil {
		return systemFault("keep what was replaced by", x.id, err)
	}
	x.step(StepKeep)
	if err := x.syncFolders(); err != nil {
		return systemFault("write", x.changes[0].Path, err)
	}
	x.step(StepSettle)
	return nil
}

// syncFolders flushes the names in every folder that the transaction works in, and in
// that of the journals.
func (x *transaction) syncFolders() error {
	return syncAll(slices.AppendSeq([]int{x.journals.fd}, maps.Values(x.open))...)
}

// clean removes what was set aside, but for what may be somebody's only copy. What
// cannot be removed stays: nothing reads it.
func (x *transaction) clean(ctx context.Context, applied bool) {
	x.step(StepClean)
	for _, c := range x.changes {
		if c.dir < 0 {
			continue
		}
		_ = unlink(c.dir, c.part) // mostly it is not there
		e := c.evidence(ctx)
		if c.disposable(e.fresh, e.now, applied) {
			_ = unlink(c.dir, c.fresh)
		}
		if c.disposable(e.old, e.now, applied) {
			_ = unlink(c.dir, c.old)
		}
	}
}

// made are the folders that were missing and that nobody else has made.
func (x *transaction) made() []string {
	return slices.DeleteFunc(slices.Clone(x.missing), func(folder string) bool { return x.theirs[folder] })
}

// removeFolders removes folders that are empty. Each stands after the one it is in.
func (x *transaction) removeFolders(folders []string) {
	for _, folder := range slices.Backward(folders) {
		up, base := split(folder)
		fd, err := openFolder(x.root, up)
		if err != nil {
			continue
		}
		_ = unix.Unlinkat(fd, base, unix.AT_REMOVEDIR) // not empty: somebody uses it
		closeAll(fd)
	}
}

// syncAll flushes files, at most syncAtOnce at a time.
func syncAll(fds ...int) error {
	errs := make([]error, len(fds))
	var wg sync.WaitGroup
	slots := make(chan struct{}, syncAtOnce)
	for i, fd := range fds {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			errs[i] = syncFile(fd)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
