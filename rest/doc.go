// Package rest is the HTTP API of the server: tasks, approvals, workspaces, their ledger
// and their inbox, the audit log, keys and operators, for agent runtimes, for people's
// tools and for package client.
//
// A handler decodes, calls once, and encodes. It decides nothing: the services
// behind it (ports.go) do, on the principal that authentication made. The contract
// on the wire is openapi.yaml, which the API serves of itself.
//
// It promises:
//
//   - Strict input. A body is one JSON value of the documented shape: no unknown,
//     repeated or differently spelt member, no null, no trailing data, no bad UTF-8.
//     What is refused is said with its place. Bodies, headers and lists are bounded,
//     and so is what all large bodies together, and those of one caller, take.
//   - One error shape: problem details (RFC 9457) with the kind of writ.Error; but for
//     the inbox, whose errors are those of its own contract (inbox.go). What is not for
//     the client, above all the text of internal errors, does not leave.
//   - One log line per request, with ids and sizes, never with bodies or credentials.
//   - A request over TCP needs a bearer key; over the unix socket the peer's
//     credentials do, unless a bearer key is sent, which then decides alone.
//   - Over TCP only known Host names are answered and no foreign Origin is, on every
//     route, streams included (a browser page cannot reach a local server).
//
// It refuses to know policy, storage and sandboxes. Everything that a request
// holds is hostile: path, query, headers and body, also of one who has a key.
package rest
