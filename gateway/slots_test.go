package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"writ"
)

// line has runs wait for slots one after the other, and says in which order they got them.
type line struct {
	slots *slots
	got   chan share
}

// waits has n runs of one wait, each of which gives its slot back when next says so.
func (l line) waits(ctx context.Context, of share, n int) {
	for range n {
		go func() {
			if l.slots.acquire(ctx, nil, of) {
				l.got <- of
			}
		}()
		synctest.Wait()
	}
}

// order gives slots back until nobody has one, and answers who had them.
func (l line) order() string {
	var all []string
	for {
		synctest.Wait()
		select {
		case of := <-l.got:
			all = append(all, string(of.tenant)+"/"+string(of.identity))
			l.slots.release(of)
		default:
			return strings.Join(all, " ")
		}
	}
}

func who(s string) share {
	tenant, id, _ := strings.Cut(s, "/")
	return share{writ.Tenant(tenant), writ.IdentityID(id)}
}

// A user who sends many runs at once keeps nobody else waiting until all of them are over:
// tenants take turns, and the users of one do.
func TestSlotsGoRound(t *testing.T) {
	for _, c := range []struct {
		name  string
		slots int
		comes []string
		want  string
	}{
		{"one alone has all", 1, []string{"a/x", "a/x", "a/x"}, "a/x a/x a/x"},
		{"a tenant that comes later", 1, []string{"a/x", "a/x", "a/x", "a/x", "b/y"}, "a/x a/x b/y a/x a/x"},
		{"a user that comes later", 1, []string{"a/x", "a/x", "a/x", "a/x", "a/y"}, "a/x a/x a/y a/x a/x"},
		{"many users of a tenant are one tenant", 1, []string{"a/1", "a/2", "a/3", "a/4", "b/y", "b/y"}, "a/1 a/2 b/y a/3 b/y a/4"},
		{"one name in two tenants is two users", 1, []string{"a/x", "a/x", "b/x", "b/x"}, "a/x a/x b/x b/x"},
		{"who has none goes first", 2, []string{"a/x", "a/x", "a/x", "a/x", "b/y", "b/y"}, "a/x a/x b/y a/x b/y a/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := line{newSlots(c.slots), make(chan share, len(c.comes))}
				for _, of := range c.comes {
					l.waits(t.Context(), who(of), 1)
				}
				if got := l.order(); got != c.want {
					t.Errorf("slots went to\n%s, want\n%s", got, c.want)
				}
			})
		})
	}
}

// Who keeps coming with one run at a time does not pass those for ever that came before.
func TestSlotsStarveNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := line{newSlots(1), make(chan share, 100)}
		l.waits(t.Context(), who("a/x"), 4)
		var order []string
		for i := range 12 {
			l.waits(t.Context(), who("b/"+string(rune('a'+i))), 1)
			of := <-l.got
			order = append(order, string(of.tenant))
			l.slots.release(of)
			synctest.Wait()
		}
		if n := len(slices.DeleteFunc(order, func(s string) bool { return s != "a" })); n != 4 {
			t.Errorf("of 12 slots those that came first got %d, want all their 4", n)
		}
		l.order()
	})
}

// A run that is given up gives up its place, also when it was granted at the same moment.
func TestSlotsOfRunsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := line{newSlots(1), make(chan share, 10)}
		l.waits(t.Context(), who("a/x"), 1)
		ctx, cancel := context.WithCancel(t.Context())
		l.waits(ctx, who("a/y"), 2)
		l.waits(t.Context(), who("b/z"), 1)
		cancel()
		if l.slots.acquire(ctx, nil, who("a/x")) {
			t.Error("a run that is cancelled got a slot")
		}
		if got, want := l.order(), "a/x b/z"; got != want {
			t.Errorf("slots went to %s, want %s", got, want)
		}
		closing := make(chan struct{})
		close(closing)
		if l.slots.acquire(t.Context(), closing, who("a/x")) {
			t.Error("a run began while the gateway closes")
		}
		if s := l.slots; s.free != 1 || len(s.queue)+len(s.tenants)+len(s.owners) != 0 {
			t.Errorf("left behind: %d free, %d wait, %d tenants, %d owners", s.free, len(s.queue), len(s.tenants), len(s.owners))
		}
	})
}
