//go:build !race

package remote

// raced tells that the race detector is on, under which all is many times slower.
const raced = false
