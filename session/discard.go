package session

import (
	"context"

	"writ"
	"writ/store"
)

// Discard removes a session that p, who names e, may use, with all that is in it, in one
// transaction: it is for what came together and is not to stay. The bytes go as those of
// Delete do.
func (s *Service) Discard(ctx context.Context, p writ.Principal, e Entity, id writ.SessionID) error {
	return s.update(ctx, p, func(tx *store.Tx) error {
		of, err := s.find(ctx, tx, p, e, id)
		if err != nil {
			return err
		}
		return tx.DeleteSession(ctx, of)
	})
}
