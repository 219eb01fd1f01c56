package codeapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"writ"
)

const (
	// smallBody is what is kept of a body before it is known who sends it.
	smallBody = 16 << 10
	// mediumBody is what is kept of a body without a length before it gets room for the
	// largest.
	mediumBody = 1 << 20
	// bodyTime is what a client has to send a body of JSON.
	bodyTime = time.Minute
)

// jsonBody stands in the place of a request's body.
type jsonBody struct {
	io.ReadCloser
	data []byte // one object or array of JSON; nil when there is none
	done func() // gives back the room that data has
}

// readJSON reads the body of r, if it is of JSON: other bodies are the handlers'. What is
// malformed is a 400 and what is too large a 413, whoever sends it; but of a body that is
// not small more is read only for who is known, while there is room.
func (a *API) readJSON(w *recorder, r *http.Request, rt *route) (*jsonBody, error) {
	body := &jsonBody{ReadCloser: r.Body, done: func() {}}
	if ok, err := isJSON(r); !ok || err != nil {
		return body, err
	}
	if r.ContentLength > a.opt.JSONBytes {
		return body, oversize()
	}
	src, err := inflated(r)
	if err != nil {
		return body, err
	}
	data, err := a.readAll(body, src, r, rt)
	if err == nil {
		err = checkJSON(data)
	}
	if err != nil {
		body.done()
		return body, err
	}
	body.data = data
	// The body is read: what follows may take its time.
	_ = w.Control.SetReadDeadline(time.Time{})
	return body, nil
}

// readAll reads src, the body of r, into memory that was taken for it: that of a small
// body, and then, for who sends it, that of its length, or of the next larger one.
func (a *API) readAll(body *jsonBody, src io.Reader, r *http.Request, rt *route) (data []byte, err error) {
	for i, most := range a.sizes(r) {
		if i > 0 { // it has more than data
			body.done()
			if body.done, err = a.makeRoom(r, rt, most); err != nil {
				return nil, err
			}
		}
		// All at once, and not by doubling: it takes the room and no more.
		b := bytes.NewBuffer(append(make([]byte, 0, most+1+bytes.MinRead), data...))
		if _, err := b.ReadFrom(io.LimitReader(src, most+1-int64(b.Len()))); err != nil {
			return nil, unread(err)
		}
		if data = b.Bytes(); int64(len(data)) <= most {
			return data, nil
		}
	}
	return nil, oversize()
}

// sizes are how many bytes of the body of r are kept at first, and then in turn when it
// has more; of the last it may have all.
func (a *API) sizes(r *http.Request) []int64 {
	most := []int64{smallBody, mediumBody, a.opt.JSONBytes}
	if r.ContentLength > 0 && r.Header.Get("Content-Encoding") == "" {
		most = []int64{smallBody, r.ContentLength}
	}
	last := most[len(most)-1]
	for i := range most {
		most[i] = min(most[i], last)
	}
	return slices.Compact(most)
}

// makeRoom takes room of n bytes for who sends r, and answers what gives it back.
func (a *API) makeRoom(r *http.Request, rt *route, n int64) (give func(), err error) {
	give = func() {}
	who, err := a.user(r, rt)
	if err != nil {
		return give, err
	}
	if err := a.room.Take(callerOf(who), n); err != nil {
		return give, &writ.Error{Kind: writ.Unavailable, Op: "read body", Msg: writ.Message(err)} // a 429 is of the limits
	}
	return func() { a.room.Give(callerOf(who), n) }, nil
}

// caller is one user, of those of one name in all tenants.
type caller struct {
	tenant writ.Tenant
	owner  writ.IdentityID
}

func callerOf(who writ.Principal) caller { return caller{who.Tenant, who.Owner()} }

