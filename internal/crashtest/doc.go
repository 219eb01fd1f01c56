// Package crashtest kills the real program and looks at what it left. It has tests
// only.
//
// They build writ, run `writ serve` on a folder of their own, load it through its
// socket as clients do, and send SIGKILL to the server and to its runner at random
// moments. They promise to find a task that is lost or was run twice, a terminal
// state that its events do not bear out, an audit log that does not verify, and
// anything of a run that outlives it on the host. They refuse to know how the
// program does it: what they see is its API, its log and /proc.
//
// Two witnesses count executions. One is the audit log. The other is a scan of the
// host's processes: every program that is run has an argument that no other process
// of the machine has, and lives long enough to be met.
//
// WRIT_CRASHES sets how often the server is killed (50 if unset). Each test logs a
// seed; WRIT_SEED repeats its choices, though not the moments at which they fall.
package crashtest
