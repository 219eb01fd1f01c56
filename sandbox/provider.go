package sandbox

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"writ"
)

// Provider makes boxes. Bubblewrap is the only one so far.
type Provider interface {
	// Probe says what this host lets the provider enforce, by trying it. An error
	// means that nothing can be sandboxed here: a *writ.Error of kind Unavailable
	// whose message says what is missing and the command that mends it.
	Probe(ctx context.Context) (writ.Enforcement, error)

	// Prepare makes a box for one run: every wall is up and nothing of a run has
	// been executed in it. On error nothing is left behind, and the error is a
	// *writ.Error of kind Unavailable that names the step; it may also be Invalid, when
	// no box can have that Dir or workspace, and NotFound, when the workspace's folder is
	// not there. The caller must Close the box, also after its run has ended.
	Prepare(ctx context.Context, t Template) (Box, error)
}

// Template is what a box must be made with, before its run is known. Boxes of one
// template are interchangeable.
type Template struct {
	Limits writ.Limits // every field set; Unlimited where there shall be no limit
	// Dir is where a box without a Workspace works: a memory file system of
	// Limits.WorkspaceBytes, which is the program's alone and holds executables. It is one
	// of WorkDirs, or empty for the first of them.
	Dir string
	// Workspace is the folder of the host that the box works in. Without one a box
	// works in memory alone. Dir is then empty.
	Workspace *Workspace
	// Links are symlinks that the box has outside of the folders in which it has its own
	// files, and of Dir.
	Links []Link
}

// Link is a symlink of a box. Both paths are absolute and clean.
type Link struct {
	Path string
	To   string // a place in the box
}

// fault says what is wrong with l in a box that works in dir; empty when nothing is.
func (l Link) fault(dir string) string {
	clean := func(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && !strings.ContainsRune(p, 0) }
	taken := func(p string) bool { return p != "" && (within(p, l.Path) || within(l.Path, p)) }
	switch {
	case !clean(l.Path) || !clean(l.To):
		return "its paths must be absolute and clean"
	case taken(dir) || slices.ContainsFunc(ours, taken):
		return "a box has its own files there"
	}
	return ""
}

// WorkDirs are all that Template.Dir may be: a list, so that no box ever has its folder
// over what is the system's.
var WorkDirs = [...]string{"/workspace", "/mnt/data"}

// dir is where a box of t works in memory; empty when it works in a workspace.
func (t Template) dir() (string, error) {
	switch {
	case t.Workspace != nil && t.Dir == "":
		return "", nil
	case t.Workspace == nil && t.Dir == "":
		return WorkDirs[0], nil
	case t.Workspace == nil && slices.Contains(WorkDirs[:], t.Dir):
		return t.Dir, nil
	}
	e := &writ.Error{Kind: writ.Invalid, Op: "prepare sandbox", Msg: fmt.Sprintf("no box works in memory at %q: want one of %s", t.Dir, strings.Join(WorkDirs[:], ", "))}
	if t.Workspace != nil {
		e.Msg = fmt.Sprintf("a box works in memory at %q or in the workspace %s, not in both", t.Dir, t.Workspace.Root)
	}
	return "", e
}

// links are the links of t, if a box that works in dir can have them.
func (t Template) links(dir string) ([]Link, error) {
	if t.Workspace != nil {
		dir = t.Workspace.Root
	}
	for _, l := range t.Links {
		if why := l.fault(dir); why != "" {
			return nil, &writ.Error{Kind: writ.Invalid, Op: "prepare sandbox", Msg: fmt.Sprintf("no box can have a symlink %q to %q: %s", l.Path, l.To, why)}
		}
	}
	return slices.Clone(t.Links), nil
}

// Box is a sandbox that waits for its one run.
type Box interface {
	// Start runs cmd in the box and returns once it has been executed or failed
	// to. A box starts once: a second call is an error. An error means that no
	// code of cmd was executed; the box is then of no more use. It is a *writ.Error:
	// Invalid when the command is at fault (its message names the missing program,
	// directory or file; with code writ.CodeInputTooLarge its files do not fit), Conflict on a second call, Unavailable when the box is at
	// fault. When contact is lost at the very moment of execution there is no error
	// but a run that ends as interrupted.
	// Cancelling ctx after Start returned ends the run as killed.
	Start(ctx context.Context, cmd Command) (Run, error)

	// Files visits what the run left in dir, which is the Dir of the box's template or
	// /run/writ, both in memory: every file, every empty folder and whatever else has a
	// name there. It goes in the order of full paths, in which a folder counts as its path
	// with a slash behind it. An error of visit ends it and is returned as it is.
	//
	// It may be called when the run is over, however it ended, and any number of times;
	// else, and once the box is closed, the error is a *writ.Error of kind Conflict, and
	// Invalid for another dir. When ctx is done, its cause is the error. Any other error
	// means that dir itself cannot be read.
	//
	// Everything there is hostile. Nothing is opened by a name that leads out of dir, or
	// through a symlink or a mount; nothing but regular files is ever opened, so nothing
	// blocks. A file or folder that its mode closes to us gets an owner's mode back; an
	// Entry has the mode that it had.
	Files(ctx context.Context, dir string, visit func(Entry) error) error

	// Unheld are the Hidden and Protected paths of the box's workspace that it does not
	// hold now, sorted: paths at which there is nothing, which lead through a symlink, or
	// which the server cannot look at. What a program makes there it can read and write,
	// and what a symlink there leads to is held only where it is named itself. A path that
	// was held is no more when somebody outside of the box removes or replaces what is
	// there, as editors and patches do; what is beneath a held folder stays held. It is
	// empty without a workspace, and what it was at first once the box is closed.
	Unheld() []string

	// Close ends everything in the box and removes all that it left on the host.
	// It may be called at any time, also while Start or the run is under way (which
	// then ends as killed), and more than once. Nobody need wait for it with a result
	// in hand: the kernel takes some milliseconds to take a box apart.
	Close() error
}

