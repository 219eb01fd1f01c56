package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxMessageBytes bounds one message of a client, on each transport: a patch of 8 MiB
// as a JSON string fits.
const MaxMessageBytes = 16 << 20

const (
	maxDepth   = 64      // of objects and arrays in a message
	maxIDBytes = 256     // of an id that is a string
	maxSafeID  = 1 << 53 // ids that are numbers are below it: what JSON decoders agree on
	// maxSmall bounds a message that calls no tool: of these the SDK quotes what it
	// cannot decode.
	maxSmall = 64 << 10
)

// metaLogLevel is in params._meta when the client wants log messages of a call. The
// SDK's name for it is deprecated together with what it stands for.
const metaLogLevel = "io.modelcontextprotocol/logLevel"

// message is what the guard saw of one JSON-RPC message.
type message struct {
	id       []byte // as JSON; nil when there is none
	method   string // empty for the answer to a request of ours
	revision string // params._meta: the protocol revision, of requests that stand alone
	caps     bool   // params._meta has the client's capabilities
	asks     bool   // params.capabilities: the client can ask its user
	listens  bool   // params._meta: the client wants to hear of the call while it runs
}

// notification reports whether the message gets no answer.
func (m message) notification() bool { return m.method != "" && m.id == nil }

// rejection is why a message goes no further. It is answered as a JSON-RPC error.
type rejection struct {
	id   []byte
	code int64
	msg  string
}

func (r *rejection) Error() string { return r.msg }

