package patch

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The markers of the format (spec/02 §17.1).
const (
	beginMarker  = "*** Begin Patch"
	endMarker    = "*** End Patch"
	addMarker    = "*** Add File: "
	deleteMarker = "*** Delete File: "
	updateMarker = "*** Update File: "
	moveMarker   = "*** Move to: "
	eofMarker    = "*** End of File"
	anchorMarker = "@@"
)

const validHeaders = `valid are "*** Add File: PATH", "*** Update File: PATH", "*** Delete File: PATH" and, last, "*** End Patch"`

// Parse reads the text of a patch. It may be wrapped in a heredoc (<<EOF, <<'EOF',
// <<"EOF"), have blank space around it, a byte order mark, and lines that end in
// CRLF.
//
// An absolute path is refused unless it is beneath one of roots: the absolute paths
// by which the one who wrote the patch knows the workspace, such as where a sandbox sees
// it. It is the same file as the relative path then (AP-37). Whose contract has relative
// paths alone, as the workspace tools (spec/02 §4, scenario 50), gives no roots, and every
// absolute path is a PathEscape.
//
// The error is an *Error of code InvalidPatch or PathEscape that names the line. A
// patch without sections parses; Apply refuses it.
func Parse(text string, roots ...string) (Patch, error) {
	lines, fault := frame(text)
	if fault != nil {
		return Patch{}, fault
	}
	p := parser{lines: lines[:len(lines)-1], next: 1, roots: roots}
	var patch Patch
	for p.skipBlank(); p.more(); p.skipBlank() {
		if len(patch.Sections) == MaxSections {
			return Patch{}, invalid(p.number(), "the patch has more than %d sections: send it in parts", MaxSections)
		}
		s, fault := p.section()
		if fault != nil {
			return Patch{}, fault
		}
		patch.Sections = append(patch.Sections, s)
	}
	return patch, nil
}

func invalid(line int, format string, args ...any) *Error {
	return &Error{Code: InvalidPatch, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// frame cuts text to lines without their endings, the first of them *** Begin Patch
// and the last *** End Patch.
func frame(text string) ([]string, *Error) {
	if len(text) > MaxPatchBytes {
		return nil, invalid(0, "the patch has %d bytes, the most is %d: send it in parts", len(text), MaxPatchBytes)
	}
	text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(text), "\ufeff"))
	if text == "" {
		return nil, invalid(0, "the patch is empty: the first line must be %q", beginMarker)
	}
	if n := strings.Count(text, "\n") + 1; n > MaxPatchLines {
		return nil, invalid(0, "the patch has %d lines, the most is %d: send it in parts", n, MaxPatchLines)
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		if !utf8.ValidString(l) {
			return nil, invalid(i+1, "the line is not UTF-8")
		}
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	fault := framed(lines)
	if fault != nil && heredoc(lines) {
		lines = lines[1 : len(lines)-1]
		fault = framed(lines)
	}
	return lines, fault
}

// framed checks the first and the last line.
func framed(lines []string) *Error {
	if first := lines[0]; strings.TrimSpace(first) != beginMarker {
		return invalid(1, "the first line must be %q, it is: %s", beginMarker, shown(first))
	}
	if last := lines[len(lines)-1]; len(lines) == 1 || strings.TrimSpace(last) != endMarker {
		return invalid(len(lines), "the last line must be %q, so the patch may have been cut off; it is: %s", endMarker, shown(last))
	}
	return nil
}

func heredoc(lines []string) bool {
	switch strings.TrimSpace(lines[0]) {
	case "<<EOF", "<<'EOF'", `<<"EOF"`:
		return len(lines) >= 4 && strings.HasSuffix(lines[len(lines)-1], "EOF")
	}
	return false
}

// parser walks the lines between the first and the last.
type parser struct {
	lines []string // lines[0] is *** Begin Patch
	next  int
	roots []string
}

func (p *parser) more() bool   { return p.next < len(p.lines) }
func (p *parser) line() string { return p.lines[p.next] } // more must hold
func (p *parser) number() int  { return p.next + 1 }

func (p *parser) skipBlank() {
	for p.more() && strings.TrimSpace(p.line()) == "" {
		p.next++
	}
}

func (p *parser) section() (Section, *Error) {
	header := strings.TrimSpace(p.line())
	s := Section{Line: p.number()}
	// The space that ends a marker is trimmed away when no path follows it.
	name := func(marker string) (string, bool) { return strings.CutPrefix(header+" ", marker) }
	var body func(*Section) *Error
	var path string
	if rest, ok := name(addMarker); ok {
		s.Kind, path, body = Add, rest, p.added
	} else if rest, ok := name(deleteMarker); ok {
		s.Kind, path, body = Delete, rest, p.deleted
	} else if rest, ok := name(updateMarker); ok {
		s.Kind, path, body = Update, rest, p.updated
	} else {
		return s, p.badHeader(header)
	}
	p.next++
	var fault *Error
	if s.Path, fault = p.path(s.Line, path); fault == nil {
		fault = body(&s)
	}
	return s, fault
}

// path reads the path of the header at a line.
func (p *parser) path(line int, name string) (string, *Error) {
	clean, fault := cleanPath(strings.TrimSpace(name), p.roots)
	if fault != nil {
		fault.Line = line
	}
	return clean, fault
}

func (p *parser) badHeader(header string) *Error {
	switch {
	case header == endMarker:
		return invalid(p.number(), "the patch ends here but more follows: send one patch, with one %q as its last line", endMarker)
	case header == eofMarker:
		return invalid(p.number(), "%q may only end a chunk of an update", eofMarker)
	case strings.HasPrefix(header, strings.TrimSpace(moveMarker)):
		return invalid(p.number(), `"*** Move to: PATH" may only follow the line of "*** Update File: PATH"`)
	}
	return invalid(p.number(), "this is not the header of a section: %s\n%s", shown(header), validHeaders)
}

func (p *parser) added(s *Section) *Error {
	var b strings.Builder
	for p.more() {
		text, ok := strings.CutPrefix(p.line(), "+")
		if !ok {
			break
		}
		b.WriteString(text)
		b.WriteByte('\n')
		p.next++
	}
	s.Content = []byte(b.String())
	at := p.number()
	p.skipBlank()
	if !p.more() || strings.HasPrefix(strings.TrimSpace(p.line()), "***") {
		return nil
	}
	return invalid(at, "every line of an added file must start with +, also an empty one; this one does not: %s", shown(p.lines[at-1]))
}

func (p *parser) deleted(*Section) *Error {
	p.skipBlank()
	if p.more() && !strings.HasPrefix(strings.TrimSpace(p.line()), "***") {
		return invalid(p.number(), "nothing but the next section may follow \"*** Delete File\": %s", shown(p.line()))
	}
	return nil
}

func (p *parser) updated(s *Section) (fault *Error) {
	if p.more() {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(p.line())+" ", moveMarker); ok {
			if s.MoveTo, fault = p.path(p.number(), rest); fault != nil {
				return fault
			}
			p.next++
		}
	}
	for p.skipBlank(); p.more() && !strings.HasPrefix(p.line(), "*") && !isHeader(p.line()); p.skipBlank() {
		c, fault := p.chunk(len(s.Chunks) == 0)
		if fault != nil {
			return fault
		}
		s.Chunks = append(s.Chunks, c)
	}
	if len(s.Chunks) == 0 && s.MoveTo == "" {
		return invalid(s.Line, "the update of %s has no chunk: write @@ and the lines that change", shown(s.Path))
	}
	return nil
}

