package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/grpc/mem"

	"writ"
)

// Runner is what is served, and what a Client is. The contracts of its methods are
// those of package runner.
type Runner interface {
	Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error)
	Probe(ctx context.Context) (writ.Enforcement, error)
	Languages(ctx context.Context) ([]writ.LanguageStatus, error)
}

// MaxMessage bounds one message. It fits the largest spec and the largest result:
// in JSON a byte of text takes up to six, a byte of content a third more, and what a file
// has beside its path less than 256.
const MaxMessage = 6*(writ.MaxCodeBytes+writ.MaxStdinBytes+writ.MaxFilePaths) + 2*writ.MaxInputBytes + 256*writ.MaxFiles + 32<<20

const (
	service         = "writ.v1.Runner"
	methodRun       = "Run"
	methodProbe     = "Probe"
	methodLanguages = "Languages"
)

// empty is the request of a method without one.
type empty struct{}

// codec is JSON; a window of a file and the messages of Run are what doc.go says. It is
// given to each server and client as an option; the registry of package encoding is left
// alone.
type codec struct{}

func (codec) Name() string { return "json" }

func (codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *frame:
		return v.marshal(), nil
	case *writ.FileWindow:
		return marshalWindow(*v)
	}
	b, err := marshalLine(v)
	return mem.BufferSlice{mem.SliceBuffer(b)}, err
}

// marshalLine is v as one line of JSON, with its end.
func marshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // code is full of < and >
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *request:
		if v.Data = dataOf(data); v.Data != nil {
			return nil
		}
	case *reply:
		if v.Data = dataOf(data); v.Data != nil {
			return nil
		}
	case *writ.FileWindow:
		return unmarshalWindow(data.Materialize(), v)
	}
	return json.Unmarshal(data.Materialize(), v)
}

// marshalWindow gives the content as it is: base64 within JSON takes several passes over
// it at both ends, which for a large file was a good part of reading it.
func marshalWindow(w writ.FileWindow) (mem.BufferSlice, error) {
	content := w.Content
	w.Content = nil
	head, err := marshalLine(w)
	return mem.BufferSlice{mem.SliceBuffer(head), mem.SliceBuffer(content)}, err
}

// unmarshalWindow keeps data: the content is a part of it.
func unmarshalWindow(data []byte, w *writ.FileWindow) error {
	head, content, ok := bytes.Cut(data, []byte{'\n'})
	if !ok {
		return errors.New("a window of a file has no end of its first line")
	}
	if err := json.Unmarshal(head, w); err != nil {
		return err
	}
	w.Content = content
	return nil
}

// A peer that was stopped, not killed, keeps its socket open and never answers.
// After pingAfter of silence it is asked, and pingWait later it counts as gone.
const (
	pingAfter = 20 * time.Second
	pingWait  = 10 * time.Second
)

// What may be under way unread, of one call and of a connection, and what is read and
// written at a time: a window of a file is sent without a wait for the other end.
const (
	callWindow = 2 << 20
	connWindow = 8 << 20
	ioBuffer   = 128 << 10
)
