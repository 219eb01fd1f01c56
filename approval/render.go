package approval

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"writ"
)

const (
	maxInputShown  = 64 << 10 // of one input
	maxInputsShown = 1 << 20  // of all of them together
	foldAt         = 160      // columns of one line; the rest goes below it
	tabColumns     = 8        // the most that a tab takes
	firstWide      = '\u1100' // characters from here on may take two
)

// Render is the text that an approver reads: who asks for what and why it is held,
// then everything that will run. Arguments, environment, stdin and code are there
// in full; an input is there in full when it is text and small, else by size and
// digest, which says so, there and at the top. Sizes come before contents, so that
// nobody mistakes the first screen for all of it.
//
// Every string goes through Visible. What came from outside stands behind a line
// number or a label that it cannot forge, and long lines are folded rather than
// left to run out of view.
//
// The text depends on its arguments only, and on nothing in them that changes while
// the approval is pending: neither on votes nor on states. So its digest names what
// was shown.
func Render(task writ.Task, spec writ.RunSpec, a writ.Approval) string {
	w := &page{}
	w.about(task, a)
	w.overview(task, spec)
	for i, arg := range spec.Args {
		w.quoted(fmt.Sprintf("argument %d", i+1), arg)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		w.quoted("env "+oneLine(name), spec.Env[name])
	}
	if spec.Stdin != "" {
		w.body("stdin", spec.Stdin)
	}
	w.inputs(spec.Inputs)
	w.files(spec.Files)
	w.body("code", spec.Code)
	return w.b.String()
}

// page is a text under construction.
type page struct {
	b strings.Builder
}

// field writes one labelled line, folded; nothing when value is empty.
func (w *page) field(name, value string) {
	if value == "" {
		return
	}
	w.fold(label(name), oneLine(value))
}

// quoted writes one labelled line between quotes, also when value is empty.
func (w *page) quoted(name, value string) {
	w.fold(label(name), `"`+oneLine(value)+`"`)
}

func label(name string) string { return fmt.Sprintf("%-12s ", name) }

func (w *page) about(t writ.Task, a writ.Approval) {
	w.field("approval", string(a.ID))
	w.field("replaces", string(a.Replaces))
	w.field("task", string(t.ID))
	w.field("key", t.Key)
	w.field("retry of", string(t.RetryOf))
	w.field("tenant", string(a.Tenant))
	w.field("identity", string(a.Identity))
	w.field("role", t.Role)
	w.field("requester", a.Requester.String())
	w.field("step", t.Step)
	w.hold(a)
}

// hold says why a request waits, for what, and how long.
func (w *page) hold(a writ.Approval) {
	w.field("held because", a.Reason)
	for _, r := range a.Rules {
		w.field("rule", r.String())
	}
	w.field("policy", string(a.Policy))
	need := fmt.Sprintf("%d grant(s)", a.Need.Grants)
	if len(a.Need.Roles) > 0 {
		need += " by operators with role " + strings.Join(a.Need.Roles, " and ")
	}
	if a.Need.Reason {
		need += ", each with a reason"
	}
	w.field("needs", need)
	w.field("asked", stamp(a.Created))
	w.field("expires", stamp(a.Expires))
	w.field("binds", string(a.Digest))
}

// overview says how much there is of everything before any of it is shown.
func (w *page) overview(t writ.Task, s writ.RunSpec) {
	w.b.WriteString("\n")
	w.field("language", string(s.Language))
	w.field("spec", string(s.Digest()))
	w.field("code", sizes(s.Code))
	if s.Stdin != "" {
		w.field("stdin", sizes(s.Stdin))
	}
	w.field("arguments", fmt.Sprint(len(s.Args)))
	w.field("environment", fmt.Sprintf("%d variable(s)", len(s.Env)))
	w.field("inputs", fmt.Sprintf("%d file(s)", len(s.Inputs)))
	w.field("kind", string(s.Kind))
	if len(s.Files) > 0 {
		w.field("files", fmt.Sprintf("%d file(s)", len(s.Files)))
	}
	for _, f := range s.Limits.Fields() {
		w.field("limit", fmt.Sprintf("%-15s %d", f.Name, *f.Value))
	}
	if s.Compile != nil {
		for _, f := range s.Compile.Fields() {
			w.field("compile", fmt.Sprintf("%-15s %d", f.Name, *f.Value))
		}
	}
	if c := s.Collect; c != nil {
		w.field("kept after", fmt.Sprintf("%d file(s), %d bytes of each and %d of all, of %d kind(s) (0 for all)", c.Files, c.FileBytes, c.TotalBytes, len(c.Names)))
	}
	if len(t.Clamped) > 0 {
		w.field("cut", "asked for more than the most of "+strings.Join(t.Clamped, ", "))
	}
	if n, where := unshown(s); n > 0 {
		w.fold(label("CAUTION"), fmt.Sprintf("%d of %d input(s) are not shown here, and the code can run what is in them; the first is %s", n, len(s.Inputs), where))
	}
	if len(s.Files) > 0 {
		w.fold(label("CAUTION"), fmt.Sprintf("%d file(s) are named here by their digests alone, and the code can run what is in them", len(s.Files)))
	}
	if n, where := writtenOut(s); n > 0 {
		w.fold(label("CAUTION"), fmt.Sprintf("%d character(s) that do not show, or show as others, are written out as ⟦U+....⟧; the first is in %s", n, where))
	}
}

