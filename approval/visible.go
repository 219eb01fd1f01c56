package approval

import (
	"fmt"
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
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = s[i] >= ' ' && s[i] < 0x7f || s[i] == '\n' || s[i] == '\t'
	}
	if clean {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/8)
	marks := maxMarks // nothing to stand on yet
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "⟦0x%02X⟧", s[i])
			marks = 0
		case r == '\n' || r == '\t':
			b.WriteRune(r)
			marks = maxMarks
		case unicode.In(r, unicode.Mn, unicode.Me) && marks < maxMarks && !hidden(r):
			b.WriteRune(r)
			marks++
		case unicode.In(r, unicode.Mn, unicode.Me) || hidden(r):
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
			marks = 0
		default:
			b.WriteRune(r)
			marks = 0
		}
		i += n
	}
	return b.String()
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
