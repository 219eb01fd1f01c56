// Package client is the Go client of the HTTP API (package rest, openapi.yaml):
// one method for each operation, in the vocabulary of package writ.
//
// It promises:
//
//   - Errors of the server come back as *writ.Error with the kind that it gave. A
//     server that cannot be reached is one of kind Unavailable. The end of a context
//     comes back as that context's error.
//   - No request is repeated by itself but those of Wait and Watch, which only read.
//   - The key is sent to the server that was named and to nobody else: redirects are
//     not followed.
//   - What a server sends is bounded, except what goes straight to a caller's writer.
//
// It refuses to know policy and storage, and keeps no state. The answers of a
// server are trusted as far as their sender is; text in them may hold what a run
// printed, so who shows it on a terminal must make it safe first.
package client
