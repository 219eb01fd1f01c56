package sandbox

import (
	"context"
	"io"
	"io/fs"

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
	// *writ.Error of kind Unavailable that names the step. The caller must Close
	// the box, also after its run has ended.
	Prepare(ctx context.Context, t Template) (Box, error)
}

// Template is what a box must be made with, before its run is known. Boxes of one
// template are interchangeable.
type Template struct {
	Limits writ.Limits // every field set
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

	// Close ends everything in the box and removes all that it left on the host.
	// It may be called at any time, also while Start or the run is under way (which
	// then ends as killed), and more than once. Nobody need wait for it with a result
	// in hand: the kernel takes some milliseconds to take a box apart.
	Close() error
}

// Command is one program to run in a box.
type Command struct {
	Argv  []string // Argv[0] is a path in the box
	Env   []string // the whole environment, "NAME=value"
	Dir   string   // a path in the box; it must exist
	Files []File   // placed before the program starts
	Stdin []byte   // then end of file

	// Stdout and Stderr get the bytes as they come, in order, from one goroutine
	// each, at most Limits.OutputBytes of each; what is beyond is counted and
	// dropped. They must not block for long. Nil discards.
	Stdout, Stderr io.Writer

	Limits writ.Limits // every field set; the sizes of file systems are the template's
}

// File is a file to place in the box.
type File struct {
	Path    string // in the box, absolute
	Content []byte
	Mode    fs.FileMode
}

// Run is a program under way.
type Run interface {
	// Wait blocks until the program and everything it started are gone, and says
	// how it ended, with the output kept. Processes that the program left behind are
	// killed when it ends. Calling it again gives the same result.
	Wait() writ.Result
}
