// Package jail is the process that waits inside a box: the first process of its
// pid namespace. It is the server's own executable, started by bwrap as
// "/proc/self/fd/4 jail", and it holds nothing but a socket to the server.
//
// It promises that the program it starts inherits the three descriptors it was
// given, or a new terminal, and none of its own, runs under the limits of its command, and is gone,
// with everything that it started, as soon as it ends or the server does: this
// process then exits, and the kernel kills what is left in the namespace. It cannot
// be ended, stopped, traced or read from inside the box.
//
// It refuses to know policies, runs, languages and limits by name: it gets kernel
// terms. Its imports are a closed list (closure_test.go), because all of them are
// in the box together with hostile code.
//
// # Walls
//
// A box with a workspace has walls that bwrap cannot put up. There bwrap executes
// "/proc/self/fd/4 jail hold N DIRS...", with the walls in descriptor N (type Walls) and
// three capabilities in the box's own user namespace, and loads no filter. That process
// makes a mount namespace of its own, in which the paths of the workspace are held,
// gives up the capabilities, loads the filter, and executes "/proc/self/fd/4 jail
// DIRS...", the jail. All of that is before READY, and so before any byte of a run is
// in the box; the server then looks whether it is so.
//
// # Protocol
//
// The socket is a SOCK_SEQPACKET pair, descriptor 3 in the box. All integers are
// little endian.
//
//	jail -> server  READY    with O_PATH descriptors of DIRS, in that order; without
//	                         arguments, of Dirs
//	server -> jail  command  with four descriptors: command file, stdin, stdout, stderr;
//	                         with the first alone when the program gets a terminal
//	jail -> server  STARTED  the program has been executed, with our end of its terminal
//	                         if it has one, or
//	                FAILED   nothing was: the step, its errno, and which file
//	server -> jail  signal   any number, after STARTED
//	jail -> server  EXITED   wait status and use, once, after STARTED: the program
//	                         ended and nothing else is alive in the box
//
// The server closes its end to end the box at any time. Nothing else is ever sent.
//
// A message from the jail is one Record of RecordBytes bytes:
//
//	 0 u32 kind: 1 ready, 2 started, 3 failed, 4 exited
//	 4 u32 step    (failed)
//	 8 u32 errno   (failed)
//	12 u32 index   (failed: which file of the command)
//	16 u32 status  (exited: as wait4 gives it)
//	20 u32 zero
//	24 u64 × 8     ready: inode numbers of the namespaces in the order of Namespaces
//	               exited: CPU nanoseconds of the program with the children it
//	               waited for, of all processes reaped, largest resident set in bytes
//
// The command message has 16 bytes: the magic "writ", u32 version 3, u64 length of
// the header. A signal message has 12: "sign", u32 version 3, u32 number. The command
// file is a memory file, sealed against every change, with the header first and the
// contents of all files behind it, in order. The header:
//
//	strings argv, strings env, string dir
//	u32 size of the terminal, rows in the upper half; zero for none
//	u32 number of files, each: string path, u32 mode, u64 size, u32 kind: 0 file, 1 folder,
//	    2 symlink, whose content is where it leads
//	u32 number of limits, each: u32 resource, u64 soft, u64 hard
//
// where string is a u32 length and bytes, and strings is a u32 number and strings.
// Walls:
//
//	string root, strings mounts that become read-only, string cover file, string cover folder
//	u32 number of held paths, each: u32 kind, string path
//	string seccomp filter
//
// The command and the walls come from the server and are trusted; they are bounded all
// the same. The records come from a process beside hostile code and are not: the server
// reads fixed sizes only.
package jail
