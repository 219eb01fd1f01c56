package approval

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"writ"
)

// Vote adds by's verdict to a. A denial ends it; the last of Need.Grants grants
// makes it granted; a grant before that leaves it pending. shown is the digest of
// what Render, RenderPatch, RenderCommand or RenderInput says now, which a grant must
// name: an approver grants what they read. A denial need not, nor need whoever confirms
// their own call: the client has asked its user in its own words. What they do name must
// be right.
//
// Errors, none of which changes a:
//   - Invalid: the verdict is neither grant nor deny, the reason is longer than
//     writ.MaxReasonBytes or not UTF-8, or a grant lacks the reason that is needed.
//   - Denied: by may not decide a (Eligible).
//   - Conflict: a is decided, which the message tells by whom, or expired, by has
//     voted, or what was shown is not what would happen now.
func Vote(a *writ.Approval, by writ.Principal, v writ.VoteRequest, shown writ.Digest, now time.Time) error {
	const op = "decide approval"
	invalid := func(format string, args ...any) error {
		return &writ.Error{Kind: writ.Invalid, Op: op, Msg: fmt.Sprintf(format, args...)}
	}
	if v.Verdict != writ.Grant && v.Verdict != writ.Refuse {
		return invalid("verdict %q: want %q or %q", v.Verdict, writ.Grant, writ.Refuse)
	}
	if len(v.Reason) > writ.MaxReasonBytes {
		return invalid("the reason has %d bytes, the most is %d", len(v.Reason), writ.MaxReasonBytes)
	}
	if !utf8.ValidString(v.Reason) {
		return invalid("the reason is not UTF-8")
	}
	if err := Eligible(*a, by); err != nil {
		return err
	}
	if a.State != writ.ApprovalPending {
		return conflict(op, "%s", History(*a))
	}
	if !now.Before(a.Expires) {
		return conflict(op, "approval %s expired at %s", a.ID, stamp(a.Expires))
	}
	if i := slices.IndexFunc(a.Votes, func(old writ.Vote) bool { return old.By == by.Ref() }); i >= 0 {
		return conflict(op, "%s has voted (%s at %s): each approver votes once", by.Ref(), a.Votes[i].Verdict, stamp(a.Votes[i].At))
	}
	if v.Verdict == writ.Grant {
		unread := v.Shown == "" && confirms(*a, by)
		if !unread && (v.Shown == "" || v.Shown != shown) {
			return conflict(op, "what was shown is not what %s now: read approval %s again, and grant with the digest it shows", wordsFor(a.Action).happens, a.ID)
		}
		if a.Need.Reason && strings.TrimSpace(v.Reason) == "" {
			return invalid("a grant of approval %s needs a reason", a.ID)
		}
	}

	// Clipped, so that the caller's copy of the votes is never written to.
	a.Votes = append(slices.Clip(a.Votes), writ.Vote{By: by.Ref(), Verdict: v.Verdict, Reason: v.Reason, Shown: v.Shown, At: now})
	switch {
	case v.Verdict == writ.Refuse:
		decide(a, writ.ApprovalDenied, now)
	case grants(*a) >= a.Need.Grants:
		decide(a, writ.ApprovalGranted, now)
	}
	return nil
}

// grants counts the grants of a.
func grants(a writ.Approval) int {
	n := 0
	for _, v := range a.Votes {
		if v.Verdict == writ.Grant {
			n++
		}
	}
	return n
}

func decide(a *writ.Approval, to writ.ApprovalState, now time.Time) {
	a.State, a.Decided = to, &now
}

// History says in one sentence where a stands and how it came there: who decided
// it, and when.
func History(a writ.Approval) string {
	when := ""
	if a.Decided != nil {
		when = " at " + stamp(*a.Decided)
	}
	var by []string
	want := writ.Grant
	if a.State == writ.ApprovalDenied {
		want = writ.Refuse
	}
	for _, v := range a.Votes {
		if v.Verdict == want {
			by = append(by, v.By.String())
		}
	}
	who := strings.Join(by, ", ")
	switch a.State {
	case writ.ApprovalPending:
		return fmt.Sprintf("approval %s is pending, with %d of %d grants", a.ID, len(by), a.Need.Grants)
	case writ.ApprovalDenied:
		return fmt.Sprintf("approval %s was denied by %s%s", a.ID, who, when)
	case writ.ApprovalExpired:
		if grants(a) >= a.Need.Grants {
			return fmt.Sprintf("approval %s was granted by %s and expired at %s, before anybody resumed it", a.ID, who, stamp(a.Expires))
		}
		return fmt.Sprintf("approval %s expired at %s", a.ID, stamp(a.Expires))
	case writ.ApprovalCancelled:
		return fmt.Sprintf("approval %s was cancelled%s", a.ID, when)
	case writ.ApprovalConsumed:
		return fmt.Sprintf("approval %s was granted by %s%s and is used up: one grant is for one %s", a.ID, who, when, wordsFor(a.Action).one)
	case writ.ApprovalGranted:
		if a.Action != writ.ActionRun {
			return fmt.Sprintf("approval %s was granted by %s%s and waits until it is resumed", a.ID, who, when)
		}
	}
	return fmt.Sprintf("approval %s was granted by %s%s (%s)", a.ID, who, when, a.State)
}

// words name what is held, and say what its grant lets happen.
type words struct{ one, happens string }

func wordsFor(action writ.Action) words {
	switch action {
	case writ.ActionPatch:
		return words{"patch", "the patch would do"}
	case writ.ActionExec:
		return words{"command", "would be started"}
	case writ.ActionInput:
		return words{"input", "would be written"}
	}
	return words{"run", "will run"}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func conflict(op, format string, args ...any) error {
	return &writ.Error{Kind: writ.Conflict, Op: op, Msg: fmt.Sprintf(format, args...)}
}

// Meets reports whether what a was granted with is enough for need, which may ask
// for more than a was held for: rules can look at the clock.
func Meets(a writ.Approval, need writ.Need) bool {
	for _, role := range need.Roles {
		if !slices.Contains(a.Need.Roles, role) {
			return false // what roles its approvers had beyond a.Need was not asked
		}
	}
	for _, v := range a.Votes {
		if need.Reason && v.Verdict == writ.Grant && strings.TrimSpace(v.Reason) == "" {
			return false
		}
	}
	return grants(a) >= need.Grants
}
