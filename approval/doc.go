// Package approval is the one state machine of a held request: who may decide it,
// what a vote does to it, and what an approver reads before voting. What is held is a
// run, or the call of a tool: a patch of a workspace, a command to be started in it, or
// an input for a process that runs there.
//
// It promises that a hold moves only along
//
//	pending → granted → queued → resuming → consumed
//
// or from there to denied, expired or cancelled, that terminal states never change,
// and that one grant is for one run or one call: an approval is consumed once. What
// it covers is bound by a digest (Bind, BindPatch, BindCommand, BindInput).
//
// A run goes on by itself: it is queued in the step that grants it, and consumed as it
// starts. It expires only while it is pending. A call waits for whoever asked to resume
// it (spec/02 §9): granted until then, and expired when nobody does in time; queued while
// it waits for its workspace; resuming once its intent is recorded; consumed with its
// outcome, not before. A command that was interrupted while it was resuming is not started
// again: nothing here leads back.
//
// No grant counts which its requester, its identity, an agent or an approver of another
// tenant gave. The exception is a call that only waits for confirmation
// (writ.ApprovalsConfirm): its requester may lift that pause, and need not have read
// the text here. It gains nothing by it that policy does not allow anyway.
//
// Everything here is a function of its arguments. The package knows no store, no
// clock and no policy, and no shell: callers load an approval, apply one step, and store it
// back in one transaction, with a compare-and-set on the state they loaded. That is what
// makes the first of two decisions win.
//
// Invariant: a step that returns an error has changed nothing.
//
// Hostile input: the votes and their words, and every string of a task, its spec, a
// patch, its paths and its diff, an argv and what is read out of it, and every byte of an
// input that the renderings show, all of which an agent may have written to be misread.
// Which lines of a diff are about files, and which are of them, is taken from the counts in
// its hunks, which the runner made; a diff that does not keep to them is said to be damaged.
package approval
