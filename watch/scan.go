package watch

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Limits of what is watched, beside the number of watches (spec/02 §3.3).
const (
	MaxDepth     = 64     // of folders
	MaxEntries   = 50_000 // listed at one time
	maxPathBytes = 4095   // what an open takes
)

// scan looks at folders, puts watches on them, and keeps the tree.
type scan struct {
	ctx     context.Context
	tree    *tree
	root    *descriptor
	limit   int // of watches
	entries int // listed since this scan began
	// found is told the path of what is in folders that are new; nil: nobody asks.
	found func(path string)
	// lacking is told that something is not watched, and cannot be.
	lacking func()
	// expected is the folder that is looked for, if any. Where another that is known is
	// found instead, events were read too late to say how it came there: unsaid.
	expected *node
	unsaid   bool

	// spent is how long scans took since somebody set it to 0.
	spent time.Duration
}

// whole watches the root and all beneath. Only an error of the root is one.
func (s *scan) whole() error {
	defer s.clock(time.Now())
	s.entries = 0
	fd, err := s.open(".")
	if err != nil {
		return os.NewSyscallError("openat2", err)
	}
	open := folderFile(fd)
	defer open.Close()
	id, err := inodeOf(fd)
	if err != nil {
		return os.NewSyscallError("fstat", err)
	}
	wd, err := s.tree.kernel.add(fd)
	if err != nil {
		return os.NewSyscallError("inotify_add_watch", err)
	}
	s.tree.top = s.tree.add(wd, id)
	s.list(open, fd, s.tree.top, "", 0)
	return s.ctx.Err()
}

func (s *scan) clock(began time.Time) { s.spent += time.Since(began) }

// look sees what folder is at a name in a watched one, and keeps it there. Nil means that
// no folder is there, or one that cannot be watched; when not even the parent is found
// where it should be, the parent is in doubt.
func (s *scan) look(parent *node, name string) *node {
	defer s.clock(time.Now())
	s.entries = 0
	fd, prefix, ok := s.reach(parent)
	if !ok {
		return nil
	}
	defer closeFolder(fd)
	if prefix != "" {
		prefix += "/"
	}
	return s.enter(fd, parent, name, prefix+name, s.tree.depth(parent)+1)
}

// open opens a folder by its path from the root.
func (s *scan) open(path string) (fd int, err error) {
	if gone := s.root.use(func(root int) { fd, err = openFolder(root, path) }); gone != nil {
		return -1, gone
	}
	return fd, err
}

func orDot(path string) string {
	if path == "" {
		return "."
	}
	return path
}

// there reports whether something is at a name in a watched folder.
func (s *scan) there(n *node, name string) bool {
	fd, _, ok := s.reach(n)
	if !ok {
		s.unsaid = true // whatever is told now may be wrong
		return false
	}
	defer closeFolder(fd)
	return exists(fd, name)
}

// reach opens a watched folder at its place. When it is not found there it is in doubt.
func (s *scan) reach(n *node) (fd int, path string, ok bool) {
	if n != s.tree.top {
		if path, ok = s.tree.path(n.parent, n.name); !ok {
			s.tree.doubtful[n] = true
			return -1, "", false
		}
	}
	fd, err := s.open(orDot(path))
	if err != nil {
		s.unopened(err, n)
		return -1, "", false
	}
	if id, err := inodeOf(fd); err != nil || id != n.id {
		s.tree.doubtful[n] = true
		closeFolder(fd)
		return -1, "", false
	}
	return fd, path, true
}

// unopened takes note of a folder, which should be there, that could not be opened.
func (s *scan) unopened(err error, n *node) {
	if nothing(err) {
		s.tree.doubtful[n] = true
		return
	}
	s.lacking()
}

// enter watches the folder at a name in the folder dir, which is parent's.
func (s *scan) enter(dir int, parent *node, name, path string, depth int) *node {
	fd, err := openFolder(dir, name)
	if err != nil {
		if !nothing(err) {
			s.lacking()
		}
		return nil
	}
	open := folderFile(fd)
	defer open.Close()
	id, err := inodeOf(fd)
	if err != nil || depth > MaxDepth {
		s.lacking()
		return nil
	}
	if len(s.tree.nodes) >= s.limit && s.tree.ids[id] == nil {
		s.lacking()
		return nil
	}
	// Before the listing: what is made after it is told by the watch.
	wd, err := s.tree.kernel.add(fd)
	if err != nil {
		if err != unix.ENOENT { // removed since it was opened
			s.lacking()
		}
		return nil
	}
	n, known := s.tree.nodes[wd], true
	if n == nil {
		n, known = s.tree.add(wd, id), false
	}
	if known && !n.at(parent, name) && n != s.expected {
		s.unsaid = true
	}
	doubtful := s.tree.doubtful[n]
	delete(s.tree.doubtful, n)
	s.tree.place(n, parent, name)
	// One in doubt may have got folders that were not found, since it had moved.
	if !known || doubtful {
		s.list(open, fd, n, path+"/", depth)
	}
	return n
}

// list tells what is in the folder n, which is open as dir and fd, and watches the folders
// in it.
func (s *scan) list(dir *os.File, fd int, n *node, prefix string, depth int) {
	for s.ctx.Err() == nil {
		entries, err := dir.ReadDir(256)
		for _, e := range entries {
			if s.entries++; s.entries > MaxEntries || len(prefix)+len(e.Name()) > maxPathBytes {
				s.lacking()
				return
			}
			if s.found != nil {
				s.found(prefix + e.Name())
			}
			if e.IsDir() {
				s.enter(fd, n, e.Name(), prefix+e.Name(), depth+1)
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			s.lacking()
			return
		}
	}
}
