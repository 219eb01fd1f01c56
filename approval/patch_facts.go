package approval

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"writ"
)

// patchFacts is what an approver should know of a patch before reading its diff.
type patchFacts struct {
	added, removed int // lines, of what there is of the diff
	crlf           int // lines of the diff that end in a carriage return
	notes          map[string][]string
	// sent is set when the diff does not show all that will be written, and what was
	// sent says it.
	sent bool

	unseen, binary, commands, modes, alike tally
	last                                   string // file of the diff that stands last in it
	strange                                int    // lines that are none of a diff
	hidden, hiddenAdded                    tally
}

// tally counts, and keeps the first.
type tally struct {
	n     int
	first string
}

func (t *tally) add(n int, what string) {
	if t.n == 0 && n > 0 {
		t.first = what
	}
	t.n += n
}

func factsOf(req writ.PatchRequest, plan writ.PatchPlan) *patchFacts {
	f := &patchFacts{notes: map[string][]string{}}
	for i, c := range plan.Changes {
		f.path(i, c)
	}
	shown := f.read(plan)
	for _, c := range plan.Changes {
		if !shown[c.Path] {
			f.unseen.add(1, oneLine(c.Path))
			f.note(c.Path, "not in the diff below")
		}
	}
	f.sent = req.Patch != "" && (plan.Cut || f.binary.n > 0 || f.unseen.n > 0 || f.strange > 0)
	if f.sent {
		n, line := hiddenIn(strings.ReplaceAll(req.Patch, "\r\n", "\n"))
		f.hidden.add(n, fmt.Sprintf("line %d of the patch as it was sent", line))
	}
	return f
}

func (f *patchFacts) note(path, text string) { f.notes[path] = append(f.notes[path], text) }

// path looks at the name of a file.
func (f *patchFacts) path(i int, c writ.FileChange) {
	n, _ := hiddenIn(c.Path)
	f.hidden.add(n, fmt.Sprintf("the path of file %d", i+1))
	if s := spelled(c.Path); s != c.Path {
		f.alike.add(1, s)
		f.note(c.Path, "spelled "+s)
	}
	if why := runsCommands(c.Path); why != "" && c.Kind != "delete" {
		f.commands.add(1, oneLine(c.Path))
		f.note(c.Path, why)
	}
}

// read looks at the diff, and answers which paths it is about.
func (f *patchFacts) read(plan writ.PatchPlan) (shown map[string]bool) {
	shown = map[string]bool{}
	oldMode := ""
	for l := range diffLines(plan) {
		switch {
		case l.content():
			f.content(l)
		case l.kind == diffStrange:
			f.strange++
		case l.kind == diffFile:
			shown[l.path] = true
			f.last = oneLine(l.path)
		case l.kind == diffHeader:
			if from, ok := strings.CutPrefix(l.text, "rename from "); ok {
				shown[from] = true
			}
			oldMode = f.header(l, oldMode)
		}
	}
	return shown
}

func (f *patchFacts) content(l diffLine) {
	at := l.new
	switch l.kind {
	case diffAdded:
		f.added++
	case diffRemoved:
		f.removed++
		at = l.old
	}
	text, crlf := strings.CutSuffix(l.text, "\r")
	if crlf {
		f.crlf++
	}
	n, _ := hiddenIn(text)
	if n == 0 {
		return
	}
	where := fmt.Sprintf("line %d of %s", at, oneLine(l.path))
	f.hidden.add(n, where)
	if l.kind == diffAdded {
		f.hiddenAdded.add(n, where)
	}
}

// header looks at what the diff says of a file, and answers the old mode when that is
// what it says.
func (f *patchFacts) header(l diffLine, oldMode string) string {
	if mode, ok := strings.CutPrefix(l.text, "old mode "); ok {
		return mode
	}
	if mode, ok := strings.CutPrefix(l.text, "new mode "); ok {
		f.modes.add(1, oneLine(l.path))
		f.note(l.path, fmt.Sprintf("its mode changes from %s to %s", oneLine(oldMode), oneLine(mode)))
	}
	if mode, ok := strings.CutPrefix(l.text, "new file mode "); ok && executable(mode) {
		f.modes.add(1, oneLine(l.path))
		f.note(l.path, "new and executable, mode "+oneLine(mode))
	}
	if strings.HasPrefix(l.text, "Binary files ") {
		f.binary.add(1, oneLine(l.path))
		f.note(l.path, "not text: the diff does not show what it holds")
	}
	return ""
}

func executable(mode string) bool {
	bits, err := strconv.ParseUint(mode, 8, 32)
	return err != nil || bits&0o111 != 0
}

// cautions says what may be overlooked, the worst first.
func (f *patchFacts) cautions(plan writ.PatchPlan) (list []string) {
	say := func(n int, format string, args ...any) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	below := ""
	if f.sent {
		below = "; the patch as it was sent stands below the diff"
	}
	say(f.strange, "the diff is damaged in %d place(s), which are marked with ?: do not rely on it%s", f.strange, below)
	if plan.Cut {
		in := ""
		if f.last != "" {
			in = ", and perhaps not the end of " + f.last
		}
		say(1, "the diff is cut after %d bytes: %d of %d path(s) are not in it%s%s", len(plan.Diff), f.unseen.n, len(plan.Changes), in, below)
	} else {
		say(f.unseen.n, "%d of %d path(s) are not in the diff; the first is %s%s", f.unseen.n, len(plan.Changes), f.unseen.first, below)
	}
	say(f.binary.n, "%d file(s) are not text, and the diff does not show what they hold; the first is %s%s", f.binary.n, f.binary.first, below)
	say(f.commands.n, "%d file(s) can make commands run; the first is %s", f.commands.n, f.commands.first)
	say(f.modes.n, "%d file(s) become executable or change their mode; the first is %s", f.modes.n, f.modes.first)
	say(f.alike.n, "%d path(s) have characters outside ASCII, which can look like others; the first is spelled %s", f.alike.n, f.alike.first)
	say(f.hidden.n, "%d character(s) that do not show, or show as others, are written out as ⟦U+....⟧; the first is in %s", f.hidden.n, f.hidden.first)
	say(f.hiddenAdded.n, "%d of those stand in lines that the patch adds; the first is in %s", f.hiddenAdded.n, f.hiddenAdded.first)
	return list
}

// spelled is s with all characters outside ASCII written out, also those that show: they
// can look like others.
func spelled(s string) string {
	var b strings.Builder
	for s != "" {
		r, size := utf8.DecodeRuneInString(s)
		if r >= ' ' && r < 0x7f {
			b.WriteString(s[:size])
		} else {
			writeOut(&b, s[:size])
		}
		s = s[size:]
	}
	return b.String()
}
