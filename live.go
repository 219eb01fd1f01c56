package writ

// MaxChunkBytes bounds Chunk.Data.
const MaxChunkBytes = 32 << 10

// Chunk is a piece of a run's output as it came, at most MaxChunkBytes. Chunks of
// one stream are in order; a character may be split between two of them.
type Chunk struct {
	Stream Stream `json:"stream"`
	Data   []byte `json:"data"` // base64 in JSON
}

// TaskEvent is one step in the life of a task as a watcher sees it: a new state,
// or output. Exactly one field is set.
type TaskEvent struct {
	Task   *Task  `json:"task,omitempty"`
	Output *Chunk `json:"output,omitempty"`
}

// ApprovalView is an approval and what its approver must read.
type ApprovalView struct {
	Approval
	// Text is exactly what will run, with invisible and bidirectional characters
	// made visible. Shown is its digest; a grant must name it.
	Text  string `json:"text"`
	Shown Digest `json:"shown"`
}

// VoteRequest is what an approver sends.
type VoteRequest struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
	Shown   Digest  `json:"shown,omitempty"` // ApprovalView.Shown; a grant without it is refused
}

// Checkpoint is a signed statement of the audit log's size and root hash.
type Checkpoint struct {
	Size int64  `json:"size"`
	Root Digest `json:"root"`
	Note string `json:"note"` // the signed note itself, golang.org/x/mod/sumdb/note
}

// AuditReport is what a verification found.
type AuditReport struct {
	OK     bool         `json:"ok"`
	Events int64        `json:"events"` // read
	Head   Checkpoint   `json:"head"`   // the log's own last checkpoint
	Faults []AuditFault `json:"faults,omitempty"`
}

// AuditFault is one thing that is wrong with the log.
type AuditFault struct {
	Seq   int64  `json:"seq"` // the first event it concerns; -1 when it is the log as a whole
	Fault string `json:"fault"`
}

// AuditProof shows that one event is in the log that a checkpoint signs.
type AuditProof struct {
	Seq        int64      `json:"seq"`
	Record     string     `json:"record"` // the event's exact bytes in the log
	Checkpoint Checkpoint `json:"checkpoint"`
	Hashes     []Digest   `json:"hashes"` // RFC 6962 audit path, leaf first
}
