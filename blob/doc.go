// Package blob keeps bytes in a folder, under the SHA-256 of what they are.
//
// It promises:
//
//   - [Folder.Put] answers once the bytes and their name are on the disk. Until then
//     they have no name: a crash at any moment leaves a blob that is whole or none, and at
//     most a draft, which a sweep removes.
//   - Nothing is held whole in memory, and no more is read or written than the limit that
//     Put was given, and one byte.
//   - [Folder.Open] never ends early in silence: bytes that are missing, and on a read of
//     the whole blob bytes that are other ones, are an error in the place of the end.
//   - [Folder.Sweep] removes what nobody names. A blob that was put after the time it is
//     given stays, so whoever records a digest within that time loses nothing, also when
//     the same bytes had been there before, unused.
//
// It refuses to know whose bytes they are and who may read them: equal bytes are one
// blob, whoever put them, and Put takes as long for bytes that are there as for new ones.
// Sizes, types and names are in the records of whoever puts.
//
// # The folder
//
//	blobs/<64 hexadecimal digits>  the bytes with that digest
//	drafts/<random>                bytes on their way
//
// A draft is written, synced, given the time of now, and renamed to its name, over the
// blob that may be there; then the folder is synced. Both folders and the one around
// them have mode 0700, the files 0600. Only regular files are opened; symbolic links are
// not followed.
//
// Invariants: one process uses a folder at a time. A file in blobs is never written to.
// A digest may be recorded only by who put its bytes, before the sweep's time runs out.
//
// Hostile inputs: the bytes, how many they are and how slowly they come. Digests are
// checked for their form before they are part of a path. The folder itself is private
// and trusted, but for what a failing disk does to it.
package blob
