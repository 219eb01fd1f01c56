package sandbox

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"writ"
)

// Signal is a signal of the kernel by its number.
type Signal int

// The signals that end a program, each more insistent than the last.
const (
	SIGHUP  = Signal(unix.SIGHUP)
	SIGINT  = Signal(unix.SIGINT)
	SIGTERM = Signal(unix.SIGTERM)
	SIGKILL = Signal(unix.SIGKILL)
)

// maxSignal is the highest number of a signal (_NSIG).
const maxSignal = 64

// String is the name of s as results have it: "SIGTERM", or "SIG40" for one that has
// no name.
func (s Signal) String() string {
	if name := unix.SignalName(unix.Signal(s)); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}

// ParseSignal is the signal of that name, with or without "SIG". The error, of kind
// Invalid, says that there is none.
func ParseSignal(name string) (Signal, error) {
	long := strings.ToUpper(name)
	if !strings.HasPrefix(long, "SIG") {
		long = "SIG" + long
	}
	if n := SignalNumber(long); n > 0 {
		return Signal(n), nil
	}
	return 0, &writ.Error{Kind: writ.Invalid, Op: "signal", Msg: fmt.Sprintf("%q is no signal: name one, such as TERM, INT or KILL", name)}
}

// SignalNumber is the number of a signal by its name in a result ("SIGKILL"), or 0.
func SignalNumber(name string) int {
	if n := unix.SignalNum(name); n > 0 {
		return int(n)
	}
	var n int
	if _, err := fmt.Sscanf(name, "SIG%d", &n); err == nil && n > 0 && n <= maxSignal && Signal(n).String() == name {
		return n
	}
	return 0
}
