package shell

import (
	"path"
	"slices"
)

// Why is a reason for which it cannot be known what a command runs.
type Why string

const (
	Computed    Why = "computed"    // a program's name or a shell's text is made only when it runs
	File        Why = "file"        // commands or code from a file: sh x.sh, source x, make
	Input       Why = "input"       // commands or code from standard input
	Code        Why = "code"        // code in a language that is not a shell's: python -c
	Remote      Why = "remote"      // commands on another machine or in a container
	Indirect    Why = "indirect"    // it runs another program, and its arguments do not tell which
	Environment Why = "environment" // a variable that makes programs run or load others
	Renamed     Why = "renamed"     // names are given another meaning: alias, hash -p
	Target      Why = "target"      // the name of a file that is written to is made only when it runs
	Unparsable  Why = "unparsable"  // shell text that does not parse
	TooLarge    Why = "too-large"   // more text, commands or depth than is read
)

// Whys lists every reason.
var Whys = []Why{Computed, File, Input, Code, Remote, Indirect, Environment, Renamed, Target, Unparsable, TooLarge}

// Unreadable reports whether w says that a part was not read at all, so that not even
// its programs are known.
func (w Why) Unreadable() bool { return w == Unparsable || w == TooLarge }

// Unknown is something about a command that cannot be known.
type Unknown struct {
	Why  Why
	Text string // what it is about, at most 120 bytes of the command or of the parser's words
}

// Redirect is a file that a shell opens for a command.
type Redirect struct {
	Path  string // as written, unquoted; the source text when it is made only when it runs
	Write bool   // else it is only read
}

// Command is one simple command: a program and its arguments.
type Command struct {
	Program string // the name alone, without its folder; empty when it is not known
	Path    string // as written, unquoted; the source text where only the folder is computed
	// Args are the arguments, unquoted. One whose value is made only when it runs (a
	// variable, a pattern) stands as its source text, and ArgsUnknown is set.
	Args        []string
	ArgsUnknown bool
	Assigns     []string // NAME=value before it, of the shell, of env or of sudo
	Redirects   []Redirect
	Unknown     []Unknown // each pair of Why and Text once
}

// Reading is what a command line would run, as far as reading it says.
type Reading struct {
	Commands  []Command  // each different one once, the argv itself first
	Redirects []Redirect // all of the line, also those of groups
}

// Programs are the names of all programs that are known, sorted, each once.
func (r Reading) Programs() []string {
	var list []string
	for _, c := range r.Commands {
		if c.Program != "" {
			list = append(list, c.Program)
		}
	}
	return sortedSet(list)
}

// Writes are the files that the line writes to by redirection, cleaned of "." and
// "..", sorted, each once. /dev/null is none.
func (r Reading) Writes() []string {
	var list []string
	for _, d := range r.Redirects {
		if p := path.Clean(d.Path); d.Write && p != "/dev/null" {
			list = append(list, p)
		}
	}
	return sortedSet(list)
}

// Whys are the reasons of everything that cannot be known, sorted, each once. It is
// empty when Commands is the whole of what would run.
func (r Reading) Whys() []Why {
	var list []Why
	for _, c := range r.Commands {
		list = append(list, c.Whys()...)
	}
	return sortedSet(list)
}

// Unreadable reports whether a part of the line was not read at all.
func (r Reading) Unreadable() bool {
	return slices.ContainsFunc(r.Whys(), Why.Unreadable)
}

// Whys are the reasons of what is not known of c, sorted, each once.
func (c Command) Whys() []Why {
	var list []Why
	for _, u := range c.Unknown {
		list = append(list, u.Why)
	}
	return sortedSet(list)
}

func sortedSet[S ~string](list []S) []S {
	slices.Sort(list)
	return slices.Compact(list)
}
