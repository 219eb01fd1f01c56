package runner

import (
	"fmt"
	"sync"

	"writ"
)

// keptIDs is how many ids of ended runs are remembered: more than a runner ends
// while any caller may still repeat a call.
const keptIDs = 1 << 16

// ids remembers which runs there were. The records of the gateway are what makes a
// run happen at most once; this holds it against a gateway that errs.
type ids struct {
	mu    sync.Mutex
	live  map[string]bool // guarded by mu; ids of calls under way
	spent map[string]bool // guarded by mu; the ids in order
	order []string        // guarded by mu; a ring, at most keptIDs
	next  int             // guarded by mu; the oldest, once the ring is full
}

func newIDs() *ids {
	return &ids{live: map[string]bool{}, spent: map[string]bool{}}
}

// begin takes id for one call, which must end it. It answers writ.Conflict when id
// is under way or was spent.
func (s *ids) begin(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[id] || s.spent[id] {
		return &writ.Error{Kind: writ.Conflict, Op: "run", Msg: fmt.Sprintf("run %s was started before: a run happens at most once; send a new one", id)}
	}
	s.live[id] = true
	return nil
}

// end gives id up; spent says that it must not be used again.
func (s *ids) end(id string, spent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, id)
	if !spent {
		return
	}
	s.spent[id] = true
	if len(s.order) < keptIDs {
		s.order = append(s.order, id)
		return
	}
	delete(s.spent, s.order[s.next])
	s.order[s.next] = id
	s.next = (s.next + 1) % keptIDs
}
