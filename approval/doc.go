// Package approval is the one state machine of a held request: who may decide it,
// what a vote does to it, and what an approver reads before voting.
//
// It promises that a hold moves only along
//
//	pending → granted → queued → resuming → consumed
//
// or from there to denied, expired or cancelled, that terminal states never change,
// and that no grant counts which its requester, its identity, an agent or an
// approver of another tenant gave. One grant is for one run: an approval is
// consumed once. What it covers is bound by a digest (Bind).
//
// Everything here is a function of its arguments. The package knows no store, no
// clock and no policy: callers load an approval, apply one step, and store it back
// in one transaction, with a compare-and-set on the state they loaded. That is what
// makes the first of two decisions win.
//
// Invariant: a step that returns an error has changed nothing.
//
// Hostile input: the votes and their words, and every string of a task and its spec
// that Render shows, all of which an agent may have written to be misread.
package approval
