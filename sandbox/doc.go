// Package sandbox makes boxes and runs one program in each: a box is a bwrap
// process with everything in it, used once.
//
// It promises that a program sees nothing of the host but a read-only /usr, a short
// list of /etc and files of our own; that it has no network, no capabilities, no
// other user's id and no descriptors but 0, 1 and 2; that its limits hold; that
// everything it started is gone when its run is over; and that nothing of the run
// is left on the host, where it never was: all writable files live in memory file
// systems inside the box. There is no way to run a program here without a box. What
// a host cannot give is named in writ.Enforcement, which claims nothing that was
// not verified on that very box.
//
// It refuses to know languages, tasks, policies and queues: it gets an argv, files
// and limits. It keeps nothing when the process ends and logs nothing.
//
// Invariants: one box, one run (spec/01 §2 rule 9). The user id of a living box
// belongs to it alone, and an id of which nobody knows whether its box lives is lent to
// no other. No process of a box outlives the server: its first process
// (package jail) ends when its socket does.
//
// Hostile inputs: everything a program writes, and the records of the jail beside
// it. Both are bounded where they are read. The host's /etc may be strange; it is
// never touched.
package sandbox
