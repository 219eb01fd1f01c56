package writ

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

type (
	// WorkspaceID names a registered workspace. It is a name, not a credential.
	WorkspaceID string
	// OperationID names a patch in the ledger: "op-" and a UUID.
	OperationID string
)

// The actions of workspace tools, in the words of policy.
const (
	ActionRead  Action = "read"  // read, find and look at a workspace
	ActionPatch Action = "patch" // change its files
)

// The scopes that an identity needs for them. The owner of the data folder needs none.
const (
	ScopeRead  Scope = "read"
	ScopePatch Scope = "patch"
)

// Profile says what of a workspace its tools may do at all (spec/02 §4).
type Profile string

const (
	ReadOnly       Profile = "read-only"
	WorkspaceWrite Profile = "workspace-write"
)

// NetworkPolicy is what commands in a workspace reach.
type NetworkPolicy string

const (
	NetworkRestricted NetworkPolicy = "restricted" // nothing
	NetworkEnabled    NetworkPolicy = "enabled"
)

// ApprovalMode says who must agree before a workspace changes.
type ApprovalMode string

const (
	ApprovalsOff     ApprovalMode = "off"
	ApprovalsConfirm ApprovalMode = "confirm" // a pause that the same caller may lift
	ApprovalsReview  ApprovalMode = "review"  // an operator who is not the requester
)

// EnvironmentKind is where a workspace's files and commands are.
type EnvironmentKind string

const (
	EnvironmentHost      EnvironmentKind = "host"
	EnvironmentContainer EnvironmentKind = "linux-container" // is registered, and supports nothing yet
)

// Participation says whether commands in a workspace need the leave of a resource
// authority (spec/02 §3.1). Nothing here is one: where it is required, no command runs.
type Participation string

const (
	ParticipationOff      Participation = "off"
	ParticipationRequired Participation = "required"
)

// PathRules say what of a workspace its file tools may touch, as patterns relative
// to its root (package files says how they match). Denying beats allowing; what may
// not be read may not be written. Zero allows everything.
type PathRules struct {
	Read      []string `json:"read,omitempty"`
	Write     []string `json:"write,omitempty"`
	DenyRead  []string `json:"deny_read,omitempty"`
	DenyWrite []string `json:"deny_write,omitempty"`
}

// Workspace is a root folder that an operator registered for tools.
type Workspace struct {
	ID              WorkspaceID     `json:"id"`
	Tenant          Tenant          `json:"tenant"`
	Root            string          `json:"root"` // absolute
	Profile         Profile         `json:"profile"`
	Environment     string          `json:"environment"` // its name; no tool takes or shows it
	EnvironmentKind EnvironmentKind `json:"environment_kind"`
	Network         NetworkPolicy   `json:"network"`
	Approvals       ApprovalMode    `json:"approvals"`
	Participation   Participation   `json:"participation,omitempty"` // empty means off
	Rules           PathRules       `json:"rules,omitzero"`
}

// Validate reports every fault of the workspace at once. It looks at no disk.
func (w Workspace) Validate() error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !ValidName(string(w.ID)) {
		fault("workspace %q: want 1 to 64 of A-Z a-z 0-9 _ . -, the first a letter or digit", w.ID)
	}
	if !ValidName(string(w.Tenant)) {
		fault("tenant %q is not a name", w.Tenant)
	}
	if !filepath.IsAbs(w.Root) {
		fault("root %q is not absolute", w.Root)
	}
	if w.Profile != ReadOnly && w.Profile != WorkspaceWrite {
		fault("profile %q: want %q or %q", w.Profile, ReadOnly, WorkspaceWrite)
	}
	if w.EnvironmentKind != EnvironmentHost && w.EnvironmentKind != EnvironmentContainer {
		fault("environment kind %q: want %q or %q", w.EnvironmentKind, EnvironmentHost, EnvironmentContainer)
	}
	if w.Network != NetworkRestricted && w.Network != NetworkEnabled {
		fault("network %q: want %q or %q", w.Network, NetworkRestricted, NetworkEnabled)
	}
	if w.Approvals != ApprovalsOff && w.Approvals != ApprovalsConfirm && w.Approvals != ApprovalsReview {
		fault("approvals %q: want %q, %q or %q", w.Approvals, ApprovalsOff, ApprovalsConfirm, ApprovalsReview)
	}
	if w.Participation != "" && w.Participation != ParticipationOff && w.Participation != ParticipationRequired {
		fault("participation %q: want %q or %q", w.Participation, ParticipationOff, ParticipationRequired)
	}
	return errors.Join(errs...)
}

// FileWindow is a part of a file and the version of the whole (spec/02 §5.2).
type FileWindow struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Offset  int64  `json:"offset"`
	Content []byte `json:"content"` // base64 in JSON
	Next    int64  `json:"next"`    // where more is; 0 at the end of the file
}

// FileQuery says which files to find (spec/02 §5.3).
type FileQuery struct {
	Glob    string `json:"glob"`
	Content string `json:"content,omitempty"`
	Offset  int    `json:"offset"`
	Limit   int    `json:"limit"`
}

