package mcp

import (
	"net/http"
	"time"
)

// recorder remembers the status of an answer, and gives the client time for each
// write rather than for all of it.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime)) // not of every connection
	return w.ResponseWriter.Write(b)
}
