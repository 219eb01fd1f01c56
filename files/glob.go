package files

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of one pattern. Matching a path costs at most the product of the lengths of
// pattern and path.
const (
	MaxGlobBytes        = 1024
	maxGlobAlternatives = 32 // that braces may make of it
)

// glob is one pattern over paths whose names are separated by /:
//
//	?      one letter        [a-z]  one of these, [!a-z] and [^a-z] any other
//	*      any letters       {a,b}  either
//	**     as a whole name: any number of names, also none
//	\      the next letter as it is
//
// None of the first four matches a slash; all of them match a leading dot. A bracket
// or brace that nothing closes is itself.
type glob struct {
	names []namePattern
}

// namePattern matches one name of a path.
type namePattern struct {
	deep   bool   // **
	plain  bool   // no wildcard: the name is text
	text   string // of plain
	tokens []token
}

type token struct {
	kind   tokenKind
	letter rune      // of exact
	ranges [][2]rune // of class
	not    bool      // of class
}

type tokenKind uint8

const (
	exact tokenKind = iota
	anyLetter
	anyRun
	class
)

// parseGlob gives the patterns that are the alternatives of one text. The error is
// for the caller.
func parseGlob(text string) ([]glob, error) {
	if len(text) > MaxGlobBytes {
		return nil, fmt.Errorf("the pattern has %d bytes, the most is %d", len(text), MaxGlobBytes)
	}
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("the pattern %s is not UTF-8", quoted(text))
	}
	texts, ok := braces(nil, text)
	if !ok {
		return nil, fmt.Errorf("the braces of pattern %s make more than %d alternatives", quoted(text), maxGlobAlternatives)
	}
	globs := make([]glob, 0, len(texts))
	for _, text := range texts {
		globs = append(globs, oneGlob(text))
	}
	return globs, nil
}

// braces appends what text is without braces to out. It gives up beyond the bound.
func braces(out []string, text string) ([]string, bool) {
	open, close, commas := findBrace(text)
	if open < 0 {
		return append(out, text), len(out) < maxGlobAlternatives
	}
	start := open + 1
	for _, end := range append(commas, close) {
		var ok bool
		if out, ok = braces(out, text[:open]+text[start:end]+text[close+1:]); !ok {
			return nil, false
		}
		start = end + 1
	}
	return out, true
}

// findBrace is the first brace that is closed and has a comma. Open is -1 for none.
func findBrace(text string) (open, close int, commas []int) {
	for open := 0; open < len(text); open++ {
		switch text[open] {
		case '\\':
			open++
			continue
		case '{':
		default:
			continue
		}
		depth := 0
		commas = nil
		for i := open; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '{':
				depth++
			case ',':
				if depth == 1 {
					commas = append(commas, i)
				}
			case '}':
				if depth--; depth == 0 {
					if len(commas) > 0 {
						return open, i, commas
					}
					i = len(text)
				}
			}
		}
	}
	return -1, -1, nil
}

func oneGlob(text string) glob {
	var g glob
	for name := range strings.SplitSeq(text, "/") {
		if name == "" || name == "." {
			continue
		}
		p := parseName(name)
		if p.deep && len(g.names) > 0 && g.names[len(g.names)-1].deep {
			continue
		}
		g.names = append(g.names, p)
	}
	return g
}

func parseName(text string) namePattern {
	if text == "**" {
		return namePattern{deep: true}
	}
	p := namePattern{plain: true}
	var plain strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		t := token{letter: r}
		switch {
		case r == '?':
			t.kind = anyLetter
		case r == '*':
			t.kind = anyRun
		case r == '\\' && i+1 < len(text):
			var m int
			t.letter, m = utf8.DecodeRuneInString(text[i+1:])
			n += m
		case r == '[':
			if c, size, ok := parseClass(text[i:]); ok {
				t, n = c, size
			}
		}
		i += n
		if t.kind == anyRun && len(p.tokens) > 0 && p.tokens[len(p.tokens)-1].kind == anyRun {
			continue
		}
		p.plain = p.plain && t.kind == exact
		plain.WriteRune(t.letter)
		p.tokens = append(p.tokens, t)
	}
	p.text = plain.String()
	return p
}

// parseClass reads a class at the start of text, and says how long it is.
func parseClass(text string) (t token, size int, ok bool) {
	t = token{kind: class}
	i := 1
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		t.not = true
		i++
	}
	for first := true; i < len(text); first = false {
		if text[i] == ']' && !first {
			return t, i + 1, true
		}
		lo, n := classLetter(text[i:])
		i += n
		hi := lo
		if i+1 < len(text) && text[i] == '-' && text[i+1] != ']' {
			hi, n = classLetter(text[i+1:])
			i += 1 + n
		}
		t.ranges = append(t.ranges, [2]rune{lo, hi})
	}
	return token{}, 0, false
}

func classLetter(text string) (rune, int) {
	if text[0] == '\\' && len(text) > 1 {
		r, n := utf8.DecodeRuneInString(text[1:])
		return r, n + 1
	}
	return utf8.DecodeRuneInString(text)
}

func (t token) matches(r rune) bool {
	switch t.kind {
	case exact:
		return r == t.letter
	case class:
		for _, x := range t.ranges {
			if x[0] <= r && r <= x[1] {
				return !t.not
			}
		}
		return t.not
	}
	return true
}

// matches reports whether name is what the pattern says. It goes back to the last *
// alone, which suffices: an earlier one that took more could match no more.
func (p *namePattern) matches(name string) bool {
	if p.plain {
		return name == p.text
	}
	i, at := 0, 0         // in tokens, in name
	star, starAt := -1, 0 // the last *, and where what follows it was tried
	for at < len(name) || i < len(p.tokens) {
		if i < len(p.tokens) {
			t := p.tokens[i]
			if t.kind == anyRun {
				star, starAt = i, at
				i++
				continue
			}
			if at < len(name) {
				r, n := utf8.DecodeRuneInString(name[at:])
				if t.matches(r) {
					i++
					at += n
					continue
				}
			}
		}
		if star < 0 || starAt >= len(name) {
			return false
		}
		_, n := utf8.DecodeRuneInString(name[starAt:])
		starAt += n
		i, at = star+1, starAt
	}
	return true
}

// matches reports whether the whole path is what the pattern says.
func (g glob) matches(path string) bool {
	i, at := 0, 0         // in names, in path; at is len(path)+1 behind the last name
	deep, deepAt := -1, 0 // the last **, and where what follows it was tried
	end := len(path) + 1
	if path == "" {
		at = end
	}
	next := func(at int) (name string, after int) {
		if n := strings.IndexByte(path[at:], '/'); n >= 0 {
			return path[at : at+n], at + n + 1
		}
		return path[at:], end
	}
	for at < end || i < len(g.names) {
		if i < len(g.names) {
			p := &g.names[i]
			if p.deep {
				deep, deepAt = i, at
				i++
				continue
			}
			if at < end {
				if name, after := next(at); p.matches(name) {
					i, at = i+1, after
					continue
				}
			}
		}
		if deep < 0 || deepAt >= end {
			return false
		}
		_, deepAt = next(deepAt)
		i, at = deep+1, deepAt
	}
	return true
}

// leadsTo reports whether something beneath path could match, by the names of the
// pattern before its first **.
func (g glob) leadsTo(path string) bool {
	i := 0
	for name := range strings.SplitSeq(path, "/") {
		if i >= len(g.names) || g.names[i].deep || !g.names[i].matches(name) {
			return false
		}
		i++
	}
	return i < len(g.names)
}
