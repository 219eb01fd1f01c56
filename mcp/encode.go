package mcp

import (
	"bufio"
	"bytes"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// encoded is a result of a tool that is encoded here, once. The SDK goes over a result
// four times before it is a message; for a file of a MiB that is most of what reading it
// takes. With a shelf, all that the SDK gets to encode is a name, and the connection puts
// the result in its place.
type encoded struct {
	*sdk.CallToolResult
	body  jsontext.Value // the structured form; the one text is the same
	shelf *shelf         // nil on a connection that is the SDK's own
}

// encodeOnce is res to be encoded here, when it is in the contract's envelope.
func encodeOnce(res sdk.Result, s *shelf) sdk.Result {
	if r, ok := res.(*sdk.CallToolResult); ok && r != nil {
		if body, ok := r.StructuredContent.(jsontext.Value); ok {
			return &encoded{r, body, s}
		}
	}
	return res
}

// noContent is where content stands in a result that has none. Within a string of JSON
// its quotes would be escaped.
const noContent = `"content":[]`

// MarshalJSON encodes the result, or its name on the shelf.
func (e *encoded) MarshalJSON() ([]byte, error) {
	bare := *e.CallToolResult
	bare.Content, bare.StructuredContent = []sdk.Content{}, nil
	frame, err := bare.MarshalJSON()
	if err != nil {
		return nil, err
	}
	if bytes.Count(frame, []byte(noContent)) != 1 { // not what the SDK is known to write
		whole := *e.CallToolResult
		whole.Content = []sdk.Content{&sdk.TextContent{Text: string(e.body)}}
		return whole.MarshalJSON()
	}
	before, after, _ := bytes.Cut(frame, []byte(noContent))
	r := &result{before, after, e.body}
	if e.shelf == nil {
		var b bytes.Buffer
		b.Grow(2*len(e.body) + len(e.body)/8 + len(frame) + 1<<10) // more is seldom
		out := bufio.NewWriter(&b)
		r.write(out)
		err := out.Flush()
		return b.Bytes(), err
	}
	return e.shelf.put(r), nil
}

// result is a result of a tool in the parts of its JSON.
type result struct {
	before, after []byte // of the content and the structured form
	body          jsontext.Value
}

const (
	contentBegins = `"content":[{"type":"text","text":"`
	contentEnds   = `"}],"structuredContent":`
)

// frameBytes is more than a message has beside a body and its text.
const frameBytes = 2 << 10

// resultBytes is how many bytes a body takes in a message, with the text that is the same.
func resultBytes(body jsontext.Value) int {
	separators := bytes.Count(body, []byte("\u2028")) + bytes.Count(body, []byte("\u2029"))
	return 2*(len(body)+3*separators) + bytes.Count(body, []byte{'"'}) + bytes.Count(body, []byte{'\\'})
}

// write writes the result. Errors are kept by out.
func (r *result) write(out *bufio.Writer) {
	_, _ = out.Write(r.before)
	_, _ = out.WriteString(contentBegins)
	writeEscaped(out, r.body, true)
	_, _ = out.WriteString(contentEnds)
	writeEscaped(out, r.body, false)
	_, _ = out.Write(r.after)
}

// writeMessage writes the answer with r to the request that has the id.
func (r *result) writeMessage(out *bufio.Writer, id []byte) {
	_, _ = out.WriteString(`{"jsonrpc":"2.0","id":`)
	writeEscaped(out, id, false)
	_, _ = out.WriteString(`,"result":`)
	r.write(out)
	_ = out.WriteByte('}')
}

// separator begins the letters U+2028 and U+2029 in UTF-8, at which some clients end a
// line of their input, and others.
const separator = 0xe2

// writeEscaped writes value with its line separators escaped or, within a string, what a
// string of JSON has between its quotes when value is its text. A value without space
// between its parts, which json.Marshal makes, has no control characters.
func writeEscaped(out *bufio.Writer, value jsontext.Value, within bool) {
	// Where the next of each is, from at on: what was searched is not searched again.
	next := func(c byte, at int) int {
		if i := bytes.IndexByte(value[at:], c); i >= 0 {
			return at + i
		}
		return len(value)
	}
	quote, slash, wide := len(value), len(value), next(separator, 0)
	if within {
		quote, slash = next('"', 0), next('\\', 0)
	}
	for at := 0; ; {
		end := min(quote, slash, wide)
		_, _ = out.Write(value[at:end])
		switch at = end; {
		case at == len(value):
			return
		case at == wide:
			letter, escaped := value[at:min(at+len("\u2028"), len(value))], ""
			switch string(letter) {
			case "\u2028":
				escaped = `\u2028`
			case "\u2029":
				escaped = `\u2029`
			default:
				letter = letter[:1]
				escaped = string(letter)
			}
			_, _ = out.WriteString(escaped)
			at += len(letter)
			wide = next(separator, at)
		case at == quote:
			_, _ = out.WriteString(`\"`)
			at++
			quote = next('"', at)
		default:
			_, _ = out.WriteString(`\\`)
			at++
			slash = next('\\', at)
		}
	}
}

// shelf has the results of one connection between being encoded and being written.
type shelf struct {
	mu      sync.Mutex
	last    int                // guarded by mu
	results map[string]*result // guarded by mu; by name, a string of JSON
}

func newShelf() *shelf { return &shelf{results: map[string]*result{}} }

// put answers the name, which no result looks like: those are objects.
func (s *shelf) put(r *result) (name []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	name = strconv.AppendQuote(nil, strconv.Itoa(s.last))
	s.results[string(name)] = r
	return name
}

// take is the result that msg names and its id as JSON, or nil. Each is taken once.
func (s *shelf) take(msg jsonrpc.Message) (id []byte, r *result) {
	res, ok := msg.(*jsonrpc.Response)
	if !ok || len(res.Result) == 0 || res.Result[0] != '"' {
		return nil, nil
	}
	s.mu.Lock()
	r = s.results[string(res.Result)]
	delete(s.results, string(res.Result))
	s.mu.Unlock()
	if r == nil {
		return nil, nil
	}
	switch raw := res.ID.Raw().(type) {
	case int64:
		id = strconv.AppendInt(nil, raw, 10)
	case string:
		id, _ = jsontext.AppendQuote(nil, raw)
	}
	return id, r
}
