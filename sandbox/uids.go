package sandbox

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"writ"
)

// uids lends user ids from a range, each to one living box of this host.
type uids struct {
	base, count int // set once

	mu   sync.Mutex
	next int                  // guarded by mu; where the search starts
	held map[int]net.Listener // guarded by mu
}

func newUIDs(base, count int) *uids {
	return &uids{base: base, count: count, held: map[int]net.Listener{}}
}

// acquire lends a user id that no other box has, of this provider or of another
// process. What says so is an abstract socket named after it, which the kernel
// takes back when we die.
func (u *uids) acquire() (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for range u.count {
		id := u.base + u.next
		u.next = (u.next + 1) % u.count
		if u.held[id] != nil {
			continue
		}
		l, err := net.Listen("unix", fmt.Sprintf("@writ/uid/%d", id))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("reserving user id %d: %w", id, err)
		}
		u.held[id] = l
		return id, nil
	}
	return 0, &writ.Error{Kind: writ.Unavailable, Op: "prepare sandbox",
		Msg: fmt.Sprintf("all %d user ids from %d on are in use by boxes: run fewer at a time or configure more", u.count, u.base)}
}

// release takes id back. Nothing that ran as it may be alive.
func (u *uids) release(id int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.held[id]; l != nil {
		_ = l.Close() // an abstract name: nothing is left to remove
		delete(u.held, id)
	}
}
