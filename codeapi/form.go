package codeapi

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"

	"writ"
	"writ/session"
)

const (
	maxFieldBytes = 4 << 10 // of a field that says something
	maxFields     = 64      // of one form
	maxPace       = 20      // times what a file has to come in, for a whole form
)

// form reads the form of an upload while it comes: nothing of a file is held. A file has
// the fields that came before it (spec/03 §10.1); what its part's own header calls it is
// kept with its folders. It is not safe for concurrent use.
type form struct {
	body   *tap
	parts  *multipart.Reader
	fields map[string]string // those that say something
	twice  string            // the first of them that came again
	seen   int               // fields, also those that say nothing

	conn   *http.ResponseController
	within time.Duration // in which a file must come
	end    time.Time     // of the time for all of them
}

// filePart is a file of a form. Its bytes are to be read before the next part is.
type filePart struct {
	name     string // as it was sent
	media    string // its type, as it was sent
	readOnly bool
	of       session.Entity
	fault    error // Invalid: why it cannot be kept
	body     *tap
	form     *form
}

// openForm begins with the form of r. Its first file must have come within a time, and each
// of the others, once it is asked for (pace).
func openForm(w http.ResponseWriter, r *http.Request, within time.Duration) (*form, error) {
	media, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if media != "multipart/form-data" {
		return nil, fail(http.StatusBadRequest, "Invalid content type. Must be multipart/form-data.")
	}
	if params["boundary"] == "" {
		return nil, formFault(http.StatusInternalServerError, "An unexpected error occurred", errors.New("the form has no boundary"))
	}
	f := &form{
		body: &tap{r: r.Body}, fields: map[string]string{},
		conn: http.NewResponseController(w), within: within, end: time.Now().Add(maxPace * within),
	}
	if err := f.pace(); err != nil {
		return nil, err
	}
	// A reader of forms takes the end of the body for that of the form when it is behind a
	// boundary. Here it is no end; what closes the form may lack its line break.
	endless := io.MultiReader(f.body, strings.NewReader("\r\n"), noEnd{})
	f.parts = multipart.NewReader(endless, params["boundary"])
	return f, nil
}

// pace gives the file that comes next its own time: of many, each is there in good time
// where all together are not. At the end of the body net/http takes the deadline away, and
// what is done with the form then may take longer: it gets no other.
func (f *form) pace() error {
	if f.body.ended {
		return nil
	}
	next := time.Now().Add(f.within)
	if next.After(f.end) {
		next = f.end
	}
	return f.conn.SetReadDeadline(next)
}

// next is the next file, and io.EOF after the last one of a form that is whole.
func (f *form) next() (*filePart, error) {
	for {
		p, err := f.parts.NextRawPart() // raw: a file's bytes are kept as they were sent
		if err == io.EOF {
			return nil, io.EOF
		}
		if err != nil {
			return nil, f.broken(err)
		}
		disposition := p.Header.Get("Content-Disposition")
		name, ok := session.UploadName(disposition)
		if ok {
			return f.file(p, name, nil), nil
		}
		if strings.Contains(strings.ToLower(disposition), "filename") {
			return f.file(p, "", badForm("a file's Content-Disposition cannot be read")), nil
		}
		if err := f.field(p); err != nil {
			return nil, err
		}
	}
}

// file is the file of a part, with what the fields so far say of it.
func (f *form) file(p *multipart.Part, name string, fault error) *filePart {
	file := &filePart{
		name: name, media: p.Header.Get("Content-Type"), fault: fault,
		readOnly: strings.EqualFold(f.fields["read_only"], "true"), body: &tap{r: p}, form: f,
	}
	if fault == nil && f.twice != "" {
		file.fault = badForm("%s must not be sent twice", f.twice)
	} else if fault == nil {
		file.of, file.fault = session.ParseEntity(f.fields["kind"], f.fields["id"], f.fields["version"])
	}
	return file
}

// field keeps a field that says something. Others are dropped by the part after them.
func (f *form) field(p *multipart.Part) error {
	if f.seen++; f.seen > maxFields {
		return badForm("the form has more than %d fields", maxFields)
	}
	name := p.FormName()
	switch name {
	case "kind", "id", "version", "read_only":
	default:
		return nil
	}
	value, err := io.ReadAll(io.LimitReader(p, maxFieldBytes+1))
	if err != nil {
		return f.broken(err)
	}
	if len(value) > maxFieldBytes {
		return badForm("%s has more than %d bytes", name, maxFieldBytes)
	}
	// Of two values neither is what the sender meant for sure. The first one also stays the
	// entity of all files that follow, so that a form has one session.
	if _, again := f.fields[name]; again {
		f.twice = name
		return nil
	}
	f.fields[name] = string(value)
	return nil
}

// formFault is a form that has no other answer than a status and words of spec/03 §10.
func formFault(status int, text string, err error) error {
	return &refusal{status: status, body: envelope{Error: text}, err: err, sender: true}
}

// broken is the answer to a form of which err was read. The contract has 500 for one that
// breaks off, but who sends it is at fault.
func (f *form) broken(err error) error {
	if errors.Is(f.body.err, os.ErrDeadlineExceeded) { // which a reader of headers does not tell
		return formFault(http.StatusGatewayTimeout, "Upload timeout", f.body.err)
	}
	return formFault(http.StatusBadRequest, "Error processing upload", err)
}

// unread is why the bytes of a file are not all that were to come, nil when they are.
func (p *filePart) unread() error {
	if err := cmp.Or(p.body.err, p.form.body.err); err != nil {
		return p.form.broken(err)
	}
	return nil
}

// badForm is what is wrong with a form or a file of it, for who sends it.
func badForm(format string, args ...any) error {
	return &writ.Error{Kind: writ.Invalid, Op: "read form", Msg: fmt.Sprintf(format, args...)}
}

// tap remembers how reading failed, whatever became of the error elsewhere, and that it came
// to the end.
type tap struct {
	r     io.Reader
	err   error // never io.EOF
	ended bool
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.r.Read(p)
	if err == io.EOF {
		t.ended = true
	} else if err != nil {
		t.err = err
	}
	return n, err
}

// noEnd is the end of what ends too early.
type noEnd struct{}

func (noEnd) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
