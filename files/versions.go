package files

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const maxVersions = 8192 // remembered; about 200 bytes each

// settleTime is how long a file must have been left alone before its version is
// remembered. Two changes within one tick of the file system's clock leave the same
// times; a file that changed longer ago than any such tick shows the next change.
const settleTime = 2 * time.Second

// inode names a file, whatever its path.
type inode struct{ dev, ino uint64 }

// versions remembers the versions of files by their inodes, for as long as size and
// times are what they were. The least recently used goes first.
type versions struct {
	mu    sync.Mutex
	known map[inode]*list.Element // guarded by mu; of order
	order *list.List              // guarded by mu; of *knownVersion, the last used in front
}

type knownVersion struct {
	of      unix.Stat_t
	version string
}

func newVersions() *versions {
	return &versions{known: map[inode]*list.Element{}, order: list.New()}
}

// get is the version of the file that st describes, if it is known.
func (v *versions) get(st *unix.Stat_t) (string, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	el := v.known[inode{st.Dev, st.Ino}]
	if el == nil {
		return "", false
	}
	k := el.Value.(*knownVersion)
	if !unchanged(&k.of, st) {
		v.order.Remove(el)
		delete(v.known, inode{st.Dev, st.Ino})
		return "", false
	}
	v.order.MoveToFront(el)
	return k.version, true
}

// put remembers the version of a file whose hashing began at the time began.
func (v *versions) put(st *unix.Stat_t, version string, began time.Time) {
	if began.Sub(time.Unix(st.Ctim.Sec, st.Ctim.Nsec)) < settleTime {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	key := inode{st.Dev, st.Ino}
	if el := v.known[key]; el != nil {
		v.order.Remove(el)
	}
	v.known[key] = v.order.PushFront(&knownVersion{of: *st, version: version})
	if v.order.Len() > maxVersions {
		old := v.order.Remove(v.order.Back()).(*knownVersion)
		delete(v.known, inode{old.of.Dev, old.of.Ino})
	}
}
