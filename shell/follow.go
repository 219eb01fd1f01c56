package shell

import (
	"slices"
	"strings"
)

// follow looks at what the program of the command at runs in turn.
func (r *reader) follow(at int, c call) {
	program := r.out.Commands[at].Program
	if langs, ok := shells(program); ok {
		r.shell(at, c, langs)
		return
	}
	if w, ok := wrapperOf(program); ok {
		r.wrapped(at, c, w)
		return
	}
	if c.langs != nil && r.builtin(at, c, program) {
		return
	}
	switch {
	case program == "find":
		r.find(at, c)
	case program == "git":
		r.git(at, c)
	case program == "sed" || program == "gsed":
		r.sed(at, c)
	case slices.Contains([]string{"awk", "gawk", "mawk", "nawk", "original-awk"}, program):
		r.awk(at, c)
	case in(carriers, program) || isLoader(program):
		r.guess(at, c)
	case in(indirects, program), program == "ip" && slices.ContainsFunc(c.args(), func(w word) bool { return !w.known || w.text == "exec" || strings.HasPrefix(w.text, "-b") }):
		r.note(at, Indirect, texts(c.words))
	case in(recipes, program):
		r.note(at, File, texts(c.words))
	case in(remotes, program):
		r.note(at, Remote, texts(c.words))
	case in(editors, program):
		r.note(at, Code, texts(c.words))
	default:
		if code, ok := interpreter(program); ok {
			r.interpreter(at, c, code)
			return
		}
		r.optionsThatRun(at, c, program)
	}
}

// shells are the programs that read the languages which we parse.
func shells(program string) (dialects, bool) {
	switch program {
	case "bash", "rbash":
		return bash, true
	case "sh", "dash", "ash", "posh", "yash":
		return posix, true
	case "ksh", "ksh93", "rksh", "mksh", "lksh", "oksh", "pdksh":
		return korn, true
	case "zsh", "rzsh":
		return zsh, true
	}
	for prefix, langs := range map[string]dialects{"bash": bash, "zsh": zsh, "ksh": korn} {
		if version, ok := strings.CutPrefix(program, prefix); ok && strings.Trim(version, "-.0123456789") == "" {
			return langs, true
		}
	}
	return nil, false
}

// longShellOptions change nothing about what a shell is told to run.
const longShellOptions = " norc noprofile posix login verbose restricted noediting noline interactive debugger debug dump-strings dump-po-strings emacs vi "

// shell finds what a shell is told to run: text after -c, a file, or its input.
func (r *reader) shell(at int, c call, langs dialects) {
	args := c.args()
	text, input := false, false
	for len(args) > 0 {
		a := args[0]
		if !a.known {
			r.note(at, Computed, texts(c.words))
			return
		}
		if len(a.text) < 2 || a.text[0] != '-' && a.text[0] != '+' {
			if a.text == "-" {
				args = args[1:]
			}
			break
		}
		args = args[1:]
		if a.text == "--" {
			break
		}
		switch name := strings.TrimLeft(a.text, "-"); { // bash takes long options with one dash, too
		case name == "version" || name == "help":
			return
		case name == "rcfile" || name == "init-file":
			r.note(at, File, a.text)
			args = args[min(1, len(args)):]
			continue
		case in(longShellOptions, name):
			continue
		case strings.HasPrefix(a.text, "--"):
			r.guess(at, c)
			return
		}
		takes := strings.Count(a.text, "o") + strings.Count(a.text, "O")
		text = text || a.text[0] == '-' && strings.Contains(a.text, "c")
		input = input || strings.Contains(a.text, "s")
		args = args[min(takes, len(args)):]
	}
	switch {
	case text && len(args) > 0:
		r.script(at, args[0], langs, c.depth)
	case text:
	case len(args) > 0 && !input:
		r.note(at, File, args[0].text)
	case c.stdin != nil:
		r.script(at, *c.stdin, langs, c.depth)
	default:
		r.note(at, Input, texts(c.words))
	}
}

// builtin follows what only a shell has, and reports whether program is one of those.
func (r *reader) builtin(at int, c call, program string) bool {
	args := c.args()
	// flag reports whether an option of the command has that letter.
	flag := func(letter string) bool {
		return slices.ContainsFunc(args, func(w word) bool { return strings.HasPrefix(w.text, "-") && strings.Contains(w.text, letter) })
	}
	switch program {
	case "eval":
		if len(args) > 0 && args[0].known && args[0].text == "--" {
			args = args[1:]
		}
		r.script(at, joined(args), c.langs, c.depth)
	case "trap":
		if len(args) > 0 && args[0].known && args[0].text == "--" {
			args = args[1:]
		}
		if len(args) > 1 && !(args[0].known && (args[0].text == "-" || args[0].text == "-p" || args[0].text == "-l")) {
			r.script(at, args[0], c.langs, c.depth)
		}
	case "source", ".":
		r.note(at, File, texts(c.words))
	case "alias", "hash", "enable", "functions", "zmodload", "autoload", "disable", "zle", "zstyle", "add-zsh-hook":
		if len(args) > 0 && !(program == "hash" && len(args) == 1 && args[0].known && args[0].text == "-r") {
			r.note(at, Renamed, texts(c.words))
		}
		for _, w := range args {
			if _, value, found := strings.Cut(w.text, "="); found && program == "alias" {
				r.script(at, word{text: value, known: w.known}, c.langs, c.depth)
			}
		}
	case "bind", "complete", "compgen", "compopt", "fc", "sched":
		if len(args) > 0 {
			r.note(at, Computed, texts(c.words))
		}
	case "mapfile", "readarray":
		if flag("C") {
			r.note(at, Computed, texts(c.words))
		}
		r.names(at, args)
	case "read", "unset", "getopts", "wait":
		r.names(at, args)
	case "printf":
		if len(args) > 1 && (!args[0].known || strings.HasPrefix(args[0].text, "-v")) {
			r.names(at, args[:2])
		}
	case "test", "[":
		for i, w := range args {
			if w.known && w.text == "-v" && i+1 < len(args) {
				r.names(at, args[i+1:i+2])
			}
		}
	case "export", "declare", "typeset", "local", "readonly", "nameref", "integer", "float":
		for _, w := range args {
			if !strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "+") {
				r.assign(at, w, c.depth)
			}
			if name, _, _ := strings.Cut(w.text, "="); flag("n") { // the name of another one
				r.names(at, []word{w})
			} else {
				r.names(at, []word{known(name)})
			}
		}
	default:
		return false
	}
	return true
}

// names looks at names of variables in arguments: a subscript in one is arithmetic.
func (r *reader) names(at int, args []word) {
	for _, w := range args {
		switch name, _, _ := strings.Cut(w.text, "["); {
		case !w.known, strings.ContainsAny(w.text, "$`"):
			r.note(at, Computed, w.text)
		case runsThings(name):
			r.note(at, Environment, w.text)
		}
	}
}
