package writ

import "time"

// ApprovalState is where an approval stands. The approval of a run is queued as it is
// granted, and consumed as the run starts. That of a patch stays granted until somebody
// resumes it, and is consumed as the patch's outcome is recorded (spec/02 §9.1).
type ApprovalState string

const (
	ApprovalPending   ApprovalState = "pending"
	ApprovalGranted   ApprovalState = "granted"  // enough grants
	ApprovalQueued    ApprovalState = "queued"   // what was held waits to start; nothing of it has happened
	ApprovalResuming  ApprovalState = "resuming" // of a run: it is claimed and decided again; of a patch: its intent is recorded
	ApprovalConsumed  ApprovalState = "consumed" // one grant, one run or one patch
	ApprovalDenied    ApprovalState = "denied"
	ApprovalExpired   ApprovalState = "expired"
	ApprovalCancelled ApprovalState = "cancelled" // what was held will not happen, or what it covers moved
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
	Action    Action        `json:"action"`         // what is held: ActionRun, ActionPatch, ActionExec or ActionInput
	Task      TaskID        `json:"task,omitempty"` // of a run
	Tenant    Tenant        `json:"tenant"`
	Identity  IdentityID    `json:"identity"` // empty when the owner of the data folder called a tool
	Requester Ref           `json:"requester"`
	State     ApprovalState `json:"state"`
	Reason    string        `json:"reason"` // why it is held
	Rules     []Rule        `json:"rules"`  // that held it
	Need      Need          `json:"need"`
	// Call is set unless Action is ActionRun.
	Call *HeldCall `json:"call,omitempty"`
	// Spec is the digest of the run's spec, the fingerprint of the request for a patch or
	// a command, or the digest of an input and its process; Policy is the version of the
	// policy set. Digest binds both to the task, or to the workspace and what the call
	// would meet there, and to the requester: what runs is what was approved (design.md §1).
	Spec   Digest `json:"spec"`
	Policy Digest `json:"policy"`
	Digest Digest `json:"digest"`
	Votes  []Vote `json:"votes,omitempty"`
	// Replaces is the approval that this one stands for after something moved.
	Replaces ApprovalID `json:"replaces,omitempty"`
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires"`
	Decided  *time.Time `json:"decided,omitempty"`
	// Request names what is held, by whom it was asked for and under which key: of two
	// approvals with the same one, at most one is not terminal. Empty for runs, whose
	// tasks are told apart. It is nobody else's business.
	Request Digest `json:"-"`
}

// HeldCall is what of a tool's call its approval keeps for good. What was sent, and what
// an approver reads, is deleted once the approval is terminal.
type HeldCall struct {
	Workspace WorkspaceID `json:"workspace"`
	Root      string      `json:"root"` // that the workspace had: another one is not what was approved
	// Mode says who decides: with ApprovalsConfirm the requester may, too.
	Mode ApprovalMode `json:"mode"`
	Key  string       `json:"key,omitempty"` // of a patch
	// Plan, of a patch, is PatchPlan.Digest: what each file was, and what it would be.
	Plan Digest `json:"plan,omitempty"`
	// Operation is the patch that was carried out, once it has begun.
	Operation OperationID `json:"operation,omitempty"`
	// Process, of an input, is the process that it is for; of a command, the one that was
	// started, once that has begun.
	Process ProcessID `json:"process,omitempty"`
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
