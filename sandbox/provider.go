package sandbox

import (
	"context"
	"io"
	"io/fs"
	"math"

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
	// *writ.Error of kind Unavailable that names the step; for a template with a
	// workspace it may also be Invalid, when no box can have that workspace, and
	// NotFound, when there is no such folder. The caller must Close the box, also
	// after its run has ended.
	Prepare(ctx context.Context, t Template) (Box, error)
}

// Template is what a box must be made with, before its run is known. Boxes of one
// template are interchangeable.
type Template struct {
	Limits writ.Limits // every field set; Unlimited where there shall be no limit
	// Workspace is the folder of the host that the box works in. Without one a box
	// works in memory alone, at /workspace.
	Workspace *Workspace
}

// Box is a sandbox that waits for its one run.
type Box interface {
	// Start runs cmd in the box and returns once it has been executed or failed
	// to. A box starts once: a second call is an error. An error means that no
	// code of cmd was executed; the box is then of no more use. It is a *writ.Error:
	// Invalid when the command is at fault (its message names the missing program,
	// directory or file), Conflict on a second call, Unavailable when the box is at
	// fault. When contact is lost at the very moment of execution there is no error
	// but a run that ends as interrupted.
	// Cancelling ctx after Start returned ends the run as killed.
	Start(ctx context.Context, cmd Command) (Run, error)

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

// File is a file to place in the box.
type File struct {
	Path    string // in the box, absolute
	Content []byte
	Mode    fs.FileMode
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
