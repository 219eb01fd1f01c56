//go:build race

package sandbox

// raceEnabled tells tests that this binary, which is also the jail, has the race
// detector in it.
const raceEnabled = true
