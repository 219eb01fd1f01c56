// Package response is what our HTTP adapters have in common of an answer on its way to a
// client: what is kept of it for the log, how long a client has to take it, the status of a
// kind of error, and what becomes of a panic.
//
// It promises that the three of them answer alike where their contracts say nothing else. It
// refuses to know routes, bodies, and what is logged. Hostile inputs: texts of errors, which
// may quote what a client sent.
package response

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"writ"
)

// WriteTime is what a client has to take each write of an answer: an answer as a whole, a
// stream or a large download, may take its time.
const WriteTime = time.Minute

// Recorder passes an answer on and keeps what a log line needs of it. It is of one request,
// and as safe for concurrent use as what it passes on to.
type Recorder struct {
	http.ResponseWriter
	Control *http.ResponseController

	Status int   // 0 until the header is written
	Bytes  int64 // of the body
}

// Record is a recorder of what is written to w.
func Record(w http.ResponseWriter) Recorder {
	return Recorder{ResponseWriter: w, Control: http.NewResponseController(w)}
}

// Unwrap lets http.ResponseController find the connection.
func (w *Recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader passes on the header of the answer.
func (w *Recorder) WriteHeader(code int) {
	if w.Status == 0 {
		w.Status = code
	}
	w.extend()
	w.ResponseWriter.WriteHeader(code)
}

// Write passes on a part of the body.
func (w *Recorder) Write(b []byte) (int, error) {
	if w.Status == 0 {
		w.Status = http.StatusOK
	}
	w.extend()
	n, err := w.ResponseWriter.Write(b)
	w.Bytes += int64(n)
	return n, err
}

// extend gives the client its time. Not every connection has deadlines.
func (w *Recorder) extend() { _ = w.Control.SetWriteDeadline(time.Now().Add(WriteTime)) }

// Status is the HTTP status of a kind of error. It is the only such table; a contract may
// have another status for a code.
func Status(k writ.Kind) int {
	switch k {
	case writ.Invalid:
		return http.StatusBadRequest
	case writ.Unauthenticated:
		return http.StatusUnauthorized
	case writ.Denied:
		return http.StatusForbidden
	case writ.NotFound:
		return http.StatusNotFound
	case writ.Conflict:
		return http.StatusConflict
	case writ.Exhausted:
		return http.StatusTooManyRequests
	case writ.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// Shorten is s as UTF-8 in at most most bytes (3 or more), cut on a character boundary: the
// text of an error may quote what the client sent.
func Shorten(s string, most int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= most {
		return s
	}
	return string(writ.CutRune([]byte(s[:most-len("…")]))) + "…"
}

// Panic is a panic as an error, which is internal.
type Panic struct {
	Value any
	Stack []byte
}

func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

// Catch, deferred, has a function whose error is *err return a *[Panic] when it panics.
func Catch(err *error) {
	if p := recover(); p != nil {
		*err = &Panic{Value: p, Stack: debug.Stack()}
	}
}
