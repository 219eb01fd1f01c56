package shell

import (
	"slices"
	"strings"
)

// wrapper says how the arguments of a program lead to the command that it runs.
type wrapper struct {
	flags      string // short options without a value
	values     string // short options with one: the rest of the word, or the next word
	rests      string // short options with one that can only be the rest of the word
	long       string // long options without a value, or with one after "="
	longValues string // long options with one, after "=" or the next word
	operands   int    // words between the options and the command
	assigns    bool   // NAME=value may stand before the command
	script     string // options, of values and longValues, whose value is shell text
	shell      bool   // the command is joined with spaces and is shell text
	permutes   bool   // options may stand behind operands
	alone      Why    // what runs when there is no command; empty when nothing does
	// look does what this table has no words for. It returns what is left of the words
	// behind the options, and whether there is anything left to do.
	look func(r *reader, at int, c call, o options, rest []word) ([]word, bool)
}

// options are those of one command, in order. A word is unknown where its value is.
type options []option

type option struct {
	name  string // without dashes
	value word
}

// last is the value of the last option that has one of names.
func (o options) last(names ...string) (word, bool) {
	for _, opt := range slices.Backward(o) {
		if slices.Contains(names, opt.name) {
			return opt.value, true
		}
	}
	return word{}, false
}

// parse takes the options off args. It fails at one that the table does not have, and
// at a word that is not known, since it may be any option.
func (w wrapper) parse(args []word) (o options, rest []word, ok bool) {
	for len(args) > 0 {
		a := args[0]
		switch {
		case !a.known:
			return o, args, false
		case a.text == "--":
			return o, append(rest, args[1:]...), true
		case len(a.text) >= 2 && a.text[0] == '-':
		case w.permutes:
			rest, args = append(rest, a), args[1:]
			continue
		default:
			return o, args, true
		}
		args = args[1:]
		// next is the value of an option that has none in its own word.
		next := func() (v word, ok bool) {
			if len(args) == 0 {
				return word{}, false
			}
			v, args = args[0], args[1:]
			return v, true
		}
		if long, ok := strings.CutPrefix(a.text, "--"); ok {
			name, value, has := strings.Cut(long, "=")
			v := known(value)
			switch {
			case has && (in(w.long, name) || in(w.longValues, name)), in(w.long, name):
			case in(w.longValues, name):
				if v, ok = next(); !ok {
					return o, nil, false
				}
			default:
				return o, args, false
			}
			o = append(o, option{name, v})
			continue
		}
		for i := 1; i < len(a.text); i++ {
			name, tail := a.text[i:i+1], a.text[i+1:]
			switch {
			case strings.Contains(w.flags, name):
				o = append(o, option{name: name})
				continue
			case strings.Contains(w.rests, name):
				o = append(o, option{name, known(tail)})
			case strings.Contains(w.values, name):
				v := known(tail)
				if tail == "" {
					if v, ok = next(); !ok {
						return o, nil, false
					}
				}
				o = append(o, option{name, v})
			default:
				return o, args, false
			}
			break
		}
	}
	return o, rest, true
}

// wrapped runs what w says that the command at runs.
func (r *reader) wrapped(at int, c call, w wrapper) {
	o, rest, ok := w.parse(c.args())
	if !ok {
		r.guess(at, c)
		return
	}
	if w.look != nil {
		if rest, ok = w.look(r, at, c, o, rest); !ok {
			return
		}
	}
	if text, ok := o.last(strings.Fields(w.script)...); ok {
		r.script(at, text, posix, c.depth)
		return
	}
	for w.assigns && len(rest) > 0 && (!rest[0].known || strings.Contains(rest[0].text, "=")) {
		if !rest[0].known {
			r.guess(at, c)
			return
		}
		r.out.Commands[at].Assigns = append(r.out.Commands[at].Assigns, rest[0].text)
		r.assign(at, rest[0], c.depth)
		rest = rest[1:]
	}
	for range min(w.operands, len(rest)) {
		if !rest[0].known && rest[0].text == computed.text {
			break // as many words as there may be
		}
		rest = rest[1:]
	}
	switch {
	case len(rest) == 0:
		if w.alone == Input && c.stdin != nil {
			r.script(at, *c.stdin, posix, c.depth)
		} else if w.alone != "" {
			r.note(at, w.alone, texts(c.words))
		}
	case w.shell:
		r.script(at, joined(rest), posix, c.depth)
	default:
		r.run(c.with(at, rest))
	}
}

// guess notes that the command at runs another one that cannot be told, and runs the
// first word that looks like it all the same, so that rules hear of it.
func (r *reader) guess(at int, c call) {
	r.note(at, Indirect, texts(c.words))
	for i, w := range c.args() {
		if w.known && w.text != "" && w.text[0] != '-' && w.text[0] != '+' && !strings.Contains(w.text, "=") {
			r.run(c.with(at, c.args()[i:]))
			return
		}
	}
}

// joined are words with spaces between them, as a shell gets them.
func joined(words []word) word {
	out := word{known: true}
	var list []string
	for _, w := range words {
		list = append(list, w.text)
		out.known = out.known && w.known
	}
	out.text = strings.Join(list, " ")
	return out
}
