package agents

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// dice is a stream of choices that a seed decides (SplitMix64). It is for one
// goroutine.
type dice struct{ state uint64 }

// newDice is the dice of the test's seed, which it logs.
func newDice(t testing.TB) *dice {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WRIT_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("WRIT_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("repeat with WRIT_SEED=%d", seed)
	return &dice{seed}
}

func (d *dice) next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fork is dice of their own for another goroutine.
func (d *dice) fork() *dice { return &dice{d.next()} }

// below is one of 0 to n-1.
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

// oneIn is true once in n times.
func (d *dice) oneIn(n int) bool { return d.below(n) == 0 }

// upTo is a time between 0 and max.
func (d *dice) upTo(max time.Duration) time.Duration { return time.Duration(d.below(int(max) + 1)) }
