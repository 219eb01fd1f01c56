// Package files is what is beneath the root of one workspace: it reads and finds
// files, says their versions, and carries a patch out as one transaction.
//
// # Promises
//
//   - Nothing outside of the root is read, written or listed, whatever races with a
//     call. Every open is openat2 beneath the root's descriptor and follows no
//     symlink, at no place of the path. Writes go through descriptors of folders
//     that were opened so, never through a path as text.
//   - A version is over bytes that were read: [Tree.Read] gives a window out of the
//     same bytes, and only Read may answer a version that it remembers. Guards of a
//     patch are always hashed anew.
//   - [Tree.Plan] changes nothing, not even a time of modification.
//   - [Tree.Apply] is all or nothing: Applied means that every file was hashed again
//     and is what the plan said, RolledBack that every file is what it was. What
//     cannot be restored is Partial and names the files; it is never called less.
//     Nobody's concurrent edit is lost: what a rename displaces is looked at, and put
//     back when it is not what the plan had read. (A file system without exchange
//     leaves an instant between the look and the rename.)
//   - After a crash at any point [Journals.Recover] comes to the same three answers.
//   - [Tree.PlanUndo] takes back what an applied plan did, byte for byte and with modes,
//     or names every file that moved on. What it needs is on the disk before Apply answers
//     Applied, and is bounded by [Keep].
//   - Memory is bounded by the limits below, not by what is in the workspace.
//
// It refuses to know who asks, and whether a person agreed: the gateway has decided.
// It takes from policy only its [Rules], as data. It does not watch, and keeps no
// ledger: of a transaction that is over it keeps the outcome until the caller says
// that it has it, and what it replaced until enough later ones came.
//
// # Hostile input
//
// Paths, globs and patches come from an agent. Everything beneath the root may be
// changed at any moment by a command that is hostile too: names, links, files that
// grow, pipes, names that are not UTF-8. The folder of the journals is not: it is
// private to this process and must not be beneath the root.
//
// Hard links are what they are: a name of a file. One that leads to a file which the
// rules deny under another name of this workspace is refused. A link made outside of
// any sandbox to a file outside of the workspace cannot be told from a file.
//
// # A transaction
//
// For each change at dir/name three names beside it are set aside:
// dir/.writ-TX-N.part, .new and .old, where TX is 32 random hexadecimal digits and N
// the number of the change, from 0. [Tree.Find] does not list such names and no patch
// may write them. The steps, in order (each is a [Step], at which tests kill the
// process):
//
//	begin    the journal is written, before anything in the workspace is
//	folder   a missing folder is made, for each
//	keep     what will be replaced is written beside the journal, as a draft
//	stage    the new content is written to .part, with its mode and owner, and renamed
//	         to .new when it is whole, for each
//	sync     journal, draft and staged files are on the disk: nothing has changed so far
//	look     every file is read again and is what the plan has read
//	rename   one change becomes visible, for each:
//	           add     link .new to name, which fails when something is there
//	           update  exchange .new and name: .new then is the file as it was
//	           delete  rename name to .old
//	verify   every path is opened anew from the root and hashed
//	keep     the draft gets its name
//	settle   the folders are on the disk, then the outcome is in the journal
//	clean    .new and .old are removed, and folders that an undoing leaves empty
//
// A file system without exchange gets for an update: link name to .old, rename .new
// to name. What fails before "rename" leaves nothing behind. What fails later is
// undone in reverse order (step "undo", for each change), by the file that the rename
// set aside; then the draft is removed, and settle and clean follow. What is set aside and is neither ours nor
// the same as what is there again is somebody's only copy: it stays, and is named.
//
// # The journal
//
// One file for each transaction, ID.journal, mode 0600, in a folder of mode 0700. It
// holds lines of JSON; a line without its newline was not written. The first:
//
//	{"v":1,"id":"op-…","root":"/srv/ws","tx":"0f…","folders":["new","new/dir"],
//	 "changes":[{"path":"a.txt","kind":"update","before_version":"sha256:…",
//	             "after_version":"sha256:…","before_mode":420,"after_mode":420}]}
//
// where root is canonical, folders are those that are missing, and changes are the
// plan's (see [Change]); "emptied" has the folders to remove once an undoing is applied,
// if nothing is in them. It holds no content. The second line is the [Outcome]:
//
//	{"status":"failed_rolled_back","reason":"…"}
//
// Recovery asks of each change whether its rename happened. The proof is what was
// set aside: .new that holds the file's former state, .old, or for an added file .new
// as a second name of it. If every path is as it shall be, the transaction is Applied.
// Else every change with a proof is undone, and nothing without one; a file that
// somebody changed since is left to them and named. Then the outcome is written down
// and what was set aside is removed. The journal stays until [Journals.Forget].
//
// # What is kept for undoing
//
// One file for each applied transaction, ID.undo, mode 0600, beside the journals. It is
// a line of JSON, as the first one of the journal, but that folders are those which the
// transaction made, and with "sizes", which has for each change the bytes of the file
// that was there; then these files, one after the other, in the order of the changes.
// Where a change had no file before, the size is 0. A record in which a file does not
// have the version that the line says is not used.
//
// Until its transaction is known to be applied its name is ID.undo.part. It is whole on
// the disk under its own name before the journal says applied, and that name is gone
// before the journal says anything else. So a draft without a journal is nobody's, and a
// record without one is of an applied transaction. [Journals.Forget] (steps "evict", for each
// record, and "forget") and [Journals.Recover] remove the oldest ones beyond the bounds,
// by their time of modification, which is set so that it always grows.
package files
