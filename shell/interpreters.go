package shell

import (
	"regexp"
	"slices"
	"strings"
)

// recipes run commands that a file of theirs holds.
const recipes = " make gmake bmake remake ninja samu just task rake invoke fab npm yarn pnpm tox nox ant mvn mvnw gradle gradlew sbt lein bazel bazelisk buck" +
	" scons waf meson ansible ansible-playbook puppet chef-client salt-call terraform tofu packer vagrant pre-commit lefthook husky earthly dagger act "

// remotes run commands on other machines and in containers.
const remotes = " ssh rsh rlogin mosh sshpass autossh slogin pssh pdsh dsh clush psexec winrs docker podman nerdctl kubectl oc lxc lxc-attach incus crun runc wsl "

// editors take commands and code in languages of their own.
const editors = " vi vim nvim view vimdiff rvim gvim ex ed red emacs emacsclient sqlite3 sqlite psql mysql mariadb" +
	" redis-cli mongosh mongo gnuplot octave bc dc jshell m4 ghostscript gs tclsh wish expect ftp lftp telnet irb pry ipython "

// language says how an interpreter takes its code.
type language struct {
	code  string   // short options whose value is code
	long  []string // long ones
	takes string   // short options with a value that is no code
}

// interpreter is the language of a program, whatever version it has in its name.
func interpreter(program string) (language, bool) {
	name := strings.TrimRight(program, "0123456789.-")
	switch name {
	case "python", "pypy", "jython", "micropython", "graalpy":
		return language{code: "c", takes: "WXQ"}, true
	case "perl":
		return language{code: "eE", takes: "I"}, true
	case "ruby", "jruby", "truffleruby":
		return language{code: "e", takes: "CEIKr"}, true
	case "node", "nodejs", "bun", "deno", "qjs":
		return language{code: "ep", long: []string{"--eval", "--print", "eval"}, takes: "rC"}, true
	case "php":
		return language{code: "rBRE", takes: "cdz"}, true
	case "lua", "luajit", "texlua":
		return language{code: "e", takes: "l"}, true
	case "R", "Rscript", "julia", "racket", "guile", "sbcl", "clisp", "elixir", "erl", "escript", "groovy", "scala", "ghc", "runghc", "runhaskell",
		"ocaml", "swift", "crystal", "nim", "janet", "bb", "clj", "clojure", "osascript", "tclsh", "java", "dotnet", "mono", "wine", "wasmtime", "wasmer",
		"fish", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "powershell", "rc", "es", "ion", "oil", "osh", "ysh":
		return language{code: "ceE", long: []string{"--eval", "--command", "-Command", "-EncodedCommand", "--execute"}}, true
	}
	return language{}, false
}

// interpreter notes where the code comes from that the command at runs.
func (r *reader) interpreter(at int, c call, l language) {
	args := c.args()
	if len(args) == 1 && args[0].known && slices.Contains([]string{"-V", "-v", "--version", "-version", "-h", "--help", "-help"}, args[0].text) {
		return
	}
	for i := 0; i < len(args); i++ {
		text := args[i].text
		switch name, _, _ := strings.Cut(text, "="); {
		case !args[i].known:
			r.note(at, Computed, texts(c.words))
			return
		case slices.Contains(l.long, name), strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && strings.ContainsAny(text, l.code):
			r.note(at, Code, texts(c.words))
			return
		case text == "-" || text == "/dev/stdin":
			i = len(args)
		case !strings.HasPrefix(text, "-"), text == "-m":
			r.note(at, File, texts(c.words))
			return
		case len(text) == 2 && strings.Contains(l.takes, text[1:]):
			i++
		}
	}
	if c.stdin != nil && c.stdin.known {
		r.note(at, Code, texts(c.words))
	} else {
		r.note(at, Input, texts(c.words))
	}
}

// A script of sed that surely neither runs nor writes anything: addresses, and
// commands other than e, w, W, r, and s with such a flag.
const (
	sedAddress = `(\d+(~\d+)?|\$|\+\d+|/([^/\\\n]|\\[^\n])*/I?)`
	sedCommand = `([pPdDqQhHgGxnNlz=]\d*|[aic]\\?[ \t]?[^\n]*|[bt]?:?[ \t]*[A-Za-z]?` +
		`|[sy]/([^/\\\n]|\\[^\n])*/([^/\\\n]|\\[^\n])*/[gpiIM0-9]*|[sy]\|([^|\\\n]|\\[^\n])*\|([^|\\\n]|\\[^\n])*\|[gpiIM0-9]*` +
		`|[sy]#([^#\\\n]|\\[^\n])*#([^#\\\n]|\\[^\n])*#[gpiIM0-9]*|[sy],([^,\\\n]|\\[^\n])*,([^,\\\n]|\\[^\n])*,[gpiIM0-9]*` +
		`|[sy]@([^@\\\n]|\\[^\n])*@([^@\\\n]|\\[^\n])*@[gpiIM0-9]*|[sy]:([^:\\\n]|\\[^\n])*:([^:\\\n]|\\[^\n])*:[gpiIM0-9]*)`
	sedPiece = `[ \t]*(` + sedAddress + `([ \t]*,[ \t]*` + sedAddress + `)?)?[ \t]*!?[ \t]*(` + sedCommand + `)?[ \t]*`
)

var harmlessSed = regexp.MustCompile(`^` + sedPiece + `([;\n]` + sedPiece + `)*$`)

// sed notes a script that may run or write something.
func (r *reader) sed(at int, c call) {
	w := wrapper{flags: "nrEsuzb", rests: "i", values: "efl", permutes: true,
		long: " quiet silent regexp-extended in-place separate unbuffered null-data posix debug sandbox follow-symlinks help version binary ", longValues: " expression file line-length "}
	o, rest, ok := w.parse(c.args())
	var scripts []word
	for _, opt := range o {
		switch opt.name {
		case "e", "expression":
			scripts = append(scripts, opt.value)
		case "f", "file":
			r.note(at, File, texts(c.words))
		case "help", "version", "sandbox":
			return
		}
	}
	if _, fromFile := o.last("f", "file"); ok && scripts == nil && !fromFile && len(rest) > 0 {
		scripts = rest[:1]
	}
	for _, s := range scripts {
		ok = ok && s.known && harmlessSed.MatchString(s.text)
	}
	if !ok {
		r.note(at, Code, texts(c.words))
	}
}

// awk notes a program that may run or write something: each way to do that needs one
// of a few words or signs.
func (r *reader) awk(at int, c call) {
	w := wrapper{flags: "bcCghIkMnNOPrsStV", values: "FvfiElLdDpZ", longValues: " field-separator assign file include exec load ", long: " posix re-interval sandbox version help csv "}
	o, rest, ok := w.parse(c.args())
	if _, file := o.last("f", "file", "E", "exec", "i", "include", "l", "load"); file {
		r.note(at, File, texts(c.words))
		return
	}
	if !ok || len(rest) > 0 && (!rest[0].known || strings.ContainsAny(rest[0].text, "|>@") || strings.Contains(rest[0].text, "system") || strings.Contains(rest[0].text, "getline")) {
		r.note(at, Code, texts(c.words))
	}
}
