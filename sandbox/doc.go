// Package sandbox makes boxes and runs one program in each: a box is a bwrap
// process with everything in it, used once.
//
// It promises that a program sees nothing of the host but a read-only /usr, a short
// list of /etc and files of our own, and one folder if the box has a [Workspace]; that
// it has no network, no capabilities and no descriptors but 0, 1 and 2; that its limits
// hold; that everything it started is gone when its run is over; and that nothing of the
// run is left on the host but what it made in that folder: all other writable files live
// in memory file systems inside the box. There is no way to run a program here without a
// box. What a host cannot give is named in writ.Enforcement, which claims nothing that
// was not verified on that very box.
//
// It refuses to know languages, tasks, policies and queues: it gets an argv, files,
// limits, and paths. It keeps nothing when the process ends and logs nothing.
//
// # Workspaces
//
// The folder is bound at its own path, without devices and set-user-id, and is the one
// that was opened, whatever its path leads to later. Of the rest of the host, what lies
// above and beside it included, there is nothing. Paths in it can be hidden or
// protected, by mounts that the jail makes on open files before anything runs: no
// symlink leads such a mount elsewhere, and thousands are no burden. Nothing is made on
// the host for them, so a path that does not exist cannot be held; Box.Unheld says so.
//
// A program works as the owner of the folder, not as a user of the box's own. It reaches
// what reaches into the folder: a socket or a FIFO that the host has there is open to it
// unless it is hidden, and so is a file that is held by one name and linked by another.
// It can fill the disk. It makes no file that runs as its owner (set-user-id), but may
// make one that runs with the folder's group. What the kernel counts by user, such as
// inotify watches, it shares with the owner.
//
// Where root owns the folder, the box's user is the host's root, without a capability,
// in its own namespaces. That takes one wall away: what the kernel and the host's files
// leave to "root" by name, and not by capability, is left to the box. What holds all the
// same: nothing of the host has a name in the box but those things; /usr, /etc and the
// devices of /dev are bound read-only; of /proc all but processes is read-only and what
// root alone may read is masked; no call that takes a capability works; files that would
// be set-user-id are not made. It may use the disk's reserve for root, and of the limit
// of processes only the control group's counts. Give the folder to a user of its own.
//
// # What a run leaves
//
// A box without a workspace works at one of [WorkDirs]. What its run left there, and in
// /run/writ, Box.Files gives until the box is closed, however the run ended. By then every
// process of the box is gone, and nothing rests on that: each thing is opened by one name
// in a folder that is open, without symlinks, mounts and ways out, as a descriptor that
// can only be looked at; what it is, is asked of the descriptor, and only a regular file
// is opened, from the descriptor. So nothing that a program leaves makes us read another
// file, wait, or read more than the size that was told. Of a file its bytes and its
// permissions come out: no owner, set-user-id, attribute or hard link. Of a symlink it is
// read where it leads, and nothing follows it. Names are the program's own bytes. Folders deeper than 64, and more names than the limit of files lets there be,
// are told as unreadable.
//
// Files that are placed before a run may come from a stream. They are in a sealed memory
// file of ours, and then in the box, before anything is executed. Symlinks come last.
//
// # Invariants
//
// One box, one run (spec/01 §2 rule 9). The user id of a living box without a workspace
// belongs to it alone, and an id of which nobody knows whether its box lives is lent to
// no other. No process of a box outlives the server: its first process (package jail)
// ends when its socket does.
//
// Hostile inputs: everything a program writes, the names, kinds and sizes of what it
// leaves, the records of the jail beside it, and every file of a workspace, which may
// change at any time. What is read is bounded where it is read. The host's /etc may be
// strange; it is never touched.
package sandbox