// FileListing is one page of what was found.
type FileListing struct {
	Paths      []string    `json:"paths"`
	Next       int         `json:"next"`  // offset of the next page; 0 when this is the last
	Total      int         `json:"total"` // matches that this call saw
	Version    string      `json:"version"`
	Incomplete bool        `json:"incomplete"`
	Skipped    int         `json:"skipped,omitempty"` // files that a query's content was not looked for in: too large, or not text
	Matches    []FileMatch `json:"matches,omitempty"`
}

// FileMatch is one line that has what a query asked for.
type FileMatch struct {
	Path string `json:"path"`
	Line int    `json:"line"` // from 1
	Text string `json:"text"`
}

// PatchRequest is one V4A patch for one workspace (spec/02 §5.4), or the reverse of
// one that was applied.
type PatchRequest struct {
	Workspace WorkspaceID `json:"workspace_id"`
	Patch     string      `json:"patch"`
	// Undo names an applied operation whose changes are to be taken back. Patch and
	// Expected are empty then: the files must be as that operation left them.
	Undo      OperationID       `json:"undo,omitempty"`
	Expected  map[string]string `json:"expected_versions"`
	CheckOnly bool              `json:"check_only"`
	// Key makes the request idempotent. It is not part of what is done.
	Key string `json:"-"`
}

// Fingerprint covers what the request does: two requests with one fingerprint are
// the same (spec/02 §6).
func (r PatchRequest) Fingerprint() Digest {
	if r.Expected == nil {
		r.Expected = map[string]string{}
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic("writ: a PatchRequest always encodes: " + err.Error()) // strings and a bool
	}
	return DigestOf(append([]byte("writ patch request v1\n"), b...))
}

// PatchStatus is how an operation ended (spec/02 §6.1).
type PatchStatus string

const (
	PatchUnknown    PatchStatus = "unknown" // not finished, or closed without a confirmed result
	PatchApplied    PatchStatus = "applied"
	PatchChecked    PatchStatus = "checked"
	PatchRejected   PatchStatus = "rejected"
	PatchRolledBack PatchStatus = "failed_rolled_back"
	PatchPartial    PatchStatus = "failed_partial"
)

// FileChange is what an operation did, or would do, at one path.
type FileChange struct {
	Path   string `json:"path"`
	Before string `json:"before_version,omitempty"`
	After  string `json:"after_version,omitempty"`
	Kind   string `json:"kind"` // add, update, delete, move
}

// PatchPlan is what a patch would do now, and the same for people.
type PatchPlan struct {
	Changes []FileChange `json:"changes"`
	Diff    string       `json:"diff"` // unified; hidden characters as they are
	// Cut is set when the diff was too long: Diff is its beginning then.
	Cut bool `json:"cut,omitempty"`
}

// Digest binds a plan: the files, with their versions before and after.
func (p PatchPlan) Digest() Digest {
	b, err := json.Marshal(p.Changes)
	if err != nil {
		panic("writ: changes always encode: " + err.Error())
	}
	return DigestOf(append([]byte("writ patch plan v1\n"), b...))
}

// PatchResult is how a patch ended.
type PatchResult struct {
	Status  PatchStatus  `json:"status"`
	Changes []FileChange `json:"changes"`
	Reason  string       `json:"reason,omitempty"`
}

// Settlement is what became of a patch, as the part that carried it out wrote it down
// before anybody was told. A Result with PatchUnknown cannot be said yet; its Reason
// is why.
type Settlement struct {
	Operation OperationID `json:"operation_id"`
	Result    PatchResult `json:"result"`
}

// Operation is one patch in the ledger. The patch's text is not kept.
type Operation struct {
	ID          OperationID `json:"id"`
	Key         string      `json:"key,omitempty"`
	Workspace   WorkspaceID `json:"workspace"`
	Root        string      `json:"root"` // that the workspace had
	Tenant      Tenant      `json:"tenant"`
	By          Ref         `json:"by"`
	CheckOnly   bool        `json:"check_only,omitempty"`
	Undoes      OperationID `json:"undoes,omitempty"`
	Fingerprint Digest      `json:"fingerprint"`
	Approval    ApprovalID  `json:"approval,omitempty"`
	Result      PatchResult `json:"result"`            // its Status is PatchUnknown until the operation is finished
	Code        string      `json:"code,omitempty"`    // of a rejected one, spec/02 §5.14
	Message     string      `json:"message,omitempty"` // of the same
	Created     time.Time   `json:"created"`
	Finished    *time.Time  `json:"finished,omitempty"`

	// Owner is the gateway that carries it out. It is nobody else's business.
	Owner string `json:"-"`
}

// OperationFilter narrows a list of operations. Zero fields do not narrow.
type OperationFilter struct {
	Tenant    Tenant
	By        Ref // who asked for them
	Workspace WorkspaceID
	Page      Page
}

// NewApprovalID makes the id of a patch's approval, in the form of spec/02 §1.1.
func NewApprovalID() ApprovalID { return ApprovalID("appr-" + uuid4()) }

// NewOperationID makes the id of an operation, in the form of spec/02 §1.1.
func NewOperationID() OperationID { return OperationID("op-" + uuid4()) }

func uuid4() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
