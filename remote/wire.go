package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"writ"
)

// Runner is what is served, and what a Client is. The contracts of its methods are
// those of package runner.
type Runner interface {
	Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, emit func(writ.Chunk)) (writ.Result, error)
	Probe(ctx context.Context) (writ.Enforcement, error)
	Languages(ctx context.Context) ([]writ.LanguageStatus, error)
}

// MaxMessage bounds one message. It fits the largest spec and the largest result:
// in JSON a byte of text takes up to six, a byte of content a third more.
const MaxMessage = 6*(writ.MaxCodeBytes+writ.MaxStdinBytes) + 2*writ.MaxInputBytes + 32<<20

const (
	service         = "writ.v1.Runner"
	methodRun       = "Run"
	methodProbe     = "Probe"
	methodLanguages = "Languages"
)

// request is a message from the gateway on Run. Exactly one field is set.
type request struct {
	Run    *order `json:"run,omitempty"`
	Cancel bool   `json:"cancel,omitempty"`
}

// order is what to run.
type order struct {
	ID     string       `json:"id"`
	Digest writ.Digest  `json:"digest"`
	Spec   writ.RunSpec `json:"spec"`
}

// reply is a message from the runner on Run. Exactly one field is set.
type reply struct {
	Chunk  *writ.Chunk  `json:"chunk,omitempty"`
	Result *writ.Result `json:"result,omitempty"`
}

// empty is the request of a method without one.
type empty struct{}

// codec is JSON, and a window of a file is what doc.go says. It is given to each server
// and client as an option; the registry of package encoding is left alone.
type codec struct{}

func (codec) Name() string { return "json" }

func (codec) Marshal(v any) ([]byte, error) {
	if w, ok := v.(*writ.FileWindow); ok {
		return marshalWindow(*w)
	}
	return marshalLine(v)
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

func (codec) Unmarshal(data []byte, v any) error {
	if w, ok := v.(*writ.FileWindow); ok {
		return unmarshalWindow(data, w)
	}
	return json.Unmarshal(data, v)
}

// marshalWindow writes the content as it is: base64 within JSON takes several passes over
// it at both ends, which for a large file was a good part of reading it.
func marshalWindow(w writ.FileWindow) ([]byte, error) {
	content := w.Content
	w.Content = nil
	head, err := marshalLine(w)
	if err != nil {
		return nil, err
	}
	return slices.Concat(head, content), nil
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
