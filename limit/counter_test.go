package limit_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"writ"
	"writ/internal/testkit"
	"writ/limit"
	"writ/store"
)

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "writ.db") }

// TestCounts is what must hold on both engines. again opens the store once more, where more
// than one process may have it, and else answers the same.
func TestCounts(t *testing.T) {
	for engine, fresh := range map[string]func(testing.TB) string{"sqlite": sqliteURL, "postgres": testkit.Postgres(t)} {
		url := fresh(t)
		db := testkit.OpenStore(t, url)
		again := func() *store.DB { return db }
		if engine == "postgres" {
			again = func() *store.DB { return testkit.OpenStore(t, url) }
		}
		t.Run(engine+"/Property_the store counts as Add", func(t *testing.T) { storeCountsAsAdd(t, db) })
		t.Run(engine+"/several gateways never allow more", func(t *testing.T) { severalGateways(t, db, again()) })
	}
}

// storeCountsAsAdd: whatever the clocks of gateways say, one statement of the
// store does what the arithmetic does.
func storeCountsAsAdd(t *testing.T, db *store.DB) {
	key := 0
	rapid.Check(t, func(rt *rapid.T) {
		key++
		r := limit.Rule{Most: 3, Window: time.Duration(rapid.Int64Range(1000, 5_000_000).Draw(rt, "window")) * time.Microsecond}
		most := rapid.SampledFrom([]int64{limit.MaxMost, 4}).Draw(rt, "most")
		now, want := start, limit.Count{}
		for _, ms := range rapid.SliceOfN(rapid.Int64Range(-6000, 6000), 1, 12).Draw(rt, "steps, ms") {
			now = now.Add(time.Duration(ms) * time.Millisecond)
			want = r.Add(want, now)
			want.Used = min(want.Used, int(most)+1)
			began, used, err := db.Count(context.Background(), writ.DigestOf([]byte(fmt.Sprint(key))), now, r.Window, most)
			if err != nil || !began.Equal(want.Began) || int(used) != want.Used {
				rt.Fatalf("at %v counted %d since %v, %v, want %+v", now, used, began, err, want)
			}
		}
	})
}

// severalGateways: in each window exactly the limit of many requests at
// one moment goes on, through whichever gateway.
func severalGateways(t *testing.T, db, again *store.DB) {
	rules := limit.DefaultRules()
	rules.Exec = limit.Rule{Most: 7, Window: 10 * time.Second}
	var clock atomic.Int64 // ms after start; the gateways' own may differ a little
	gateway := func(db *store.DB, off time.Duration) *limit.Counter {
		return limit.NewCounter(db, rules, func() time.Time { return start.Add(time.Duration(clock.Load())*time.Millisecond + off) })
	}
	gateways := []*limit.Counter{gateway(db, 0), gateway(again, 300*time.Millisecond)}
	ada := writ.Principal{Kind: writ.KindUser, ID: "ada\x00\xff", Tenant: "acme"} // whatever a token says
	for window := range 3 {
		clock.Store(int64(window) * 20_000)
		var allowed atomic.Int64
		remaining := make([]atomic.Int64, rules.Exec.Most+1)
		var wg sync.WaitGroup
		for n := range 12 {
			wg.Go(func() {
				for range 3 {
					a, err := gateways[n%2].Count(context.Background(), "exec", ada)
					if err != nil {
						t.Error(err)
					}
					if a.Allowed {
						allowed.Add(1)
						remaining[a.Remaining].Add(1)
					} else if a.Remaining != 0 || a.Reset < 9*time.Second || a.Reset > 11*time.Second {
						t.Errorf("refused with %+v", a)
					}
				}
			})
		}
		wg.Wait()
		if allowed.Load() != int64(rules.Exec.Most) {
			t.Errorf("%d of 36 were allowed, want %d", allowed.Load(), rules.Exec.Most)
		}
		for left := range rules.Exec.Most {
			if got := remaining[left].Load(); got != 1 {
				t.Errorf("%d were told that %d remain, want one", got, left)
			}
		}
	}
}

func TestCounter(t *testing.T) {
	db, ctx := testkit.OpenStore(t, sqliteURL(t)), context.Background()
	rules := limit.Rules{Exec: limit.Rule{1, time.Minute}, Upload: limit.Rule{2, time.Minute}, Download: limit.Rule{3, time.Minute}, Fetch: limit.Rule{4, time.Minute}}
	c := limit.NewCounter(db, rules, nil)
	ada, bob := writ.Principal{Kind: writ.KindUser, ID: "ada", Tenant: "acme"}, writ.Principal{Kind: writ.KindUser, ID: "bob", Tenant: "acme"}
	for _, who := range []writ.Principal{ada, bob} {
		for rule, most := range map[string]int{"exec": 1, "upload": 2, "download": 3, "fetch": 4} {
			for n := range most + 2 {
				a, err := c.Count(ctx, rule, who)
				if err != nil || a.Allowed != (n < most) || a.Most != most || a.Remaining != max(most-n-1, 0) || a.Window != time.Minute {
					t.Errorf("%s, request %d: %+v, %v", rule, n, a, err)
				}
			}
		}
	}
	for _, rule := range []string{"", "Exec", "none"} {
		if a, err := c.Count(ctx, rule, ada); err == nil || a.Allowed {
			t.Errorf("rule %q: %+v, %v", rule, a, err)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if a, err := c.Count(gone, "fetch", ada); err == nil || a.Allowed {
		t.Errorf("for nobody: %+v, %v", a, err)
	}
	if err := rules.Validate(); err != nil {
		t.Error(err)
	}
	rules.Upload, rules.Fetch = limit.Rule{}, limit.Rule{Most: 1}
	if err := rules.Validate(); err == nil || !strings.HasPrefix(err.Error(), "fetch: a window of 0s") || !strings.Contains(err.Error(), "\nupload: 0 requests") {
		t.Errorf("two rules that are none: %v", err)
	}
}

func BenchmarkCount(b *testing.B) {
	for engine, fresh := range map[string]func(testing.TB) string{"sqlite": sqliteURL, "postgres": testkit.Postgres(b)} {
		b.Run(engine, func(b *testing.B) {
			c := limit.NewCounter(testkit.OpenStore(b, fresh(b)), limit.DefaultRules(), nil)
			n := 0
			for b.Loop() {
				n++
				if _, err := c.Count(context.Background(), "exec", writ.Principal{ID: fmt.Sprint(n % 100)}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
