package writ

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/oklog/ulid/v2"
)

type (
	TaskID     string
	ApprovalID string
)

// NewID makes an id: the prefix, "_", and 26 characters that sort by time.
func NewID(prefix string) string {
	return prefix + "_" + strings.ToLower(ulid.MustNew(ulid.Now(), rand.Reader).String())
}

// Now is the time as all records keep it: UTC, whole milliseconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// TaskState is where a task stands (spec/01 §4). Terminal states never change.
type TaskState string

const (
	TaskReceived TaskState = "received" // only ever seen inside the transaction that creates the task
	TaskNoted    TaskState = "noted"    // a plan step without code: recorded, never executed
	TaskHeld     TaskState = "held"     // an approval is pending
	TaskQueued   TaskState = "queued"   // may start; has not
	TaskRunning  TaskState = "running"  // the intent is recorded; it may have started

	TaskDenied      TaskState = "denied"
	TaskExpired     TaskState = "expired"
	TaskCancelled   TaskState = "cancelled" // before it started; a running task that is cancelled ends killed
	TaskSucceeded   TaskState = "succeeded"
	TaskFailed      TaskState = "failed"
	TaskTimedOut    TaskState = "timed_out"
	TaskOutOfMemory TaskState = "out_of_memory"
	TaskKilled      TaskState = "killed"
	TaskInterrupted TaskState = "interrupted"
)

// TaskStates lists every state that can be stored.
var TaskStates = []TaskState{
	TaskNoted, TaskHeld, TaskQueued, TaskRunning, TaskDenied, TaskExpired, TaskCancelled, TaskSucceeded,
	TaskFailed, TaskTimedOut, TaskOutOfMemory, TaskKilled, TaskInterrupted,
}

// Terminal reports whether a task in state s is over.
func (s TaskState) Terminal() bool {
	switch s {
	case TaskReceived, TaskHeld, TaskQueued, TaskRunning:
		return false
	}
	return true
}

// State is the task state of an outcome.
func (o Outcome) State() TaskState { return TaskState(o) }

// TaskRequest is what a caller sends to have something run.
type TaskRequest struct {
	// Key is the caller's own name for the task. A second request of the same
	// identity with the same key and the same content answers the first task; with
	// other content it is refused (spec/01 §5 scenario 11).
	Key string `json:"key,omitempty"`
	// Identity is who the task is for. Empty means the caller itself. Only
	// operators and the owner of the data folder may name another.
	Identity IdentityID `json:"identity,omitempty"`
	// Role, when set, must be a role that the identity is registered to.
	Role string `json:"role,omitempty"`
	// Step says in words what the task is for. A request without a spec needs it.
	Step    string `json:"step,omitempty"`
	RetryOf TaskID `json:"retry_of,omitempty"` // the task that this one repeats
	// Spec is what to run. Without it the task is a plan step.
	Spec *RunSpec `json:"spec,omitempty"`
}

// MaxStepBytes bounds the words of a plan step.
const MaxStepBytes = 4096

// Validate reports every fault of the request at once.
func (r TaskRequest) Validate() error {
	var errs []error
	if r.Key != "" && !ValidName(r.Key) {
		errs = append(errs, fmt.Errorf("key %q: want 1 to 64 of A-Z a-z 0-9 _ . -", r.Key))
	}
	if r.Role != "" && !ValidName(r.Role) {
		errs = append(errs, fmt.Errorf("role %q is not a name", r.Role))
	}
	if r.RetryOf != "" && !ValidName(string(r.RetryOf)) {
		errs = append(errs, fmt.Errorf("retry_of %q is not the id of a task", r.RetryOf))
	}
	if len(r.Step) > MaxStepBytes || !utf8.ValidString(r.Step) || strings.IndexByte(r.Step, 0) >= 0 {
		errs = append(errs, fmt.Errorf("step: want UTF-8 text of at most %d bytes", MaxStepBytes))
	}
	if r.Spec == nil && r.Step == "" {
		errs = append(errs, errors.New("neither spec nor step: want code to run, or the words of a plan step"))
	}
	if r.Spec != nil {
		if err := r.Spec.Validate(); err != nil {
			errs = append(errs, err)
		}
		if r.Spec.Kind != RunTask { // its files would be named by digest, whosever they are
			errs = append(errs, fmt.Errorf("kind %q is not for requests", r.Spec.Kind))
		}
	}
	return errors.Join(errs...)
}

// Task is a durable request to run something, with an identity, from outside.
type Task struct {
	ID        TaskID     `json:"id"`
	Key       string     `json:"key,omitempty"`
	Tenant    Tenant     `json:"tenant"`
	Identity  IdentityID `json:"identity"` // who it is for: Principal.Owner
	Role      string     `json:"role,omitempty"`
	Requester Ref        `json:"requester"` // who sent it; with Identity, who may not approve it
	Step      string     `json:"step,omitempty"`
	RetryOf   TaskID     `json:"retry_of,omitempty"`
	State     TaskState  `json:"state"`
	Reason    string     `json:"reason,omitempty"` // why it stands there, in words
	Rules     []Rule     `json:"rules,omitempty"`  // the rules that decided
	Language  Language   `json:"language,omitempty"`
	Digest    Digest     `json:"digest,omitempty"`  // of the spec as admitted; the request's own is RequestDigest
	Clamped   []string   `json:"clamped,omitempty"` // limits that were asked for above the most, and cut
	Approval  ApprovalID `json:"approval,omitempty"`
	Result    *Result    `json:"result,omitempty"` // once it ran; nil for what was never dispatched
	Created   time.Time  `json:"created"`
	Updated   time.Time  `json:"updated"`
	Started   *time.Time `json:"started,omitempty"`
	Finished  *time.Time `json:"finished,omitempty"`

	// RequestDigest is the digest of the request, for idempotency. Owner is the
	// gateway that claimed the run. Neither is anybody else's business.
	RequestDigest Digest `json:"-"`
	Owner         string `json:"-"`
}

// Executed reports whether code of the task may have been executed.
func (t Task) Executed() bool {
	return t.State == TaskRunning || t.State == TaskInterrupted || t.Result != nil && t.Result.Started
}

// TaskFilter narrows a list of tasks. Zero fields do not narrow.
type TaskFilter struct {
	Tenant   Tenant
	Identity IdentityID
	States   []TaskState
	Page     Page
}

// Page asks for one page of a list, newest first.
type Page struct {
	Limit  int    // 1 to MaxPage; 0 means DefaultPage
	Cursor string // Next of the page before; empty means the first
}

const (
	DefaultPage = 50
	MaxPage     = 500
)