// isHeader reports whether a line between two chunks starts a section although it is
// indented.
func isHeader(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, addMarker) || strings.HasPrefix(line, deleteMarker) || strings.HasPrefix(line, updateMarker)
}

// chunk reads one chunk. Only the first of a section may do without @@.
func (p *parser) chunk(first bool) (Chunk, *Error) {
	c := Chunk{Line: p.number()}
	marked, fault := p.anchors(&c)
	switch {
	case fault != nil:
		return c, fault
	case !marked && !first:
		return c, invalid(p.number(), "expected @@ and a new chunk, or a header: %s\nEvery line of a chunk must start with a space (context), + or -", shown(p.line()))
	}
	for p.more() {
		l := p.line()
		switch {
		case l == "":
			c.Lines = append(c.Lines, Line{Op: Context, Bare: true})
		case l[0] == ' ', l[0] == '+', l[0] == '-':
			c.Lines = append(c.Lines, Line{Op: Op(l[0]), Text: l[1:]})
		case strings.TrimSpace(l) == eofMarker:
			if c.bare() {
				return c, p.noLines()
			}
			c.AtEnd = true
			p.next++
			return c, nil
		case len(c.Lines) == 0 && !strings.HasPrefix(l, anchorMarker) && !strings.HasPrefix(l, "*"):
			return c, invalid(p.number(), "every line of a chunk must start with a space (context), + or -; this one does not: %s", shown(l))
		case c.bare():
			return c, p.noLines()
		default:
			return c, nil
		}
		p.next++
	}
	if c.bare() {
		return c, p.noLines()
	}
	return c, nil
}

// bare reports whether the chunk has no lines but separators.
func (c *Chunk) bare() bool {
	for _, l := range c.Lines {
		if !l.Bare {
			return false
		}
	}
	return true
}

func (p *parser) noLines() *Error {
	return invalid(p.number(), "the chunk above has no lines: after @@ write the lines that change, each starting with a space, + or -")
}

// anchors reads the @@ lines of a chunk and reports whether there were any. Empty
// lines between two of them mean nothing.
func (p *parser) anchors(c *Chunk) (bool, *Error) {
	marked := false
	for p.more() {
		text, ok := strings.CutPrefix(p.line(), anchorMarker)
		if !ok {
			break
		}
		if text != "" && text[0] != ' ' && text[0] != '\t' {
			return true, invalid(p.number(), "after @@ there must be a space and then a whole line of the file: %s", shown(p.line()))
		}
		if strings.TrimSpace(text) != "" {
			c.Anchors = append(c.Anchors, Anchor{Line: p.number(), Text: text[1:]})
		}
		marked = true
		p.next++
		at := p.next
		p.skipBlank()
		if !p.more() || !strings.HasPrefix(p.line(), anchorMarker) {
			p.next = at
			break
		}
	}
	return marked, nil
}
