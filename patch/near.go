package patch

import (
	"fmt"
	"strings"

	"writ/levenshtein"
)

// fault is an error of chunk i, at a line of the patch.
func (u *updater) fault(i, line int, msg string) *Error {
	return &Error{Code: InvalidPatch, Line: line, Path: u.section.Path, Msg: fmt.Sprintf("chunk %d: %s", i+1, msg)}
}

// lost says why the lines of chunk i are nowhere.
func (u *updater) lost(i int) *Error {
	c := &u.section.Chunks[i]
	lines := withoutBare(c.Lines)
	want := oldLines(lines)
	where := ""
	switch {
	case c.AtEnd:
		where = ` at the end of the file, where "*** End of File" wants them`
	case u.pos > 0:
		where = fmt.Sprintf(" below line %d", u.pos)
	}
	fault := u.fault(i, c.Line, fmt.Sprintf("the file does not have these lines%s:\n%s", where, shownLines(want)))
	switch at := u.find(want, 0, u.file.len()); {
	case at >= 0 && c.AtEnd:
		fault.Msg += fmt.Sprintf("\nThey are at line %d: leave the marker out", at+1)
	case at >= 0:
		fault.Msg += fmt.Sprintf("\nThey are at line %d, but chunks must be in the order of the file", at+1)
	default:
		fault.Near = u.near(want)
	}
	for _, l := range lines {
		if l.Op == Context && isHeader(l.Text) {
			fault.Msg += "\nA line that starts with a space is context, also when it looks like a header"
			break
		}
	}
	return fault
}

const (
	maxNearLines   = 200_000 // of a file that are looked at for a line that is alike
	maxNearTries   = 500     // edit distances computed
	maxNearCompare = 200     // bytes of a line compared
	maxNearWindow  = 16      // wanted lines compared at each place
)

// near renders the lines of the file that are most like want, "" when none is.
func (u *updater) near(want []string) string {
	at := u.nearBlock(want)
	if at < 0 {
		var i int
		if at, i = u.nearLine(want); at < 0 {
			return ""
		}
		at = max(0, at-i)
	}
	var b strings.Builder
	for i := at; i < min(at+min(len(want), maxShownLines), u.file.len()); i++ {
		if i > at {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "  %d: %s", i+1, shown(u.file.line(i)))
	}
	return b.String()
}

// nearBlock is the place at which most of want's lines that say something stand in
// the file as wanted, none when there is no such line.
func (u *updater) nearBlock(want []string) int {
	ix := u.as(composed)
	if ix == nil {
		return none
	}
	var pattern []int32
	for _, l := range want[:min(len(want), maxNearWindow)] {
		id := ix.ids[fold(composed, l)]
		if len(strings.TrimSpace(l)) < 2 {
			id = 0 // an empty line or a bracket is everywhere
		}
		pattern = append(pattern, id)
	}
	best, most := none, 0
	for at := range ix.file {
		n := 0
		for i, id := range pattern {
			if id != 0 && at+i < len(ix.file) && ix.file[at+i] == id {
				n++
			}
		}
		if n > most {
			best, most = at, n
		}
	}
	return best
}

// nearLine is the line of the file that is most like the longest wanted line, and
// which of want that is. It is none when more than two fifths would have to change.
func (u *updater) nearLine(want []string) (at, which int) {
	probe := ""
	for i, l := range want[:min(len(want), maxNearWindow)] {
		if l = comparable(l); len(l) > len(probe) {
			probe, which = l, i
		}
	}
	bytes := histogram(probe)
	at, best := none, len(probe)*2/5+1
	tries := 0
	for i := range min(u.file.len(), maxNearLines) {
		l := comparable(u.file.line(i))
		if len(probe) > 2 && strings.Contains(l, probe) {
			return i, which
		}
		// The distance is at least the difference of the lengths, and at least half of
		// the bytes that one line has and the other has not.
		if max(len(l), len(probe))-min(len(l), len(probe)) >= best || bytes.apart(histogram(l)) >= 2*best {
			continue
		}
		if tries++; tries > maxNearTries {
			break
		}
		if d := levenshtein.Distance(l, probe); d < best {
			at, best = i, d
		}
	}
	return at, which
}

// comparable is what is compared of a line.
func comparable(s string) string {
	s = strings.TrimSpace(s)
	return s[:min(len(s), maxNearCompare)]
}

// counts is how often each byte occurs, 64 classes of them.
type counts [64]int16

func histogram(s string) (c counts) {
	for i := range len(s) {
		c[s[i]&63]++
	}
	return c
}

// apart is how many bytes are in one and not in the other.
func (c *counts) apart(d counts) int {
	n := 0
	for i := range c {
		n += int(max(c[i], d[i]) - min(c[i], d[i]))
	}
	return n
}