// inputs shows the input files in the order of the spec.
func (w *page) inputs(list []writ.Input) {
	for i, why := range withheld(list) {
		in := list[i]
		title, content := "input "+oneLine(in.Path), string(in.Content)
		if in.Exec {
			title += " (executable)"
		}
		if why == "" {
			w.body(title, content)
			continue
		}
		w.fold("\n--- ", title+": "+sizes(content))
		w.fold("       ! ", "not shown: "+why)
	}
}

// files lists what the run finds beside its inputs, in the order of the spec.
func (w *page) files(list []writ.FileInput) {
	for _, f := range list {
		title := "file " + oneLine(f.Path)
		if f.ReadOnly {
			title += " (read-only)"
		}
		if f.Exec {
			title += " (executable)"
		}
		if f.Link {
			title += " (symlink)"
		}
		w.fold("\n--- ", fmt.Sprintf("%s: %d bytes, SHA-256 %s", title, f.Size, f.Digest))
	}
}

// withheld says of each input why it is not shown, and nothing of those that are.
func withheld(list []writ.Input) []string {
	whys := make([]string, len(list))
	left := maxInputsShown
	for i, in := range list {
		switch {
		case !text(string(in.Content)):
			whys[i] = "not text"
		case len(in.Content) > maxInputShown:
			whys[i] = fmt.Sprintf("larger than %d bytes", maxInputShown)
		case len(in.Content) > left:
			whys[i] = fmt.Sprintf("the inputs before it fill the %d bytes that are shown of all together", maxInputsShown)
		default:
			left -= len(in.Content)
		}
	}
	return whys
}

// unshown counts the inputs of a spec that are not shown, and names the first.
func unshown(s writ.RunSpec) (n int, first string) {
	for i, why := range withheld(s.Inputs) {
		if why == "" {
			continue
		}
		if n++; n == 1 {
			first = fmt.Sprintf("%s (%s)", oneLine(s.Inputs[i].Path), why)
		}
	}
	return n, first
}

// body writes a content in full, every line of it behind its number.
func (w *page) body(title, content string) {
	w.fold("\n--- ", title+": "+sizes(content))
	w.numbered(content, Visible)
}

// numbered writes content, every line of it as show shows it, behind its number.
func (w *page) numbered(content string, show func(line string) string) {
	if content == "" {
		return
	}
	whole, ended := strings.CutSuffix(content, "\n")
	n := 0
	for line := range strings.SplitSeq(whole, "\n") {
		n++
		w.fold(fmt.Sprintf("%6d | ", n), show(line))
	}
	if !ended {
		w.b.WriteString("       ! no newline at the end\n")
	}
}

// fold writes line behind prefix, and what is beyond foldAt columns below it: a view
// that does not wrap must not lose any of it. What Visible wrote out is never split.
func (w *page) fold(prefix, line string) {
	w.b.WriteString(prefix)
	from, columns := 0, 0
	for at := 0; at < len(line); {
		r, size := utf8.DecodeRuneInString(line[at:])
		wide := 1
		switch {
		case r == '⟦':
			inside := strings.Index(line[at:], "⟧") - len("⟦") // ASCII
			size, wide = len("⟦")+inside+len("⟧"), 2+inside
		case r == '\t':
			wide = tabColumns
		case r >= firstWide:
			wide = 2
		}
		if columns += wide; columns > foldAt {
			w.b.WriteString(line[from:at])
			w.b.WriteString("\n       > ")
			from, columns = at, wide
		}
		at += size
	}
	w.b.WriteString(line[from:])
	w.b.WriteString("\n")
}

// text reports whether content can be shown as text.
func text(content string) bool {
	return utf8.ValidString(content) && strings.IndexByte(content, 0) < 0
}

func sizes(content string) string {
	lines := strings.Count(content, "\n")
	if content != "" && !strings.HasSuffix(content, "\n") {
		lines++
	}
	return fmt.Sprintf("%d line(s), %d bytes, sha256 %s", lines, len(content), writ.DigestOf([]byte(content)))
}

// writtenOut counts what Visible writes out of a spec, and says where the first of
// it is, in the order of the text.
func writtenOut(s writ.RunSpec) (n int, where string) {
	count := func(what, content string, numbered bool) {
		found, line := hiddenIn(content)
		if n == 0 && found > 0 {
			where = what
			if numbered {
				where += fmt.Sprintf(" line %d", line)
			}
		}
		n += found
	}
	for i, arg := range s.Args {
		count(fmt.Sprintf("argument %d", i+1), arg, false)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		count("env "+oneLine(name), s.Env[name], false)
	}
	count("stdin", s.Stdin, true)
	for i, why := range withheld(s.Inputs) {
		in := s.Inputs[i]
		count("the path of input "+oneLine(in.Path), in.Path, false)
		if why == "" {
			count("input "+oneLine(in.Path), string(in.Content), true)
		}
	}
	for _, f := range s.Files {
		count("the path of file "+oneLine(f.Path), f.Path, false)
	}
	count("code", s.Code, true)
	return n, where
}
