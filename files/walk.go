package files

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Limits of one walk (spec/02 §3.3).
const (
	MaxDepth   = 64     // of folders
	MaxFolders = 10_000 // opened
	MaxEntries = 50_000 // of all folders together

	maxPathBytes  = 4095     // what an open takes
	maxNamesBytes = 64 << 20 // of all paths together
)

// walker goes through the folders beneath a root, in the byte order of the names in
// each, so that what a cap leaves out is the same every time.
type walker struct {
	ctx   context.Context
	enter func(path string) bool // whether to go into a folder
	visit func(fd int, e dirent) // of everything that is no folder; fd is the folder it is in
	// Zero means MaxFolders and MaxEntries.
	maxFolders, maxEntries int

	folders, entries, bytes int
	buf                     []byte
	// incomplete: a cap was hit, or a folder could not be read.
	incomplete bool
}

// walk visits everything. The error is of ctx, or of the root.
func (w *walker) walk(root int) error {
	w.buf = make([]byte, 64<<10)
	w.maxFolders, w.maxEntries = cmp.Or(w.maxFolders, MaxFolders), cmp.Or(w.maxEntries, MaxEntries)
	fd, err := openFolder(root, ".")
	if err != nil {
		return err
	}
	defer closeAll(fd)
	return w.folder(fd, "", 0)
}

func (w *walker) folder(fd int, prefix string, depth int) error {
	w.folders++
	list, more, err := readFolder(fd, prefix, w.maxEntries-w.entries, w.buf)
	if err != nil {
		return err
	}
	w.entries += len(list)
	w.incomplete = w.incomplete || more
	slices.SortFunc(list, func(a, b dirent) int { return strings.Compare(a.path, b.path) })
	for _, e := range list {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		w.bytes += len(e.path)
		if len(e.path) > maxPathBytes || w.bytes > maxNamesBytes {
			w.incomplete = true
			continue
		}
		if e.kind != unix.DT_DIR {
			w.visit(fd, e)
			continue
		}
		if !w.enter(e.path) {
			continue
		}
		if depth >= MaxDepth || w.folders >= w.maxFolders {
			w.incomplete = true
			continue
		}
		if err := w.descend(fd, e, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// descend goes into a folder. One that is gone, or no folder any more, is nothing.
func (w *walker) descend(parent int, e dirent, depth int) error {
	fd, err := openFolder(parent, e.path[strings.LastIndexByte(e.path, '/')+1:])
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP:
		return nil
	default:
		w.incomplete = true
		return nil
	}
	defer closeAll(fd)
	if err := w.folder(fd, e.path+"/", depth); err != nil {
		if w.ctx.Err() != nil {
			return w.ctx.Err()
		}
		w.incomplete = w.incomplete || err != unix.ENOENT
	}
	return nil
}
