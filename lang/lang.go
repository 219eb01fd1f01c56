// Package lang says how a language becomes a command line: which interpreter,
// which file name, which environment, and which scope a principal must hold.
//
// A language is one row of a table. Adding one adds a row; nothing else in the
// module knows a language by name. The package is pure: it opens no file, starts
// nothing and does not know which interpreters a host has, only where to look.
//
// Names come from callers and are hostile: they are compared exactly, never
// trimmed, folded or used as a path.
package lang

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"writ"
)

// Where a run finds its things. The sandbox makes these folders.
const (
	CodeDir   = "/run/writ"   // the code as it was approved
	Workspace = "/workspace"  // current folder and inputs
	Home      = "/home/agent" // private, writable, gone with the box
	User      = "agent"
	tmp       = "/tmp"
)

// Language is one row of the table. Its values are shared: do not change them.
type Language struct {
	Name    writ.Language
	Aliases []writ.Language
	Scope   writ.Scope // what a principal must hold to run it
	File    string     // the code's name in CodeDir
	// Candidates are the absolute paths where its interpreter may be, best first.
	// Which of them exist is for the runner to find out.
	Candidates []string
	Package    string            // the Debian package that brings the interpreter
	Flags      []string          // between interpreter and file
	Vars       map[string]string // its own environment, over what every run gets
}

// Argv is the command line that runs file with args by interpreter, which is one
// of the candidates.
func (l Language) Argv(interpreter, file string, args []string) []string {
	return slices.Concat([]string{interpreter}, l.Flags, []string{file}, args)
}

// Env is the whole environment of a run, sorted: what every run gets, then the
// language's own, then extra, each over the one before. It holds nothing of the
// server's environment.
func (l Language) Env(extra map[string]string) []string {
	all := baseEnv()
	maps.Copy(all, l.Vars)
	maps.Copy(all, extra)
	env := make([]string, 0, len(all))
	for _, k := range slices.Sorted(maps.Keys(all)) {
		env = append(env, k+"="+all[k])
	}
	return env
}

// Table is a closed set of languages in which no name stands for two of them.
type Table []Language

// Lookup is the language that name stands for, by its name or an alias. The
// comparison is exact. Any other name is an error of kind writ.Invalid that lists
// what there is.
func (t Table) Lookup(name writ.Language) (Language, error) {
	for _, l := range t {
		if l.Name == name || slices.Contains(l.Aliases, name) {
			return l, nil
		}
	}
	return Language{}, &writ.Error{
		Kind: writ.Invalid,
		Op:   "look up language",
		Msg:  fmt.Sprintf("language %q is not known: want one of %s", clip(name), t.names()),
	}
}

// names lists every language with its aliases, for error texts.
func (t Table) names() string {
	all := make([]string, len(t))
	for i, l := range t {
		all[i] = string(l.Name)
		for j, a := range l.Aliases {
			sep := ", "
			if j == 0 {
				sep = " (or "
			}
			all[i] += sep + string(a)
		}
		if len(l.Aliases) > 0 {
			all[i] += ")"
		}
	}
	return strings.Join(all, ", ")
}

// clip keeps a hostile name from filling an error text.
func clip(name writ.Language) string {
	const most = 64
	if len(name) > most {
		return string(writ.CutRune([]byte(name[:most]))) + "..."
	}
	return string(name)
}

// Lookup is All().Lookup(name).
func Lookup(name writ.Language) (Language, error) { return All().Lookup(name) }