// isJSON reports whether r has a body of JSON.
func isJSON(r *http.Request) (bool, error) {
	if r.ContentLength == 0 {
		return false, nil
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return false, nil
	}
	if c := params["charset"]; c != "" && !strings.EqualFold(c, "utf-8") {
		return false, fail(http.StatusUnsupportedMediaType, fmt.Sprintf("unsupported charset %q", strings.ToUpper(c)))
	}
	return true, nil
}

// inflated is the body of r without its encoding.
func inflated(r *http.Request) (io.Reader, error) {
	switch enc := strings.ToLower(r.Header.Get("Content-Encoding")); enc {
	case "", "identity":
		return r.Body, nil
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, unread(err)
		}
		return z, nil
	default:
		return nil, fail(http.StatusUnsupportedMediaType, fmt.Sprintf("unsupported content encoding %q", enc))
	}
}

// oversize is the refusal of a body that is larger than one may be.
func oversize() error { return fail(http.StatusRequestEntityTooLarge, "request entity too large") }

// unread is the refusal of a body that ended with err.
func unread(err error) error {
	r := &refusal{status: http.StatusBadRequest, body: envelope{Error: "request aborted"}, err: err}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.status, r.body = http.StatusRequestTimeout, envelope{Error: "the body did not come in time"}
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		r.body = envelope{Error: "the body is not of Content-Encoding gzip"}
	}
	return r
}

// lenient takes text that is not Unicode as the contract's own language does, mended.
// Members that are given twice stay refused.
func lenient() json.Options {
	return json.JoinOptions(jsontext.AllowInvalidUTF8(true))
}

// checkJSON refuses what is not one object or array.
func checkJSON(data []byte) error {
	parseError := func(format string, args ...any) error {
		return fail(http.StatusBadRequest, "JSON Parse error: "+fmt.Sprintf(format, args...))
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(data), lenient())
	v, err := dec.ReadValue()
	if err == nil && v.Kind() != jsontext.KindBeginObject && v.Kind() != jsontext.KindBeginArray {
		return parseError("want an object")
	}
	if err == nil {
		if _, err = dec.ReadToken(); err == io.EOF {
			return nil
		}
	}
	var at *jsontext.SyntacticError
	switch {
	case err == nil:
		return parseError("there is more after the value")
	case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF:
		return parseError("Unexpected EOF")
	case !errors.As(err, &at):
		return parseError("not JSON")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return parseError("%s is given twice", at.JSONPointer)
	}
	return parseError("%v, at byte %d", at.Err, at.ByteOffset)
}

// text is a member of which only a string has a meaning. What else it was is kept in kind,
// 0 when it was not there.
type text struct {
	kind  jsontext.Kind
	value string
}

// UnmarshalJSONFrom takes any value.
func (t *text) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	v, err := dec.ReadValue()
	if err != nil {
		return err
	}
	*t = text{kind: v.Kind()}
	if t.kind != jsontext.KindString {
		return nil
	}
	b, _ := jsontext.AppendUnquote(nil, v) // its errors are of what it mends
	t.value = string(b)
	return nil
}

// has reports whether the member is a string.
func (t text) has() bool { return t.kind == jsontext.KindString }

// decode reads the body of r into v, a pointer to a struct of members that take any
// value: what is wrong is said by who looks at them. No body is an empty object.
func decode(r *http.Request, v any) error {
	body, ok := r.Body.(*jsonBody)
	if !ok || body.data == nil {
		return nil
	}
	if body.data[bytes.IndexAny(body.data, "{[")] != '{' {
		return &writ.Error{Kind: writ.Invalid, Op: "read body", Msg: "the body must be a JSON object"}
	}
	if err := json.Unmarshal(body.data, v, lenient()); err != nil {
		return &writ.Error{Kind: writ.Invalid, Op: "read body", Msg: "the body cannot be read", Err: err}
	}
	return nil
}

// userOf is user_id of the body of r, empty when it says none.
func userOf(r *http.Request) string {
	var b struct {
		User text `json:"user_id"`
	}
	if decode(r, &b) != nil {
		return ""
	}
	return b.User.value
}
