// Package doctor examines a host: can runs be sandboxed here, what holds them, and
// what is missing, with the command that mends it.
//
// It promises that its verdict is evidence: whether runs can be sandboxed is what
// a probe by the real provider found, never what a version or a setting suggests.
// The other checks explain the verdict, and whether what is switched on, as the code
// interpreter, has what it needs. A setting that is known to prevent
// sandboxes is a failure only where the probe failed, else a warning.
//
// It refuses to know how a sandbox is made; it changes nothing, and mends nothing
// by itself. What it reads beneath /proc, /sys and /etc is the host's, trusted but
// bounded. Host says where all of it is found, so that a test can describe another
// machine.
package doctor

import (
	"context"
	"time"

	"writ"
	"writ/lang"
)

// Status is what a check came to.
type Status string

const (
	OK   Status = "ok"
	Warn Status = "warn" // runs work, and something is weaker or will give trouble
	Fail Status = "fail" // nothing can run until it is mended
)

// Check is one thing that was looked at.
type Check struct {
	Name   string `json:"name"`
	Status Status `json:"status"`
	Found  string `json:"found"`
	Mend   string `json:"mend,omitempty"` // a command where there is one; set unless Status is OK
}

// Report is a whole examination. Sandbox is nil when the probe failed.
type Report struct {
	OK      bool              `json:"ok"` // runs can be carried out here
	Sandbox *writ.Enforcement `json:"sandbox,omitempty"`
	Checks  []Check           `json:"checks"`
}

// Host is the machine as doctor sees it. Every field must be set but for Bwrap, Config
// and Interpreter.
type Host struct {
	Root      string // "/", or the folder of a described machine
	UID       int    // effective, of the server
	Bwrap     string // configured path; "" means found on Path
	Path      string // as in $PATH
	Data      string // the data folder; it need not exist yet, and is not beneath Root
	Config    error  // what is wrong with the configuration; nil when nothing is
	Languages lang.Table
	// Interpreter is nil where it is switched off.
	Interpreter *Interpreter

	// Probe tries a sandbox, as sandbox.Provider does.
	Probe func(context.Context) (writ.Enforcement, error)
	// Output runs a program of the host and answers what it printed.
	Output func(ctx context.Context, argv ...string) (string, error)
	// Free is how many bytes an unprivileged user may still write at a path.
	Free func(path string) (int64, error)
	// Synced reports whether the kernel says that something keeps the clock right.
	Synced func() (bool, error)
	Now    func() time.Time
}

// Examine looks at everything. It runs one sandbox and bubblewrap's own --help
// and --version, and writes nothing. It returns early only when ctx ends.
func Examine(ctx context.Context, h Host) Report {
	e := exam{host: h}
	enforced, err := h.Probe(ctx)
	e.works = err == nil
	if e.works {
		e.Sandbox = &enforced
	}
	e.probe(enforced, err)
	e.bubblewrap(ctx)
	e.namespaces()
	e.apparmor()
	e.container()
	e.seccomp()
	e.cgroups()
	e.kernel()
	e.languages()
	e.interpreter()
	e.configuration()
	e.data()
	e.clock()
	e.OK = true
	for _, c := range e.Checks {
		e.OK = e.OK && c.Status != Fail
	}
	return e.Report
}

// exam is an examination under way.
type exam struct {
	Report
	host  Host
	works bool // the probe made a sandbox
}

func (e *exam) ok(name, found string) {
	e.Checks = append(e.Checks, Check{name, OK, found, ""})
}

func (e *exam) warn(name, found, mend string) {
	e.Checks = append(e.Checks, Check{name, Warn, found, mend})
}

func (e *exam) fail(name, found, mend string) {
	e.Checks = append(e.Checks, Check{name, Fail, found, mend})
}

// cause records what is known to prevent sandboxes. Where one was made all the
// same, it is a warning only.
func (e *exam) cause(name, found, mend string) {
	if e.works {
		e.warn(name, found+"; runs can be sandboxed all the same", mend)
		return
	}
	e.fail(name, found, mend)
}
