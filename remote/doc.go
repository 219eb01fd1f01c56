// Package remote is the wire between a gateway and a runner in another process:
// a server, a client, and the start of a runner as a child.
//
// It promises that a call means what it means on a runner in the same process,
// with one answer more: when contact is lost after a run may have begun, its
// outcome is writ.Interrupted. No call is ever repeated. It refuses to know what a
// run is made of; its messages carry the types of package writ as they are.
//
// # The wire
//
// gRPC (HTTP/2) on a unix socket. The server accepts connections of one uid only,
// by the socket's peer credentials, and closes any other before it reads a byte.
// Messages are JSON, content type application/grpc+json, of at most MaxMessage
// bytes. The service is writ.v1.Runner:
//
//	method     request   answer
//	Probe      {}        writ.Enforcement
//	Languages  {}        array of writ.LanguageStatus
//	Run        stream    stream
//
// Run, from the gateway:
//
//	first   {"run": {"id": string, "digest": writ.Digest, "spec": writ.RunSpec}}
//	later   {"cancel": true}    ends the run as killed; the answer still comes
//
// Run, from the runner:
//
//	first   {"chunk": writ.Chunk}      none or more
//	last    {"result": writ.Result}    exactly one, then status OK
//
// An error in place of the last message has a gRPC status: the code says its kind,
// by the table in errors.go, the message is for the client, and the trailer
// "writ-answer: 1" says that the runner itself gave it. Such an error means that
// no code was executed. A status without that trailer comes from the transport: it
// says nothing about the run.
//
// The end of the connection cancels all runs that were begun on it.
//
// # Processes
//
// Start runs "EXE runner --socket PATH ARGS...", which must call Main. The child
// inherits nothing but a pipe as standard input, whose end of file tells it that
// its parent is gone, and as standard error one more, for its log.
package remote
