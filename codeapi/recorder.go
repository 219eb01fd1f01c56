package codeapi

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"writ"
	"writ/response"
)

// recorder keeps what the log line needs of an answer.
type recorder struct {
	response.Recorder
	route string // empty where there is none
	who   writ.Ref
	err   error        // that was answered, or that cut the answer off
	cut   bool         // the answer was begun and is not whole
	known []string     // tags of answers that the client has already, of a GET or HEAD
	ended func() error // why the request's context ended, nil before
	body  tap          // of the request
}

// clientGone is the status of what failed because its client hung up, as proxies have it in
// their logs: it is no fault of ours. A client reads it that has closed its own half of the
// connection alone, which cannot be told from one that is gone.
const clientGone = 499

// record is a recorder of the answer to r. From here on it sees how reading r's body ends.
func record(w http.ResponseWriter, r *http.Request) *recorder {
	rec := &recorder{Recorder: response.Record(w), known: knownTags(r), ended: r.Context().Err, body: tap{r: r.Body}}
	r.Body = struct {
		io.Reader
		io.Closer
	}{&rec.body, r.Body}
	return rec
}

// gone reports whether the client hung up. The context does not tell alone: net/http ends it
// also when the body does not come in time, and that client waits.
func (w *recorder) gone() bool {
	return w.ended() != nil && !errors.Is(w.body.err, os.ErrDeadlineExceeded)
}

// note has the log line tell err, whatever is answered.
func note(w http.ResponseWriter, err error) {
	if rec, ok := w.(*recorder); ok {
		rec.err = err
	}
}

// knownTags are those of If-None-Match, weak and strong ones alike.
func knownTags(r *http.Request) (tags []string) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	for tag := range strings.SplitSeq(strings.Join(r.Header.Values("If-None-Match"), ","), ",") {
		tags = append(tags, strings.TrimPrefix(strings.TrimSpace(tag), "W/"))
	}
	return tags
}

// has reports whether the client has the answer of a weak tag already.
func (w *recorder) has(tag string) bool {
	return slices.Contains(w.known, "*") || slices.Contains(w.known, strings.TrimPrefix(tag, "W/"))
}
