package patch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// edited is content after the chunks of s (spec/02 §17.4). Chunks of context alone
// must match and leave every byte as it is.
func (s *Section) edited(content []byte, w *work) ([]byte, *Error) {
	refuse := func(why string) *Error {
		return &Error{Code: InvalidPatch, Line: s.Line, Path: s.Path, Msg: why}
	}
	file, why := newText(content)
	if why != "" {
		return nil, refuse(why)
	}
	if why := file.encoding(s.Chunks); why != "" {
		return nil, refuse(why)
	}
	// Twice: cut and joined.
	if !w.spend(2 * len(content)) {
		return nil, refuse(tooMuch)
	}
	u := updater{section: s, matcher: newMatcher(file, s.Chunks, w)}
	for i := range s.Chunks {
		if fault := u.place(i); fault != nil {
			return nil, fault
		}
	}
	if len(u.edits) == 0 {
		return content, nil
	}
	slices.SortStableFunc(u.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), compareBool(a.last, b.last))
	})
	out := file.join(u.edits)
	if len(out) > MaxFileBytes {
		return nil, refuse(fmt.Sprintf("the file would have %d bytes, the most is %d", len(out), MaxFileBytes))
	}
	return out, nil
}

const tooMuch = "finding the lines of this patch takes too much work: send it in smaller parts"

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// updater places the chunks of a section one after the other.
type updater struct {
	*matcher
	section *Section
	pos     int // the first line of the file that the next chunk may touch
	edits   []edit
}

func (u *updater) place(i int) *Error {
	c := &u.section.Chunks[i]
	if fault := u.narrow(i); fault != nil {
		return fault
	}
	if adds(c.Lines) {
		u.insert(c)
		return nil
	}
	for _, v := range variants(c) {
		old := oldLines(v.lines)
		from := u.pos
		if v.atEnd {
			// A block that would start above pos is none: find checks the order.
			if from = u.file.len() - len(old); from < u.pos {
				continue
			}
		}
		at := u.find(old, from, u.file.len())
		if at == none && len(c.Anchors) > 0 && !v.atEnd {
			// The chunk may repeat its @@ line.
			at = u.find(old, u.pos-1, min(u.pos-1+len(old), u.file.len()))
		}
		if at == spent {
			return u.fault(i, c.Line, tooMuch)
		}
		if at >= 0 {
			u.replace(at, v.lines)
			u.pos = at + len(old)
			return nil
		}
	}
	return u.lost(i)
}

// narrow moves pos below the anchors of a chunk.
func (u *updater) narrow(i int) *Error {
	for n, a := range u.section.Chunks[i].Anchors {
		want := []string{a.Text}
		at := u.find(want, u.pos, u.file.len())
		switch at {
		case spent:
			return u.fault(i, a.Line, tooMuch)
		case none:
			where := ""
			if n > 0 || u.pos > 0 {
				where = fmt.Sprintf(" below line %d", u.pos)
			}
			fault := u.fault(i, a.Line, fmt.Sprintf("the file has no line%s that is equal to the @@ line, which must be a whole line of it:\n%s", where, shownLines(want)))
			if unifiedHeader(a.Text) {
				fault.Msg += "\nThis format has no line numbers: write @@ alone, or @@ and a line above the change"
			}
			if above := u.find(want, 0, u.pos); above >= 0 {
				fault.Msg += fmt.Sprintf("\nLine %d is equal, but chunks must be in the order of the file", above+1)
			} else {
				fault.Near = u.near(want)
			}
			return fault
		}
		u.pos = at + 1
	}
	return nil
}

// unifiedHeader reports whether an anchor is what follows @@ in a unified diff.
func unifiedHeader(s string) bool {
	s = strings.TrimSpace(s)
	return strings.HasPrefix(s, "-") && strings.Contains(s, " +") && strings.Contains(s, " @@")
}

// insert places a chunk that only adds: below its anchor, or at the end of the file,
// there above an empty last line.
func (u *updater) insert(c *Chunk) {
	e := edit{at: u.pos}
	if c.AtEnd || len(c.Anchors) == 0 {
		e = edit{at: u.file.len(), last: true}
		if e.at > 0 && u.file.line(e.at-1) == "" {
			e.at--
		}
	}
	for _, l := range c.Lines {
		if l.Op == Plus {
			e.add = append(e.add, l.Text)
		}
	}
	u.edits = append(u.edits, e)
}

// replace makes the edits of lines that match at a line of the file.
func (u *updater) replace(at int, lines []Line) {
	first := len(u.edits)
	current := func() *edit {
		if n := len(u.edits); n > first && u.edits[n-1].at+u.edits[n-1].del == at {
			return &u.edits[n-1]
		}
		u.edits = append(u.edits, edit{at: at})
		return &u.edits[len(u.edits)-1]
	}
	for _, l := range lines {
		switch l.Op {
		case Context:
			at++
		case Minus:
			current().del++
			at++
		case Plus:
			e := current()
			e.add = append(e.add, l.Text)
		}
	}
}

// oldLines are the lines that must be in the file.
func oldLines(lines []Line) []string {
	var out []string
	for _, l := range lines {
		if l.Op != Plus {
			out = append(out, l.Text)
		}
	}
	return out
}

// adds reports whether lines need nothing of the file: they are + lines, and empty
// lines that separate them from what follows.
func adds(lines []Line) bool {
	return len(oldLines(withoutBare(lines))) == 0
}

func withoutBare(lines []Line) []Line {
	for len(lines) > 0 && lines[len(lines)-1].Bare {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// variant is one way to read the lines of a chunk.
type variant struct {
	lines []Line
	atEnd bool
}

// variants are the ways to read a chunk, the most literal first: as it stands;
// without the empty lines at its end; and with its last line, when that is empty, as
// what follows the last newline of the file (spec/02 §17.4 c).
func variants(c *Chunk) []variant {
	out := []variant{{c.Lines, c.AtEnd}}
	short := withoutBare(c.Lines)
	if len(short) < len(c.Lines) {
		out = append(out, variant{short, c.AtEnd})
	}
	last := len(short) - 1
	for last >= 0 && short[last].Op == Plus {
		last--
	}
	if last < 0 || short[last].Text != "" || len(oldLines(short)) == 1 {
		return out
	}
	lines := slices.Clone(short)
	if lines[last].Op == Context && last < len(lines)-1 {
		lines[last].Op = Plus // it is new: lines are added below it
	} else {
		lines = slices.Delete(lines, last, last+1)
	}
	if n := len(lines) - 1; n >= last && lines[n].Op == Plus && lines[n].Text == "" {
		lines = lines[:n]
	}
	// What would take an empty line away must not pass for done elsewhere.
	return append(out, variant{lines, c.AtEnd || short[last].Op == Minus})
}
