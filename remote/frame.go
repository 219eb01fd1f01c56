package remote

import (
	"errors"
	"io"

	"google.golang.org/grpc/mem"

	"writ"
)

// What of a file is in one message at most, and how many of those an end may send that the
// other has not taken yet. So each can hold what comes, and never stops to listen.
const (
	frameBytes  = 256 << 10
	frameWindow = 4
)

// frameMark begins a message that is bytes of a file. No JSON begins so.
const frameMark = 0

// request is a message from the gateway on Run. Exactly one field is set.
type request struct {
	Run    *order          `json:"run,omitempty"`
	Cancel bool            `json:"cancel,omitempty"`
	Data   mem.BufferSlice `json:"-"` // of the input, without the mark; whoever receives it frees it
	End    *verdict        `json:"end,omitempty"`
	More   bool            `json:"more,omitempty"`
	Kept   *verdict        `json:"kept,omitempty"`
}

// order is what to run.
type order struct {
	ID     string       `json:"id"`
	Digest writ.Digest  `json:"digest"`
	Spec   writ.RunSpec `json:"spec"`
	// What the exchange has.
	Opens bool `json:"opens,omitempty"`
	Keeps bool `json:"keeps,omitempty"`
}

// reply is a message from the runner on Run. Exactly one field is set.
type reply struct {
	Chunk  *writ.Chunk      `json:"chunk,omitempty"`
	Open   writ.Digest      `json:"open,omitempty"`
	More   bool             `json:"more,omitempty"`
	Close  bool             `json:"close,omitempty"`
	Keep   *writ.OutputFile `json:"keep,omitempty"`
	Data   mem.BufferSlice  `json:"-"` // of the output, without the mark; whoever receives it frees it
	End    *verdict         `json:"end,omitempty"`
	Result *writ.Result     `json:"result,omitempty"`
}

// verdict says whether a file came over whole, or was kept.
type verdict struct {
	Error *fault `json:"error,omitempty"`
}

// fault is a writ.Error on the wire, without what is for its side's operator alone.
type fault struct {
	Kind    string `json:"kind"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
}

func verdictOf(err error) *verdict {
	if err == nil {
		return &verdict{}
	}
	f := &fault{Kind: writ.KindOf(err).String(), Message: cutMessage(writ.Message(err))}
	if code := writ.CodeOf(err); codePattern.MatchString(code) {
		f.Code = code
	}
	return &verdict{f}
}

// err is the error of v, nil without one.
func (v *verdict) err(op string) error {
	if v.Error == nil {
		return nil
	}
	e := &writ.Error{Op: op, Msg: cutMessage(v.Error.Message)}
	for _, k := range writ.Kinds {
		if k.String() == v.Error.Kind {
			e.Kind = k
		}
	}
	if codePattern.MatchString(v.Error.Code) {
		e.Code = v.Error.Code
	}
	return e
}

// window has a value for each message of bytes that may be sent.
type window chan struct{}

func newWindow() window {
	w := make(window, frameWindow)
	for range frameWindow {
		w <- struct{}{}
	}
	return w
}

// open lets one more be sent.
func (w window) open() error {
	select {
	case w <- struct{}{}:
		return nil
	default:
		return errors.New("it took more of a file than was sent")
	}
}

// frame is a message of bytes of a file.
type frame struct {
	buf  *[]byte // the mark, then room for frameBytes
	n    int     // bytes after the mark
	pool frames  // that buf goes back to when it was sent
}

// fill reads the frame full, or to the end of r. Its errors are those of io.ReadFull.
func (f *frame) fill(r io.Reader) (err error) {
	f.n, err = io.ReadFull(r, (*f.buf)[1:])
	return err
}

// marshal gives f away.
func (f *frame) marshal() mem.BufferSlice {
	*f.buf = (*f.buf)[:1+f.n]
	return mem.BufferSlice{mem.NewBuffer(f.buf, f.pool)}
}

// drop gives the buffer of a frame that is not sent back.
func (f *frame) drop() { f.pool.Put(f.buf) }

// frames are buffers of one run that are not in use. gRPC gives them back.
type frames chan *[]byte

func newFrames() frames { return make(frames, frameWindow) }

func (p frames) frame() *frame { return &frame{buf: p.Get(1 + frameBytes), pool: p} }

// Get is a buffer of length bytes, which is always that of a frame.
func (p frames) Get(length int) *[]byte {
	select {
	case b := <-p:
		*b = (*b)[:length]
		return b
	default:
		b := make([]byte, length)
		b[0] = frameMark
		return &b
	}
}

// Put takes a buffer back.
func (p frames) Put(b *[]byte) {
	select {
	case p <- b:
	default:
	}
}

// dataOf is the bytes of a file in a message that is that, else nil.
func dataOf(message mem.BufferSlice) mem.BufferSlice {
	for i, b := range message {
		if b.Len() == 0 {
			continue
		}
		if b.ReadOnlyData()[0] != frameMark {
			return nil
		}
		rest := message[i+1:]
		rest.Ref()
		return append(mem.BufferSlice{b.Slice(1, b.Len())}, rest...)
	}
	return nil
}
