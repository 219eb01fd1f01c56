package testkit

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Dice is a stream of choices that a seed decides (SplitMix64). It is for one
// goroutine.
type Dice struct{ state uint64 }

// NewDice is the dice of the test's seed, which it logs.
func NewDice(t testing.TB) *Dice {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("WRIT_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("WRIT_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("repeat with WRIT_SEED=%d", seed)
	return &Dice{seed}
}

// Next is any number.
func (d *Dice) Next() uint64 {
	d.state += 0x9e3779b97f4a7c15
	z := d.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Fork is dice of their own for another goroutine.
func (d *Dice) Fork() *Dice { return &Dice{d.Next()} }

// Below is one of 0 to n-1.
func (d *Dice) Below(n int) int { return int(d.Next() % uint64(n)) }

// OneIn is true once in n times.
func (d *Dice) OneIn(n int) bool { return d.Below(n) == 0 }

// UpTo is a time between 0 and max.
func (d *Dice) UpTo(max time.Duration) time.Duration { return time.Duration(d.Below(int(max) + 1)) }
