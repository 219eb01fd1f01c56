// Package runner makes admitted specs happen: it finds the interpreter, waits for
// a slot, takes a box, places the code in it, runs it once and reports how that
// ended.
//
// It promises that no code runs outside a box, that a box runs once, that an id
// runs at most once, that what runs has the digest it was approved with, and that
// nobody waits without a bound. It refuses to know who asked and whether they may:
// it has no key, no policy and no database, and whoever can call it can run code.
//
// Invariants: an error from Run means that no code of the spec was executed; emit
// is never called after Run has returned; when Close has returned nothing that the
// runner started is left.
//
// A spec is hostile in everything but its digest, and so is all output of a run.
//
// Runs of the code interpreter (writ.RunInterpreter) are runs as all others, in boxes that
// work in /mnt/data. Their files come by an Exchange: each is hashed on its way into the
// box, and other bytes than the spec's digest end the run unstarted. A compile step works
// in a box of its own, of which nothing but the program reaches the run. When the program
// is over, however it ended, what it left is collected: regular files, and symlinks as what
// they say where that is asked for, within the bounds of writ.Collect, hashed on their way
// out; what is not kept is named. Names, sizes and numbers of those files are hostile, and so
// are their bytes, at which nothing looks.
//
// [Files] is the other half: what file tools and patches do in workspaces, by package
// files. It keeps the roots open that were used last, and knows of each patch how it
// ended until the gateway has recorded that, also when this process dies meanwhile. What
// the last applied patches replaced stays in its state folder, which is private, so that
// they can be undone exactly. An error from [Files.Patch] means that nothing in the
// workspace changed. Whether somebody may, and who is first, the gateway has decided;
// paths, globs and patches are hostile. The roots are watched by package watch while they
// are open: hints that are counted for the log, and that no answer rests on, since a
// change can be seen before it is told.
//
// [Processes] are the commands of workspaces, each in a box that has the workspace bound,
// behind a handle that outlives the call which started it. It promises that an order
// starts at most one process, that as many run as may and not one more, that a process
// ends once, with all that it started, and for the first cause, and that the last of
// what it wrote can be read for a while. What the rules of a workspace deny is held for
// it, and so are files by which it would have the host execute something ([Processes]
// holds what is there when the box is made, not what is made later). It refuses to know
// who may start or type what, and which of two may be first. Commands and their output
// are hostile.
package runner
