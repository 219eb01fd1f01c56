package writ

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

type (
	// WorkID names a piece of work: "work-" and a UUID.
	WorkID string
	// IntentID names an instruction of a person for an agent: "fb-" and a UUID.
	IntentID string
)

// NewWorkID makes the id of a work, in the form of spec/02 §1.1.
func NewWorkID() WorkID { return WorkID("work-" + uuid4()) }

// NewIntentID makes the id of an intent, in the form of spec/02 §1.1.
func NewIntentID() IntentID { return IntentID("fb-" + uuid4()) }

// WorkState is where a work stands (spec/02 §10). A closed one stays closed.
type WorkState string

const (
	WorkActive  WorkState = "active"
	WorkClosing WorkState = "closing" // the agent is done; what was to come after it is left
	WorkClosed  WorkState = "closed"
)

// WorkStates lists every state, for tables that must cover them all.
var WorkStates = []WorkState{WorkActive, WorkClosing, WorkClosed}

// Open reports whether a work in state s still takes instructions.
func (s WorkState) Open() bool { return s == WorkActive || s == WorkClosing }

// IntentState is where an intent stands (spec/02 §10).
type IntentState string

const (
	IntentDraft     IntentState = "draft"   // being written: no agent sees it
	IntentQueued    IntentState = "queued"  // waits to be claimed
	IntentClaimed   IntentState = "claimed" // an agent has it; its text stays as it is
	IntentDone      IntentState = "done"
	IntentBlocked   IntentState = "blocked" // the agent could not do it
	IntentCancelled IntentState = "cancelled"
)

// IntentStates lists every state, for tables that must cover them all.
var IntentStates = []IntentState{IntentDraft, IntentQueued, IntentClaimed, IntentDone, IntentBlocked, IntentCancelled}

// Terminal reports whether an intent in state s is over.
func (s IntentState) Terminal() bool {
	return s == IntentDone || s == IntentBlocked || s == IntentCancelled
}

// IntentKind is what an intent is.
type IntentKind string

const (
	IntentFollowUp   IntentKind = "follow_up"
	IntentNote       IntentKind = "note"
	IntentStopNotice IntentKind = "stop_notice" // the processes were stopped; only a stop makes one
)

// Delivery is when an agent may have an intent.
type Delivery string

const (
	DeliverAfter      Delivery = "after_current_work" // once the work is closing
	DeliverCheckpoint Delivery = "next_checkpoint"    // when the agent asks next
	DeliverNextWork   Delivery = "next_work"          // in the next work that is opened there
)

// Deliveries lists every delivery, for tables that must cover them all.
var Deliveries = []Delivery{DeliverAfter, DeliverCheckpoint, DeliverNextWork}

// Work is what an agent does in a workspace and a person steers (spec/02 §10). It
// belongs to the workspace as it was then: one of that id with another root has other
// works.
type Work struct {
	ID        WorkID      `json:"work_id"`
	Workspace WorkspaceID `json:"workspace_id"`
	Root      string      `json:"root"` // that the workspace had
	Tenant    Tenant      `json:"tenant"`
	Title     string      `json:"title,omitempty"`
	State     WorkState   `json:"state"`
	Revision  int64       `json:"queue_revision"` // grows with every change of the work and its intents
	By        Ref         `json:"by"`             // who opened it
	Created   time.Time   `json:"created"`
	Closed    *time.Time  `json:"closed,omitempty"`
}

// Intent is one instruction of a person for whoever works in a workspace.
type Intent struct {
	ID        IntentID    `json:"intent_id"`
	Work      WorkID      `json:"work_id,omitempty"` // empty: waits for the next work of its workspace
	Workspace WorkspaceID `json:"workspace_id"`
	Position  int64       `json:"position"` // the lowest is claimed first
	Revision  int64       `json:"revision"` // grows with each change of its text, its state, but for claimed, and its work
	Kind      IntentKind  `json:"kind"`
	Delivery  Delivery    `json:"delivery"`
	Body      string      `json:"body"`
	State     IntentState `json:"state"`
	By        Ref         `json:"by"` // who wrote it
	Created   time.Time   `json:"created"`
	Updated   time.Time   `json:"updated"`

	// Tenant and Root are those of its workspace.
	Tenant Tenant `json:"-"`
	Root   string `json:"-"`
}

// WorkFilter narrows a list of works. Zero fields do not narrow.
type WorkFilter struct {
	Tenant    Tenant
	Workspace WorkspaceID
	States    []WorkState
	Page      Page
}

