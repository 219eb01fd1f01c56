// Package session keeps the files of the code interpreter (spec/03 §4, §7, §10, §11): a
// storage session is what came together, in one upload or out of one run, and holds
// objects, whose bytes are elsewhere ([Blobs]).
//
// It promises:
//
//   - A session is for the user who made it, or for those of its tenant who name the same
//     agent, or the same skill and version: [Entity]. What may be used is told by one
//     digest over tenant and entity, each part with its length before it, so that no
//     colon in a name makes two of them one. A session or an object of others, of another
//     tenant, that is over, and that never was are one and the same NotFound.
//   - An object has bytes: they are on the disk before the row that names them commits
//     ([Service.Put]). A crash between leaves bytes that nobody names, which
//     [Service.Retain] removes.
//   - Nothing is taken away from under a writer: the row must commit within half of
//     [Options.Grace] after its bytes were put, and only bytes that were put longer ago
//     than all of it are swept.
//   - An object never changes, and ends with its session, a fixed time after that was made,
//     whatever uses it meanwhile.
//   - Bounds, of one session and of a tenant's together, that hold against writers at one
//     moment ([Limits]).
//   - Names are kept as they are, or refused ([NameFault]); none that is kept leads out of
//     the folder it is relative to.
//
// It refuses to know how a principal came to be, what runs, and HTTP, but for the words of
// two headers that carry names ([UploadName], [Disposition]).
//
// Invariants: who names a digest in the store has just put its bytes. Rows are deleted
// before their bytes.
//
// Hostile inputs: ids, entities, names, types and bytes come from callers as they are.
package session
