package approval

import (
	"fmt"
	"strings"

	"writ"
)

// RenderInput is the text that an approver of a write to a process reads: who asks for
// what, where and why it is held, then which program of which process would read it, then
// the bytes as text, in full. a is the input's approval, p the process, data what would be
// written, and end whether the input ends behind it.
//
// Every line of data stands behind its number, its keys written out: ⟦^C⟧, ⟦ESC⟧, ⟦CR⟧,
// ⟦TAB⟧. All else goes through Visible, and long lines are folded. So the bytes can be read
// back out of the text. What an approver may overlook is said at the top as CAUTION: what a
// terminal acts on instead of handing it over, what does not show, and what stops in the
// middle of a line.
//
// The text depends on its arguments only, and on nothing in them that changes while
// the approval is pending: neither on votes nor on where the process stands. So its digest
// names what was shown.
func RenderInput(a writ.Approval, p writ.Process, data []byte, end bool) string {
	held, text := callOf(a), string(data)
	w := &page{}
	w.aboutCall(a, held)
	w.field("does", "writes to a process that runs: its program, or one that it started, reads this")
	w.field("approvals", deciders(held.Mode))
	w.field("request", string(InputDigest(p.ID, data, end)))
	w.field("process", string(p.ID))
	w.quoted("program", p.Program)
	w.field("its command", string(p.Fingerprint))
	w.field("its approval", string(p.Approval))
	w.field("started by", p.By.String())
	w.field("started", stamp(p.Started))
	w.field("terminal", terminal(p.TTY))
	if end {
		w.field("closes", "its input, behind this")
	}
	w.field("input", sizes(text))

	o := InputOrder{
		Process: p, Data: data, Close: end, Requester: a.Requester, Identity: a.Identity,
		Workspace: writ.Workspace{ID: held.Workspace, Tenant: a.Tenant, Root: held.Root},
	}
	if a.Action != writ.ActionInput || a.Digest != BindInput(o, a.Policy) {
		w.caution(notOfThis)
	}
	if p.By != a.Requester {
		w.caution("the process was started by " + oneLine(p.By.String()) + ", who is not the one that asks")
	}
	for _, c := range inputCautions(text, p.TTY, end) {
		w.caution(c)
	}
	w.fold("\n--- ", "input: "+sizes(text))
	w.numbered(text, keys)
	return w.b.String()
}

// inputCautions says what may be overlooked, the worst first.
func inputCautions(text string, tty, end bool) (list []string) {
	var signals, controls lineTally
	line := 1
	for i := range len(text) {
		switch c := text[i]; {
		case c == '\n':
			line++
		case c == '\r', c == '\t' && !tty, c >= ' ' && c != 0x7f:
		case c == 0x03, c == 0x04, c == 0x1a, c == 0x1c:
			signals.add(line)
			controls.add(line)
		default:
			controls.add(line)
		}
	}
	hidden, first := hiddenIn(withoutKeys(text))
	say := func(n int, format string, args ...any) {
		if n > 0 {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	if tty {
		say(signals.n, "%d character(s) make a terminal interrupt, suspend or end what runs in it: ⟦^C⟧, ⟦^Z⟧, ⟦^\\⟧ or ⟦^D⟧; the first is in line %d", signals.n, signals.line)
		say(controls.n, "%d control character(s) are for the terminal or the program to act on, and can take back or complete what is shown here; the first is in line %d", controls.n, controls.line)
	} else {
		say(controls.n, "%d control character(s) are written out as ⟦^C⟧, ⟦ESC⟧ and so on; the first is in line %d", controls.n, controls.line)
	}
	say(hidden, "%d character(s) that do not show, or show as others, are written out as ⟦U+....⟧; the first is in line %d", hidden, first)
	if text != "" && !end && !strings.HasSuffix(text, "\n") && !(tty && strings.HasSuffix(text, "\r")) {
		say(1, "it stops in the middle of a line: what is written next goes on there")
	}
	return list
}

// lineTally counts, and keeps the line of the first.
type lineTally struct{ n, line int }

func (t *lineTally) add(line int) {
	if t.n == 0 {
		t.line = line
	}
	t.n++
}

// keys is Visible for what is typed: control characters under the names of their keys.
func keys(line string) string {
	var b strings.Builder
	from := 0
	for i := range len(line) {
		if key := keyOf(line[i]); key != "" {
			b.WriteString(Visible(line[from:i]))
			b.WriteString("⟦" + key + "⟧")
			from = i + 1
		}
	}
	b.WriteString(Visible(line[from:]))
	return b.String()
}

// keyOf names a control character of ASCII; empty for all others.
func keyOf(c byte) string {
	switch {
	case c == '\t':
		return "TAB"
	case c == '\r':
		return "CR"
	case c == '\b':
		return "BS"
	case c == 0x1b:
		return "ESC"
	case c == 0x7f:
		return "DEL"
	case c < ' ':
		return "^" + string(rune(c+'@'))
	}
	return ""
}

// withoutKeys is text with a tab for each character that keys names: what else it writes
// out stays the same.
func withoutKeys(text string) string {
	b := []byte(text)
	for i, c := range b {
		if c != '\n' && keyOf(c) != "" {
			b[i] = '\t'
		}
	}
	return string(b)
}
