package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

// Stdio serves one client, as who, that writes messages to in and reads them from out,
// one a line. It returns nil when in ends, after the calls under way were answered, and
// the error of ctx when that ends first. Nothing but messages is written to out.
//
// in is closed at the end if it is an io.Closer. A read of it that is under way and
// that closing does not end is left behind, and so is a write to out of which nobody reads.
func (s *Server) Stdio(ctx context.Context, in io.Reader, out io.Writer, who writ.Principal) error {
	t := &stdio{
		in: bufio.NewReaderSize(in, 64<<10), out: bufio.NewWriterSize(outlet{out, ctx}, 64<<10), lines: make(chan line),
		results: newShelf(), flow: newFlow(), moved: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if c, ok := in.(io.Closer); ok {
		t.closer = c
	}
	go t.read() // ends with in, or is left behind as said above
	srv := s.connect(func(*sdk.RequestExtra) writ.Principal { return who }, nil, t.results)
	err := srv.Run(ctx, t)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("serving mcp on streams: %w", err)
	}
	return nil
}

// lastTime is for how long out may take a write once ctx has ended.
const lastTime = time.Second

// outlet is an output that is left behind when its client takes nothing and ctx has ended.
// After that it must not be written to.
type outlet struct {
	io.Writer
	ctx context.Context
}

// Write implements io.Writer. When it leaves p behind, p may still be read.
func (o outlet) Write(p []byte) (int, error) {
	type outcome struct {
		n   int
		err error
	}
	written := make(chan outcome, 1)
	go func() { // ends with the write
		n, err := o.Writer.Write(p)
		written <- outcome{n, err}
	}()
	select {
	case w := <-written:
		return w.n, w.err
	case <-o.ctx.Done():
	}
	select {
	case w := <-written:
		return w.n, w.err
	case <-time.After(lastTime):
		return 0, fmt.Errorf("nobody reads what is answered: %w", o.ctx.Err())
	}
}

// line is one line of the client.
type line struct {
	data []byte
	long bool // it had more than MaxMessageBytes, and data is nil
	err  error
}

// stdio is the SDK's transport and connection over two streams, with the guard before
// it. It is used for one connection.
type stdio struct {
	in     *bufio.Reader
	closer io.Closer // of in; may be nil
	lines  chan line

	results *shelf

	mu  sync.Mutex // held while a message is written
	out *bufio.Writer

	// flow is what is open in both directions, and moved says that it changed.
	flow  flow
	moved chan struct{}

	once   sync.Once
	closed chan struct{}
}

// flow is the calls that are open.
type flow struct {
	mu    sync.Mutex
	calls int                 // guarded by mu; of the client, whose answers are not written
	ids   map[jsonrpc.ID]bool // guarded by mu; of those whose answers are not begun
	asked map[jsonrpc.ID]bool // guarded by mu; of ours to the client, that it has not answered and nobody gave up
}

func newFlow() flow { return flow{ids: map[jsonrpc.ID]bool{}, asked: map[jsonrpc.ID]bool{}} }

// settled reports whether nothing more can come of the client's calls when it sends
// nothing more: they are answered, or wait for an answer of its own.
func (f *flow) settled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls == 0 || len(f.asked) > 0
}

// received takes a message of the client into account, and reports whether it is one: a
// call whose id another has that is not answered yet would have no answer of the SDK.
func (f *flow) received(msg jsonrpc.Message) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m := msg.(type) {
	case *jsonrpc.Response:
		delete(f.asked, m.ID)
	case *jsonrpc.Request:
		if !m.IsCall() {
			return true
		}
		if f.ids[m.ID] {
			return false
		}
		f.ids[m.ID] = true
		f.calls++
	}
	return true
}

// sending takes a message to the client into account before it is written: from then on
// it can be answered, or its id be used again.
func (f *flow) sending(msg jsonrpc.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch m := msg.(type) {
	case *jsonrpc.Response:
		delete(f.ids, m.ID)
	case *jsonrpc.Request:
		if m.IsCall() {
			f.asked[m.ID] = true
		} else if m.Method == "notifications/cancelled" { // nobody waits for the answer any more
			var p struct {
				ID any `json:"requestId"`
			}
			if json.Unmarshal(m.Params, &p) == nil {
				if id, err := jsonrpc.MakeID(p.ID); err == nil {
					delete(f.asked, id)
				}
			}
		}
	}
}

// sent takes a message into account that was written.
func (f *flow) sent(msg jsonrpc.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, answer := msg.(*jsonrpc.Response); answer {
		f.calls--
	}
}

func (t *stdio) Connect(context.Context) (sdk.Connection, error) { return t, nil }
func (t *stdio) SessionID() string                               { return "" }

