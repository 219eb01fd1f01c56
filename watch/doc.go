// Package watch tells what changes beneath the root of one workspace (spec/02 §14), by
// inotify: it needs no privilege.
//
// # Promises
//
//   - A [Watcher] is recursive and follows no symlink. An event names what is beneath
//     the root and nothing else; symlinks, pipes and sockets are named like files.
//   - Events of one epoch are numbered from 1 without a gap, and every subscriber gets
//     all of them in that order, or [ResyncRequired] in the place of those it lost.
//   - Whatever may have been missed is said by [ResyncRequired]: the kernel's queue ran
//     over, reading it failed, a subscriber was slow, a folder could not be watched, an
//     event meant nothing, or folders moved faster than they could be looked at.
//   - A new folder is watched first and listed then: what was made in it before the watch
//     stood is told as created, perhaps twice.
//   - [Watcher.Restart] brings the replacement up before the old watch ends.
//
// # What it is not
//
// Events are hints. They come after the change, by an unknown time: the kernel queues an
// event only after the change can be seen, so that even who has read the queue to its end
// may not know of a file that others see. What is changed by a mapping of memory, by
// another machine on a network file system, or by a mount is told late or never. So
// nothing may be decided, allowed or answered by what was seen here, or was not. It
// refuses to know what the files are for, who changes them, and who listens.
//
// # Hostile input
//
// Everything beneath the root may be changed at any moment by a command that is hostile.
// Folders are opened by openat2 beneath the root's descriptor, through no symlink and into
// no other mount, and the watch is put on the descriptor that was opened: the text that
// inotify gets is /proc/self/fd/N, which leads to that very folder wherever it has been
// moved meanwhile, and holds no name that another process could make. A folder that was
// moved out of the root just before its watch stood is watched until the event of its
// move is handled, which is before any event of its new place: none of those is told.
//
// Bounds: watches by [Options], which is also the bound of memory; depth and entries of one
// listing as a walk of package files (spec/02 §3.3); what waits for the other half of a
// rename, by number and time; what is kept for a subscriber. Listing folders takes at
// most a quarter of the time, so that one who moves folders about cannot keep a core busy.
// Names may be any bytes but NUL and slash, so a path need not be UTF-8.
//
// # How it knows paths
//
// The kernel names a folder by the number of its watch. Each is a node of a tree of names;
// moving a folder moves its node, and the paths beneath follow. Because events are read
// later than they happen, the place of a folder that moved is looked at again: what is
// there says which node it is. Where that fails the node is in doubt, and if the doubt
// is still there once the queue is empty, everything is watched anew in the same epoch and
// ResyncRequired is told.
package watch
