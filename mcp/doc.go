// Package mcp offers workspace tools to agents over the Model Context Protocol
// (spec/02 §2): on two streams ([Server.Stdio]) and over HTTP ([Server.HTTP]).
//
// A tool decodes, calls once, and encodes. It decides nothing: the service behind
// it (ports.go) does, for the principal that authentication made. What the protocol
// itself is, the official Go SDK knows.
//
// It promises:
//
//   - The contract's tools with its names, arguments, results and error bodies. What
//     a client is shown of them is pinned by testdata/*.golden. A tool that does not
//     work yet is not listed.
//   - One meaning for each message. Before anything else looks at a message, a guard
//     (guard.go) refuses one in which a name stands twice, or in another case than
//     the name that counts, also by the letters that Unicode folds to ASCII: JSON
//     decoders differ in which of them wins.
//   - Both eras of the protocol on one URL and on one pipe: 2026-07-28, where every
//     request stands alone, and 2025-03-26 to 2025-11-25, which have sessions. JSON-RPC
//     batches are refused in all of them.
//   - Bounds. A message has at most MaxMessageBytes; a longer one is answered with an
//     error and skipped. A result has at most MaxResultBytes, its text and its
//     structured form together; what does not fit is cut, said to be, and can be
//     fetched. No call takes longer than 50 seconds, also none that waits for a person.
//   - Over HTTP, only known hosts are answered and no foreign origin is, each checked
//     by itself on every request before its body is read; every call needs a bearer
//     key. A session belongs to the principal that opened it, and does not exist for
//     another. Nothing is replayed: streams have no event ids.
//   - Nothing but messages is written to the output of Stdio.
//   - What a tool answers is encoded once (encode.go), and not by the SDK, which goes over
//     it again and again: its text is its structured form, escaped.
//
// A call that is held comes to whoever may lift the hold (hold.go): a client of
// 2026-07-28 that can ask its user gets input_required, an older one that can ask gets
// a form, every other gets APPROVAL_REQUIRED with the id at once. Only where the
// service says that the requester may lift the hold is it asked at all.
//
// A process (commands.go and beside it) is the service's: a call starts it, reads it or
// writes to it, and no end of a call or of a connection ends it. Its output is text in
// results; a character is not cut where its rest is still to come.
//
// Instructions of a user for the agent (works.go) come only when the agent claims them.
// The results of other tools say how many wait, as counts, and never what they are.
//
// It refuses to know policy, files, storage and who may do what. Everything that a
// message holds is hostile, also of one who has a key; so is what a client sends back
// of what it was given (the sealed state of a request).
package mcp
