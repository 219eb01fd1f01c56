package jail

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// closure is every package that the jail may be linked with: all of them are in a
// box together with hostile code.
var closure = strings.Fields(`
	encoding/binary errors fmt os path syscall time
	golang.org/x/sys/unix
	cmp io io/fs iter internal/... math math/bits path reflect runtime slices sort
	strconv strings sync sync/atomic unicode unicode/utf8 unsafe
	bytes
	writ/sandbox/jail
`)

func TestClosure(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	deps := strings.Fields(string(out))
	covers := func(c, dep string) bool {
		prefix, any := strings.CutSuffix(c, "...")
		return dep == c || any && strings.HasPrefix(dep, prefix)
	}
	for _, c := range closure {
		if !slices.ContainsFunc(deps, func(dep string) bool { return covers(c, dep) }) {
			t.Errorf("the list names %s, which the jail is not linked with", c)
		}
	}
	for _, dep := range deps {
		if !slices.ContainsFunc(closure, func(c string) bool { return covers(c, dep) }) {
			t.Errorf("the jail is linked with %s, which is not in its list: decide whether it may be in a box", dep)
		}
	}
}
