// Package gateway is the one path that everything an agent wants done takes:
// decide, hold, record the intent, run, record the outcome. Nothing else of the
// module reaches a runner.
//
// It promises:
//
//   - No record, no run. The intent is committed, with its audit events, before a
//     runner is called; when that fails, nothing starts.
//   - At most once. A task is claimed by one compare-and-set from queued to
//     running. A run that may have started is never started again: a task found
//     running whose gateway is gone ends interrupted.
//   - An approval binds bytes. What runs is read from the store, must have the
//     digest that was approved, and is decided again when it resumes under another
//     policy than the one it was approved under.
//   - Every change of a task or an approval and the events that describe it are
//     one transaction.
//
// It refuses to know HTTP, SQL, Cedar and Bubblewrap. Its requests come from
// authenticated principals but are otherwise hostile; so is all that a runner
// reports of a run's output.
//
// One request, in files: admit.go (decide and record), approve.go (hold), carry.go
// (claim, run, record), cancel.go, sweep.go (what time and crashes leave). Of the tools of
// workspaces: patch.go and exec.go (decide, lease, record, carry out), their _hold.go and
// hold.go, resume.go, input.go, processes.go (what runs, and its end), settle.go.
//
// A process holds its root from its intent until its end is known, or its runner says
// that it knows none. The table of processes has those whose ends are not recorded.
package gateway
