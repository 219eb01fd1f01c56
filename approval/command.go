package approval

import (
	"fmt"
	"strconv"
	"time"

	"writ"
)

// CommandOrder is one command for one workspace as it stands now: what was sent, by whom,
// and what the command would run in.
type CommandOrder struct {
	Request   writ.CommandRequest
	Workspace writ.Workspace // as it is registered now
	Requester writ.Ref
	Identity  writ.IdentityID // empty when the owner of the data folder asks
	// Mode says who decides. With writ.ApprovalsConfirm the requester may, too; with
	// any other only operators who did not ask.
	Mode writ.ApprovalMode
}

func (p CommandOrder) call() call { return call{p.Requester, p.Identity, p.Workspace, p.Mode} }

// RequestCommand is a new pending approval for starting a command, which d held. It
// expires ttl after now, granted or not. A decision without a need asks for one grant. The
// caller keeps p.Request and p.Workspace, which RenderCommand shows.
func RequestCommand(p CommandOrder, d writ.Decision, now time.Time, ttl time.Duration) writ.Approval {
	a := p.call().request(writ.ActionExec, d, now, ttl)
	a.Spec, a.Request, a.Digest = p.Request.Fingerprint(), CommandKey(p), BindCommand(p, d.Policy)
	return a
}

// CommandKey says which requests share one open approval: those of one requester, of one
// content, for one workspace at one root (spec/02 §9.1). What the workspace allows is not
// in it: a request that is sent again after that changed finds the approval that it moved
// away from.
func CommandKey(p CommandOrder) writ.Digest {
	return bind("writ command request key v1\n", append(p.call().fields(), string(p.Request.Fingerprint()))...)
}

// BindCommand is the digest that an approval of a command covers, made as Bind is: who
// asks, for which workspace at which root, what to start, with a terminal or without, in
// which folder, in which environment and with which profile, network and rules about
// paths, under which version of the policies.
func BindCommand(p CommandOrder, policy writ.Digest) writ.Digest {
	w := p.Workspace
	fields := append(p.call().fields(), string(w.Profile), w.Environment, string(w.EnvironmentKind), string(w.Network),
		string(p.Request.Workspace), strconv.FormatBool(p.Request.TTY), p.Request.Dir, string(p.Request.Fingerprint()), string(policy))
	// Lists behind their lengths, so that an element cannot pass from one to the next.
	for _, list := range [][]string{p.Request.Command, w.Rules.Read, w.Rules.Write, w.Rules.DenyRead, w.Rules.DenyWrite} {
		fields = append(append(fields, strconv.Itoa(len(list))), list...)
	}
	return bind("writ command approval v1\n", fields...)
}

// CoversCommand reports whether a is for exactly p under that version of the policies.
// Else it is a Conflict that says what moved. An approval that its requester could give
// does not cover what another must agree to now; the other way round it does.
func CoversCommand(a writ.Approval, p CommandOrder, policy writ.Digest) error {
	c := p.call()
	if a.Action != writ.ActionExec || !isCall(a) {
		return moved(a, "what is asked for: the approval is not for a command")
	}
	same := a.Digest == BindCommand(p, policy)
	if same && !c.another(a) {
		return nil
	}
	what := c.moved(a)
	switch {
	case what != "":
	case a.Spec != p.Request.Fingerprint():
		what = fmt.Sprintf("what was sent: the approval is for request %.12s", a.Spec)
	case a.Policy != policy:
		what = fmt.Sprintf(movedPolicy, a.Policy)
	case same:
		what = movedAgree
	default: // of those a keeps nothing but its digest
		what = "the workspace's profile, environment, network or rules about paths, or the approval itself"
	}
	return moved(a, what)
}
