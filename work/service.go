package work

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"writ"
	"writ/audit"
	"writ/store"
)

// Workspaces are what agents may see and read.
type Workspaces interface {
	// Workspace is a workspace that who may see, or WORKSPACE_NOT_FOUND.
	Workspace(who writ.Principal, id writ.WorkspaceID) (writ.Workspace, error)
	// Readable is Workspace for who may read in it, too, or UNAUTHORIZED. A refusal is
	// recorded; what names what was asked for.
	Readable(ctx context.Context, who writ.Principal, id writ.WorkspaceID, what string) (writ.Workspace, error)
}

// Stopper ends processes.
type Stopper interface {
	// StopWorkspace ends every process that runs in the workspace id at root, and says
	// how many there were.
	StopWorkspace(ctx context.Context, who writ.Principal, id writ.WorkspaceID, root string) (killed int, err error)
}

// The codes of spec/02 §5.14 that this package gives.
const (
	codeUnauthorized     = "UNAUTHORIZED"
	codeQueueFull        = "RESOURCE_QUEUE_FULL"
	codeWorkNotFound     = "WORK_NOT_FOUND"
	codeWorkClosed       = "WORK_CLOSED"
	codeIntentNotFound   = "INTENT_NOT_FOUND"
	codeAlreadyClaimed   = "INTENT_ALREADY_CLAIMED"
	codeNotEditable      = "INTENT_NOT_EDITABLE"
	codeRevisionConflict = "INTENT_REVISION_CONFLICT"
)

// Service keeps works and their queues. It is safe for concurrent use.
type Service struct {
	db         *store.DB
	log        *audit.Log
	workspaces Workspaces
	stopper    Stopper
}

// New is the works in db, recorded in log.
func New(db *store.DB, log *audit.Log, workspaces Workspaces, stopper Stopper) *Service {
	return &Service{db: db, log: log, workspaces: workspaces, stopper: stopper}
}

// With is the same for agents that may see other workspaces.
func (s *Service) With(workspaces Workspaces) *Service {
	t := *s
	t.workspaces = workspaces
	return &t
}

// errMoved says that something changed between reading and writing: try again.
var errMoved = errors.New("it was changed meanwhile")

const maxTries = 8

// update runs fn as store.DB.Update does, and again while it answers errMoved.
func (s *Service) update(ctx context.Context, fn func(*store.Tx) error) error {
	for range maxTries {
		if err := s.db.Update(ctx, fn); !errors.Is(err, errMoved) {
			return err
		}
	}
	return &writ.Error{Kind: writ.Unavailable, Op: "change works", Msg: "too many others change the same work: try again", Err: errMoved}
}

// bump stores w, which was read in this transaction, with one more revision.
func bump(ctx context.Context, tx *store.Tx, w *writ.Work) error {
	from := w.Revision
	w.Revision++
	ok, err := tx.UpdateWork(ctx, *w, from)
	if err == nil && !ok {
		err = errMoved
	}
	return err
}

// replace stores i in place of was, as it was read in this transaction.
func replace(ctx context.Context, tx *store.Tx, i, was writ.Intent) error {
	ok, err := tx.UpdateIntent(ctx, i, was)
	if err == nil && !ok {
		err = errMoved
	}
	return err
}

// record appends an event of w, and of i when it is not nil.
func (s *Service) record(ctx context.Context, tx *store.Tx, typ writ.EventType, by writ.Ref, w writ.Work, i *writ.Intent, d writ.EventData) error {
	d.Work, d.Workspace, d.WorkState = w.ID, w.Workspace, w.State
	if i != nil {
		d.Work, d.Intent, d.IntentState = cmp.Or(i.Work, w.ID), i.ID, i.State
		d.Text, d.TextBytes = writ.DigestOf([]byte(i.Body)), int64(len(i.Body))
	}
	_, err := s.log.Append(ctx, tx, writ.Event{Type: typ, Tenant: w.Tenant, Actor: by, Data: d})
	return err
}

func noWork(id writ.WorkID) error {
	return &writ.Error{Kind: writ.NotFound, Code: codeWorkNotFound, Op: "find work",
		Msg: fmt.Sprintf("there is no work %.80q in a workspace of yours", string(id))}
}

func noIntent(id writ.IntentID) error {
	return &writ.Error{Kind: writ.NotFound, Code: codeIntentNotFound, Op: "find intent",
		Msg: fmt.Sprintf("there is no intent %.80q here", string(id))}
}

func closed(w writ.Work) error {
	return &writ.Error{Kind: writ.Conflict, Code: codeWorkClosed, Op: "change work", Msg: fmt.Sprintf("work %s is closed: open another", w.ID)}
}
