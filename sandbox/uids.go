package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"writ"
)

// uidFile is where all servers of a host reserve user ids: who has locked byte N has
// lent N. Only root may write in /run, so nobody else can hold an id back; servers in
// other network or pid namespaces meet there as well. It stays, empty.
const uidFile = "/run/writ-uids.lock"

// uids lends user ids from a range, each to one living box of this host.
type uids struct {
	base, count int    // set once
	path        string // set once; uidFile

	mu   sync.Mutex
	next int          // guarded by mu; where the search starts
	file *os.File     // guarded by mu; nil until the first is lent
	held map[int]bool // guarded by mu; lent, or kept since nobody knows what runs as it
}

func newUIDs(base, count int, path string) *uids {
	return &uids{base: base, count: count, path: path, held: map[int]bool{}}
}

// acquire lends a user id that no other box has, of this provider or of another
// process. The kernel takes it back when we die.
func (u *uids) acquire() (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.file == nil {
		f, err := os.OpenFile(u.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return 0, &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox", Err: err,
				Msg: fmt.Sprintf("the user ids of boxes cannot be reserved: %v. Let root write there (a container needs a writable /run), or start writ as an ordinary user", err)}
		}
		u.file = f
	}
	for range u.count {
		id := u.base + u.next
		u.next = (u.next + 1) % u.count
		if u.held[id] {
			continue
		}
		err := u.mark(id, unix.F_WRLCK)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reserving user id %d in %s: %w", id, u.path, err)
		}
		u.held[id] = true
		return id, nil
	}
	return 0, &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox",
		Msg: fmt.Sprintf("all %d user ids from %d on are in use by boxes: run fewer at a time or configure more", u.count, u.base)}
}

// release takes id back. Nothing that ran as it may be alive: an id of which that is
// not known is never given back, and stays reserved until we die.
func (u *uids) release(id int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	// What cannot be unlocked stays lent.
	if u.held[id] && u.mark(id, unix.F_UNLCK) == nil {
		delete(u.held, id)
	}
}

// mark locks or unlocks the byte of id. The lock is that of the open file, so two
// providers of one process meet as two processes do.
func (u *uids) mark(id int, how int16) error {
	lock := unix.Flock_t{Type: how, Whence: io.SeekStart, Start: int64(id), Len: 1}
	return unix.FcntlFlock(u.file.Fd(), unix.F_OFD_SETLK, &lock)
}

// close gives up the file, unless an id is still reserved: then it is open until we die.
func (u *uids) close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.file == nil || len(u.held) > 0 {
		return nil
	}
	err := u.file.Close()
	u.file = nil
	return err
}