// WorkCounts are the intents of a work that are not over, as counts. Those for the next
// work are not counted.
type WorkCounts struct {
	Queued    int `json:"queued"`
	Claimed   int `json:"claimed"`
	Claimable int `json:"claimable_now"`
}

// WorkStatus is a work as its agent sees it: what waits is told as counts.
type WorkStatus struct {
	Work
	WorkCounts
}

// WorkHint says that instructions wait, in the results of other tools (spec/02 §5). It
// has counts only.
type WorkHint struct {
	Work     WorkID `json:"work_id"`
	Pending  int    `json:"pending_user_items"`
	Revision int64  `json:"queue_revision"`
}

// Finish is the answer to an agent that says that it is done.
type Finish struct {
	Work   Work
	Closed bool // false: Queued instructions are pending
	Queued int
}

// Stop is what a stop did.
type Stop struct {
	OK     bool   `json:"ok"`
	Killed int    `json:"killed"` // processes
	Intent Intent `json:"intent"` // the notice of it
}

// Bounds of works.
const (
	MaxTitleBytes  = 300
	MaxIntentBytes = 16 << 10
	MaxOpenWorks   = 64  // of one workspace
	MaxOpenIntents = 200 // of one workspace: drafts, queued and claimed
)

// ValidTitle reports what is wrong with the title of a work. It may be empty.
func ValidTitle(s string) error {
	if len(s) > MaxTitleBytes || !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("title: want UTF-8 text of at most %d bytes, without NUL", MaxTitleBytes)
	}
	return nil
}

// IntentRequest asks for a new intent, as a draft.
type IntentRequest struct {
	Body     string     `json:"body"`
	Kind     IntentKind `json:"kind,omitempty"`     // empty means follow_up
	Delivery Delivery   `json:"delivery,omitempty"` // empty means after_current_work
}

// Validate reports every fault of the request at once.
func (r IntentRequest) Validate() error {
	var errs []error
	switch r.Kind {
	case "", IntentFollowUp, IntentNote:
	default:
		errs = append(errs, fmt.Errorf("kind %q: want %s or %s", r.Kind, IntentFollowUp, IntentNote))
	}
	return errors.Join(append(errs, validIntentBody(r.Body), validDelivery(r.Delivery))...)
}

// IntentEdit changes an intent that nobody has claimed.
type IntentEdit struct {
	Revision int64    `json:"revision"` // that the editor has seen
	Body     string   `json:"body"`
	Delivery Delivery `json:"delivery,omitempty"` // empty means as it is
}

// Validate reports every fault of the request at once.
func (r IntentEdit) Validate() error {
	return errors.Join(validRevision(r.Revision), validIntentBody(r.Body), validDelivery(r.Delivery))
}

// QueueRequest makes a draft an instruction.
type QueueRequest struct {
	Revision int64 `json:"revision"` // that its author has seen
}

// Validate reports what is wrong with the request.
func (r QueueRequest) Validate() error { return validRevision(r.Revision) }

// ReorderRequest says in which order the queued intents of a work are to be claimed.
type ReorderRequest struct {
	Intents []IntentID `json:"intent_ids"`
}

// Validate reports what is wrong with the request.
func (r ReorderRequest) Validate() error {
	if len(r.Intents) > MaxOpenIntents {
		return fmt.Errorf("intent_ids: %d are given, the most is %d", len(r.Intents), MaxOpenIntents)
	}
	return nil
}

// StopRequest asks for the processes of a work's workspace to be ended.
type StopRequest struct {
	Reason string `json:"reason,omitempty"` // what the agent is told
}

// Validate reports what is wrong with the request.
func (r StopRequest) Validate() error { return validReason(r.Reason) }

func validRevision(n int64) error {
	if n < 1 {
		return errors.New("revision: want that of the intent as you have seen it, 1 or more")
	}
	return nil
}

func validIntentBody(s string) error {
	if strings.TrimSpace(s) == "" || len(s) > MaxIntentBytes || !utf8.ValidString(s) || strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("body: want UTF-8 text of 1 to %d bytes, without NUL", MaxIntentBytes)
	}
	return nil
}

func validDelivery(d Delivery) error {
	switch d {
	case "", DeliverAfter, DeliverCheckpoint, DeliverNextWork:
		return nil
	}
	return fmt.Errorf("delivery %q: want %s, %s or %s", d, DeliverAfter, DeliverCheckpoint, DeliverNextWork)
}
