// Package remote is the wire between a gateway and a runner in another process:
// a server, a client, and the start of a runner as a child.
//
// It promises that a call means what it means on a runner in the same process,
// with one answer more: when contact is lost after a run or a patch may have begun,
// its outcome is writ.Interrupted, or writ.PatchUnknown, and when a process may have
// been started, or typed at, the error has writ.ErrDispatchUnknown in its chain. No call
// is ever repeated, and none waits for another.
// It refuses to know what a run or a patch is made of; its messages carry the types
// of package writ as they are. The bytes of a run's files pass through in pieces: neither
// end holds more than some of them.
//
// To the gateway the runner is hostile where it says what it wants and gives: it gets no
// bytes but those of the run's spec, and no more room than that grants. To the runner the
// gateway is not, but no fault of its holds up more than its own run.
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
//	first   {"run": {"id": string, "digest": writ.Digest, "spec": writ.RunSpec,
//	                 "opens": bool, "keeps": bool}}
//	later   {"cancel": true}    ends the run as killed; the answer still comes
//	        bytes               of the input that was asked for
//	        {"end": verdict}    the input is over
//	        {"more": true}      takes one message of an output's bytes
//	        {"kept": verdict}   of an output
//
// Run, from the runner:
//
//	first   {"chunk": writ.Chunk}       none or more
//	        {"open": writ.Digest}       asks for an input of the spec
//	        {"more": true}              takes one message of its bytes
//	        {"close": true}             wants no more of it
//	        {"keep": writ.OutputFile}   gives an output, without its digest
//	        bytes                       of the output
//	        {"end": verdict}            the output is over
//	last    {"result": writ.Result}     exactly one, then status OK
//
// Bytes of a file are not JSON: such a message is a zero byte, then 1 to 256 KiB of the
// file as they are. A verdict is {} when all is well, else {"error": {"kind": string,
// "code": string, or none, "message": string}}, as of a writ.Error. Opens and keeps say
// what the exchange has; without them the runner must not ask, or give.
//
// An input is sent after {"open"}, and ended by exactly one {"end"}, which has an error
// when there are no bytes, not as many as the spec says, or no more are wanted. An output
// is exactly as many bytes as its size, or ended with an error; exactly one {"kept"}
// answers it, which may come before the end when it has an error. Of either four messages
// of bytes may be sent, and one more for each {"more"}, none of which comes after {"kept"}.
// The runner sends nothing else before an input has ended, or an output is answered, but
// for what gives them up: a chunk, and the result. Each end can hold what comes and listens
// at any time, so that a cancel, a refusal and what gives a file up get through.
//
// The gateway sends no bytes but those of the spec, and takes no more outputs than
// spec.Collect says (files that are kept, whether symlinks are, the size of each and of all
// together); those that it failed to keep count only against Limits.Files. In the result
// each file is one that was kept, of the digest that the runner says, or an input of the
// spec as it was. Anything else of the runner is nonsense, and the run interrupted. The
// runner takes no more of an input than its size.
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
