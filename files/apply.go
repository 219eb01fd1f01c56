package files

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"writ"
)

// Status is how a transaction ended (spec/02 §5.4).
type Status string

const (
	Applied    Status = "applied"            // every file is what the plan said, by its hash
	RolledBack Status = "failed_rolled_back" // nothing of the patch is left
	Partial    Status = "failed_partial"     // Left names what could not be restored
)

// Outcome is how a transaction ended, for the ledger.
type Outcome struct {
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"` // why it is not Applied, for the caller
	// Left are files that hold neither what they held before nor, because somebody
	// changed them since, what the patch made of them; each with what is to be known.
	Left []string `json:"left,omitempty"`
}

// Step is a point of a transaction. See the package comment.
type Step string

const (
	StepBegin  Step = "begin"
	StepFolder Step = "folder"
	StepStage  Step = "stage"
	StepSync   Step = "sync"
	StepLook   Step = "look"
	StepRename Step = "rename"
	StepVerify Step = "verify"
	StepSettle Step = "settle"
	StepClean  Step = "clean"
	StepUndo   Step = "undo"
	StepKeep   Step = "keep"
	StepEvict  Step = "evict"
	StepForget Step = "forget"
)

// Apply carries a plan of this tree out as one transaction (spec/02 §6, steps 8 to
// 10), under an id that names its journal: the operation's.
//
// An error means that nothing in the workspace changed and no journal is left. It is a
// *writ.Error: VERSION_CONFLICT when a file is no longer what the plan has read, the
// codes of §4 when a path no longer leads where it did, of kind Conflict when the id
// has a journal already. Cancelling ctx ends it with the error of ctx before the first
// file has changed; later it is not asked.
//
// Without an error the outcome is final and in the journal, which the caller must
// Forget once the outcome is recorded. That a disk is full, or that somebody else
// changed a file at the very moment, is an outcome: RolledBack.
func (t *Tree) Apply(ctx context.Context, plan Plan, journals *Journals, id string) (Outcome, error) {
	switch {
	case plan.root != t.root || len(plan.computed) == 0:
		return Outcome{}, &writ.Error{Kind: writ.Invalid, Code: CodeInvalidPatch, Op: "apply patch", Msg: "the plan has no changes, or is of another workspace"}
	case !writ.ValidName(id):
		return Outcome{}, &writ.Error{Kind: writ.Invalid, Op: "apply patch", Msg: fmt.Sprintf("%s is not the id of an operation", quoted(id))}
	case journals.dir == t.root || strings.HasPrefix(journals.dir, strings.TrimSuffix(t.root, "/")+"/"):
		return Outcome{}, fmt.Errorf("apply patch: the journals %s are beneath the workspace %s: configure another folder", journals.dir, t.root)
	}
	for _, c := range plan.Changes {
		if err := t.mayPatch(c.Path); err != nil {
			return Outcome{}, err
		}
	}
	root, done, err := t.use()
	if err != nil {
		return Outcome{}, err
	}
	defer done()
	x := newTransaction(t, root, id, plan)
	x.journals = journals
	defer func() {
		x.closeFolders()
		if x.journal != nil {
			x.journal.close()
		}
	}()
	if err := x.prepare(ctx); err != nil {
		return x.abandon(ctx, err)
	}
	// From here on it goes to its end, whoever waits for it.
	ctx = context.WithoutCancel(ctx)
	if err := x.carryOut(ctx); err != nil {
		return x.rollBack(ctx, err)
	}
	outcome := Outcome{Status: Applied}
	if err := x.journal.settle(outcome); err != nil {
		return x.rollBack(ctx, err)
	}
	x.clean(ctx, true)
	x.removeFolders(x.emptied)
	return outcome, nil
}

// abandon ends a transaction that has not changed a file.
func (x *transaction) abandon(ctx context.Context, cause error) (Outcome, error) {
	x.clean(context.WithoutCancel(ctx), false)
	x.removeFolders(x.made())
	if x.journal == nil {
		return Outcome{}, cause
	}
	e, ours := errors.AsType[*writ.Error](cause)
	if ctx.Err() != nil || ours && e.Code != CodeOperationFailed {
		return Outcome{}, errors.Join(cause, x.journals.remove(x.id))
	}
	outcome := Outcome{Status: RolledBack, Reason: reason(cause)}
	if err := x.journal.settle(outcome); err != nil {
		return Outcome{}, errors.Join(cause, err, x.journals.remove(x.id))
	}
	return outcome, nil
}

// rollBack undoes what was carried out, and settles the transaction.
func (x *transaction) rollBack(ctx context.Context, cause error) (Outcome, error) {
	outcome := x.undoAll(ctx)
	outcome.Reason = reason(cause)
	if err := x.syncFolders(); err != nil && len(outcome.Left) == 0 {
		outcome.Reason += "; it is rolled back, and a crash now may show some of it again: " + err.Error()
	}
	err := x.journals.drop(x.id)
	if err == nil {
		err = x.journal.settle(outcome)
	}
	if err != nil {
		// The journal of an unsettled transaction comes to the same by its evidence,
		// which therefore stays.
		outcome.Reason += "; the journal cannot be written: " + err.Error()
		return outcome, nil
	}
	x.clean(ctx, false)
	x.removeFolders(x.made())
	return outcome, nil
}

func reason(err error) string {
	if e, ok := errors.AsType[*writ.Error](err); ok && e.Msg != "" {
		return e.Msg
	}
	return err.Error()
}

func newTX() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// asideName is a name that a transaction sets aside for its nth change.
func asideName(tx string, n int, kind string) string {
	return fmt.Sprintf(".writ-%s-%d.%s", tx, n, kind)
}

func newTransaction(t *Tree, root int, id string, plan Plan) *transaction {
	x := &transaction{tree: t, root: root, id: id, tx: newTX(), open: map[string]int{}, theirs: map[string]bool{}, emptied: plan.emptied}
	for n, c := range plan.Changes {
		x.add(n, c)
		x.changes[n].content = plan.computed[n]
	}
	return x
}

// beginning is the first line of the journal.
func (x *transaction) beginning() beginning {
	b := beginning{V: journalVersion, ID: x.id, Root: x.tree.root, TX: x.tx, Folders: x.missing, Emptied: x.emptied}
	for _, c := range x.changes {
		b.Changes = append(b.Changes, c.Change)
	}
	return b
}