// Command is one program to run in a box.
type Command struct {
	// Argv[0] is a path in the box. A name without a slash is looked for there in the
	// folders that PATH of Env lists.
	Argv  []string
	Env   []string // the whole environment, "NAME=value"
	Dir   string   // a path in the box; it must exist
	Files []File   // placed before the program starts
	Stdin []byte   // then end of file

	// Input leaves standard input open for Run.Input; Stdin is then empty.
	Input bool
	// Terminal gives the program a new terminal of that size as its controlling one,
	// for all three streams: Stdout gets what is written to it, Stderr nothing, and
	// Run.Input types. Stdin is then empty. TERM is the caller's to set in Env.
	Terminal *Size

	// Stdout and Stderr get the bytes as they come, in order, from one goroutine
	// each, at most Limits.OutputBytes of each; what is beyond is counted and
	// dropped. With Unlimited OutputBytes they get everything, and the result has
	// the counts alone. They must not block for long. Nil discards.
	Stdout, Stderr io.Writer

	Limits writ.Limits // every field set; the sizes of file systems are the template's
}

// File is a file, a folder or a symlink to place in the box. Folders above it that are missing are
// made.
type File struct {
	Path    string // in the box, absolute
	Content []byte
	Mode    fs.FileMode // permission bits

	// Body, where it is set, gives the content instead: exactly Size bytes. Start calls it
	// once, reads it piece by piece, and closes what it got; Close of the box waits for a
	// read under way. An error that is a *writ.Error is Start's error.
	Body func() (io.ReadCloser, error)
	Size int64

	// Folder is a folder of mode 0700, which may be there already, and no file.
	Folder bool
	// Link is a symlink, whose content is where it leads: 1 to writ.MaxLinkBytes bytes.
	// Symlinks are placed after all else, so that nothing is placed where one leads.
	Link bool
}

// Size is that of a terminal, in characters.
type Size struct{ Rows, Cols uint16 }

// Unlimited is the value of a limit that there is none. Of Processes, OpenFiles and
// the sizes of memory file systems there is always one.
const Unlimited = math.MaxInt64

// Run is a program under way.
type Run interface {
	// Wait blocks until the program and everything it started are gone, and says
	// how it ended, with the output kept. Processes that the program left behind are
	// killed when it ends. Calling it again gives the same result.
	//
	// In a box with a workspace the program's own end wins: a result with an ExitCode, or
	// with the outcome failed and a Signal, is how the program ended, even if it was to
	// be ended for time or by a cancel at the same moment. Timed out and killed mean that
	// we ended it.
	Wait() writ.Result

	// Input gives b to the program's standard input, or types it at its terminal, as far
	// as there is room before ctx is done: without a deadline it waits until the program
	// reads or ends. n is how many bytes went in; concurrent calls do not mix theirs. An
	// error is a *writ.Error: Exhausted when ctx was done first, Conflict when the input
	// is closed, by CloseInput, by the program or with its end, or was never open.
	Input(ctx context.Context, b []byte) (n int, err error)

	// CloseInput makes the program see the end of its input: the pipe is closed, or the
	// end-of-file character of the terminal is typed, which ends a read at the start of
	// a line. A pipe that is closed already is no error. Errors are those of Input;
	// a terminal that takes no character at once is Exhausted.
	CloseInput() error

	// Resize sets the size of the terminal; the kernel tells its foreground processes by
	// SIGWINCH. Both numbers must be positive, or the error is Invalid. Without a
	// terminal, and when it is gone with its program, the error is Conflict.
	Resize(s Size) error

	// Signal sends s to the process group that the program leads. In a terminal a
	// shell puts its jobs into groups of their own: those get what is typed. It returns
	// when the signal is on its way. The error is Invalid for what is no signal, and
	// Conflict when the run is over.
	Signal(s Signal) error
}
