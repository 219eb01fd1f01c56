// Command bench measures what a run costs and prints it as tables: `make bench`.
//
// A run is measured beside its floors in the same minutes: the program started by
// itself, and in the plainest use of bwrap. All are taken in turns, so that what
// else the machine does falls on each alike, and are told as the best, the median and
// the 95th percentile of single runs, one at a time. It compares with the aims, and fails
// for none: a machine that is busy tells nothing about the program.
//
// It promises nothing about other machines, and knows writ's parts by their
// contracts alone.
package main
