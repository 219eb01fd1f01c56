package writ

import "time"

// EventType says what an event records.
type EventType string

// The events of a task, in the order of spec/01 §2 rule 6. A refused or denied
// task ends with the event that says why.
const (
	EventTaskRefused       EventType = "task.refused"       // malformed: nothing else is stored of it
	EventTaskReceived      EventType = "task.received"      //
	EventTaskDecided       EventType = "task.decided"       // identity, scope and policy: allow, hold or deny
	EventApprovalRequested EventType = "approval.requested" //
	EventApprovalVoted     EventType = "approval.voted"     // one vote of several, or a refused attempt to vote
	EventApprovalDecided   EventType = "approval.decided"   // granted, denied, expired or cancelled
	EventTaskQueued        EventType = "task.queued"        // granted, and waits to start
	EventAgentStarted      EventType = "agent.started"      // a gateway claimed the task
	EventToolInvoked       EventType = "tool.invoked"       // the intent: durable before anything starts
	EventToolResult        EventType = "tool.result"        // what the runner reported
	EventAgentFinished     EventType = "agent.finished"     // the task's terminal state after a run
	EventTaskCancelled     EventType = "task.cancelled"     // asked for, by whom
	EventBodiesDeleted     EventType = "task.bodies_deleted"
)

// The events of a workspace's tools.
const (
	EventWorkspaceRead    EventType = "workspace.read"    // files were read or listed
	EventWorkspaceRefused EventType = "workspace.refused" // a request was turned down: denied or malformed
	EventPatchStarted     EventType = "patch.started"     // the decision and the intent: durable before any file changes
	EventPatchFinished    EventType = "patch.finished"    // what the runner reported, or what a crash was settled to
	EventProcessStarted   EventType = "process.started"   // the decision and the intent: durable before a command starts
	EventProcessInput     EventType = "process.input"     // before it is written
	EventProcessKilled    EventType = "process.killed"    // asked for, by whom
	EventProcessFinished  EventType = "process.finished"  // how it ended, or that it was not started
)

// The events of works and their instructions, whose texts are never in them.
const (
	EventWorkOpened      EventType = "work.opened"
	EventWorkFinished    EventType = "work.finished"    // it closes, or is closed
	EventWorkStopped     EventType = "work.stopped"     // a person had the processes of its workspace ended
	EventIntentQueued    EventType = "intent.queued"    // a person gave an instruction
	EventIntentClaimed   EventType = "intent.claimed"   // an agent took it
	EventIntentCompleted EventType = "intent.completed" // done or blocked
	EventIntentCancelled EventType = "intent.cancelled"
)

// The events of what the code interpreter keeps for its users. They have counts, no names.
const (
	EventFilesRemoved   EventType = "files.removed"   // what was over, in one pass
	EventSessionRemoved EventType = "session.removed" // one storage session with what was in it, by whom
)

// The events of the server.
const (
	EventAuthRefused      EventType = "auth.refused"
	EventKeyCreated       EventType = "key.created"
	EventKeyRevoked       EventType = "key.revoked"
	EventOperatorAdded    EventType = "operator.added"
	EventOperatorDisabled EventType = "operator.disabled"
	EventPolicyLoaded     EventType = "policy.loaded"
	EventServerStarted    EventType = "server.started"
	EventServerRecovers   EventType = "server.recovered"
)

// EventTypes lists every type, for tables that must cover them all.
var EventTypes = []EventType{
	EventTaskRefused, EventTaskReceived, EventTaskDecided,
	EventApprovalRequested, EventApprovalVoted, EventApprovalDecided,
	EventTaskQueued, EventAgentStarted, EventToolInvoked, EventToolResult,
	EventAgentFinished, EventTaskCancelled, EventBodiesDeleted,
	EventWorkspaceRead, EventWorkspaceRefused, EventPatchStarted, EventPatchFinished,
	EventProcessStarted, EventProcessInput, EventProcessKilled, EventProcessFinished,
	EventWorkOpened, EventWorkFinished, EventWorkStopped,
	EventIntentQueued, EventIntentClaimed, EventIntentCompleted, EventIntentCancelled,
	EventFilesRemoved, EventSessionRemoved,
	EventAuthRefused, EventKeyCreated, EventKeyRevoked, EventOperatorAdded, EventOperatorDisabled,
	EventPolicyLoaded, EventServerStarted, EventServerRecovers,
}

// Event is one line of the audit log. It holds ids, digests, sizes and reasons,
// never code, output or a secret. Seq and Time are set when it is appended.
type Event struct {
	Seq      int64      `json:"seq"` // from 0, without gaps, the order of the log whatever the clock did
	Time     time.Time  `json:"time"`
	Type     EventType  `json:"type"`
	Tenant   Tenant     `json:"tenant,omitempty"`
	Task     TaskID     `json:"task,omitempty"`
	Approval ApprovalID `json:"approval,omitempty"`
	Actor    Ref        `json:"actor,omitzero"` // who did it; zero means the server itself
	Data     EventData  `json:"data,omitzero"`
}

