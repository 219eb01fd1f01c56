package writ

// LanguageStatus says whether a runner's host can run a language.
type LanguageStatus struct {
	Name        Language   `json:"name"`
	Aliases     []Language `json:"aliases,omitempty"`
	Scope       Scope      `json:"scope"`                 // what a principal must hold to run it
	Interpreter string     `json:"interpreter,omitempty"` // absolute path; empty when it is not installed
	Package     string     `json:"package"`               // the Debian package that brings it
}
