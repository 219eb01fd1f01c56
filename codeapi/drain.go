package codeapi

import (
	"io"
	"net/http"
)

// drainBytes is how much of a body that is of no use is read, before the answer and again
// after it.
const drainBytes = 64 << 20

// drain reads what is left of a body, and reports whether that was all of it. A deadline
// of the connection bounds it, too.
func drain(body io.Reader) (whole bool) {
	_, err := io.CopyN(io.Discard, body, drainBytes)
	return err == io.EOF
}

// refuseEarly answers err to a client that may still be sending: it gets the answer all
// the same, and can use the connection again when there was not too much to come (LC-15).
func refuseEarly(w http.ResponseWriter, r *http.Request, err error) {
	whole := !unsent(r) && drain(r.Body)
	conn := http.NewResponseController(w)
	if !whole {
		w.Header().Set("Connection", "close")
		_ = conn.EnableFullDuplex() // else the answer would wait for some of the rest
	}
	refuse(w, err)
	if !whole && conn.Flush() == nil {
		drain(r.Body) // closed now, the client could lose the answer that is on its way
	}
}

// unsent reports whether the client of r is to have its answer before its body: it waits to
// be told whether to send it (RFC 9110 §10.1.1), or has more to send than is read here.
func unsent(r *http.Request) bool {
	return r.Header.Get("Expect") != "" || r.ContentLength > drainBytes
}
