package remote

import (
	"bytes"
	"context"
	"encoding/json"
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

// codec is JSON. It is given to each server and client as an option; the registry
// of package encoding is left alone.
type codec struct{}

func (codec) Name() string { return "json" }

func (codec) Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // code is full of < and >
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (codec) Unmarshal(data []byte, v any) error { return json.Unmarshal(data, v) }

// A peer that was stopped, not killed, keeps its socket open and never answers.
// After pingAfter of silence it is asked, and pingWait later it counts as gone.
const (
	pingAfter = 20 * time.Second
	pingWait  = 10 * time.Second
)
