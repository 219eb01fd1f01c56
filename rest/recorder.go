package rest

import (
	"net/http"
	"time"

	"writ"
)

// recorder passes an answer on and keeps what the log line needs of it. It gives
// the client writeTime to take each write.
type recorder struct {
	http.ResponseWriter
	control *http.ResponseController

	status int   // 0 until the header is written
	bytes  int64 // of the body
	who    writ.Ref
	made   string // the id of what the request created
	err    error  // of the handler, on its way through the mux
}

// Unwrap lets http.ResponseController find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(code int) {
	if w.status == 0 {
		w.status = code
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	w.ResponseWriter.WriteHeader(code)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTime))
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// headerOnly takes the status and the header of an answer and drops the rest.
type headerOnly struct {
	header http.Header
	status int
}

func (w *headerOnly) Header() http.Header         { return w.header }
func (w *headerOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *headerOnly) WriteHeader(code int)        { w.status = code }
