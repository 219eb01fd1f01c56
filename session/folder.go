package session

import (
	"context"
	"crypto/rand"
	"fmt"

	"writ"
	"writ/store"
)

// Folder is where bytes are, which belong to one store.
type Folder interface {
	// Path names it to people.
	Path() string
	// Owner is the name of the store that it belongs to, empty when it belongs to none.
	Owner() (string, error)
	// Own gives it to a store, for good and durably. It is an error when it has another one.
	Own(owner string) error
}

// Bind makes folder the one of db, or finds that it is, before anything is read of it or
// put in it. Gateways that share a store must share the folder as well: else each would
// miss the files of the others; and no folder may be of two stores, each of which would
// sweep what the other names. Unavailable is a folder that is not db's, and says what to do.
func Bind(ctx context.Context, db *store.DB, folder Folder) error {
	const op = "open the folder of files"
	// First alone: after a crash the folder may have the name, and the store must know it.
	var is store.BlobFolder
	read := func(tx *store.Tx) (err error) { is, err = tx.BlobFolder(ctx, "files-"+rand.Text()); return err }
	if err := db.Update(ctx, read); err != nil {
		return fmt.Errorf("%s: %w", op, err)
	}
	return db.Update(ctx, func(tx *store.Tx) error {
		if err := read(tx); err != nil { // and nobody else claims one until this ends
			return err
		}
		owner, err := folder.Owner()
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", op, err)
		case owner != "" && owner != is.Owner:
			return &writ.Error{Op: op, Kind: writ.Unavailable, Msg: fmt.Sprintf(
				"%s has the files of another database, which this one would remove: name another folder under interpreter.blobs, or the database that it is of under database (where that database is gone for good: move the folder away)", folder.Path())}
		case owner == "" && is.Claimed:
			return &writ.Error{Op: op, Kind: writ.Unavailable, Msg: fmt.Sprintf(
				"%s is not the folder with the files of this database: servers that share a database share that folder too; mount it there, or name it under interpreter.blobs (where its files are lost for good: echo %s > '%s/owner')",
				folder.Path(), is.Owner, folder.Path())}
		case owner == "":
			if err := folder.Own(is.Owner); err != nil {
				return fmt.Errorf("%s: %w", op, err)
			}
		}
		if is.Claimed {
			return nil
		}
		return tx.ClaimBlobFolder(ctx)
	})
}
