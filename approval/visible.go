package approval

import (
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks a character may bear: enough for every
// living script, too few to cover the lines above and below.
const maxMarks = 2

// Visible is s with everything that does not show, or shows as something else,
// written out as ⟦U+202E⟧: control characters (so also ANSI sequences and carriage
// returns), bidirectional and zero-width characters, tags, variation selectors,
// fillers, spaces that are not U+0020, unassigned characters, combining marks
// beyond the second on one character or on none, and the bracket ⟦ itself, so that
// what is written out cannot be forged. A byte that is not UTF-8 is ⟦0xFF⟧. Newline
// and tab stay as they are.
//
// Letters that look like others stay: which script a name is in, the reader sees
// only in context.
func Visible(s string) string {
	n, _ := hiddenIn(s)
	if n == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + n*len("⟦U+0000⟧"))
	for sc := (scanner{rest: s}); sc.rest != ""; {
		if char, ok := sc.next(); ok {
			b.WriteString(char)
		} else {
			writeOut(&b, char)
		}
	}
	return b.String()
}

// hiddenIn counts the characters of s that Visible writes out, and says in which
// line, from 1, the first of them is.
func hiddenIn(s string) (n, line int) {
	newlines := 0
	for sc := (scanner{rest: s}); sc.rest != ""; {
		char, ok := sc.next()
		switch {
		case !ok && n == 0:
			n, line = 1, newlines+1
		case !ok:
			n++
		case char == "\n":
			newlines++
		}
	}
	return n, line
}

// scanner cuts a text into characters. It is on the way of every byte of what may
// be megabytes, made to be slow: hence the case for ASCII and no formatting.
type scanner struct {
	rest  string
	based bool // the last character can bear a mark
	marks int  // that it bears
}

// next cuts off one character, or one byte that is none. ok is false when it must
// be written out.
func (sc *scanner) next() (char string, ok bool) {
	s := sc.rest
	if c := s[0]; c < utf8.RuneSelf {
		sc.rest = s[1:]
		sc.based, sc.marks = c != '\n' && c != '\t', 0
		return s[:1], c >= ' ' && c != 0x7f || c == '\n' || c == '\t'
	}
	r, size := utf8.DecodeRuneInString(s)
	sc.rest = s[size:]
	switch {
	case r == utf8.RuneError && size == 1, hidden(r):
	case !unicode.In(r, unicode.Mn, unicode.Me):
		sc.based, sc.marks = true, 0
		return s[:size], true
	case sc.based && sc.marks < maxMarks:
		sc.marks++
		return s[:size], true
	}
	sc.based, sc.marks = true, 0 // on what is written in its place
	return s[:size], false
}

// writeOut writes one character by its number.
func writeOut(b *strings.Builder, char string) {
	const digits = "0123456789ABCDEF"
	r, size := utf8.DecodeRuneInString(char)
	if r == utf8.RuneError && size == 1 {
		b.WriteString("⟦0x")
		b.WriteByte(digits[char[0]>>4])
		b.WriteByte(digits[char[0]&15])
	} else {
		b.WriteString("⟦U+")
		for shift := max(12, (bits.Len32(uint32(r))-1)&^3); shift >= 0; shift -= 4 {
			b.WriteByte(digits[r>>shift&15])
		}
	}
	b.WriteString("⟧")
}

// hidden reports whether r shows as nothing, or as something else than it is.
func hidden(r rune) bool {
	switch r {
	case '⟦': // ours
		return true
	case '\u2800', '\U0001D159': // braille blank, null notehead: symbols without ink
		return true
	}
	// IsPrint leaves out controls, formats, all spaces but U+0020, and what is private
	// or not assigned. The other tables are letters and marks without ink.
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// oneLine is Visible for what must stay on one line.
func oneLine(s string) string {
	return strings.NewReplacer("\n", "⟦U+000A⟧", "\t", "⟦U+0009⟧").Replace(Visible(s))
}
