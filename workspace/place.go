package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// place is where a folder is. It is told from others by its path, and as the kernel
// knows it, since one folder has several paths where it is mounted twice, or where a
// file system takes upper for lower case.
type place struct {
	path  string        // canonical as far as it is there
	self  fs.FileInfo   // nil when nothing is there
	above []fs.FileInfo // the folders that it is in, as far as they are there
}

// locate finds the place of a folder, which must be an absolute path and need not be
// there.
func locate(folder string) place {
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(folder) // as it stands: ".." after a link is not the link's folder
		if err == nil || folder == "/" {
			return placeOf(real, rest)
		}
		folder = filepath.Clean(folder)
		folder, rest = filepath.Dir(folder), filepath.Join(filepath.Base(folder), rest)
	}
}

func placeOf(real, rest string) place {
	p := place{path: filepath.Join("/", real, rest)}
	for dir := filepath.Join("/", real); ; dir = filepath.Dir(dir) {
		// A folder that went meanwhile is told by its path alone.
		if info, err := os.Stat(dir); err == nil {
			if dir == p.path {
				p.self = info
			} else {
				p.above = append(p.above, info)
			}
		}
		if dir == "/" {
			return p
		}
	}
}

// within reports whether p is q or beneath it.
func (p place) within(q place) bool {
	if beneath(p.path, q.path) {
		return true
	}
	if q.self == nil {
		return false
	}
	if p.self != nil && os.SameFile(p.self, q.self) {
		return true
	}
	for _, info := range p.above {
		if os.SameFile(info, q.self) {
			return true
		}
	}
	return false
}

// overlaps reports whether p and q are one folder, or one is beneath the other.
func (p place) overlaps(q place) bool { return p.within(q) || q.within(p) }

// beneath reports whether the clean path is folder, or beneath it.
func beneath(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, strings.TrimSuffix(folder, "/")+"/")
}