// response is the rejection on the wire. An id that is not known is null.
func (r *rejection) response() []byte {
	id := r.id
	if id == nil {
		id = []byte("null")
	}
	text, err := json.Marshal(shorten(r.msg))
	if err != nil {
		panic("mcp: a string always encodes: " + err.Error())
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%s}}`, id, r.code, text)
}

// inspect reads one message before anything else does. It refuses what two decoders
// could read differently: bytes that are not JSON in UTF-8, names that stand twice or
// that only Unicode case folding tells apart, names that fold to one that counts, and
// ids that are no safe numbers; also what is too deep, batches, and what is no
// JSON-RPC message. What it lets pass is forwarded as it came.
func inspect(data []byte) (message, *rejection) {
	g := guard{dec: jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))}
	err := g.message()
	if err == nil {
		if _, more := g.dec.ReadToken(); !errors.Is(more, io.EOF) {
			err = g.refuse(jsonrpc.CodeParseError, "there is more than one message")
		}
	}
	if err == nil {
		err = g.check(len(data))
	}
	if err == nil {
		return g.m, nil
	}
	if r, ok := errors.AsType[*rejection](err); ok {
		r.id = g.m.id
		return g.m, r
	}
	return g.m, &rejection{id: g.m.id, code: jsonrpc.CodeParseError, msg: "not JSON: " + err.Error()}
}

// guard is one pass over one message.
type guard struct {
	dec   *jsontext.Decoder
	m     message
	depth int
	fault *rejection // the first; the pass goes on for the id

	version, nullID, result bool
	paramsKind, nameKind    jsontext.Kind
	argsKind, metaKind      jsontext.Kind
	stateKind               jsontext.Kind
}

func (g *guard) refuse(code int64, format string, args ...any) *rejection {
	r := &rejection{code: code, msg: fmt.Sprintf(format, args...)}
	if g.fault == nil {
		g.fault = r
	}
	return g.fault
}

func (g *guard) message() error {
	switch g.dec.PeekKind() {
	case jsontext.KindBeginObject:
		return g.object(envelope)
	case jsontext.KindBeginArray:
		return g.refuse(jsonrpc.CodeInvalidRequest, "batches are not supported: send one message")
	}
	if _, err := g.dec.ReadToken(); err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	return g.refuse(jsonrpc.CodeInvalidRequest, "a message is a JSON object")
}

// value reads the value of name in an object at in.
func (g *guard) value(in place, name string) error {
	switch g.dec.PeekKind() {
	case jsontext.KindBeginObject:
		return g.object(in.below(name))
	case jsontext.KindBeginArray:
		if err := g.enter(); err != nil {
			return err
		}
		for g.dec.PeekKind() != jsontext.KindEndArray {
			if err := g.value(elsewhere, ""); err != nil {
				return err
			}
		}
		return g.leave()
	}
	tok, err := g.dec.ReadToken()
	if err != nil {
		return err
	}
	g.scalar(in, name, tok)
	return nil
}

func (g *guard) enter() error {
	if g.depth++; g.depth > maxDepth {
		return g.refuse(jsonrpc.CodeInvalidRequest, "nested deeper than %d", maxDepth)
	}
	_, err := g.dec.ReadToken()
	return err
}

func (g *guard) leave() error {
	g.depth--
	_, err := g.dec.ReadToken()
	return err
}

func (g *guard) object(in place) error {
	if err := g.enter(); err != nil {
		return err
	}
	seen := map[string]string{}
	for g.dec.PeekKind() != jsontext.KindEndObject {
		tok, err := g.dec.ReadToken()
		if err != nil {
			return err
		}
		name := tok.String()
		g.name(in, name, seen)
		g.note(in, name, g.dec.PeekKind())
		if err := g.value(in, name); err != nil {
			return err
		}
	}
	return g.leave()
}

// name holds a name against those that stand beside it and those that count here.
func (g *guard) name(in place, name string, seen map[string]string) {
	key := name
	if in != versionMap {
		key = fold(name)
	}
	if other, twice := seen[key]; twice {
		if other == name {
			g.refuse(jsonrpc.CodeInvalidRequest, "%s is given twice", quoted(name))
		} else {
			g.refuse(jsonrpc.CodeInvalidRequest, "%s and %s differ only in case", quoted(other), quoted(name))
		}
	}
	seen[key] = name
	if counts := in.known(key); counts != "" && counts != name {
		g.refuse(jsonrpc.CodeInvalidRequest, "%s is not %s: names are case-sensitive", quoted(name), counts)
	}
}

// note remembers what kinds of values stand where the SDK wants certain ones.
func (g *guard) note(in place, name string, kind jsontext.Kind) {
	switch {
	case in == envelope && name == "id" && (kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray):
		g.refuse(jsonrpc.CodeInvalidRequest, "id is neither a string nor a number")
	case in == envelope && name == "method" && kind != jsontext.KindString:
		g.refuse(jsonrpc.CodeInvalidRequest, "method is not a name")
	case in == envelope && name == "params":
		g.paramsKind = kind
	case in == envelope && (name == "result" || name == "error"):
		g.result = true
	case in == params && name == "name":
		g.nameKind = kind
	case in == params && name == "arguments":
		g.argsKind = kind
	case in == params && name == "_meta":
		g.metaKind = kind
	case in == params && name == "requestState":
		g.stateKind = kind
	case in == meta && name == sdk.MetaKeyClientCapabilities:
		g.m.caps = kind == jsontext.KindBeginObject
	case in == meta && (name == "progressToken" || name == metaLogLevel):
		g.m.listens = true
	case in == capabilities && name == "elicitation":
		g.m.asks = kind == jsontext.KindBeginObject
	}
}

func (g *guard) scalar(in place, name string, tok jsontext.Token) {
	switch {
	case in == envelope && name == "jsonrpc":
		g.version = tok.Kind() == jsontext.KindString && tok.String() == "2.0"
	case in == envelope && name == "method":
		if g.m.method = tok.String(); g.m.method == "" {
			g.refuse(jsonrpc.CodeInvalidRequest, "method is not a name")
		}
	case in == envelope && name == "id":
		g.id(tok)
	case in == meta && name == sdk.MetaKeyProtocolVersion:
		if tok.Kind() == jsontext.KindString {
			g.m.revision = tok.String()
		}
	}
}

func (g *guard) id(tok jsontext.Token) {
	switch tok.Kind() {
	case jsontext.KindNull:
		g.nullID = true
	case jsontext.KindString:
		if len(tok.String()) > maxIDBytes {
			g.refuse(jsonrpc.CodeInvalidRequest, "id is longer than %d bytes", maxIDBytes)
			return
		}
		text, err := jsontext.AppendQuote(nil, tok.String())
		if err == nil {
			g.m.id = text
		}
	case jsontext.KindNumber:
		n, err := strconv.ParseInt(tok.String(), 10, 64)
		if err != nil || n <= -maxSafeID || n >= maxSafeID {
			g.refuse(jsonrpc.CodeInvalidRequest, "id is no whole number of at most 53 bits")
			return
		}
		g.m.id = strconv.AppendInt(nil, n, 10)
	default:
		g.refuse(jsonrpc.CodeInvalidRequest, "id is neither a string nor a number")
	}
}

// check judges the message as a whole, when all of it was seen.
func (g *guard) check(size int) error {
	switch {
	case g.fault != nil:
	case !g.version:
		g.refuse(jsonrpc.CodeInvalidRequest, `jsonrpc is not "2.0"`)
	case g.nullID:
		g.refuse(jsonrpc.CodeInvalidRequest, "id is null")
	case g.m.method == "" && (g.m.id == nil || !g.result):
		g.refuse(jsonrpc.CodeInvalidRequest, "neither a request nor an answer: method is missing")
	case g.paramsKind != 0 && g.paramsKind != jsontext.KindBeginObject:
		g.refuse(jsonrpc.CodeInvalidParams, "params is not an object")
	case !g.fits(g.metaKind, jsontext.KindBeginObject):
		g.refuse(jsonrpc.CodeInvalidParams, "params/_meta is not an object")
	case g.m.method == "tools/call" && g.nameKind != jsontext.KindString:
		g.refuse(jsonrpc.CodeInvalidParams, "params/name is not the name of a tool")
	case g.m.method == "tools/call" && !g.fits(g.argsKind, jsontext.KindBeginObject):
		g.refuse(jsonrpc.CodeInvalidParams, "params/arguments is not an object")
	case g.m.method == "tools/call" && !g.fits(g.stateKind, jsontext.KindString):
		g.refuse(jsonrpc.CodeInvalidParams, "params/requestState is not a string")
	case g.m.method != "tools/call" && size > maxSmall:
		g.refuse(jsonrpc.CodeInvalidRequest, "the message has %d bytes, the most of one that calls no tool is %d", size, maxSmall)
	}
	if g.fault != nil {
		return g.fault
	}
	return nil
}

// fits reports whether an optional value is there as wanted, or not.
func (g *guard) fits(got, want jsontext.Kind) bool {
	return got == 0 || got == jsontext.KindNull || got == want
}

// quoted is a name for a message: what does not print is escaped, and what is long is
// cut.
func quoted(name string) string {
	const most = 100
	if len(name) > most {
		return strconv.QuoteToASCII(strings.ToValidUTF8(name[:most], "")) + "…"
	}
	return strconv.QuoteToASCII(name)
}
