package store

import (
	"context"
	"strings"

	"writ"
)

// BlobFolder is the folder of the bytes that objects and runtime sessions name.
type BlobFolder struct {
	Owner   string // a name of this database, which the folder has
	Claimed bool   // there is such a folder
}

// BlobFolder reads it, with owner for its Owner where none is stored yet, and keeps it as
// it is until this transaction ends.
func (tx *Tx) BlobFolder(ctx context.Context, owner string) (BlobFolder, error) {
	if _, err := tx.exec(ctx, "store the owner of files", `INSERT INTO blob_folder (one, owner, claimed) VALUES (1, $1, 0) ON CONFLICT DO NOTHING`, owner); err != nil {
		return BlobFolder{}, err
	}
	return one(ctx, tx, "owner of files", `SELECT owner, claimed FROM blob_folder WHERE one = $1`+tx.locked(), func(row scanner) (f BlobFolder, err error) {
		var claimed int64
		err = row.Scan(&f.Owner, &claimed)
		f.Claimed = claimed != 0
		return f, err
	}, 1)
}

// ClaimBlobFolder stores that there is a folder of that owner.
func (tx *Tx) ClaimBlobFolder(ctx context.Context) error {
	_, err := tx.exec(ctx, "claim the folder of files", `UPDATE blob_folder SET claimed = 1 WHERE claimed = 0`)
	return err
}

// UsedDigests are those of some digests that an object, or a file of a runtime session,
// has. What it costs does not depend on how many have one.
func (tx *Tx) UsedDigests(ctx context.Context, of []writ.Digest) ([]writ.Digest, error) {
	if len(of) == 0 {
		return nil, nil
	}
	query, args := usedDigests(of)
	return all(ctx, tx, "digests that are used", query, func(row scanner) (d writ.Digest, err error) { return d, row.Scan(&d) }, args...)
}

func usedDigests(of []writ.Digest) (query string, args []any) {
	var c conditions
	rows := make([]string, len(of))
	for i, d := range of {
		rows[i] = "(" + c.arg(string(d)) + ")"
	}
	return `SELECT column1 FROM (VALUES ` + strings.Join(rows, ", ") + `) AS asked WHERE EXISTS (SELECT 1 FROM objects WHERE sha256 = column1)
		OR EXISTS (SELECT 1 FROM runtime_files WHERE sha256 = column1)`, c.args
}

// Digests are at most limit of the digests that an object, or a file of a runtime session,
// has, in their order, after one.
func (tx *Tx) Digests(ctx context.Context, after writ.Digest, limit int) ([]writ.Digest, error) {
	return all(ctx, tx, "digests of files", `SELECT sha256 FROM objects WHERE sha256 > $1 UNION
		SELECT sha256 FROM runtime_files WHERE sha256 > $1 ORDER BY 1 LIMIT $2`,
		func(row scanner) (d writ.Digest, err error) { return d, row.Scan(&d) }, string(after), limit)
}
