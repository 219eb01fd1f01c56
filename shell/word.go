package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// word is w with its quoting resolved, when that is all there is to it.
func (s *scope) word(w *syntax.Word) word {
	if lit := w.Lit(); lit == "[" || lit == "[[" { // programs, and no patterns
		return known(lit)
	}
	var u unquoter
	for _, p := range w.Parts {
		u.part(p)
	}
	if u.brace && u.list {
		u.made(true)
	}
	if !u.computed {
		return known(u.text.String())
	}
	out := word{text: s.source(w)}
	tail := u.text.String()[u.tail:]
	if i := strings.LastIndex(tail, "/"); !u.splits && i >= 0 {
		out.base = tail[i+1:]
	}
	return out
}

// unquoter resolves the quoting of one word.
type unquoter struct {
	text     strings.Builder // what is written out
	tail     int             // where in text begins what follows the last computed part
	computed bool            // a part is made only when it runs
	splits   bool            // and can make several arguments of the word, or none
	brace    bool            // there is a { outside of quotes
	list     bool            // and a comma or two dots
}

// made adds a part that is computed.
func (u *unquoter) made(splits bool) {
	u.computed, u.tail = true, u.text.Len()
	u.splits = u.splits || splits
}

func (u *unquoter) part(p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		u.unquoted(p.Value)
	case *syntax.SglQuoted:
		if !p.Dollar {
			u.text.WriteString(p.Value)
			return
		}
		text, ok := ansi(p.Value)
		u.text.WriteString(text)
		if !ok {
			u.made(false)
		}
	case *syntax.DblQuoted:
		for _, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok {
				u.text.WriteString(unescape(lit.Value, "$`\"\\"))
			} else {
				u.made(isList(q))
			}
		}
		if p.Dollar { // a translation, where there is one
			u.made(false)
		}
	default:
		u.made(true)
	}
}

// isList reports whether p can be several arguments even in double quotes: "$@", "${a[@]}".
func isList(p syntax.WordPart) bool {
	e, ok := p.(*syntax.ParamExp)
	return ok && (e.Param == nil || e.Param.Value == "@" || e.Index != nil || e.Excl || e.Flags != nil)
}

// unquoted adds text outside of quotes: a backslash keeps the next character, and
// patterns, braces and a ~ make something else of the word.
func (u *unquoter) unquoted(s string) {
	if first := u.text.Len() == 0 && !u.computed; first {
		switch {
		case strings.HasPrefix(s, "~"):
			user, _, under := strings.Cut(s, "/")
			u.made(!under) // a home folder, which by itself may be any path
			s = s[len(user):]
		case len(s) > 1 && s[0] == '=': // zsh: the path of a program
			u.made(true)
		}
	}
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i++; i < len(s) && s[i] != '\n' {
				u.text.WriteString(s[i : i+1])
			}
			continue
		case '*', '?', '[':
			u.made(true)
		case '{':
			u.brace = u.brace || !strings.HasPrefix(s[i:], "{}")
		case ',':
			u.list = true
		case '.':
			u.list = u.list || strings.HasPrefix(s[i:], "..")
		}
		u.text.WriteString(s[i : i+1])
	}
}

// unescape takes the backslash off each character of special, and a line end away
// with its backslash.
func unescape(s, special string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(special, s[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansi is the text of $'s'. ok is false for escapes that shells read differently.
func ansi(s string) (text string, ok bool) {
	const from, to = `abeEfnrtv\'"?`, "\a\b\x1b\x1b\f\n\r\t\v\\'\"?"
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return b.String(), false
		}
		if at := strings.IndexByte(from, s[i]); at >= 0 {
			b.WriteByte(to[at])
			continue
		}
		base, most, start := 16, 0, i+1
		switch c := s[i]; {
		case c >= '0' && c <= '7':
			base, most, start = 8, 3, i
		case c == 'x':
			most = 2
		case c == 'u':
			most = 4
		case c == 'U':
			most = 8
		}
		end := start
		for end < len(s) && end < start+most && isDigit(s[end], base) {
			end++
		}
		n, err := strconv.ParseUint(s[start:end], base, 32)
		if err != nil || n == 0 { // a NUL ends the word
			return b.String(), false
		}
		if s[i] == 'u' || s[i] == 'U' {
			b.Write(utf8.AppendRune(nil, rune(n)))
		} else {
			b.WriteByte(byte(n))
		}
		i = end - 1
	}
	return b.String(), true
}

func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(rune(c)), base, 8)
	return err == nil
}

// hereDocument is what a here-document or here-string gives the command.
func (s *scope) hereDocument(d *syntax.Redirect, target word) word {
	switch {
	case d.Op == syntax.WordHdoc:
		return target
	case d.Hdoc == nil:
		return known("")
	}
	lit, plain := d.Word.Parts[0].(*syntax.Lit)
	expands := plain && len(d.Word.Parts) == 1 && !strings.Contains(lit.Value, `\`)
	var b strings.Builder
	for _, p := range d.Hdoc.Parts {
		lit, ok := p.(*syntax.Lit)
		switch {
		case !ok:
			return word{text: s.source(d.Hdoc)}
		case expands:
			b.WriteString(unescape(lit.Value, "$`\\"))
		default:
			b.WriteString(lit.Value)
		}
	}
	return known(b.String())
}
