package limit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"writ"
)

// Rule is at most Most requests of one caller in each Window.
type Rule struct {
	Most   int
	Window time.Duration
}

// The names of the rules, which a Counter counts under.
const (
	Exec     = "exec"
	Upload   = "upload"
	Download = "download"
	Fetch    = "fetch"
)

// Rules are the limits of the code interpreter's API, which are counted apart.
type Rules struct {
	Exec     Rule // runs, and the rounds of programmatic tool calls
	Upload   Rule
	Download Rule
	Fetch    Rule // list, metadata, delete
}

// DefaultRules are those of the contract.
func DefaultRules() Rules {
	return Rules{
		Exec:     Rule{20, 30 * time.Second},
		Upload:   Rule{30, 300 * time.Second},
		Download: Rule{60, 60 * time.Second},
		Fetch:    Rule{120, 60 * time.Second},
	}
}

// byName is each rule by the name that it is counted under.
func (r Rules) byName() map[string]Rule {
	return map[string]Rule{Exec: r.Exec, Upload: r.Upload, Download: r.Download, Fetch: r.Fetch}
}

// Validate reports every fault of the rules at once.
func (r Rules) Validate() error {
	var errs []error
	rules := r.byName()
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if err := rules[name].Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// The bounds of a rule.
const (
	MaxMost   = 1_000_000_000
	MaxWindow = 24 * time.Hour
)

// Validate reports every fault of the rule at once.
func (r Rule) Validate() error {
	var errs []error
	if r.Most < 1 || r.Most > MaxMost {
		errs = append(errs, fmt.Errorf("%d requests: want 1 to %d", r.Most, MaxMost))
	}
	if r.Window < time.Millisecond || r.Window > MaxWindow {
		errs = append(errs, fmt.Errorf("a window of %v: want %v to %v", r.Window, time.Millisecond, MaxWindow))
	}
	return errors.Join(errs...)
}

// Count is what is kept of one caller under one rule. The zero value is of somebody
// who never came.
type Count struct {
	Began time.Time // of the window
	Used  int       // requests since then, also those refused; at most MaxMost+1
}

// Add is c after one more request at now: of the same window while that lasts, else
// the first of a new one. A window that begins later than now by its whole length is
// of a clock that was set back, and over; by less, it is of another gateway's clock,
// and lasts on.
//
// The store counts in one statement of its own that does what Add does (store.DB.Count),
// so that two gateways never count on one old Count.
func (r Rule) Add(c Count, now time.Time) Count {
	age := now.Sub(c.Began)
	if c.Used < 1 || age >= r.Window || age <= -r.Window {
		return Count{Began: now, Used: 1}
	}
	return Count{Began: c.Began, Used: min(c.Used, MaxMost) + 1}
}

// Answer is what a request is told, given the count that it is part of.
type Answer struct {
	Allowed   bool
	Most      int
	Remaining int           // requests that this window still allows
	Reset     time.Duration // until the next window: 1 s or more, whole seconds
	Window    time.Duration
}

// Answer is that of a request at now whose Add gave c.
func (r Rule) Answer(c Count, now time.Time) Answer {
	left := c.Began.Add(r.Window).Sub(now)
	return Answer{
		Allowed:   c.Used <= r.Most,
		Most:      r.Most,
		Remaining: max(r.Most-c.Used, 0),
		Reset:     max(up(left), time.Second),
		Window:    r.Window,
	}
}

// up is d in whole seconds, at least as long.
func up(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// RetryAfter is the seconds after which a refused caller may come again.
func (a Answer) RetryAfter() int { return int(a.Reset / time.Second) }

// Header is one header of a reply.
type Header struct{ Name, Value string }

// Headers are those that each limited reply carries, in the form of the sixth draft
// of RateLimit headers; a refused one also has Retry-After.
func (a Answer) Headers() []Header {
	h := []Header{
		{"RateLimit-Policy", fmt.Sprintf("%d;w=%d", a.Most, up(a.Window)/time.Second)},
		{"RateLimit-Limit", strconv.Itoa(a.Most)},
		{"RateLimit-Remaining", strconv.Itoa(a.Remaining)},
		{"RateLimit-Reset", strconv.Itoa(a.RetryAfter())},
	}
	if !a.Allowed {
		h = append(h, Header{"Retry-After", strconv.Itoa(a.RetryAfter())})
	}
	return h
}

// Key is under which p's requests are counted by the rule of that name. Each part
// stands with its length, so that no two callers have one key, whatever their
// tenants and ids are made of.
func Key(rule string, p writ.Principal) string {
	var b strings.Builder
	for _, part := range []string{rule, string(p.Tenant), string(p.Kind), p.ID} {
		fmt.Fprintf(&b, "%d:%s", len(part), part)
	}
	return b.String()
}
