package writ

import "time"

// ApprovalState is where an approval stands. Granted approvals move on to
// consumed as the run they were given for starts.
type ApprovalState string

const (
	ApprovalPending   ApprovalState = "pending"
	ApprovalGranted   ApprovalState = "granted"  // enough grants; only seen inside the transaction of the last one
	ApprovalQueued    ApprovalState = "queued"   // its task waits to start
	ApprovalResuming  ApprovalState = "resuming" // its task was claimed and is decided again
	ApprovalConsumed  ApprovalState = "consumed" // one grant, one run: that run's intent is recorded
	ApprovalDenied    ApprovalState = "denied"
	ApprovalExpired   ApprovalState = "expired"
	ApprovalCancelled ApprovalState = "cancelled" // its task ended, or what it covers moved
)

// ApprovalStates lists every state, for tables that must cover them all.
var ApprovalStates = []ApprovalState{
	ApprovalPending, ApprovalGranted, ApprovalQueued, ApprovalResuming,
	ApprovalConsumed, ApprovalDenied, ApprovalExpired, ApprovalCancelled,
}

// Terminal reports whether an approval in state s can no longer change.
func (s ApprovalState) Terminal() bool {
	switch s {
	case ApprovalConsumed, ApprovalDenied, ApprovalExpired, ApprovalCancelled:
		return true
	}
	return false
}

// Approval is one held request and its votes.
type Approval struct {
	ID        ApprovalID    `json:"id"`
	Task      TaskID        `json:"task"`
	Tenant    Tenant        `json:"tenant"`
	Identity  IdentityID    `json:"identity"`
	Requester Ref           `json:"requester"`
	State     ApprovalState `json:"state"`
	Reason    string        `json:"reason"` // why it is held
	Rules     []Rule        `json:"rules"`  // that held it
	Need      Need          `json:"need"`
	// Spec is the digest of the run's spec, Policy the version of the policy set.
	// Digest binds both to the task and its requester: what runs is what was
	// approved (design.md §1).
	Spec   Digest `json:"spec"`
	Policy Digest `json:"policy"`
	Digest Digest `json:"digest"`
	Votes  []Vote `json:"votes,omitempty"`
	// Replaces is the approval that this one stands for after something moved.
	Replaces ApprovalID `json:"replaces,omitempty"`
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires"`
	Decided  *time.Time `json:"decided,omitempty"`
}

// Verdict is what an approver says.
type Verdict string

const (
	Grant  Verdict = "grant"
	Refuse Verdict = "deny"
)

// Vote is one approver's verdict on one approval.
type Vote struct {
	By      Ref       `json:"by"`
	Verdict Verdict   `json:"verdict"`
	Reason  string    `json:"reason,omitempty"`
	Shown   Digest    `json:"shown,omitempty"` // of the text that the approver was shown
	At      time.Time `json:"at"`
}

// ApprovalFilter narrows a list of approvals. Zero fields do not narrow.
type ApprovalFilter struct {
	Tenant   Tenant
	Identity IdentityID
	States   []ApprovalState
	Page     Page
}
