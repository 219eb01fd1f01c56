package files

import (
	"context"
	"strings"

	"golang.org/x/sys/unix"
)

// opener opens the files that one call names, as far as the rules allow. It is of
// that call and of one goroutine.
type opener struct {
	ctx  context.Context
	tree *Tree
	root int

	looked     bool           // whether the two below are known
	denied     map[inode]bool // files with several names, one of which the rules deny
	incomplete bool           // there may be more of them
}

func (t *Tree) opener(ctx context.Context, root int) *opener {
	return &opener{ctx: ctx, tree: t, root: root}
}

// open opens the regular file at a path that an agent gave.
func (o *opener) open(name string) (*file, error) {
	clean, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if !o.tree.rules.mayRead(clean) {
		return nil, fault(CodeUnauthorized, "read %s: the rules of this workspace deny it", quoted(clean))
	}
	f, err := openFile(o.root, clean)
	if err != nil {
		return nil, err
	}
	if f.st.Nlink > 1 && o.tree.rules.restrictsReading() {
		if err := o.checkLinks(f); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// checkLinks refuses a file with several names when the rules deny one of them. When
// it cannot look at all names of the workspace it refuses too.
func (o *opener) checkLinks(f *file) error {
	if !o.looked {
		if err := o.findDenied(); err != nil {
			if o.ctx.Err() != nil {
				return o.ctx.Err()
			}
			return systemFault("read", f.path, err)
		}
	}
	switch {
	case o.denied[inode{f.st.Dev, f.st.Ino}]:
		return fault(CodeUnauthorized, "read %s: it is a hard link to a file that the rules of this workspace deny", quoted(f.path))
	case o.incomplete:
		return fault(CodeUnauthorized, "read %s: it has several names, and the workspace is too large to tell whether the rules deny one of them", quoted(f.path))
	}
	return nil
}

func (o *opener) findDenied() error {
	o.denied = map[inode]bool{}
	w := walker{ctx: o.ctx, enter: func(string) bool { return true }}
	w.visit = func(fd int, e dirent) {
		if e.kind != unix.DT_REG || o.tree.rules.mayRead(e.path) {
			return
		}
		st, err := statAt(fd, e.path[strings.LastIndexByte(e.path, '/')+1:])
		if err == nil && st.Nlink > 1 {
			o.denied[inode{st.Dev, st.Ino}] = true
		}
	}
	if err := w.walk(o.root); err != nil {
		return err
	}
	o.looked, o.incomplete = true, w.incomplete
	return nil
}
