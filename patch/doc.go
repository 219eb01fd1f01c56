// Package patch reads V4A patches and computes in memory what they do.
//
// A patch is text, written by an agent, that names files and says which to add,
// delete, change or move. [Parse] reads it. [Patch.Apply] computes its result over
// the files that a [Source] supplies and returns one [Change] for each path whose
// net effect is not nothing. Carrying changes out is somebody else's: this package
// opens no file, knows no workspace root, no symlink, no policy and no clock.
//
// # Promises
//
//   - The result depends on the text and on what the source answers, on nothing else.
//   - All or nothing: an error comes with no change.
//   - Later sections see what earlier ones did: several sections may name one file,
//     a path may be deleted and added again, files may swap their places.
//   - Every path in a [Patch] and in a [Change] is relative, clean and beneath the
//     workspace (spec/02 §4).
//   - Bytes that the patch does not change stay as they are: line endings, a byte
//     order mark, the spelling of context lines that matched only loosely, bytes
//     that are not UTF-8. The one exception is the format's: a file that is edited
//     ends in a newline afterwards.
//   - [Reverse] undoes: contents byte for byte, and modes.
//
// # Format
//
// The format and its matcher are those of spec/02 §17. Where that leaves a choice,
// or is known to lose work, this is what happens here:
//
//   - Stacked @@ lines narrow: each is looked for below the one before.
//   - A chunk of + lines alone goes directly below its last @@ line. Without one, or
//     with *** End of File, it goes to the end of the file.
//   - The first match at or below the end of the chunk before wins. Chunks that are
//     not in the order of the file are refused.
//   - The lines of a chunk may start with its @@ line itself, once more.
//   - Context lines are found as §17.5 says and kept as the file has them. Beyond
//     its four passes a fifth compares in Unicode normal form C.
//   - Empty lines at the end of a chunk are context if the file has them there, else
//     they only separate.
//   - A section that renames needs no chunk and then moves the bytes unread. A
//     file that is moved to where it is stays.
//   - A file that is not UTF-8 is edited byte for byte when the lines to add are
//     ASCII, and refused otherwise. U+FFFD in the patch matches a byte of it that is not
//     UTF-8, since that is how it is read. UTF-16 and binary files are refused.
//   - A patch that changes nothing is refused, so that it cannot look like work done.
//
// # Hostile input
//
// The text is hostile, and so are the contents of files. Sizes and the work spent on
// matching are bounded (see the Max constants); nothing here is quadratic in a size
// that somebody else chooses.
package patch
