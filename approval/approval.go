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
	var need writ.Need
	if d.Need != nil {
		need = *d.Need
		need.Roles = slices.Clone(need.Roles)
	}
	need.Grants = max(need.Grants, 1)
	return writ.Approval{
		ID: writ.ApprovalID(writ.NewID("apr")), Task: task.ID, Tenant: task.Tenant,
		Identity: task.Identity, Requester: task.Requester,
		State: writ.ApprovalPending, Reason: d.Reason, Rules: slices.Clone(d.Rules), Need: need,
		Spec: task.Digest, Policy: d.Policy,
		Digest:  Bind(task.ID, task.Requester, task.Identity, task.Digest, d.Policy),
		Created: now, Expires: now.Add(ttl),
	}
}

// Bind is the digest that an approval covers: SHA-256 over a prefix of its own and
// each argument behind its length, so that no two sets of arguments make the same
// bytes.
func Bind(task writ.TaskID, requester writ.Ref, identity writ.IdentityID, spec, policy writ.Digest) writ.Digest {
	h := sha256.New()
	h.Write([]byte("writ approval v1\n"))
	for _, s := range []string{string(task), string(requester.Kind), requester.ID, string(identity), string(spec), string(policy)} {
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
	moved := "the approval itself: its digest is not over what it says"
	switch {
	case a.Task != task.ID:
		moved = fmt.Sprintf("the task: the approval is for %s", a.Task)
	case a.Requester != task.Requester || a.Identity != task.Identity:
		moved = fmt.Sprintf("who it runs for: the approval is for %s, asked for by %s", a.Identity, a.Requester)
	case a.Spec != spec:
		moved = fmt.Sprintf("what will run: the approval is for spec %.12s", a.Spec)
	case a.Policy != policy:
		moved = fmt.Sprintf("the policy: the approval is under version %.12s", a.Policy)
	}
	return &writ.Error{Kind: writ.Conflict, Op: "use approval", Msg: fmt.Sprintf("changed since approval %s was asked for: %s; it needs a new one", a.ID, moved)}
}

// Eligible reports whether p may decide a: an operator of a's tenant who is neither
// its requester nor its identity and who has every role that is needed. Else the
// error is Denied and says why (spec/01 §5 scenario 10). An operator who bears the
// identity's name counts as that identity. Whether a is still pending is not asked.
func Eligible(a writ.Approval, p writ.Principal) error {
	no := func(format string, args ...any) error {
		return &writ.Error{Kind: writ.Denied, Op: "decide approval", Msg: fmt.Sprintf(format, args...)}
	}
	if p.Kind != writ.KindOperator {
		return no("%s may not decide approvals: only operators may, with a key of their own", p.Ref())
	}
	if p.Tenant != a.Tenant {
		return no("%s is an operator of another tenant than approval %s", p.Ref(), a.ID)
	}
	if p.Ref() == a.Requester {
		return no("%s asked for this and may not decide it: another operator must", p.Ref())
	}
	if p.ID == string(a.Identity) {
		return no("%s bears the name of the identity that this is for and may not decide it: another operator must", p.Ref())
	}
	for _, r := range a.Need.Roles {
		if !slices.Contains(p.Roles, r) {
			return no("%s has not the role %q that deciding approval %s needs", p.Ref(), r, a.ID)
		}
	}
	return nil
}
