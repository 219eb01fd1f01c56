// Package remote is the wire between a gateway and a runner in another process:
// a server, a client, and the start of a runner as a child.
//
// It promises that a call means what it means on a runner in the same process,
// with one answer more: when contact is lost after a run or a patch may have begun,
// its outcome is writ.Interrupted, or writ.PatchUnknown, and when a process may have
// been started, or typed at, the error has writ.ErrDispatchUnknown in its chain. No call
// is ever repeated, and none waits for another.
// It refuses to know what a run or a patch is made of; its messages carry the types
// of package writ as they are.
//
// # The wire
//
// gRPC (HTTP/2) on a unix socket. The server accepts connections of one uid only,
// by the socket's peer credentials, and closes any other before it reads a byte. So
// does a client with a server.
// Messages are JSON, content type application/grpc+json, of at most MaxMessage
// bytes. The service is writ.v1.Runner:
//
//	method     request   answer
//	Probe      {}        writ.Enforcement
//	Languages  {}        array of writ.LanguageStatus
//	Run        stream    stream
//
//	FilesRead     {"workspace": writ.Workspace, "path": string,
//	               "offset": bytes, "limit": bytes}              a window
//	FilesFind     {"workspace": …, "query": writ.FileQuery}      writ.FileListing
//	FilesPlan     {"workspace": …, "request": writ.PatchRequest} writ.PatchPlan
//	FilesPatch    {"workspace": …, "operation_id": string,
//	               "request": writ.PatchRequest,
//	               "bound": writ.Digest, or none}                writ.PatchResult
//	FilesRecover  {}                                             array of writ.Settlement
//	FilesForget   {"operation_id": string}                       {}
//
//	ProcessStart       {"order": writ.ProcessOrder}                        {}
//	ProcessInput       {"process_id": string, "data": base64}              {"taken": bytes}
//	ProcessCloseInput  {"process_id": string}                              {}
//	ProcessOutput      {"process_id": string, "query": writ.OutputQuery}   writ.ProcessOutput
//	ProcessStatus      {"process_id": string}                              writ.ProcessStatus
//	ProcessResize      {"process_id": string, "size": writ.TerminalSize}   {}
//	ProcessTerminate   {"process_id": string, "kill": writ.Kill}           {}
//	ProcessList        {}                                                  array of writ.ProcessStatus
//	ProcessExits       {}                                                  stream of writ.ProcessStatus
//
// A window is not JSON alone: it is writ.FileWindow with no content, on one line, then
// the bytes of the content as they are, up to the end of the message.
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
// "writ-answer: 1" says that the runner itself gave it; the trailer "writ-code" is
// writ.Error.Code, if there is one. Such an error means that no code was executed
// and no file changed. A status without writ-answer comes from the transport: it
// says nothing about the run or the patch. Other methods answer errors in the same
// way.
//
// The end of the connection cancels all runs that were begun on it, and patches that
// have not changed a file yet.
//
// # Processes
//
// Start runs "EXE runner --socket PATH ARGS...", which must call Main. The child
// inherits nothing but a pipe as standard input, whose end of file tells it that
// its parent is gone, and as standard error one more, for its log.
//
// Dial reaches a runner that somebody else has started, whose Main has no standard input
// to watch: it serves any number of clients of its uid, one after the other or at once,
// until a signal ends it.
package remote
