// Package codeapi is the code interpreter's HTTP API (spec/03), as LibreChat and its agents
// speak it.
//
// A handler decodes, calls once, and encodes. It decides nothing: the services behind it
// do (api.go), on the principal that authentication made.
//
// It promises:
//
//   - The contract's order (spec/03 §2): the JSON of the body, health, who asks, the route,
//     the rate limit, and nothing at all at other places than /v1. Every answer of a route
//     with a limit carries its headers, and a request that the route refuses counted.
//   - An answer is what the contract says, byte for byte where it says so, and where its
//     reference never answers (no language, no object), a 400. What is not for the client,
//     above all the text of internal errors, does not leave.
//   - Who is not known makes the server keep at most 16 KiB of a body; all larger bodies
//     together, and those of one caller, are bounded.
//   - What one caller may not use and what is not there are one answer.
//   - A form of files is read as it comes, and nothing of a file is held: an upload is kept
//     whole or not at all, a batch file by file, and of what is refused nothing is left, but
//     by a crash, until it expires. A file is its bytes: nothing is unpacked,
//     decoded or looked into, so that no archive can be a bomb here (case IO-08).
//   - A download is the bytes that were put, or ends in a way that no client takes for
//     whole, and no browser runs anything of it. Of a range only the length is checked:
//     what tells other bytes from those that were put is the digest of all.
//   - Who hangs up is not told from who closed its half of the connection: what was under
//     way ends, and is counted as 499. Who only stops sending is answered, and nothing is
//     done with half a request.
//   - One log line per request, with ids and sizes, never with bodies, headers or queries:
//     old clients send keys in bodies.
//   - A browser page of another site reaches nothing where the API needs no credential
//     ([Options].Hosts).
//
// Bodies are read as the contract's own language does: members that are not known are
// ignored, and text that is not Unicode is mended with U+FFFD. A member that is given
// twice is malformed, for two readers would each find another one.
//
// POST /v1/exec/programmatic is not there yet and answers 404 as every unknown path does.
//
// It refuses to know policy, storage, sandboxes, and how credentials are checked.
// Everything that a request holds is hostile: path, query, headers and body, also of one
// who is known.
package codeapi
