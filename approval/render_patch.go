package approval

import (
	"fmt"
	"strconv"

	"writ"
)

// RenderPatch is the text that an approver of a patch reads: who asks for what, where
// and why it is held, then every file with its versions, then the unified diff. a is the
// patch's approval, req what was sent and plan what it would do.
//
// Every line of the diff stands behind a label that it cannot forge: what is of a file
// behind its line numbers, before and after, and a bar; what is about a file behind a
// colon. So an added line that looks like a header is told from a header. Every string
// goes through Visible, and long lines are folded.
//
// What an approver may overlook is said at the top as CAUTION, and again at its file
// (patchFacts): characters that do not show, a diff that is cut, files that have none,
// names that can look like others, and files that make commands run. Where the diff does
// not show all that will be written, the patch follows as it was sent, in full.
//
// The text depends on its arguments only, and on nothing in them that changes while
// the approval is pending: neither on votes nor on states. So its digest names what
// was shown.
func RenderPatch(a writ.Approval, req writ.PatchRequest, plan writ.PatchPlan) string {
	held := callOf(a)
	w := &page{}
	w.aboutCall(a, held)

	f := factsOf(req, plan)
	w.patchOverview(a, held, req, plan, f)
	for i, c := range plan.Changes {
		w.change(i, c, f.notes[c.Path])
	}
	w.diff(plan)
	if f.sent {
		w.body("the patch as it was sent", req.Patch)
	}
	return w.b.String()
}

func (w *page) patchOverview(a writ.Approval, held writ.HeldCall, req writ.PatchRequest, plan writ.PatchPlan, f *patchFacts) {
	w.field("does", deed(req))
	w.field("approvals", deciders(held.Mode))
	w.field("request", string(req.Fingerprint()))
	w.field("plan", string(plan.Digest()))
	w.field("files", kinds(plan.Changes))
	w.field("lines", fmt.Sprintf("%d added, %d removed", f.added, f.removed))
	if f.crlf > 0 {
		w.fold(label("line ends"), fmt.Sprintf("%d line(s) of the diff end in ⟦U+000D⟧, as files with CR LF have it", f.crlf))
	}
	if len(req.Expected) > 0 {
		w.field("expects", fmt.Sprintf("the requester named the versions of %d file(s)", len(req.Expected)))
	}
	if req.Fingerprint() != a.Spec || plan.Digest() != held.Plan {
		w.caution(notOfThis)
	}
	for _, c := range f.cautions(plan) {
		w.caution(c)
	}
}

// deed says what kind of request it is.
func deed(req writ.PatchRequest) string {
	s := "changes files"
	if req.Undo != "" {
		s = "undoes operation " + string(req.Undo) + ": its files become what they were before it"
	}
	if req.CheckOnly {
		s = "check only, nothing is written; in earnest it " + s
	}
	return s
}

// kinds counts changes by what they do. A move is two.
func kinds(changes []writ.FileChange) string {
	n := map[string]int{}
	for _, c := range changes {
		n[c.Kind]++
	}
	s := fmt.Sprintf("%d path(s)", len(changes))
	sep := ": "
	for _, kind := range []string{"add", "update", "delete", "move"} {
		if n[kind] > 0 {
			s += fmt.Sprintf("%s%d %s", sep, n[kind], kind)
			sep = ", "
		}
	}
	return s
}

func (w *page) change(i int, c writ.FileChange, notes []string) {
	version := func(v string) string {
		if v == "" {
			return "no file"
		}
		return v
	}
	w.quoted(fmt.Sprintf("file %d", i+1), c.Path)
	w.field("  "+oneLine(c.Kind), "from "+version(c.Before))
	w.field("", "to   "+version(c.After))
	for _, n := range notes {
		w.fold("       ! ", n)
	}
}

// diff writes the unified diff, every line of it behind its label.
func (w *page) diff(plan writ.PatchPlan) {
	w.fold("\n--- ", "diff: "+sizes(plan.Diff))
	for l := range diffLines(plan) {
		switch {
		case l.content():
			// Behind its sign, not with it: a mark that combines must not combine with that.
			w.fold(fmt.Sprintf("%6s %6s | %s", number(l.old), number(l.new), l.sign), Visible(l.text))
		case l.kind == diffStrange:
			w.fold(fmt.Sprintf("%13s ? ", ""), Visible(l.text))
		default:
			if l.kind == diffFile {
				w.b.WriteString("\n")
			}
			w.fold(fmt.Sprintf("%13s : ", ""), Visible(l.text))
		}
	}
	if plan.Cut {
		w.b.WriteString("       ! the diff is cut here\n")
	}
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
