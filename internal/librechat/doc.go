// Package librechat runs the real program as a code interpreter for those who have one:
// the clients of LibreChat as they are published, and raw requests whose answers of
// another server are known. It has tests only.
//
// The clients are programs of npm, each version of @librechat/agents with a lock file of
// its own in testdata; scripts/librechat.sh installs them, and the Node.js of the clients
// of package mcpclients runs them. testdata/check.mjs has a client do its work step by
// step. testdata/probes are requests, and testdata/reference what the reference server
// answered: DIFFERENCES.md names every answer of writ that is another one, and why, and a
// test fails over one that is not named and over one that is gone.
//
// It promises that an unchanged client works against `writ serve`, that files are neither
// lost nor mixed up while many work at once and while the server is killed, and that
// nothing is left behind. It refuses to know how the program does it, but for the last:
// what is left in the data folder it reads with the packages that keep it. None of its
// inputs are hostile.
//
// WRIT_SOAK sets how long the soak takes, as 30m: a few seconds if unset. WRIT_CRASHES
// sets how often the server is killed.
package librechat
