package testkit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience bounds every wait for something that should happen soon. It is long
// since other work may share the machine; nothing waits it out but a failure.
const patience = 60 * time.Second

// Eventually polls until cond holds and fails t when it does not in time. what
// names the condition; details, if any, are called for the failure's text.
func Eventually(t testing.TB, what string, cond func() bool, details ...func() string) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline:
			text := ""
			for _, d := range details {
				text += "\n" + d()
			}
			t.Fatalf("not in %v: %s%s", patience, what, text)
		}
	}
}

// Receive is the next value of c, or t fails. what names it.
func Receive[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-c:
		if !ok {
			t.Fatalf("channel closed instead of: %s", what)
		}
		return v
	case <-time.After(patience):
		t.Fatalf("not in %v: %s", patience, what)
	}
	panic("unreachable")
}

// Stopped reports whether no thread of a process goes on, as some time after SIGSTOP: the
// signal is with each of them later than it is sent.
func Stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		// The name, in parentheses, may hold anything. The state follows it.
		if err != nil || !bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" T")) {
			return false
		}
	}
	return err == nil && len(threads) > 0
}

// Missing ends t, which needs a tool that this host does not have: as a failure if
// the environment variable WRIT_REQUIRE, a list separated by commas, names the
// tool, else as skipped.
func Missing(t testing.TB, tool, why string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("WRIT_REQUIRE"), ","), tool) {
		t.Fatalf("WRIT_REQUIRE names %s: %s", tool, why)
	}
	t.Skip(why)
}
