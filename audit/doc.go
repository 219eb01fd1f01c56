// Package audit is the log of what happened: an append-only Merkle log of
// writ.Event.
//
// # What it is
//
// Record n is the JSON of event n, one line, exactly as it was appended. Its leaf
// hash is tlog.RecordHash of those bytes, and hashes of completed subtrees are
// stored at the indexes of tlog.StoredHashIndex, so that the log is a Merkle tree
// of RFC 6962. A checkpoint is three lines in a signed note
// (golang.org/x/mod/sumdb/note): the log's origin, its size, and its root hash in
// base64. It is the checkpoint format of transparency logs.
//
// # What it promises
//
// Append writes in the caller's transaction and replaces the signed head in it: an
// event and the state change it describes are durable together or not at all, and
// nothing is ever behind the head. Verify recomputes the tree from the stored
// records alone, in one pass and flat memory, and names the first event that was
// changed, dropped, reordered, cut off or added. An event's Seq is its place in
// the log whatever the clock did between two events: Time may go back.
//
// # What it cannot promise
//
// Whoever can write the store can cut off its tail and put an earlier signed head
// back. Such a log is consistent in itself, and only a checkpoint that was kept
// elsewhere shows the cut: give Verify every checkpoint there is. Whoever has the
// private key can write another log altogether, and only such a checkpoint shows
// that too. When somebody has changed a record and recomputed all hashes above it,
// the root shows that the log was changed but not where: the place is then known
// only as well as the checkpoints that still fit let it be known. There is no
// replacing of the key: a head that another key signed is not extended.
//
// # What it refuses to know
//
// What events mean, who may read them, and how they are stored (Tx and Source,
// which store implements). It reads no clock but for an event without a time.
//
// # Hostile input
//
// Everything read back from the store in Verify, proofs and checkpoints that come
// from outside, and every string in an event, which may hold anything that an agent
// can send.
package audit
