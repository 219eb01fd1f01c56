package crashtest

import (
	"os"
	"strconv"
	"testing"
)

// count is the number that an environment variable sets, or def.
func count(t testing.TB, name string, def int) int {
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number from 1", name, s)
	}
	return n
}
