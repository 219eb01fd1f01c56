package auth

import (
	"hash/maphash"
	"sync"
	"time"
)

const (
	limiterSlots = 1024
	failureBurst = 10              // failures of one key id at once
	failureEvery = 6 * time.Second // then one more each
)

// limiter counts failures by name in fixed memory. Names share slots by a hash that
// nobody outside can aim at; sharing makes it stricter, never laxer.
type limiter struct {
	seed maphash.Seed

	mu    sync.Mutex
	slots [limiterSlots]time.Time // guarded by mu; when all failures so far are worked off
}

func newLimiter() *limiter { return &limiter{seed: maphash.MakeSeed()} }

// allow counts one failure of name at now and reports whether it is within the
// limit. What is beyond is not counted, so the limit never grows out of reach. A
// clock that goes back makes it stricter by at most the burst.
func (l *limiter) allow(name string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	slot := &l.slots[maphash.String(l.seed, name)%limiterSlots]
	const most = failureBurst * failureEvery
	free := *slot
	if free.Before(now) {
		free = now
	}
	if free.After(now.Add(most)) { // the clock went back
		free = now.Add(most)
	}
	next := free.Add(failureEvery)
	if next.After(now.Add(most)) {
		*slot = free
		return false
	}
	*slot = next
	return true
}
