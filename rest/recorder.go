package rest

import (
	"net/http"

	"writ"
	"writ/response"
)

// recorder keeps what the log line needs of an answer.
type recorder struct {
	response.Recorder
	who  writ.Ref
	made string // the id of what the request created
	err  error  // of the handler, on its way through the mux
}

// headerOnly takes the status and the header of an answer and drops the rest.
type headerOnly struct {
	header http.Header
	status int
}

func (w *headerOnly) Header() http.Header         { return w.header }
func (w *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *headerOnly) WriteHeader(code int)        { w.status = code }
