package files

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"writ"
)

// Limits of the walk of Denied. It lists for a sandbox, which must not miss anything,
// where a find may.
const (
	maxDeniedFolders = 100_000
	maxDeniedEntries = 1_000_000
)

// Denied lists what is beneath the root and may not be read, and of the rest what may
// not be written, as the rules say: relative paths in byte order, for a sandbox to hold.
// Of a folder that is denied with all that could be in it, it lists the folder alone. A
// file with several names, one of which is denied, is listed under all of them. Symlinks
// are left out: they have no content, and nobody follows them here.
//
// It lists what is there now. What the rules deny and is made later is not in it.
//
// An error means that there may be more than could be looked at: FILE_OPERATION_FAILED
// when a folder cannot be read, when the tree is too deep or has more than a million
// entries, or when a denied name is not UTF-8; or that of ctx.
func (t *Tree) Denied(ctx context.Context) (read, write []string, err error) {
	r := &t.rules
	if r.read == nil && r.write == nil && r.denyRead == nil && r.denyWrite == nil {
		return nil, nil, nil
	}
	root, done, err := t.use()
	if err != nil {
		return nil, nil, err
	}
	defer done()
	d := denial{rules: r, linked: map[inode]access{}}
	w := walker{ctx: ctx, enter: d.enter, visit: d.visit, maxFolders: maxDeniedFolders, maxEntries: maxDeniedEntries}
	if err := w.walk(root); err != nil {
		return nil, nil, deniedFault(ctx, err)
	}
	if len(d.linked) > 0 {
		again := walker{ctx: ctx, enter: func(string) bool { return true }, visit: d.visitLinks, maxFolders: maxDeniedFolders, maxEntries: maxDeniedEntries}
		if err := again.walk(root); err != nil {
			return nil, nil, deniedFault(ctx, err)
		}
		w.incomplete = w.incomplete || again.incomplete
	}
	switch {
	case w.incomplete:
		return nil, nil, fault(CodeOperationFailed, "the workspace cannot be looked through to its end, so what its rules deny cannot be told: a folder cannot be read, or there are too many files or folders in one another")
	case d.unnamed != "":
		return nil, nil, fault(CodeOperationFailed, "the rules deny %s, whose name is not UTF-8: rename it", quoted(d.unnamed))
	}
	for _, list := range []*[]string{&d.read, &d.write} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return d.read, d.write, nil
}

func deniedFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &writ.Error{Kind: writ.Unavailable, Code: CodeOperationFailed, Msg: "the workspace's root cannot be read: " + systemText(err), Err: err}
}

// access is what is denied of a file.
type access int

const (
	writing access = iota + 1
	reading        // and writing
)

// denial is one walk of Denied.
type denial struct {
	rules   *ruleset
	read    []string
	write   []string
	in      [reading + 1]string // by access, the folder that is denied whole and that the walk is in
	linked  map[inode]access    // files with several names, one of which is denied
	unnamed string              // a denied path that is not UTF-8
}

func (d *denial) deny(path string, a access) {
	switch {
	case !utf8.ValidString(path):
		d.unnamed = path
	case a == reading:
		d.read = append(d.read, path)
	default:
		d.write = append(d.write, path)
	}
}

// inside reports what is denied of everything in the folder that path is in.
func (d *denial) inside(path string) access {
	for _, a := range []access{reading, writing} {
		if dir := d.in[a]; dir != "" && strings.HasPrefix(path, dir) && len(path) > len(dir) && path[len(dir)] == '/' {
			return a
		}
	}
	return 0
}

// enter goes into every folder: what is in a denied one may have other names.
func (d *denial) enter(path string) bool {
	over := d.inside(path)
	for _, a := range []access{reading, writing} {
		if a <= over {
			break
		}
		if d.rules.deniesFolder(path, a) {
			d.in[a] = path
			d.deny(path, a)
			break
		}
	}
	return true
}

func (d *denial) visit(fd int, e dirent) {
	if e.kind == unix.DT_LNK {
		return
	}
	over := d.inside(e.path)
	a := over
	switch {
	case over == reading:
	case !d.rules.mayRead(e.path):
		a = reading
	case over == 0 && !d.rules.mayWrite(e.path):
		a = writing
	}
	if a > over {
		d.deny(e.path, a)
	}
	if a == 0 || e.kind != unix.DT_REG {
		return
	}
	if st, err := statAt(fd, e.path[strings.LastIndexByte(e.path, '/')+1:]); err == nil && st.Nlink > 1 {
		i := inode{st.Dev, st.Ino}
		d.linked[i] = max(d.linked[i], a)
	}
}

// visitLinks lists the other names of denied files.
func (d *denial) visitLinks(fd int, e dirent) {
	if e.kind != unix.DT_REG {
		return
	}
	st, err := statAt(fd, e.path[strings.LastIndexByte(e.path, '/')+1:])
	if err != nil || st.Nlink < 2 {
		return
	}
	switch a := d.linked[inode{st.Dev, st.Ino}]; {
	case a == reading && d.rules.mayRead(e.path), a == writing && d.rules.mayWrite(e.path): // else it is listed, or in a folder that is
		d.deny(e.path, a)
	}
}

// deniesFolder reports whether the rules deny a folder with all that can be in it.
func (r *ruleset) deniesFolder(path string, a access) bool {
	deny, allow := r.denyRead, r.read
	if a == writing {
		deny, allow = r.denyWrite, r.write
	}
	if deny != nil && covers(deny, foldPath(path)) {
		return true
	}
	return allow != nil && !covers(allow, path) && !slices.ContainsFunc(allow, func(g glob) bool { return g.mayLeadTo(path) })
}

// mayLeadTo reports whether something beneath path could match.
func (g glob) mayLeadTo(path string) bool {
	i := 0
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case i >= len(g.names):
			return false
		case g.names[i].deep:
			return true
		case !g.names[i].matches(name):
			return false
		}
		i++
	}
	return i < len(g.names)
}
