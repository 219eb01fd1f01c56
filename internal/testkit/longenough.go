package testkit

import "testing"

// LongEnough calls try with a limit of time, and with twice that as long as try says that
// it was too short for a machine that is busy, and may stand still for a moment.
func LongEnough(t testing.TB, ms int64, try func(ms int64) bool) {
	t.Helper()
	for ; !try(ms); ms *= 2 {
		if ms > patience.Milliseconds() {
			t.Fatalf("%d ms are not long enough", ms)
		}
	}
}