// read passes on lines until in ends or the connection is closed.
func (t *stdio) read() {
	for {
		l := readLine(t.in)
		select {
		case t.lines <- l:
		case <-t.closed:
			return
		}
		if l.err != nil {
			return
		}
	}
}

// readLine reads up to the next newline, or to the end. It keeps at most
// MaxMessageBytes of it.
func readLine(in *bufio.Reader) line {
	var data []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if !long {
			data = append(data, part...)
			if len(bytes.TrimRight(data, "\r\n")) > MaxMessageBytes {
				long, data = true, nil
			}
		}
		switch {
		case err == nil:
			return line{data: data, long: long}
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (long || len(data) > 0):
			return line{data: data, long: long} // the last, without its newline
		default:
			return line{err: err}
		}
	}
}

// Read gives the SDK the next message that passes the guard. What does not is answered
// here, and the connection goes on.
func (t *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		var l line
		select {
		case l = <-t.lines:
		case <-t.closed:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if l.err != nil {
			// The SDK ends the calls under way when there is nothing more to read.
			return nil, t.settle(ctx, l.err)
		}
		msg, err := t.admit(l)
		if msg != nil && !t.flow.received(msg) {
			msg, err = nil, &rejection{code: jsonrpc.CodeInvalidRequest, msg: "the id is that of a request that is not answered yet: give each its own"}
		}
		if r, ok := errors.AsType[*rejection](err); ok {
			if err := t.line(func(out *bufio.Writer) { _, _ = out.Write(r.response()) }); err != nil {
				return nil, err
			}
			continue
		}
		if msg != nil {
			return msg, nil
		}
	}
}

// settle is the end of the input, once the calls under way are answered.
func (t *stdio) settle(ctx context.Context, end error) error {
	for errors.Is(end, io.EOF) && !t.flow.settled() {
		select {
		case <-t.moved:
		case <-t.closed:
			return end
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return end
}

// admit is the message in l, nil when there is nothing to do, or a *rejection.
func (t *stdio) admit(l line) (jsonrpc.Message, error) {
	if l.long {
		return nil, &rejection{code: jsonrpc.CodeInvalidRequest, msg: fmt.Sprintf("the message has more than %d bytes", MaxMessageBytes)}
	}
	if len(bytes.TrimSpace(l.data)) == 0 {
		return nil, nil
	}
	m, refused := inspect(l.data)
	switch {
	case refused != nil:
		return nil, refused
	case m.notification() && !notifications[m.method]:
		return nil, nil
	}
	msg, err := jsonrpc.DecodeMessage(l.data)
	if err != nil {
		return nil, &rejection{id: m.id, code: jsonrpc.CodeInvalidRequest, msg: "the message cannot be read"}
	}
	if req, ok := msg.(*jsonrpc.Request); ok && m.method == "server/discover" && m.revision >= stateless && !m.caps {
		req.Params = withoutCapabilities(req.Params)
	}
	return msg, nil
}

// withoutCapabilities says for a client that it has none. A client that only probes
// which revisions there are may leave them out.
func withoutCapabilities(raw json.RawMessage) json.RawMessage {
	var p map[string]json.RawMessage
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &p) != nil || json.Unmarshal(p["_meta"], &m) != nil {
		return raw
	}
	m[sdk.MetaKeyClientCapabilities] = json.RawMessage("{}")
	var err error
	if p["_meta"], err = json.Marshal(m); err != nil {
		return raw
	}
	if out, err := json.Marshal(p); err == nil {
		return out
	}
	return raw
}

// Write sends a message of the SDK.
func (t *stdio) Write(_ context.Context, msg jsonrpc.Message) error {
	var data []byte
	id, r := t.results.take(msg)
	if r == nil {
		var err error
		if data, err = jsonrpc.EncodeMessage(msg); err != nil {
			return fmt.Errorf("encoding a message: %w", err)
		}
	}
	t.flow.sending(msg)
	err := t.line(func(out *bufio.Writer) {
		if r != nil {
			r.writeMessage(out, id)
		} else {
			_, _ = out.Write(data)
		}
	})
	t.flow.sent(msg)
	select {
	case t.moved <- struct{}{}:
	default:
	}
	return err
}

// line writes what write does as one line. The first error of out is kept, and answered.
func (t *stdio) line(write func(out *bufio.Writer)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	write(t.out)
	_ = t.out.WriteByte('\n')
	return t.out.Flush()
}

// Close ends Read.
func (t *stdio) Close() error {
	var err error
	t.once.Do(func() {
		close(t.closed)
		if t.closer != nil {
			err = t.closer.Close()
		}
	})
	return err
}
