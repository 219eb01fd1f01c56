package approval

import (
	"fmt"
	"strings"

	"writ"
)

// Reading is what was read out of a command line, in words. Package shell reads them; it
// follows from the argv alone.
type Reading struct {
	Commands []string // the simple commands in it, each as one line; the first is the argv itself
	Unknown  []string // what cannot be known of what they run
}

// RenderCommand is the text that an approver of a command reads: who asks for what, where
// and why it is held, then what the command would run in, then its argv element by
// element, the same as one line of a shell, and the commands that stand in it. a is the
// command's approval, req what was sent, ws the workspace as it was when the approval was
// asked for, and r what was read out of the argv.
//
// Every string goes through Visible, on one line, and long lines are folded; an element
// of several lines is there once more, line by line. What an approver may overlook is
// said at the top as CAUTION: what cannot be known of what would run, characters that do
// not show, and such as can look like others.
//
// The text depends on its arguments only, and on nothing in them that changes while
// the approval is pending: neither on votes nor on states. So its digest names what
// was shown.
func RenderCommand(a writ.Approval, req writ.CommandRequest, ws writ.Workspace, r Reading) string {
	held := callOf(a)
	w := &page{}
	w.aboutCall(a, held)
	w.commandOverview(a, held, req, ws, r)
	for i, arg := range req.Command {
		w.spelled(element(i), arg)
	}
	w.field("as a line", ShellLine(req.Command))
	for i, arg := range req.Command {
		if strings.Contains(arg, "\n") {
			w.body(element(i)+", line by line", arg)
		}
	}
	w.list("commands in it", r.Commands)
	if len(r.Unknown) > 0 {
		w.list("what cannot be known of them", r.Unknown)
	}
	return w.b.String()
}

// spelled is quoted, and where value can look like another, it is there once more in ASCII.
func (w *page) spelled(name, value string) {
	w.quoted(name, value)
	if outsideASCII(value) {
		w.fold("       ! ", "spelled "+spelled(value))
	}
}

func element(i int) string {
	if i == 0 {
		return "program"
	}
	return fmt.Sprintf("argument %d", i)
}

func (w *page) commandOverview(a writ.Approval, held writ.HeldCall, req writ.CommandRequest, ws writ.Workspace, r Reading) {
	w.field("does", "starts a program with these arguments; no shell reads them, unless it is one")
	w.field("approvals", deciders(held.Mode))
	w.field("request", string(req.Fingerprint()))
	if req.Dir == "" {
		w.field("folder", "the root")
	} else {
		w.spelled("folder", req.Dir)
	}
	w.field("terminal", terminal(req.TTY))
	w.field("input", "stays open: who asked may write to it later, as policy allows")
	w.field("profile", string(ws.Profile))
	w.field("environment", string(ws.EnvironmentKind))
	w.field("network", string(ws.Network))
	w.rules(ws.Rules)
	size := 0
	for _, arg := range req.Command {
		size += len(arg)
	}
	w.field("elements", fmt.Sprintf("%d, of %d bytes together", len(req.Command), size))
	w.field("commands", fmt.Sprintf("%d, listed below", len(r.Commands)))

	p := CommandOrder{Request: req, Workspace: ws, Requester: a.Requester, Identity: a.Identity}
	if a.Action != writ.ActionExec || a.Digest != BindCommand(p, a.Policy) {
		w.caution(notOfThis)
	}
	for _, c := range commandCautions(req, r) {
		w.caution(c)
	}
}

// rules says what of the workspace is not there for the command, or not to be written.
func (w *page) rules(r writ.PathRules) {
	for _, f := range []struct {
		name string
		list []string
	}{{"only reads", r.Read}, {"only writes", r.Write}, {"never reads", r.DenyRead}, {"never writes", r.DenyWrite}} {
		for _, pattern := range f.list {
			w.quoted(f.name, pattern)
		}
	}
}

// commandCautions says what may be overlooked, the worst first.
func commandCautions(req writ.CommandRequest, r Reading) (list []string) {
	var alike, hidden tally
	look := func(what, text string) {
		n, _ := hiddenIn(text)
		hidden.add(n, what)
		if outsideASCII(text) {
			alike.add(1, what)
		}
	}
	for i, arg := range req.Command {
		look(element(i), arg)
	}
	look("the folder", req.Dir)
	if n := len(r.Unknown); n > 0 {
		list = append(list, fmt.Sprintf("%d thing(s) cannot be known of what it runs, and are listed below; the first is %s", n, oneLine(r.Unknown[0])))
	}
	if len(r.Commands) == 0 {
		list = append(list, "which commands stand in it was not read")
	}
	if alike.n > 0 {
		list = append(list, fmt.Sprintf("%d part(s) have characters outside ASCII, which can look like others; the first is %s", alike.n, alike.first))
	}
	if hidden.n > 0 {
		list = append(list, fmt.Sprintf("%d character(s) that do not show, or show as others, are written out as ⟦U+....⟧; the first is in %s", hidden.n, hidden.first))
	}
	return list
}

func outsideASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 0x7f }) >= 0
}
