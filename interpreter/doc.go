// Package interpreter runs code for the users of a front end (spec/03 §6 to §8, §12): files
// that their sessions hold go in, a run goes through the gateway as a task, and what it
// made becomes objects of a session of its own.
//
// It promises:
//
//   - Nothing of a session is read that its caller may not use: every reference is asked of
//     package session before anything is placed.
//   - A run is decided, held and recorded as every other: there is no way to a runner here
//     but a task.
//   - Code that does what it likes is an answer, not an error: a failed, killed or timed out
//     run has its files and its output.
//   - What a run left is an object, with its bytes on the disk, before its answer names it.
//   - In a runtime session one run at a time works; what the last one left that ended is
//     what the next one finds, also after a crash in between: regular files and whether they
//     can be executed, folders, and symlinks, which are text here and lead somewhere in a
//     box alone.
//
// It refuses to know HTTP, tokens and rate limits (codeapi, auth, limit), how code is run,
// and what is kept where.
//
// Hostile inputs: everything in a Request. What comes back from a run was bounded by the
// gateway; names in it are checked again before they become objects'.
package interpreter
