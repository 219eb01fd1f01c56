package writ

// LanguageStatus says whether a runner's host can run a language.
type LanguageStatus struct {
	Name        Language   `json:"name"`
	Aliases     []Language `json:"aliases,omitempty"`
	Kind        RunKind    `json:"kind,omitempty"`        // of the runs that this is said of: one name may stand in several
	Scope       Scope      `json:"scope"`                 // what a principal must hold to run it
	Interpreter string     `json:"interpreter,omitempty"` // absolute path, of a compiler if there is a compile step; empty when it is not installed
	Package     string     `json:"package"`               // the package that brings it
	Install     string     `json:"install,omitempty"`     // the command that installs it: "apt-get install python3"
}
