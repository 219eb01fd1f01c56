// Package room bounds what the large bodies of requests take of memory together, so that it
// does not grow with the number of requests, and what those of one caller take, so that none
// keeps the others out.
//
// It promises that what was taken is never more than there is. It refuses to know bodies,
// and who a caller is. Its inputs are not hostile: callers are authenticated, and sizes are
// bounded before they come here.
package room

import (
	"fmt"
	"sync"

	"writ"
)

// Room is what may be taken of memory, by callers of K. It is safe for concurrent use.
type Room[K comparable] struct {
	most  int64
	mu    sync.Mutex
	taken int64       // guarded by mu; by all, at most most
	by    map[K]int64 // guarded by mu; by whom, at most half of most; nothing of who has none
}

// New is a room of most bytes, of which one caller has at most half.
func New[K comparable](most int64) *Room[K] { return &Room[K]{most: most, by: map[K]int64{}} }

// Take gives who n bytes, to be given back. Without room for them it gives none, and the
// error is of kind Exhausted and says whose requests are in the way.
func (m *Room[K]) Take(who K, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	whose := "others"
	if m.by[who]+n > m.most/2 {
		whose = "yours"
	} else if m.taken+n <= m.most {
		m.by[who] += n
		m.taken += n
		return nil
	}
	return &writ.Error{
		Kind: writ.Exhausted, Op: "read body",
		Msg: fmt.Sprintf("other large requests of %s are under way: send this one again in a moment", whose),
	}
}

// Give takes back n bytes of who.
func (m *Room[K]) Give(who K, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= n
	if m.by[who] -= n; m.by[who] == 0 {
		delete(m.by, who)
	}
}
