//go:build !race

package jail

// raceDetector is true in a binary for tests that has the race detector in it.
const raceDetector = false
