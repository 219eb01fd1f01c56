package approval

import (
	"fmt"

	"writ"
)

const notOfThis = "what is shown here is not what this approval is for: do not grant it"

// callOf is what a keeps of its call, nothing where it is for none.
func callOf(a writ.Approval) writ.HeldCall {
	if a.Call == nil {
		return writ.HeldCall{}
	}
	return *a.Call
}

// aboutCall says who calls a tool, where, and why that is held.
func (w *page) aboutCall(a writ.Approval, held writ.HeldCall) {
	w.field("approval", string(a.ID))
	w.field("replaces", string(a.Replaces))
	w.field("tenant", string(a.Tenant))
	w.field("identity", string(a.Identity))
	w.field("requester", a.Requester.String())
	w.field("workspace", string(held.Workspace))
	w.field("root", held.Root)
	w.field("key", held.Key)
	w.hold(a)
	w.b.WriteString("\n")
}

// caution writes text as it is: what came from outside must be visible in it.
func (w *page) caution(text string) { w.fold(label("CAUTION"), text) }

func deciders(mode writ.ApprovalMode) string {
	if mode == writ.ApprovalsConfirm {
		return string(mode) + ": whoever asked may grant it, too"
	}
	return string(mode)
}

// terminal says whether a program has one, and what that means for its input.
func terminal(tty bool) string {
	if tty {
		return "yes"
	}
	return "no, three pipes"
}

// list writes each of a list on a line of its own behind its number, folded.
func (w *page) list(title string, list []string) {
	w.fold("\n--- ", fmt.Sprintf("%s: %d", title, len(list)))
	for i, s := range list {
		w.fold(fmt.Sprintf("%6d | ", i+1), oneLine(s))
	}
}
