// Command bench measures what a run, and what the tools and commands of workspaces cost, and prints it
// as tables: `make bench`.
//
// A run is measured beside its floors in the same minutes: the program started by
// itself, and in the plainest use of bwrap. A tool is called through `writ mcp` on two
// pipes, beside the same of the filesystem server that the makers of the protocol give
// away, and beside plain system calls; a command in a workspace, and code that is sent to
// the code interpreter, beside the same in bare bwrap; a file that is sent to it or fetched
// beside a copy on the disk. All are taken in turns, so that what else the machine does
// falls on each alike, and are told as the best, the median and the 95th percentile of
// single runs, one at a time. It compares with the aims, and fails
// for none: a machine that is busy tells nothing about the program.
//
// It promises nothing about other machines, and knows writ's parts by their
// contracts alone.
package main
