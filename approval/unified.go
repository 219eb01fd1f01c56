package approval

import (
	"iter"
	"strconv"
	"strings"

	"writ"
)

// diffKind says what a line of a unified diff is.
type diffKind int

const (
	diffStrange diffKind = iota // none of those below
	diffFile                    // the first line of a file
	diffHeader                  // what else is said of a file
	diffHunk                    // where the lines are that follow
	diffNote                    // that the line before has no newline, or what a cut left of a line
	diffContext
	diffRemoved
	diffAdded
)

const noNewline = `\ No newline at end of file`

// diffLine is one line of a unified diff.
type diffLine struct {
	kind     diffKind
	path     string // that it is about: of a file that moves, where it is then
	sign     string // of content
	text     string // without sign and newline
	old, new int    // which line of the file it is, from 1; 0 where it is none
}

// content reports whether the line is of a file, rather than about one.
func (l diffLine) content() bool { return l.kind >= diffContext }

// diffLines are the lines of a plan's diff. What is not as package patch makes it is
// diffStrange, and so is an end that comes too early.
func diffLines(plan writ.PatchPlan) iter.Seq[diffLine] {
	return func(yield func(diffLine) bool) {
		d := diffReader{sections: sectionsOf(plan.Changes)}
		whole := true
		for line := range strings.Lines(plan.Diff) {
			var text string
			text, whole = strings.CutSuffix(line, "\n")
			l := d.next(text)
			if !whole && plan.Cut && !l.content() {
				l = diffLine{kind: diffNote, path: l.path, text: text}
			}
			if !yield(l) {
				return
			}
		}
		if !plan.Cut && (d.inside() || !whole) {
			yield(diffLine{kind: diffStrange, text: "(the diff ends here, too early)"})
		}
	}
}

// diffReader tells the lines of a unified diff apart that look the same: a removed
// "-- a/x" is not a header, because the hunk it is in says how many lines it has. What
// a file holds cannot change that count, which whoever made the diff took.
type diffReader struct {
	sections sections
	path     string
	hunk     hunk
}

// hunk is what is left of one.
type hunk struct {
	oldAt, newAt     int // the next line
	oldLeft, newLeft int // lines
}

// inside reports whether the hunk goes on.
func (d *diffReader) inside() bool { return d.hunk.oldLeft > 0 || d.hunk.newLeft > 0 }

// next reads one line, which has no newline.
func (d *diffReader) next(line string) diffLine {
	l := diffLine{kind: diffHeader, text: line}
	switch {
	case line == noNewline:
		l.kind = diffNote
	case d.inside():
		l = d.hunk.next(line)
	case strings.HasPrefix(line, "diff --git "):
		if path, ok := d.sections.path(line); ok {
			l.kind, d.path = diffFile, path
		} else {
			l.kind, d.path = diffStrange, ""
		}
	case strings.HasPrefix(line, "@@ "):
		h, ok := parseHunk(line)
		if l.kind = diffStrange; ok {
			l.kind, d.hunk = diffHunk, h
		}
	case !anyPrefix(line, "--- ", "+++ ", "new file mode ", "deleted file mode ", "old mode ", "new mode ", "rename from ", "rename to ", "Binary files "):
		l.kind = diffStrange
	}
	l.path = d.path
	return l
}

// next reads one line of a hunk that goes on.
func (h *hunk) next(line string) diffLine {
	if line == "" {
		return diffLine{}
	}
	l := diffLine{sign: line[:1], text: line[1:]}
	switch {
	case l.sign == " " && h.oldLeft > 0 && h.newLeft > 0:
		l.kind = diffContext
	case l.sign == "-" && h.oldLeft > 0:
		l.kind = diffRemoved
	case l.sign == "+" && h.newLeft > 0:
		l.kind = diffAdded
	default:
		return diffLine{text: line}
	}
	if l.kind != diffAdded {
		l.old = h.oldAt
		h.oldAt, h.oldLeft = h.oldAt+1, h.oldLeft-1
	}
	if l.kind != diffRemoved {
		l.new = h.newAt
		h.newAt, h.newLeft = h.newAt+1, h.newLeft-1
	}
	return l
}

// parseHunk reads the first line of a hunk: @@ -1,6 +1,7 @@.
func parseHunk(line string) (h hunk, ok bool) {
	inner, ok := strings.CutPrefix(line, "@@ -")
	if ok {
		inner, ok = strings.CutSuffix(inner, " @@")
	}
	older, newer, both := strings.Cut(inner, " +")
	if !ok || !both {
		return hunk{}, false
	}
	var okOld, okNew bool
	h.oldAt, h.oldLeft, okOld = diffRange(older)
	h.newAt, h.newLeft, okNew = diffRange(newer)
	return h, okOld && okNew
}

// diffRange reads "12,3", or "12" for one line.
func diffRange(s string) (at, n int, ok bool) {
	first, count, both := strings.Cut(s, ",")
	if !both {
		count = "1"
	}
	a, err1 := strconv.ParseUint(first, 10, 31)
	b, err2 := strconv.ParseUint(count, 10, 31)
	return int(a), int(b), err1 == nil && err2 == nil
}

func anyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// sections finds which change a section of the diff is about.
type sections struct {
	plain   map[string]string // the first line of a section → its path
	deleted map[string]bool
	moved   []string
}

func sectionsOf(changes []writ.FileChange) sections {
	s := sections{plain: map[string]string{}, deleted: map[string]bool{}}
	for _, c := range changes {
		s.plain["diff --git a/"+c.Path+" b/"+c.Path] = c.Path
		switch c.Kind {
		case "delete":
			s.deleted[c.Path] = true
		case "move":
			s.moved = append(s.moved, c.Path)
		}
	}
	return s
}

// path is the path that first, the first line of a section, is about: of a file that
// moved, where it is then.
func (s sections) path(first string) (string, bool) {
	if p, ok := s.plain[first]; ok {
		return p, true
	}
	for _, to := range s.moved {
		from, ok := strings.CutSuffix(strings.TrimPrefix(first, "diff --git a/"), " b/"+to)
		if ok && s.deleted[from] {
			return to, true
		}
	}
	return "", false
}
