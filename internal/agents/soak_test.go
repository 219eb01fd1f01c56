package agents

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"writ/internal/testkit"
)

// Agents of the soak, and the workspaces that they share.
const (
	soakers     = 8
	soakFolders = 4
)

// soakParts is after how many equal parts of the soak everybody rests and the machine is
// looked at.
const soakParts = 3

// TestSoak has agents start commands, type, read, patch, end processes and go away in
// the middle, all at once, for as long as WRIT_SOAK says. Each checks what it is answered.
// After that nothing is left on the host, and server and runner hold at the end what they
// held after the first third.
func TestSoak(t *testing.T) {
	d := testkit.NewDice(t)
	config := "identities:\n"
	for i := range soakers {
		config += fmt.Sprintf("  - {id: agent-%d, scopes: [read, patch, exec]}\n", i)
	}
	config += "workspaces:\n"
	for i := range soakFolders {
		config += fmt.Sprintf("  - {id: site-%d, root: ROOT/site-%d, profile: workspace-write}\n", i, i)
	}
	h := newHost(t, config+"processes: {live: 3, limits: {wall_ms: 60s}}\n")
	mounts := h.mounts()
	h.serve()
	w := watch(t, h)
	all := make([]*soaker, soakers)
	for i := range all {
		site := fmt.Sprintf("site-%d", i%soakFolders)
		testkit.PutFiles(t, h.root(site), map[string]string{fmt.Sprintf("count-%d.txt", i): "0\n"})
		key := h.writ("keys", "create", "--identity", fmt.Sprintf("agent-%d", i))
		all[i] = &soaker{t: t, h: h, n: i, key: key, site: site, dice: d.Fork(), done: map[string]int{}}
	}
	part := func(length time.Duration) (held, error) {
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		var group sync.WaitGroup
		errs := make([]error, len(all))
		for i, s := range all {
			group.Go(func() { errs[i] = s.work(ctx) })
		}
		group.Wait()
		for _, err := range errs {
			if err != nil {
				return held{}, err
			}
		}
		return w.atRest(), nil
	}

	if _, err := part(2 * time.Second); err != nil { // whatever is made once is there then
		t.Fatal(err)
	}
	idle := w.goroutines()
	h.serve()
	var after [soakParts]held
	for i := range after {
		var err error
		if after[i], err = part(soakTime(t) / soakParts); err != nil {
			t.Fatal(err)
		}
		t.Logf("after part %d of %d: %v", i+1, soakParts, after[i])
	}
	done := map[string]int{}
	for _, s := range all {
		for what, n := range s.done {
			done[what] += n
		}
	}
	t.Logf("done: %v", done)
	for _, what := range []string{"exec", "terminal", "read", "patch", "kill", "vanish", "abandon", "busy"} {
		if done[what] == 0 {
			t.Errorf("nothing of the kind %q was done: the soak is too short for what it is to show", what)
		}
	}
	after[soakParts-1].within(t, after[0])
	h.writ("audit", "verify")

	// SIGQUIT counts, and leaves no time to tidy up: that is another start's.
	now := w.goroutines()
	t.Logf("goroutines of server and runner: %v at first, then %v", idle, now)
	const slack = 20 // those of the store's queue come and go
	if now[0] > idle[0]+slack || now[1] > idle[1]+slack {
		t.Errorf("server and runner have %v goroutines, and had %v at first", now, idle)
	}
	h.serve()
	h.stop()
	w.empty()
	if now := h.mounts(); !slices.Equal(mounts, now) {
		t.Errorf("the host's mounts were %q, and are %q", mounts, now)
	}
}

// soakTime is how long the soak takes.
func soakTime(t *testing.T) time.Duration {
	text := os.Getenv("WRIT_SOAK")
	if text == "" && os.Getenv("WRIT_REQUIRE") != "" {
		return 3 * time.Minute
	}
	if text == "" {
		return 30 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		t.Fatalf("WRIT_SOAK=%q: want a time from 1s", text)
	}
	return d
}

// soaker is one agent of the soak. It is for one goroutine.
type soaker struct {
	t    testing.TB
	h    *host
	n    int
	key  string
	site string
	dice *testkit.Dice
	a    *agent // nil while it has no session

	count int            // that its file has
	done  map[string]int // how often it did what
}

// work does one thing after the other until ctx ends, and leaves nothing running. An error
// is something that must not be.
func (s *soaker) work(ctx context.Context) (err error) {
	acts := map[string]func(context.Context) error{
		"exec": s.exec, "terminal": s.terminal, "read": s.read, "patch": s.patch, "kill": s.kill, "vanish": s.vanish, "abandon": s.abandon,
	}
	names := slices.Sorted(maps.Keys(acts))
	for ctx.Err() == nil {
		if s.a == nil {
			if err := s.connect(context.WithoutCancel(ctx)); err != nil {
				return fmt.Errorf("agent %d: %w", s.n, err)
			}
		}
		what := names[s.dice.Below(len(names))]
		// What has begun is brought to its end: ctx ends the soak, not the deed.
		switch err := acts[what](context.WithoutCancel(ctx)); err {
		case nil:
			s.done[what]++
		case errBusy:
			s.done["busy"]++
			pause(ctx, s.dice.UpTo(50*time.Millisecond))
		default:
			return fmt.Errorf("agent %d, %s: %w", s.n, what, err)
		}
	}
	if s.a == nil {
		return nil
	}
	s.leave()
	return nil
}

// connect begins a session of either era.
func (s *soaker) connect(ctx context.Context) error {
	revision := older
	if s.dice.OneIn(2) {
		revision = newer
	}
	s.a = &agent{t: s.t}
	return s.a.connect(ctx, over(s.h.url, s.key), revision)
}

// leave ends the session.
func (s *soaker) leave() {
	_ = s.a.session.Close() // the server may have been quicker
	s.a = nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
