// Package session keeps the files of the code interpreter (spec/03 §4, §7, §8, §10 to §12):
// a storage session is what came together, in one upload or out of one run, and holds
// objects, whose bytes are elsewhere ([Blobs]); a runtime session is what a run left in its
// folder for the next ([Runtimes]).
//
// It promises:
//
//   - A session is for the user who made it, or for those of its tenant who name the same
//     agent, or the same skill and version: [Entity]. What may be used is told by one
//     digest over tenant and entity, each part with its length before it, so that no
//     colon in a name makes two of them one. A session or an object of others, of another
//     tenant, that is over, and that never was are one and the same NotFound, after the
//     same reads; the operator is told of the foreign ones ([Options].Foreign).
//   - An object has bytes: they are on the disk before the row that names them commits
//     ([Service.Put], [Service.Adopt]). A crash between leaves bytes that nobody names, which
//     [Service.Retain] removes.
//   - Nothing is taken away from under a writer: the row must commit within half of
//     [Options].Grace after its bytes were put or renewed, and only bytes of which both
//     were longer ago than all of it are swept.
//   - An object never changes, and ends with its session, a fixed time after that was made,
//     whatever uses it meanwhile.
//   - Bounds, of one session and of a tenant's together, that hold against writers at one
//     moment ([Limits]).
//   - A runtime session is for one user and one hint, and one run has it at a time, of all
//     gateways and over crashes. Its checkpoint is replaced whole or not at all, and only
//     by the run that has it.
//   - What is over is removed, with what users ran and how often they came, and how much
//     that was is recorded ([Service.Retain]); an operator sees sessions and removes one
//     ([Service.Sessions], [Service.Contents], [Service.Remove]).
//   - Bytes and records belong together: [Bind] lets no store use the folder of another, nor
//     two folders.
//   - Names are kept as they are, or refused ([NameFault]); none that is kept leads out of
//     the folder it is relative to.
//
// It refuses to know how a principal came to be, what runs, and HTTP, but for what the
// contract has of an object in it: two headers that carry its name ([UploadName],
// [Disposition]), its tag ([ETag]), and the JSON that tells of it ([Listing], [MetadataOf]).
//
// Invariants: who names a digest in the store has just put or renewed its bytes, or deletes
// in the same transaction a row that names it. Rows are deleted before their bytes.
//
// Hostile inputs: ids, entities, names, types and bytes come from callers as they are.
package session
