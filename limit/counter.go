package limit

import (
	"context"
	"fmt"
	"time"

	"writ"
	"writ/store"
)

// Counter counts requests in the store, under rules that are the same in all gateways
// that share it. Its methods may be called at once.
type Counter struct {
	db    *store.DB
	rules map[string]Rule
	now   func() time.Time
}

// NewCounter is a counter under rules that Validate has let through. now is the clock, nil
// for the machine's.
func NewCounter(db *store.DB, rules Rules, now func() time.Time) *Counter {
	if now == nil {
		now = time.Now
	}
	return &Counter{db: db, rules: rules.byName(), now: now}
}

// Count counts one more request of p under the rule of that name, and answers what it is to
// be told. With an error, which is the store's or that of a name that is none, the request
// must not go on.
//
// It is exact also when several gateways count at one moment. Their clocks are taken to
// differ by less than the rule's window.
func (c *Counter) Count(ctx context.Context, rule string, p writ.Principal) (Answer, error) {
	r, ok := c.rules[rule]
	if !ok {
		return Answer{}, fmt.Errorf("count a request: there is no rule %q", rule)
	}
	now := c.now().Truncate(time.Millisecond) // as the store keeps it
	began, used, err := c.db.Count(ctx, writ.DigestOf([]byte(Key(rule, p))), now, r.Window, MaxMost)
	if err != nil {
		return Answer{}, err
	}
	return r.Answer(Count{Began: began, Used: int(used)}, now), nil
}
