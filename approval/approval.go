package approval

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"writ"
)

// Request is a new pending approval for task, which d held. It expires ttl after
// now. A decision without a need asks for one grant.
func Request(task writ.Task, d writ.Decision, now time.Time, ttl time.Duration) writ.Approval {
	a := pending(d, now, ttl)
	a.ID, a.Action, a.Task = writ.ApprovalID(writ.NewID("apr")), writ.ActionRun, task.ID
	a.Tenant, a.Identity, a.Requester = task.Tenant, task.Identity, task.Requester
	a.Spec = task.Digest
	a.Digest = Bind(task.ID, task.Requester, task.Identity, task.Digest, d.Policy)
	return a
}

// pending is what all new approvals have of the decision that asks for them.
func pending(d writ.Decision, now time.Time, ttl time.Duration) writ.Approval {
	var need writ.Need
	if d.Need != nil {
		need = *d.Need
		need.Roles = slices.Clone(need.Roles)
	}
	need.Grants = max(need.Grants, 1)
	return writ.Approval{
		State: writ.ApprovalPending, Reason: d.Reason, Rules: slices.Clone(d.Rules), Need: need,
		Policy: d.Policy, Created: now, Expires: now.Add(ttl),
	}
}

// Bind is the digest that the approval of a run covers: SHA-256 over a prefix of its
// own and each argument behind its length, so that no two sets of arguments make the
// same bytes.
func Bind(task writ.TaskID, requester writ.Ref, identity writ.IdentityID, spec, policy writ.Digest) writ.Digest {
	return bind("writ approval v1\n", string(task), string(requester.Kind), requester.ID, string(identity), string(spec), string(policy))
}

func bind(prefix string, fields ...string) writ.Digest {
	h := sha256.New()
	h.Write([]byte(prefix))
	for _, s := range fields {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		h.Write(n[:])
		h.Write([]byte(s))
	}
	return writ.Digest(hex.EncodeToString(h.Sum(nil)))
}

// Covers reports whether a is for exactly this: the task, its requester and
// identity, the spec with that digest, under that version of the policies. Else it
// is a Conflict that says what moved (spec/01 §5 scenario 11).
func Covers(a writ.Approval, task writ.Task, spec, policy writ.Digest) error {
	if a.Digest == Bind(task.ID, task.Requester, task.Identity, spec, policy) {
		return nil
	}
	what := movedNothing
	switch {
	case a.Task != task.ID:
		what = fmt.Sprintf("the task: the approval is for %s", a.Task)
	case a.Requester != task.Requester || a.Identity != task.Identity:
		what = fmt.Sprintf("who it runs for: the approval is for %s, asked for by %s", a.Identity, a.Requester)
	case a.Spec != spec:
		what = fmt.Sprintf("what will run: the approval is for spec %.12s", a.Spec)
	case a.Policy != policy:
		what = fmt.Sprintf(movedPolicy, a.Policy)
	}
	return moved(a, what)
}

func moved(a writ.Approval, what string) error {
	return conflict("use approval", "changed since approval %s was asked for: %s; it needs a new one", a.ID, what)
}

// Eligible reports whether p may decide a: an operator of a's tenant who is neither
// its requester nor its identity and who has every role that is needed. A tool's call
// that waits for confirmation may be decided by its requester, too, of whatever kind it
// is (spec/02 §9); roles that are needed, it needs as well. Else the error is Denied and
// says why (spec/01 §5 scenario 10). An operator who bears the identity's name counts
// as that identity. Whether a is still pending is not asked.
func Eligible(a writ.Approval, p writ.Principal) error {
	no := func(format string, args ...any) error {
		return &writ.Error{Kind: writ.Denied, Op: "decide approval", Msg: fmt.Sprintf(format, args...)}
	}
	confirms := confirms(a, p)
	switch {
	case confirms && p.Kind == writ.KindLocal: // sees all tenants
	case confirms && p.Tenant != a.Tenant:
		return no("%s is of another tenant than approval %s", p.Ref(), a.ID)
	case confirms:
	case p.Kind != writ.KindOperator && waitsForConfirmation(a):
		return no("%s may not decide approval %s: only whoever asked for it or an operator may", p.Ref(), a.ID)
	case p.Kind != writ.KindOperator:
		return no("%s may not decide approvals: only operators may, with a key of their own", p.Ref())
	case p.Tenant != a.Tenant:
		return no("%s is an operator of another tenant than approval %s", p.Ref(), a.ID)
	case p.Ref() == a.Requester:
		return no("%s asked for this and may not decide it: another operator must", p.Ref())
	case p.ID == string(a.Identity):
		return no("%s bears the name of the identity that this is for and may not decide it: another operator must", p.Ref())
	}
	for _, r := range a.Need.Roles {
		if !slices.Contains(p.Roles, r) {
			return no("%s has not the role %q that deciding approval %s needs", p.Ref(), r, a.ID)
		}
	}
	return nil
}

// waitsForConfirmation reports whether a is a pause that its requester may lift.
func waitsForConfirmation(a writ.Approval) bool {
	return isCall(a) && a.Call.Mode == writ.ApprovalsConfirm
}

// confirms reports whether p decides what it asked for itself, and may.
func confirms(a writ.Approval, p writ.Principal) bool {
	return waitsForConfirmation(a) && p.ID != "" && p.Ref() == a.Requester
}
