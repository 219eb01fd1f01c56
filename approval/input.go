package approval

import (
	"fmt"
	"strconv"
	"time"

	"writ"
)

// InputOrder is one write to the input of one process.
type InputOrder struct {
	Process writ.Process
	Data    []byte
	// Close is set when the input is to end behind Data, which may be empty then.
	Close     bool
	Workspace writ.Workspace // that the process runs in, as it is registered now
	Requester writ.Ref
	Identity  writ.IdentityID // empty when the owner of the data folder asks
	// Mode says who decides. With writ.ApprovalsConfirm the requester may, too; with
	// any other only operators who did not ask.
	Mode writ.ApprovalMode
}

func (p InputOrder) call() call { return call{p.Requester, p.Identity, p.Workspace, p.Mode} }

// RequestInput is a new pending approval for a write to a process, which d held. It
// expires ttl after now, granted or not. A decision without a need asks for one grant. The
// caller keeps p.Data and p.Close, which RenderInput shows.
func RequestInput(p InputOrder, d writ.Decision, now time.Time, ttl time.Duration) writ.Approval {
	a := p.call().request(writ.ActionInput, d, now, ttl)
	a.Call.Process = p.Process.ID
	a.Spec, a.Request, a.Digest = InputDigest(p.Process.ID, p.Data, p.Close), InputKey(p), BindInput(p, d.Policy)
	return a
}

// InputDigest names what a write does: to which process, what, and whether the input ends
// behind it.
func InputDigest(id writ.ProcessID, data []byte, end bool) writ.Digest {
	return bind("writ process input v1\n", string(id), string(data), strconv.FormatBool(end))
}

// InputKey says which writes share one open approval: those of one requester, of the same
// to the same process. So of two equal writes that wait, one is carried out.
func InputKey(p InputOrder) writ.Digest {
	return bind("writ input request key v1\n", append(p.call().fields(), string(InputDigest(p.Process.ID, p.Data, p.Close)))...)
}

// BindInput is the digest that an approval of a write covers, made as Bind is: who asks,
// in which workspace at which root, for which process that was started as what, what is
// written, under which version of the policies. What the workspace allows is not in it:
// the process runs already, in what was allowed when it was started.
func BindInput(p InputOrder, policy writ.Digest) writ.Digest {
	return bind("writ input approval v1\n", append(p.call().fields(),
		string(p.Process.ID), string(p.Process.Workspace), p.Process.Root, string(p.Process.Fingerprint),
		p.Process.Program, strconv.FormatBool(p.Process.TTY),
		string(p.Data), strconv.FormatBool(p.Close), string(policy))...)
}

// CoversInput reports whether a is for exactly p under that version of the policies. Else
// it is a Conflict that says what moved. An approval that its requester could give does
// not cover what another must agree to now; the other way round it does. Whether the
// process still runs is not asked.
func CoversInput(a writ.Approval, p InputOrder, policy writ.Digest) error {
	c := p.call()
	if a.Action != writ.ActionInput || !isCall(a) {
		return moved(a, "what is asked for: the approval is not for an input")
	}
	same := a.Digest == BindInput(p, policy)
	if same && !c.another(a) {
		return nil
	}
	what := c.moved(a)
	switch {
	case what != "":
	case a.Call.Process != p.Process.ID:
		what = fmt.Sprintf("the process: the approval is for %s", a.Call.Process)
	case a.Spec != InputDigest(p.Process.ID, p.Data, p.Close):
		what = fmt.Sprintf("what would be written: the approval is for input %.12s", a.Spec)
	case a.Policy != policy:
		what = fmt.Sprintf(movedPolicy, a.Policy)
	case same:
		what = movedAgree
	default: // of what the process was started as, a keeps nothing but its digest
		what = "what the process was started as, or the approval itself"
	}
	return moved(a, what)
}
