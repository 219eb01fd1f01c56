package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Cedar's parser stops at the first error and its syntax tree has no positions
// below the rule. So a file is cut into rules here, each is parsed by itself, and
// the tokens say where in it a fault stands.

// position is a place in a file. Line and column count from 1, the column in characters.
type position struct{ line, col int }

// token is a lexical unit of Cedar. A string's text has its quotes.
type token struct {
	text string
	off  int
	position
}

// statement is the text of one rule: up to and with its ";", or what stands after
// the last one.
type statement struct {
	src  string
	toks []token // at least one
}

func (s statement) start() position { return s.toks[0].position }

// find is the position of the first token, from index from on, whose text is one
// of texts; the position of token from when there is none.
func (s statement) find(from int, texts ...string) position {
	for _, t := range s.toks[from:] {
		for _, want := range texts {
			if t.text == want || t.text == `"`+want+`"` {
				return t.position
			}
		}
	}
	return s.toks[from].position
}

// index is where the words of text stand together in st, from token from on; from
// itself when they do not, as when brackets were left out in text.
func (s statement) index(from int, text string) int {
	list, _, _ := split(text)
	if len(list) != 1 {
		return from
	}
	words := list[0].toks
	for i := from; i+len(words) <= len(s.toks); i++ {
		if slices.EqualFunc(words, s.toks[i:i+len(words)], func(a, b token) bool { return a.text == b.text }) {
			return i
		}
	}
	return from
}

// annotation is the position of @key.
func (s statement) annotation(key string) position {
	for i := 0; i+1 < len(s.toks); i++ {
		if s.toks[i].text == "@" && s.toks[i+1].text == key {
			return s.toks[i].position
		}
	}
	return s.start()
}

// conditions are the indices of the "when" and "unless" that open a condition.
func (s statement) conditions() (at []int) {
	depth := 0
	for i, t := range s.toks {
		switch t.text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		case "when", "unless":
			if depth == 0 && i > 0 && s.toks[i-1].text != "@" {
				at = append(at, i)
			}
		}
	}
	return at
}

// shape says why a rule is too large to be handed to recursive code, and where.
func (s statement) shape() (string, position) {
	if len(s.toks) > maxTokens {
		return fmt.Sprintf("the rule has more than %d words and signs: split it", maxTokens), s.start()
	}
	depth := 0
	for _, t := range s.toks {
		switch t.text {
		case "(", "[", "{":
			if depth++; depth > maxDepth {
				return fmt.Sprintf("brackets are nested more than %d deep: simplify the rule", maxDepth), t.position
			}
		case ")", "]", "}":
			depth--
		}
	}
	return "", position{}
}

// split cuts src into its statements. On an unfinished string or comment it
// returns what came before, and the fault.
func split(src string) (list []statement, fault string, at position) {
	lx := lexer{src: src, line: 1}
	var toks []token
	begin := 0
	for {
		t, fault := lx.next()
		if fault != "" {
			return list, fault, t.position
		}
		if t.text == "" {
			break
		}
		if len(toks) == 0 {
			begin = t.off
		}
		toks = append(toks, t)
		if t.text == ";" {
			list = append(list, statement{src: src[begin:lx.off], toks: toks})
			toks = nil
		}
	}
	if len(toks) > 0 {
		list = append(list, statement{src: src[begin:], toks: toks})
	}
	return list, "", position{}
}

type lexer struct {
	src  string
	off  int
	line int
	mark int // an offset on the line, and
	col  int // how many characters of the line stand before it
}

func (l *lexer) here() position {
	l.col += utf8.RuneCountInString(l.src[l.mark:l.off])
	l.mark = l.off
	return position{l.line, l.col + 1}
}

// advance moves on by n bytes, which may hold line ends.
func (l *lexer) advance(n int) {
	for i := l.off; i < l.off+n; i++ {
		if l.src[i] == '\n' {
			l.line, l.mark, l.col = l.line+1, i+1, 0
		}
	}
	l.off += n
}

// next is the next token; its text is empty at the end.
func (l *lexer) next() (t token, fault string) {
	for l.off < len(l.src) {
		rest := l.src[l.off:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			l.advance(1)
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.advance(n)
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return token{position: l.here()}, `the comment is not ended: add "*/"`
			}
			l.advance(n + 4)
		default:
			n := length(rest)
			t := token{text: rest[:max(n, 1)], off: l.off, position: l.here()}
			if n == 0 {
				return t, `the string is not ended on its line: add "`
			}
			l.advance(n)
			return t, ""
		}
	}
	return token{off: l.off, position: l.here()}, ""
}

// length is the length of the token that s starts with; 0 for a string without an end.
func length(s string) int {
	if s[0] == '"' {
		for i := 1; i < len(s) && s[i] != '\n'; i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return i + 1
			}
		}
		return 0
	}
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n]|0x20 >= 'a' && s[n]|0x20 <= 'z') {
		n++
	}
	if n > 0 {
		return n
	}
	for _, op := range []string{"::", "==", "!=", "<=", ">=", "&&", "||"} {
		if strings.HasPrefix(s, op) {
			return 2
		}
	}
	_, n = utf8.DecodeRuneInString(s)
	return n
}
