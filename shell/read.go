package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of what is read. What lies beyond is TooLarge.
const (
	MaxCommands  = 500
	MaxDepth     = 16        // of shells and wrappers in one another
	MaxTextBytes = 256 << 10 // of shell text, each time that it is read

	maxExcerpt = 120
	// maxOpeners bounds the brackets of one text: the parser recurses over them, and a
	// stack that overflows ends the process.
	maxOpeners = 4000
)

// Read says what argv would run. It keeps no part of argv. An argv without a program is
// a reading whose one command is unparsable.
func Read(argv []string) Reading {
	r := reader{fresh: map[string]int{}, texts: map[string]bool{}, left: MaxTextBytes}
	if len(argv) == 0 || argv[0] == "" {
		r.out.Commands = []Command{{}}
		r.note(0, Unparsable, "there is no program")
		return r.out
	}
	words := make([]word, len(argv))
	for i, a := range argv {
		words[i] = word{text: a, known: true}
	}
	r.run(call{words: words, owner: -1})
	return r.out
}

// word is one argument. Where known is not set, text is its source.
type word struct {
	text  string
	known bool
	// base is the last element of a path whose folder alone is computed: x of "$D"/x.
	base string
}

func known(s string) word { return word{text: s, known: true} }

// computed stands for arguments that only a run can tell.
var computed = word{text: "{}"}

// call is a simple command that was found.
type call struct {
	words     []word // of the program and its arguments; not empty
	assigns   []word
	redirects []Redirect
	stdin     *word    // what a here-document gives it; nil when it reads something else
	langs     dialects // of the shell that it stands in; nil outside of one
	depth     int
	owner     int // the command whose text or arguments it stands in; -1 for none
}

// args are the words after the program.
func (c call) args() []word { return c.words[1:] }

// with is a command that c runs, at is c's own place.
func (c call) with(at int, words []word) call {
	return call{words: words, stdin: c.stdin, langs: c.langs, depth: c.depth + 1, owner: at}
}

// reader makes one reading.
type reader struct {
	out   Reading
	fresh map[string]int  // a command's key → its place in out
	texts map[string]bool // texts that were read, with their dialects
	left  int             // bytes of text that may still be read
}

// note records that something about the command at cannot be known.
func (r *reader) note(at int, why Why, text string) {
	if len(text) > maxExcerpt {
		text = text[:maxExcerpt-3] + "..."
	}
	c := &r.out.Commands[max(at, 0)]
	if u := (Unknown{why, strings.ToValidUTF8(text, "?")}); !slices.Contains(c.Unknown, u) {
		c.Unknown = append(c.Unknown, u)
	}
}

// run records c and everything that it runs in turn. It does nothing when there are no
// words.
func (r *reader) run(c call) {
	if len(c.words) == 0 {
		return
	}
	if len(r.out.Commands) >= MaxCommands || c.depth > MaxDepth {
		r.note(c.owner, TooLarge, "more than "+strconv.Itoa(MaxCommands)+" commands, or "+strconv.Itoa(MaxDepth)+" in one another")
		return
	}
	key := c.key()
	if _, seen := r.fresh[key]; seen {
		return // and so is what it runs
	}
	at := len(r.out.Commands)
	r.fresh[key] = at
	cmd := Command{Program: programName(c.words[0]), Path: c.words[0].text, Redirects: c.redirects}
	for _, w := range c.args() {
		cmd.Args = append(cmd.Args, w.text)
		cmd.ArgsUnknown = cmd.ArgsUnknown || !w.known
	}
	for _, w := range c.assigns {
		cmd.Assigns = append(cmd.Assigns, w.text)
	}
	if cmd.Program == "" {
		cmd.Path = ""
	}
	r.out.Commands = append(r.out.Commands, cmd)
	for _, w := range c.assigns {
		r.assign(at, w, c.depth)
	}
	if cmd.Program == "" {
		r.note(at, Computed, c.words[0].text)
		return
	}
	r.follow(at, c)
}

// programName is the name of the program that w starts, or empty.
func programName(w word) string {
	switch {
	case !w.known:
		return w.base
	case strings.Trim(w.text, "/") == "":
		return ""
	}
	return path.Base(w.text)
}

// key tells commands apart that run different things.
func (c call) key() string {
	var b []byte
	put := func(w word) { b = strconv.AppendBool(strconv.AppendQuote(b, w.text), w.known) }
	for _, w := range c.words {
		put(w)
	}
	for _, w := range c.assigns {
		put(w)
		b = append(b, '=')
	}
	for _, d := range c.redirects {
		b = strconv.AppendBool(strconv.AppendQuote(b, d.Path), d.Write)
		b = append(b, '>')
	}
	if c.stdin != nil {
		put(*c.stdin)
	}
	for _, lang := range c.langs { // a builtin of one shell is a program elsewhere
		b = strconv.AppendInt(append(b, ' '), int64(lang), 10)
	}
	return string(b)
}

// readable reports whether every reader of s sees the same: a shell drops, keeps or
// ends a line at other control characters than our parser does.
func readable(s string) bool {
	control := func(r rune) bool { return r < ' ' && r != '\t' && r != '\n' || r == 0x7f }
	return utf8.ValidString(s) && strings.IndexFunc(s, control) < 0
}

// texts of words, for messages.
func texts(words []word) string {
	var list []string
	for _, w := range words {
		list = append(list, w.text)
	}
	return strings.Join(list, " ")
}
