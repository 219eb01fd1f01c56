package limit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"writ"
	"writ/limit"
)

var start = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

func headers(a limit.Answer) string {
	var b strings.Builder
	for _, h := range a.Headers() {
		b.WriteString(h.Name + ": " + h.Value + "\n")
	}
	return b.String()
}

// The replies of the contract's own server to two runs under a limit of one in 30 s.
func TestHeadersAreTheContracts(t *testing.T) {
	r := limit.Rule{Most: 1, Window: 30 * time.Second}
	c := r.Add(limit.Count{}, start)
	got := headers(r.Answer(c, start))
	now := start.Add(2*time.Second + 300*time.Millisecond)
	c = r.Add(c, now)
	a := r.Answer(c, now)
	got += headers(a)
	want := `RateLimit-Policy: 1;w=30
RateLimit-Limit: 1
RateLimit-Remaining: 0
RateLimit-Reset: 30
RateLimit-Policy: 1;w=30
RateLimit-Limit: 1
RateLimit-Remaining: 0
RateLimit-Reset: 28
Retry-After: 28
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a.RetryAfter() != 28 {
		t.Errorf("RetryAfter = %d, want 28", a.RetryAfter())
	}
}

func TestDefaultRules(t *testing.T) {
	d := limit.DefaultRules()
	for name, tt := range map[string]struct {
		rule limit.Rule
		want string
	}{
		"exec": {d.Exec, "20;w=30"}, "upload": {d.Upload, "30;w=300"},
		"download": {d.Download, "60;w=60"}, "fetch": {d.Fetch, "120;w=60"},
	} {
		if err := tt.rule.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := tt.rule.Answer(tt.rule.Add(limit.Count{}, start), start).Headers()[0].Value; got != tt.want {
			t.Errorf("%s: policy %q, want %q", name, got, tt.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, r := range []limit.Rule{
		{}, {Most: 0, Window: time.Second}, {Most: -1, Window: time.Second}, {Most: limit.MaxMost + 1, Window: time.Second},
		{Most: 1}, {Most: 1, Window: -time.Second}, {Most: 1, Window: time.Microsecond}, {Most: 1, Window: limit.MaxWindow + 1},
	} {
		if r.Validate() == nil {
			t.Errorf("%+v is a rule", r)
		}
	}
}

func TestWindowEndsExactly(t *testing.T) {
	r := limit.Rule{Most: 2, Window: 10 * time.Second}
	c := limit.Count{}
	for i, tt := range []struct {
		at      time.Duration
		allowed bool
		left    int
		reset   time.Duration
	}{
		{0, true, 1, 10 * time.Second},
		{9 * time.Second, true, 0, time.Second},
		{10*time.Second - 1, false, 0, time.Second},
		{10 * time.Second, true, 1, 10 * time.Second},
		{11 * time.Second, true, 0, 9 * time.Second},
		{12 * time.Second, false, 0, 8 * time.Second},
		{40 * time.Second, true, 1, 10 * time.Second},
		{39 * time.Second, true, 0, 11 * time.Second},    // another clock, a little behind
		{38 * time.Second, false, 0, 12 * time.Second},   //
		{30*time.Second + 1, false, 0, 20 * time.Second}, //
		{30 * time.Second, true, 1, 10 * time.Second},    // set back by a whole window
	} {
		now := start.Add(tt.at)
		c = r.Add(c, now)
		a := r.Answer(c, now)
		if a.Allowed != tt.allowed || a.Remaining != tt.left || a.Reset != tt.reset {
			t.Errorf("request %d at %v: %+v, want %+v", i, tt.at, a, tt)
		}
	}
}

// Whatever requests come when, a window lets the limit through, and any stretch as
// long as a window twice that; who is refused and waits as long as told is let in.
func TestProperty_LimitHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := limit.Rule{
			Most:   rapid.IntRange(1, 8).Draw(t, "most"),
			Window: time.Duration(rapid.Int64Range(1, 5000).Draw(t, "window")) * time.Millisecond,
		}
		gaps := rapid.SliceOfN(rapid.Int64Range(0, 3000), 1, 80).Draw(t, "gaps, ms")
		now, c := start, limit.Count{}
		var allowed []time.Time
		inWindow := 0
		for _, gap := range gaps {
			now = now.Add(time.Duration(gap) * time.Millisecond)
			before := c
			c = r.Add(c, now)
			if !c.Began.Equal(before.Began) || before.Used == 0 {
				inWindow = 0
			}
			if c.Began.After(now) || now.Sub(c.Began) >= r.Window {
				t.Fatalf("now %v is outside of its own window from %v", now, c.Began)
			}
			a := r.Answer(c, now)
			if a.Allowed {
				inWindow++
				allowed = append(allowed, now)
			}
			if inWindow > r.Most {
				t.Fatalf("%d requests passed in one window, want at most %d", inWindow, r.Most)
			}
			if a.Remaining != r.Most-inWindow {
				t.Fatalf("remaining is %d after %d of %d", a.Remaining, inWindow, r.Most)
			}
			if !a.Allowed && inWindow < r.Most {
				t.Fatalf("refused with %d of %d used", inWindow, r.Most)
			}
			if a.Reset < time.Second || a.Reset%time.Second != 0 || a.Reset > r.Window+time.Second {
				t.Fatalf("reset is %v in a window of %v", a.Reset, r.Window)
			}
			later := now.Add(a.Reset)
			if next := r.Answer(r.Add(c, later), later); !next.Allowed {
				t.Fatalf("refused again after waiting the %v it was told", a.Reset)
			}
		}
		for i := range allowed {
			n := 0
			for _, at := range allowed[i:] {
				if at.Sub(allowed[i]) < r.Window {
					n++
				}
			}
			if n > 2*r.Most {
				t.Fatalf("%d passed within %v, want at most %d", n, r.Window, 2*r.Most)
			}
		}
	})
}

// The clock may jump, and what is kept may be anything: nobody is let in beyond the
// limit of a window, and nobody is locked out for longer than two.
func TestProperty_StrangeCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := limit.Rule{Most: rapid.IntRange(1, 5).Draw(t, "most"), Window: time.Duration(rapid.Int64Range(1, 100).Draw(t, "window")) * time.Second}
		c := limit.Count{
			Began: start.Add(time.Duration(rapid.Int64Range(-400, 400).Draw(t, "began")) * time.Second),
			Used:  rapid.Int().Draw(t, "used"),
		}
		a := r.Answer(r.Add(c, start), start)
		if a.Remaining < 0 || a.Remaining >= r.Most || a.Reset < time.Second || a.Reset > 2*r.Window {
			t.Fatalf("answer %+v of %+v", a, c)
		}
		if a.Allowed != (r.Add(c, start).Used <= r.Most) {
			t.Fatalf("answer %+v of %+v", a, c)
		}
	})
}

func TestCountDoesNotRunOver(t *testing.T) {
	r := limit.Rule{Most: limit.MaxMost, Window: time.Second}
	c := r.Add(limit.Count{Began: start, Used: math.MaxInt}, start)
	for range 3 {
		if c.Used != limit.MaxMost+1 || r.Answer(c, start).Allowed {
			t.Fatalf("count %+v, answer %+v", c, r.Answer(c, start))
		}
		c = r.Add(c, start)
	}
}

func TestKeysOfCallersNeverMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.StringMatching(`[a:_0-9]{0,4}`)
		draw := func(who string) (string, writ.Principal) {
			return part.Draw(t, who+" rule"), writ.Principal{
				Kind: writ.PrincipalKind(part.Draw(t, who+" kind")), ID: part.Draw(t, who+" id"), Tenant: writ.Tenant(part.Draw(t, who+" tenant")),
			}
		}
		rule1, p1 := draw("first")
		rule2, p2 := draw("second")
		same := rule1 == rule2 && p1.Kind == p2.Kind && p1.ID == p2.ID && p1.Tenant == p2.Tenant
		if (limit.Key(rule1, p1) == limit.Key(rule2, p2)) != same {
			t.Fatalf("keys %q and %q", limit.Key(rule1, p1), limit.Key(rule2, p2))
		}
	})
	// Joined by colons alone, these two are one.
	if limit.Key("exec", writ.Principal{Tenant: "a:", ID: "b"}) == limit.Key("exec", writ.Principal{Tenant: "a", ID: ":b"}) {
		t.Error("a colon moves from one part to the next")
	}
	// As the contract's server counts, so are these.
	if limit.Key("exec", writ.Principal{Tenant: "a:b", ID: "c"}) == limit.Key("exec", writ.Principal{Tenant: "a_b", ID: "c"}) {
		t.Error("two tenants are counted together")
	}
}
