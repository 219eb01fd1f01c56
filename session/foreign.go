package session

import (
	"context"
	"errors"

	"writ"
	"writ/store"
)

// foreign is in the chain of a NotFound for what is there and not the caller's. A client
// is not told of it.
type foreign struct{ what string }

func (f *foreign) Error() string { return f.what + " is not the caller's" }

// hidden is missing for what is there: the same answer.
func hidden(op, what string) error {
	return &writ.Error{Kind: writ.NotFound, Op: op, Msg: missingMsg, Err: &foreign{what}}
}

// view is a transaction that reads for p.
func (s *Service) view(ctx context.Context, p writ.Principal, fn func(*store.Tx) error) error {
	return s.report(ctx, p, s.db.View(ctx, fn))
}

// update is a transaction that writes for p.
func (s *Service) update(ctx context.Context, p writ.Principal, fn func(*store.Tx) error) error {
	return s.report(ctx, p, s.db.Update(ctx, fn))
}

// report tells Options.Foreign of what p asked for, when that is why err is. It follows
// the transaction, which may have been tried more than once.
func (s *Service) report(ctx context.Context, p writ.Principal, err error) error {
	if f, ok := errors.AsType[*foreign](err); ok && s.opt.Foreign != nil {
		s.opt.Foreign(ctx, p, f.what)
	}
	return err
}
