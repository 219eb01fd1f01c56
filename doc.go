// Package writ is the vocabulary of an execution server for AI agents: what a
// principal, a run, a task, an approval and an event are, what makes each of
// them valid, and the one error type. It does nothing: it opens no file, starts
// no process and keeps no state. Every other package of the module speaks it.
//
// A tour of the module, from the ground up:
//
//   - lang says how a language becomes a command line.
//   - patch reads V4A patches and computes in memory what they change.
//   - files is what is beneath a workspace's root: it reads and finds files, and
//     carries a patch out as one transaction.
//   - watch tells what changes there, as hints on which nothing rests.
//   - shell reads a command line: which programs it would run.
//   - policy decides, from Cedar files and identities: allow, hold or deny.
//   - approval is the state machine of a held request; audit is the Merkle log
//     of what happened; auth turns keys, tokens of front ends and sockets into principals.
//   - sandbox makes a box with Bubblewrap and starts one run in it, or one command
//     with a workspace; sandbox/jail is the process that waits inside that box.
//   - store is the only SQL, on SQLite and PostgreSQL; blob keeps bytes in a folder.
//   - runner keeps boxes ready and runs specs in them, and commands in workspaces with
//     what they write; it has no key and no database. remote is the wire between it and the gateway.
//   - gateway is the one path: decide, hold, record, run, record.
//   - task keeps what callers wait for: dispatch, watching, output.
//   - workspace is which folders tools may work in, and who changes one now; work keeps
//     what agents work on there, and what people want of them meanwhile.
//   - session keeps the files of the code interpreter, limit counts how often its users
//     come, and interpreter runs their code: files of sessions in, a task, files out.
//   - admin is keys, operators and reading the log; doctor tells what a host can enforce.
//   - rest and client are the two ends of the HTTP API, mcp is the workspace tools for
//     coding agents, codeapi the code interpreter for chat front ends. What adapters have
//     in common is in origin, response and room.
//   - config is the file; cmd/writ wires all of it and is the only package that
//     knows everything.
//
// Types that cross a wire carry their JSON tags here, so that a run has one shape
// on every wire. Times are UTC with millisecond precision.
package writ
