// Package lang says how a language becomes a command line: which interpreter,
// which file name, which environment, and which scope a principal must hold.
//
// A language is one row of a table. Adding one adds a row; nothing else in the
// module knows a language by name. The package is pure: it opens no file, starts
// nothing and does not know which interpreters a host has, only where to look.
//
// Each kind of run has a table of its own: what tasks run ([All]), and what the code
// interpreter runs, whose rows may have a compile step and whose runs find aids of ours
// ([Aids]) and packages of the host ([Links]). A name may stand for one thing in one and for
// another in the other.
//
// Names come from callers and are hostile: they are compared exactly, those of the code
// interpreter but for the case of ASCII letters, and never trimmed or used as a path.
package lang

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	Kind    writ.RunKind // of the runs that the row is for
	Scope   writ.Scope   // what a principal must hold to run it
	File    string       // the code's name in CodeDir, of kind interpreter in Data
	// Candidates are the absolute paths where its interpreter or compiler may be, best
	// first. Which of them exist is for the runner to find out.
	Candidates []string
	Package    string // the package that brings it: Debian's, more than one with spaces between
	NPM        bool   // Package is npm's
	// Compile are the arguments of the compiler, of a language that has a compile step: it
	// works in Data and makes the program BinDir + "/main". Flags are then none.
	Compile []string
	// Prebuilt is a folder of the host, which boxes see, with what the compiler would else
	// make anew in each box; CacheVar is the variable of Vars or Env that names the folder
	// where it looks for that. It is used when it is there; Prebuild is the command that
	// makes it. Empty for most.
	Prebuilt, CacheVar, Prebuild string
	Flags                        []string // between interpreter and file
	// MemoryFlag, with a number of bytes behind it, tells an interpreter that sizes itself
	// by its machine how much memory there is. Empty for all others.
	MemoryFlag string
	Vars       map[string]string // its own environment, over what every run gets
}

// program is the name of what a compile step makes, in BinDir.
const program = "main"

// Install is the command that brings the interpreter.
func (l Language) Install() string {
	if l.NPM {
		return "npm install -g " + l.Package
	}
	return "apt-get install " + l.Package
}

// Argv is the command line that runs file with args by interpreter, which is one
// of the candidates. Of a language with a compile step it runs what that made, by its
// bare name, which is looked for in PATH of Env.
func (l Language) Argv(interpreter, file string, args []string) []string {
	if l.Compile != nil {
		return slices.Concat([]string{program}, args)
	}
	return slices.Concat([]string{interpreter}, l.Flags, []string{file}, args)
}

// Sized is l for runs with so many bytes of memory.
func (l Language) Sized(memory int64) Language {
	if l.MemoryFlag != "" {
		l.Flags = slices.Concat(l.Flags, []string{l.MemoryFlag + strconv.FormatInt(memory, 10)})
	}
	return l
}

// CompileArgv is the command line of the compile step, or nil for a language that has
// none. compiler is one of the candidates.
func (l Language) CompileArgv(compiler string) []string {
	if l.Compile == nil {
		return nil
	}
	argv := slices.Concat([]string{compiler}, l.Compile)
	if l.Prebuilt == "" {
		return argv
	}
	// Links, so that it costs no memory and can be added to. Without them it takes longer.
	link := fmt.Sprintf(`if [ -d "$1" ]; then mkdir -p "$%[1]s" && cp -rs "$1/." "$%[1]s"; fi 2>/dev/null; shift; exec "$@"`, l.CacheVar)
	return slices.Concat([]string{"/bin/sh", "-c", link, "sh", l.Prebuilt}, argv)
}

// Env is the whole environment of a run, sorted: what every run gets, then the
// language's own, then extra, each over the one before. It holds nothing of the
// server's environment.
func (l Language) Env(extra map[string]string) []string {
	all := baseEnv()
	if l.Kind == writ.RunInterpreter {
		all = interpreterEnv()
		all["SANDBOX_LANGUAGE"] = string(l.Name)
	}
	if l.Compile != nil {
		all["PATH"] = BinDir + ":" + all["PATH"]
	}
	maps.Copy(all, unattended())
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
// comparison is exact, but for the case of ASCII letters in names of the code interpreter
// (spec/03 §6.1). Any other name is an error of kind writ.Invalid that lists what there
// is.
func (t Table) Lookup(name writ.Language) (Language, error) {
	lower := lowerASCII(name)
	for _, l := range t {
		given := name
		if l.Kind == writ.RunInterpreter {
			given = lower
		}
		if l.Name == given || slices.Contains(l.Aliases, given) {
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

// lowerASCII is name with its ASCII letters in lower case, and all else as it is: no other
// letter becomes one of a name.
func lowerASCII(name writ.Language) writ.Language {
	b := []byte(name)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return writ.Language(b)
}

// clip keeps a hostile name from filling an error text.
func clip(name writ.Language) string {
	const most = 64
	if len(name) > most {
		return string(writ.CutRune([]byte(name[:most]))) + "..."
	}
	return string(name)
}

// For is the table of every language of a kind of runs. Of a kind that there is not it is
// empty. The caller owns the slice.
func For(k writ.RunKind) Table {
	switch k {
	case writ.RunTask:
		return All()
	case writ.RunInterpreter:
		return interpreters()
	}
	return nil
}

// Lookup is All().Lookup(name).
func Lookup(name writ.Language) (Language, error) { return All().Lookup(name) }
