package sandbox

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/sandbox/jail"
)

// cause is why we ended a run, in the order in which causes win.
type cause int

const (
	causeNone      cause = iota // we did not
	causeLimit                  // over a limit that is neither time nor memory
	causeMemory                 // our count of memory, where the kernel has none of the box
	causeTime                   // our timer, or our count of CPU time
	causeCancelled              // somebody asked for it
)

// end is our decision to end a run, with the reason in words.
type end struct {
	cause  cause
	reason string
}

// evidence is all that is known of a run that is over.
type evidence struct {
	end       end
	oomKills  int64        // that the kernel counted in the box's group
	exited    *jail.Record // the jail's report; nil when it could not give one
	limits    writ.Limits
	ownEnd    bool   // exited, if there is one, wins over end
	diagnosis string // what the box said on its error output
}

// judge fills in how a run ended, from evidence alone (style: an outcome rests on
// evidence): cancelled, then our clock, then the kernel's OOM count or ours, then our
// other limits, then what the program did itself.
func (e evidence) judge(r *writ.Result) {
	if e.exited != nil {
		if w := e.exited.Status; w.Exited() {
			r.ExitCode = new(w.ExitStatus())
		} else if w.Signaled() {
			r.Signal = Signal(w.Signal()).String()
		}
	}
	if e.ownEnd && e.exited != nil {
		e.end = end{} // it came too late: what we kill cannot report
	}
	switch {
	case e.end.cause == causeCancelled:
		r.Outcome, r.Reason = writ.Killed, e.end.reason
	case e.end.cause == causeTime:
		r.Outcome, r.Reason = writ.TimedOut, e.end.reason
	case e.oomKills > 0:
		r.Outcome = writ.OutOfMemory
		r.Reason = fmt.Sprintf("memory limit of %d bytes reached: the kernel killed a process of the run", e.limits.MemoryBytes)
	case e.end.cause == causeMemory:
		r.Outcome, r.Reason = writ.OutOfMemory, e.end.reason
	case e.end.cause == causeLimit:
		r.Outcome, r.Reason = writ.Killed, e.end.reason
	case e.exited == nil:
		r.Outcome = writ.Interrupted
		r.Reason = "the sandbox ended before it could report how the program did"
		if e.diagnosis != "" {
			r.Reason += ": " + e.diagnosis
		}
	case r.ExitCode != nil && *r.ExitCode == 0:
		r.Outcome = writ.Succeeded
	case r.ExitCode != nil:
		r.Outcome = writ.Failed
	case e.cpuDeath():
		r.Outcome, r.Reason = writ.TimedOut, cpuReason(e.limits)
	default:
		r.Outcome, r.Reason = writ.Failed, "the program died by "+r.Signal
	}
	if e.end.cause != causeNone && e.exited == nil {
		r.Signal = SIGKILL.String() // ours
	}
}

// cpuDeath reports whether the program died by the kernel's limit of CPU time: by
// one of its two signals, and with the time really used.
func (e evidence) cpuDeath() bool {
	sig := e.exited.Status.Signal()
	used := e.exited.ProgramCPU()
	// The limit counts ticks, as the kernel samples them, and rusage counts precisely;
	// on a busy machine they have been seen to differ by a twentieth.
	limit := time.Duration(cpuSeconds(e.limits)) * time.Second
	return (sig == unix.SIGXCPU || sig == unix.SIGKILL) && used >= limit*3/4
}
