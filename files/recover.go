package files

import (
	"context"
	"errors"
	"fmt"

	"writ"
)

// Settled is a transaction that a crash had interrupted, or whose outcome nobody has
// forgotten yet.
type Settled struct {
	ID      string // of the operation
	Root    string // canonical; empty when the transaction had not begun
	Changes []Change
	Outcome Outcome
	// Err is why it could not be settled now: the root is not there, or a disk fails.
	// The outcome is then empty, the journal stays, and the next Recover tries again.
	Err error
}

// Recover brings every transaction that has a journal to its outcome, and says which
// that is, in the order of their ids. It leaves those alone that are under way. The
// journals stay until Forget; until then each Recover answers the same. The oldest of
// what is kept for undoing beyond the bounds is removed.
//
// No command may run in the workspaces meanwhile that the lease would keep out. An
// error is of the folder of the journals, or of ctx.
func (j *Journals) Recover(ctx context.Context) ([]Settled, error) {
	ids, err := j.ids(journalSuffix)
	if err != nil {
		return nil, fmt.Errorf("recover transactions: %w", err)
	}
	var all []Settled
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return all, err
		}
		s, err := j.recover(ctx, id)
		switch {
		case errors.Is(err, errUnderWay):
			continue
		case err != nil:
			s.Err = err
		}
		s.ID = id
		all = append(all, s)
	}
	if err := j.evict(); err != nil {
		return nil, fmt.Errorf("recover transactions: %w", err)
	}
	return all, nil
}

func (j *Journals) recover(ctx context.Context, id string) (Settled, error) {
	journal, text, err := j.lock(id)
	if err != nil {
		return Settled{}, err
	}
	defer journal.close()
	l, err := readLines(id, text)
	if err != nil {
		return Settled{}, err
	}
	if !l.begun {
		return Settled{Outcome: Outcome{Status: RolledBack, Reason: "the server ended before the patch had begun"}}, nil
	}
	journal.head = l.head
	b := l.first
	s := Settled{Root: b.Root, Changes: b.Changes}
	t, err := Open(b.Root, Rules{})
	if err != nil {
		if l.settled != nil {
			s.Outcome = *l.settled
			return s, nil
		}
		return s, err
	}
	t.at = j.at
	x := &transaction{tree: t, root: t.fd, id: id, tx: b.TX, open: map[string]int{}, journal: journal, journals: j, missing: b.Folders, emptied: b.Emptied}
	defer func() {
		x.closeFolders()
		_ = t.Close()
	}()
	for n, c := range s.Changes {
		x.add(n, c)
	}
	s.Outcome, err = x.recover(ctx, l.settled)
	return s, err
}

// recover settles a transaction by its evidence, or by the outcome that it had come
// to, and removes what it has set aside.
func (x *transaction) recover(ctx context.Context, settled *Outcome) (Outcome, error) {
	x.openExisting()
	if settled != nil {
		x.tidy(ctx, settled.Status)
		return *settled, nil
	}
	outcome := Outcome{Status: Applied}
	for _, c := range x.changes {
		if e := c.evidence(ctx); !c.complete(e) {
			outcome = x.undoAll(ctx)
			outcome.Reason = "the server ended in the middle of the patch"
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	if outcome.Status == Applied {
		if err := x.journals.name(x.id); err != nil {
			return Outcome{}, fmt.Errorf("keep what was replaced by %s: %w", x.id, err)
		}
		x.step(StepKeep)
	} else if err := x.journals.drop(x.id); err != nil {
		return Outcome{}, err
	}
	if err := x.syncFolders(); err != nil {
		return Outcome{}, &writ.Error{Kind: writ.Unavailable, Code: CodeOperationFailed, Op: "recover transaction", Msg: "the workspace cannot be written", Err: err}
	}
	if err := x.journal.settle(outcome); err != nil {
		return Outcome{}, err
	}
	x.tidy(ctx, outcome.Status)
	return outcome, nil
}

// tidy removes what a settled transaction has no more use for.
func (x *transaction) tidy(ctx context.Context, status Status) {
	x.clean(ctx, status == Applied)
	switch status {
	case Applied:
		x.removeFolders(x.emptied)
	case RolledBack:
		x.removeFolders(x.made())
	}
}

// openExisting opens the folders that are there. A change whose folder is gone has
// nothing to undo.
func (x *transaction) openExisting() {
	for _, c := range x.changes {
		fd, ok := x.open[c.folder]
		if !ok {
			var err error
			if fd, err = openFolder(x.root, c.folder); err != nil {
				continue
			}
			x.open[c.folder] = fd
		}
		c.dir = fd
	}
}
