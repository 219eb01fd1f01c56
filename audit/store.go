package audit

import (
	"context"

	"writ"
)

// Source is what reading the log needs of a store. All calls of one verification or
// proof are made within one snapshot, so that they agree with each other.
type Source interface {
	// LogHead is the number of records in the log and the signed note over them; 0
	// and "" for a log that nothing was ever appended to, NotFound when the place
	// where it is kept is gone. In a transaction that may write it locks the log until
	// that transaction ends, so that two appends never take the same sequence number.
	LogHead(ctx context.Context) (size int64, note string, err error)

	// LogHashes returns the stored hashes at the given indexes, in the order asked.
	// Indexes are those of tlog.StoredHashIndex; they are neither always sorted nor
	// always consecutive. It is a *writ.Error of kind NotFound when one is missing.
	LogHashes(ctx context.Context, indexes []int64) ([][32]byte, error)

	// Records returns at most limit records with Seq > after, in ascending Seq. Fewer
	// than limit, also none, means that the log has no more. What is stored is
	// returned as it is, whatever the head says: a gap is for the caller to see.
	Records(ctx context.Context, after int64, limit int) ([]writ.Record, error)
}

// Tx is one writing transaction of the store, as the log needs it.
type Tx interface {
	Source

	// AppendLog adds records, whose Seq are consecutive from the head's size on, adds
	// hashes at the consecutive stored hash indexes from at on, and replaces the head
	// by size and note. All of it is durable with the transaction or not at all. A
	// record or a hash that is already there is an error. Nothing is kept of the
	// arguments' memory.
	AppendLog(ctx context.Context, records []writ.Record, at int64, hashes [][32]byte, size int64, note string) error
}
