package codeapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"writ"
	"writ/session"
)

// download is GET and HEAD of /download/{session}/{object}: the bytes of an object, or one
// range of them (spec/03 §11). It is served as the type that it was sent as, so a browser
// is told to keep it as a file and to run nothing of it (IO-09). When the bytes cannot be
// read to their end, or are other ones than were put, there is no answer that looks whole.
func (a *API) download(w http.ResponseWriter, r *http.Request, who writ.Principal) {
	o, err := a.object(r, who, lost(nil))
	if err != nil {
		refuse(w, err)
		return
	}
	from := &content{ctx: r.Context(), sessions: a.svc.Sessions, o: o}
	defer from.drop()
	if from.open(); from.err != nil { // also of what has no bytes, and for who asks for none
		refuse(w, unreadable(from.err))
		return
	}
	h := w.Header()
	h.Set("Content-Type", withCharset(o.Type))
	h.Set("Content-Disposition", session.Disposition(o.Name))
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "private, no-cache") // what was deleted is gone everywhere
	h.Set("ETag", `"`+session.ETag(o)+`"`)
	if o.ReadOnly {
		h.Set("X-Read-Only", "true")
	}
	out := &lateWriter{ResponseWriter: w}
	http.ServeContent(out, oneRange(r, o.Size), "", o.Created, from)
	switch {
	case from.err == nil && out.status >= http.StatusBadRequest: // 412, 416
		clearHeader(h)
		if out.status == http.StatusRequestedRangeNotSatisfiable {
			h.Set("Content-Range", fmt.Sprintf("bytes */%d", o.Size))
		}
		refuse(w, fail(out.status, http.StatusText(out.status)))
	case from.err == nil && !out.begun:
		w.WriteHeader(out.status)
	case from.err != nil && out.begun:
		cutOff(w, from.err)
	case from.err != nil:
		clearHeader(h)
		h.Del("Content-Range")
		refuse(w, unreadable(from.err))
	}
}

var byteRange = regexp.MustCompile(`^bytes=([0-9]*)-([0-9]*)$`)

// oneRange is r, without a Range that is not one of bytes: such a one has no meaning, and
// several would cost more than they are worth. The answer is then all bytes.
func oneRange(r *http.Request, size int64) *http.Request {
	asked := r.Header.Values("Range")
	if len(asked) == 0 {
		return r
	}
	one := r.WithContext(r.Context())
	one.Header = r.Header.Clone()
	one.Header.Del("Range")
	if len(asked) == 1 && size > 0 {
		if text, ok := boundedRange(asked[0]); ok {
			one.Header.Set("Range", text)
		}
	}
	return one
}

// boundedRange is text if that is one range of bytes (RFC 9110 §14.1.2), there or not,
// with numbers that an int64 has: net/http takes none for higher ones, which mean the end.
func boundedRange(text string) (string, bool) {
	m := byteRange.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	first, last := bounded(m[1]), bounded(m[2])
	switch {
	case m[1] == "" && last > 0: // so many at the end
		return fmt.Sprintf("bytes=-%d", last), true
	case m[1] != "" && m[2] == "":
		return fmt.Sprintf("bytes=%d-", first), true
	case m[1] != "" && first <= last:
		return fmt.Sprintf("bytes=%d-%d", first, last), true
	}
	return "", false
}

// bounded is the number of digits, or the highest there is of what is higher; of none 0.
func bounded(digits string) int64 {
	n, _ := strconv.ParseInt(digits, 10, 64)
	return n
}

// clearHeader takes out of h what is of an object, for an answer that is not one.
func clearHeader(h http.Header) {
	for _, name := range []string{"Content-Disposition", "Content-Security-Policy", "X-Read-Only", "Last-Modified", "Accept-Ranges"} {
		h.Del(name)
	}
}

// lateWriter sends nothing before the first byte, so that until then another answer can be
// given. The text of an answer that is an error it drops.
type lateWriter struct {
	http.ResponseWriter
	status int
	begun  bool
}

func (w *lateWriter) WriteHeader(code int) { w.status = code }

func (w *lateWriter) Write(b []byte) (int, error) {
	if w.status >= http.StatusBadRequest {
		return len(b), nil
	}
	if !w.begun {
		w.begun = true
		w.ResponseWriter.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(b)
}

// detailed is an answer of a download that says more.
type detailed struct {
	Error   string `json:"error"`
	Details string `json:"details"`
}

// lost is the answer for an object that is not there, or no more.
func lost(err error) error {
	return &refusal{status: http.StatusNotFound, body: detailed{"File not found", "The file may have expired or does not exist"}, err: err}
}

// unreadable is the answer for an object whose bytes cannot be read.
func unreadable(err error) error {
	if writ.KindOf(err) == writ.NotFound { // removed since it was found
		return lost(err)
	}
	return &refusal{status: http.StatusInternalServerError, body: detailed{"Error downloading file", "The file cannot be read"}, err: err}
}

// withCharset is a content type as the contract serves it: of text it says that it is
// UTF-8, if it says nothing.
func withCharset(t string) string {
	media, params, err := mime.ParseMediaType(t)
	if err != nil || params["charset"] != "" {
		return t
	}
	for _, text := range []string{"text/", "application/json", "application/javascript"} {
		if strings.HasPrefix(media, text) {
			return t + "; charset=utf-8"
		}
	}
	return t
}

// content reads an object from wherever it is asked to. It opens the object anew for each
// place, and only when it is read there.
type content struct {
	ctx      context.Context
	sessions Sessions
	o        writ.Object
	at       int64         // where the next read begins
	r        io.ReadCloser // may be nil
	next     int64         // where r is
	err      error         // why it is not read any further
}

// open has r at at.
func (c *content) open() {
	if c.r != nil && c.next == c.at {
		return
	}
	c.drop()
	c.next = c.at
	c.r, c.err = c.sessions.Open(c.ctx, c.o, c.at, -1)
}

func (c *content) drop() {
	if c.r != nil {
		_ = c.r.Close() // of what was only read
		c.r = nil
	}
}

// Seek is io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.at
	case io.SeekEnd:
		offset += c.o.Size
	}
	if offset < 0 || offset > c.o.Size {
		return 0, fmt.Errorf("seek to %d of %d bytes", offset, c.o.Size)
	}
	c.at = offset
	return offset, nil
}

// Read is io.Reader. The last bytes come only when the end behind them is one: whoever
// counts bytes, and asks for no more, misses nothing that is wrong with them.
func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.at == c.o.Size {
		return 0, io.EOF
	}
	if c.open(); c.err != nil {
		return 0, c.err
	}
	n, err := io.ReadFull(c.r, p[:min(int64(len(p)), c.o.Size-c.at)])
	c.at += int64(n)
	c.next = c.at
	if err == nil && c.at == c.o.Size {
		if _, err = io.ReadFull(c.r, make([]byte, 1)); err == nil {
			err = errors.New("there are more bytes than the object has")
		} else if err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		c.err = fmt.Errorf("read object %s: %w", c.o.ID, err)
		return 0, c.err
	}
	return n, nil
}
