package interpreter

import (
	"context"

	"writ"
	"writ/session"
)

// Request is a run as a front end asks for it.
type Request struct {
	Language writ.Language // as it was sent: a name or an alias, in any case
	Code     string
	Args     []string
	Files    []Ref
	Hint     string // of the runtime session; empty for none
	WallMS   int64  // at most that long, in milliseconds; 0 for as long as the deployment lets it
	ID       string // by which Cancel names it; empty for none
}

// Ref names a file that a run shall find.
type Ref struct {
	Object writ.ObjectRef
	Name   string // as the front end knows it
	Entity session.Entity
}

// File is a file of the answer.
type File struct {
	Object       writ.ObjectRef
	Name         string
	Inherited    bool            // an input as it was
	ModifiedFrom *writ.ObjectRef // the input that this was
}

// Reply is how a run ended. Empty words are null on the wire.
type Reply struct {
	Session writ.SessionID // of the files that are new or changed
	Files   []File         // the new and changed, then the inherited; each by name
	Stdout  string
	Stderr  string
	Code    *int
	Signal  string
	Status  string // TO, OL, SG
	Message string
	WallMS  int64

	Runtime       string // id of the runtime session; empty without one
	RuntimeStatus string // new or reused
	Deleted       []string
	Dropped       []writ.DroppedFile // files that are not kept, the first writ.MaxDropped
	DroppedFiles  int64
}

// Mode says whether what a run leaves in its folder is there in the next.
type Mode string

const (
	Stateless Mode = "stateless" // never
	Affinity  Mode = "affinity"  // for runs of one user with one hint
	Strict    Mode = "strict"    // as Affinity, and a hint is required
)

// Runs is what a front end may do. Errors are *writ.Error; those that the contract has
// words for carry them: Msg is "error" of the answer, or, where Code is set, Code is
// "error" and Msg is "message".
type Runs interface {
	// Language reports why nothing can run in a language: Invalid.
	Language(ctx context.Context, name writ.Language) error
	// Hint reports why a hint is refused: Invalid. In stateless mode none is.
	Hint(hint string) error
	// Exec runs code. When ctx ends, the run is ended. Errors:
	//
	//   - Invalid: the language, the hint, more files than one run may have, or names that
	//     cannot lie beside each other; with writ.CodeInputTooLarge files without room;
	//   - Denied: with Code "" a file is not the caller's to use, with "denied" policy, or who
	//     was asked, does not let it run;
	//   - NotFound with writ.CodeInputUnavailable: the bytes of a file are gone;
	//   - Conflict: with session.CodeRuntimeBusy another run has the runtime session, with
	//     "cancelled" the run was ended before its end;
	//   - Unavailable: nothing can run now, or no file can be had;
	//   - Exhausted: too much runs, or is kept already;
	//   - Internal with "sandbox_execution_failed": nobody knows how it ended;
	//   - one whose chain has context.DeadlineExceeded: the deadline of jobs passed.
	Exec(ctx context.Context, who writ.Principal, r Request) (Reply, error)
	// Cancel ends the run of who that was sent with that id, and reports whether there is one.
	Cancel(ctx context.Context, who writ.Principal, id string) (bool, error)
	// Mode is that of the deployment.
	Mode() Mode
}
