// Package store keeps what writ must not forget: tasks, approvals, the ledger of
// operations on workspaces, processes and what they last wrote, works and their
// intents, storage and runtime sessions and which files they hold, that there is a folder
// with the bytes of those, what was removed and stands in no event yet, how often callers
// came of late, the bodies of runs and of held patches, keys, operators, the audit log, and the
// jobs that carry all of it over a crash. It is the only package that speaks SQL.
//
// It promises transactions. [DB.Update] makes all of its writes durable or none,
// jobs included; [DB.View] reads one snapshot. SQLite (one machine, one process)
// and PostgreSQL (many) stand behind the same methods with the same outcomes: one
// conformance suite, internal/testkit.Store, runs against both.
//
// It refuses to know what a state means. Compare-and-set is offered
// ([Tx.UpdateTask], [Tx.UpdateApproval], [Tx.FinishOperation], [Tx.UpdateProcess],
// [Tx.UpdateWork], [Tx.UpdateIntent]); which step is right is decided above. It does not know how the Merkle log is computed either:
// it stores records, hashes and a signed head for package audit, whose Tx
// interface [Tx] satisfies.
//
// Stored form. What is searched, compared or sorted by is a column; the rest of a row
// is one JSON document beside it, so that a new field of the vocabulary needs no
// migration and both engines hold the same bytes.
// Documents are TEXT, not JSONB: nothing queries inside them, and what was written
// comes back as it was. Times are milliseconds since 1970. Code, output, patches,
// diffs and the names of a run's files are never in a document but only in bodies, so that
// [Tx.DeleteBodies], [Tx.DeleteUsersBodies], [Tx.DeleteApprovalBodies] and
// [Tx.DeleteProcessOutputs] delete all of them. On SQLite
// their bytes are then overwritten in the file and, as soon as nobody reads, cut off
// its write-ahead log; on PostgreSQL they stay on its disk until its vacuum and its own
// log let go of them. The texts of intents are columns, which stay. Of the files of
// sessions only names, types, sizes and digests are here. What is counted of a caller is
// under a digest of who that is, and alone is not synced when it is written ([DB.Count]).
//
// Invariants. One transaction writes at a time on SQLite; on PostgreSQL rows that a
// writing transaction reads by id are locked until it ends, so that what it decides
// from them still holds when it writes; but not intents, whose work is locked in their
// place. Records and hashes of the log are never changed or deleted: triggers refuse
// it on both engines. A terminal state is never left, and neither a finished operation
// nor a process that ended nor a closed work changes. Of the approvals of one request
// at most one is not terminal, and a key names at most one operation on one root of a
// workspace: unique indexes hold both against writers at one moment. What the sessions of
// a tenant hold together is counted in the transactions that change it. A runtime session
// has one holder, by a name that no other ever has; what is written for it is written by
// who is that holder in the same transaction. A transaction in
// which a statement failed does not commit, even if the function that ran it went on.
//
// Hostile inputs: ids, filters and cursors come from callers as they are. Text
// that cannot be stored (NUL bytes, not UTF-8) is found nowhere and refused when
// written. The database itself is trusted for everything but the audit log, which
// package audit verifies.
package store
