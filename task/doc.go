// Package task is what callers see of a task: reading, listing, waiting, watching
// it live and fetching its output. What changes a task is the gateway's.
//
// It promises that a caller sees only its own tasks, that a watcher gets every
// state and, of a task that runs in this process, all output from its start, and
// that a wait ends in time. Live output is kept in memory only while its task runs
// or somebody watches; nothing that matters is lost with it.
//
// Ids and filters are hostile.
package task
