package audit

import (
	"sync"
	"time"
)

// Bounds of what callers can have recorded only by being refused.
const (
	boundMinute  = 60   // records a minute of one caller
	boundCallers = 1000 // callers told apart in a minute; all others count as one
)

// Bound keeps refusals from filling the log: what is over it is counted, and the
// count stands in the caller's next record. Its zero value is ready. It is safe for
// concurrent use.
type Bound struct {
	mu      sync.Mutex
	minute  time.Time              // guarded by mu; which one is counted
	callers map[string]*boundCount // guarded by mu; at most boundCallers+1
}

type boundCount struct {
	written int   // in this minute
	dropped int64 // since the last that was written
}

// Due reports whether a refusal of caller at now is to be recorded, and how many of
// its refusals were not since the last that was.
func (b *Bound) Due(caller string, now time.Time) (dropped int64, due bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if m := now.Truncate(time.Minute); !m.Equal(b.minute) {
		b.minute = m
		b.forget()
	}
	c := b.callers[caller]
	if c == nil && len(b.callers) >= boundCallers {
		caller = "" // no caller's name
		c = b.callers[caller]
	}
	if c == nil {
		c = &boundCount{}
		b.callers[caller] = c
	}
	if c.written >= boundMinute {
		c.dropped++
		return 0, false
	}
	c.written++
	dropped, c.dropped = c.dropped, 0
	return dropped, true
}

// forget begins a new minute: only who has uncounted refusals is remembered.
func (b *Bound) forget() {
	old := b.callers
	b.callers = map[string]*boundCount{}
	for name, c := range old {
		if c.dropped > 0 {
			b.callers[name] = &boundCount{dropped: c.dropped}
		}
	}
}