// EventData is what an event says beside its type. Each type uses some fields.
type EventData struct {
	Reason   string     `json:"reason,omitempty"`
	Key      string     `json:"key,omitempty"` // the caller's own name for the task
	Identity IdentityID `json:"identity,omitempty"`
	Role     string     `json:"role,omitempty"`
	State    TaskState  `json:"state,omitempty"`
	RetryOf  TaskID     `json:"retry_of,omitempty"`

	Language  Language `json:"language,omitempty"`
	Spec      Digest   `json:"spec,omitempty"`
	Code      Digest   `json:"code,omitempty"`
	CodeBytes int64    `json:"code_bytes,omitempty"`
	Args      int      `json:"args,omitempty"`   // how many
	Inputs    int      `json:"inputs,omitempty"` // with files
	Limits    Limits   `json:"limits,omitzero"`
	Clamped   []string `json:"clamped,omitempty"`

	Effect Effect        `json:"effect,omitempty"`
	Rules  []Rule        `json:"rules,omitempty"`
	Policy Digest        `json:"policy,omitempty"`
	Need   *Need         `json:"need,omitempty"`
	Status ApprovalState `json:"status,omitempty"` // of the approval
	Votes  []Vote        `json:"votes,omitempty"`
	Binds  Digest        `json:"binds,omitempty"` // Approval.Digest

	Outcome   Outcome      `json:"outcome,omitempty"`
	Started   *bool        `json:"started,omitempty"`
	ExitCode  *int         `json:"exit_code,omitempty"`
	Signal    string       `json:"signal,omitempty"`
	Stdout    *OutputFacts `json:"stdout,omitempty"`
	Stderr    *OutputFacts `json:"stderr,omitempty"`
	WallMS    int64        `json:"wall_ms,omitempty"`
	CPUMS     int64        `json:"cpu_ms,omitempty"`
	PeakBytes int64        `json:"peak_bytes,omitempty"`
	Kept      int64        `json:"kept,omitempty"` // files of the workspace that are new or changed
	KeptBytes int64        `json:"kept_bytes,omitempty"`
	Dropped   int64        `json:"dropped,omitempty"` // files that are not kept
	Sandbox   *Enforcement `json:"sandbox,omitempty"`

	Workspace WorkspaceID  `json:"workspace,omitempty"`
	Action    Action       `json:"action,omitempty"`
	Operation OperationID  `json:"operation,omitempty"`
	Undoes    OperationID  `json:"undoes,omitempty"`
	Plan      Digest       `json:"plan,omitempty"`  // HeldCall.Plan
	Paths     []string     `json:"paths,omitempty"` // that were read, or were to be
	Patch     PatchStatus  `json:"patch,omitempty"`
	ErrorCode string       `json:"error_code,omitempty"` // of a rejected patch or a refused request, spec/02 §5.14
	Changes   []FileChange `json:"changes,omitempty"`

	Work        WorkID      `json:"work,omitempty"`
	WorkState   WorkState   `json:"work_state,omitempty"`
	Intent      IntentID    `json:"intent,omitempty"`
	IntentState IntentState `json:"intent_state,omitempty"`
	Text        Digest      `json:"text,omitempty"` // of the intent
	TextBytes   int64       `json:"text_bytes,omitempty"`
	Process     ProcessID   `json:"process,omitempty"`
	Program     string      `json:"program,omitempty"`  // Process.Program
	Programs    []string    `json:"programs,omitempty"` // Process.Programs
	Termination Termination `json:"termination,omitempty"`

	Removed *FileRemoval `json:"removed,omitempty"`

	Subject string `json:"subject,omitempty"` // of key and operator events: whose; of a session's: which
	Count   int64  `json:"count,omitempty"`
}

// OutputFacts are an output's digest and sizes without its bytes.
type OutputFacts struct {
	Bytes     int64  `json:"bytes"`
	Kept      int64  `json:"kept"`
	Truncated bool   `json:"truncated,omitempty"`
	SHA256    Digest `json:"sha256"`
}

// Facts is what a record may keep of o.
func (o Output) Facts() *OutputFacts {
	return &OutputFacts{Bytes: o.Bytes, Kept: o.Kept, Truncated: o.Truncated, SHA256: o.SHA256}
}

// EventFilter narrows a list of events. Zero fields do not narrow. Events are
// listed in the order of the log, from After+1 on.
type EventFilter struct {
	Tenant Tenant
	Task   TaskID
	Types  []EventType
	After  int64 // the last Seq already seen; -1 for none
	Limit  int
}

// Record is an event as the log stores it. Data is what was signed: the event's
// JSON, one line, exactly the bytes that were appended. The other fields repeat
// what a store finds records by; verification compares them with Data.
type Record struct {
	Seq    int64
	Type   EventType
	Tenant Tenant
	Task   TaskID
	Data   []byte
}
