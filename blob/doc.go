// Package blob keeps bytes in a folder, under the SHA-256 of what they are.
//
// It promises:
//
//   - [Folder.Put] and [Folder.Publish] answer once bytes and names are on the disk. Until then
//     they have no name: a crash at any moment leaves a blob that is whole or none, and at
//     most a draft, which a sweep removes.
//   - Nothing is held whole in memory, and no more is read or written than the limit that
//     Put was given, and one byte.
//   - [Folder.Open] never ends early in silence: bytes that are missing, and on a read of
//     the whole blob bytes that are other ones, are an error in the place of the end.
//   - [Folder.Sweep] removes what nobody names. A blob that was put after the time it is
//     given stays, so whoever records a digest within that time loses nothing, also when
//     the same bytes had been there before, unused. [Folder.Renew] is as good as to put
//     them again.
//
// It refuses to know whose bytes they are and who may read them: equal bytes are one
// blob, whoever put them, and Put takes as long for bytes that are there as for new ones.
// Sizes, types and names are in the records of whoever puts.
//
// # The folder
//
//	blobs/<64 hexadecimal digits>  the bytes with that digest
//	drafts/<random>                bytes on their way
//	owner                          the name of the records that the blobs belong to
//	lock                           empty; who names a blob, or removes one, has it locked
//
// A draft is written, synced, given the time of now, and renamed to its name, over the
// blob that may be there; then the folder is synced. Drafts that are published together are
// synced at one time, and the folder once after them. Both folders and the one around
// them have mode 0700, the files 0600. Only regular files are opened; symbolic links are
// not followed.
//
// Several processes may use a folder at one time, also of several machines that mount it,
// where flock(2) holds between them and each sees the names and times that another sets at
// once. Their clocks must differ by less than half of what a sweep leaves to who records.
//
// Invariants: the blobs of a folder belong to one set of records ([Folder.Own]): what those
// do not name is swept. A file in blobs is never written to.
// A digest may be recorded only by who put or renewed its bytes, before the sweep's time
// runs out.
//
// Hostile inputs: the bytes, how many they are and how slowly they come. Digests are
// checked for their form before they are part of a path. The folder itself is private
// and trusted, but for what a failing disk does to it.
package blob
