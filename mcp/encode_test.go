package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	v2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// texts are what is written otherwise than it stands, or looks as if it were.
var texts = []string{
	"", "plain", "a\nb\tc\r", `"`, `\`, `\"`, `"content":[]`, `","content":"",`, "<script>&amp;</script>", "\x00\x1f\x7f",
	"\u2028", "a\u2029b\u2028", strings.Repeat("\u2028\u2029", 1000), "\u2027\u202a€", "日本\U0001F600", "\xe2", "\xe2\x80", "a\xffb\xe2\x80\"", strings.Repeat("line \"x\"\n", 20_000),
}

// line is the message that answers the request id with r, written the way that stdio does.
func lineOf(t *testing.T, id jsonrpc.ID, r *sdk.CallToolResult) []byte {
	t.Helper()
	s := newShelf()
	name, err := json.Marshal(encodeOnce(r, s))
	if err != nil {
		t.Fatal(err)
	}
	rawID, res := s.take(&jsonrpc.Response{ID: id, Result: name})
	if res == nil {
		t.Fatalf("%s is no name on the shelf", name)
	}
	if again, other := s.take(&jsonrpc.Response{ID: id, Result: name}); again != nil || other != nil || len(s.results) != 0 {
		t.Error("a result is taken twice")
	}
	var b bytes.Buffer
	out := bufio.NewWriterSize(&b, 16)
	res.writeMessage(out, rawID)
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decoded is JSON as values; it must have nothing at which a client could end the line.
func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	if !utf8.Valid(data) || bytes.ContainsAny(data, "\n\r\u2028\u2029") {
		t.Errorf("a message that is no line of UTF-8: %.300q", data)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("not JSON: %v: %.300q", err, data)
	}
	return v
}

// checkEncoded holds the three ways to encode a result of read against each other: the
// SDK's own, for HTTP, and for stdio.
func checkEncoded(t *testing.T, path, text string) {
	t.Helper()
	content := valid([]byte(text))
	body, err := readResult{Path: path, Version: "v", Bytes: len(text), Lossy: content != text, text: []byte(text)}.encode()
	if err != nil {
		if utf8.ValidString(path) {
			t.Errorf("%q: %v", text, err)
		}
		return
	}
	plain, err := v2.Marshal(readResult{Path: path, Content: content, Version: "v", Bytes: len(text), Lossy: content != text})
	if err != nil || !bytes.Equal(plain, body) {
		t.Fatalf("%.300q is encoded as %.300s, want %.300s, %v", text, body, plain, err)
	}
	whole, err := json.Marshal(&sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(body)}}, StructuredContent: body})
	if err != nil {
		t.Fatal(err)
	}
	want := decoded(t, whole)
	r := func() *sdk.CallToolResult { return &sdk.CallToolResult{StructuredContent: body} }
	web, err := json.Marshal(encodeOnce(r(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, decoded(t, web)); diff != "" {
		t.Errorf("over HTTP: %s", diff)
	}
	id, err := jsonrpc.MakeID("a\"\u2028<1")
	if err != nil {
		t.Fatal(err)
	}
	message := map[string]any{"jsonrpc": "2.0", "id": "a\"\u2028<1", "result": want}
	line := lineOf(t, id, r())
	if diff := cmp.Diff(any(message), decoded(t, line)); diff != "" {
		t.Errorf("on a stream: %s", diff)
	}
	if beside := len(line) - resultBytes(body); beside < 0 || beside > frameBytes {
		t.Errorf("a line of %d bytes, of which the body counts as %d", len(line), resultBytes(body))
	}
	if cost := textCost(content) + 4*textCost(path) + envelopeBytes; len(line) > cost {
		t.Errorf("a line of %d bytes, where its texts count as %d", len(line), cost)
	}
}

// TestMCP15_ResultsAreEncodedOnce: and mean what the SDK's encoding of them means.
func TestMCP15_ResultsAreEncodedOnce(t *testing.T) {
	for _, text := range texts {
		checkEncoded(t, "a.txt", text)
		checkEncoded(t, text, "")
	}
}

func FuzzEncoded(f *testing.F) {
	for _, text := range texts {
		f.Add(text, "x")
		f.Add("x", text)
	}
	f.Fuzz(checkEncoded)
}

// TestOtherResultsAreTheSDKs: what is not in the contract's envelope passes as it is.
func TestOtherResultsAreTheSDKs(t *testing.T) {
	s := newShelf()
	for name, res := range map[string]sdk.Result{
		"error":      failure(body{Code: "X", Message: "m"}),
		"structured": &sdk.CallToolResult{StructuredContent: map[string]any{"a": 1}},
		"none":       (*sdk.CallToolResult)(nil),
		"tools":      &sdk.ListToolsResult{},
	} {
		if got := encodeOnce(res, s); got != res {
			t.Errorf("%s: %T became %T", name, res, got)
		}
	}
	for _, msg := range []jsonrpc.Message{
		&jsonrpc.Request{Method: "x", Params: json.RawMessage(`"1"`)},
		&jsonrpc.Response{}, &jsonrpc.Response{Result: json.RawMessage(`{}`)}, &jsonrpc.Response{Result: json.RawMessage(`"1"`)},
	} {
		if _, r := s.take(msg); r != nil {
			t.Errorf("%+v is taken for a result", msg)
		}
	}
}

// TestResultsOfAnUnknownFrame: a result that says more than the frame has place for is
// left to the SDK.
func TestResultsOfAnUnknownFrame(t *testing.T) {
	r := &sdk.CallToolResult{StructuredContent: jsontext.Value(`{"a":1}`), Meta: sdk.Meta{"content": []any{}}}
	data, err := json.Marshal(encodeOnce(r, newShelf()))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Content []struct{ Text string }
		Body    json.RawMessage `json:"structuredContent"`
		Meta    map[string]any  `json:"_meta"`
	}
	if err := json.Unmarshal(data, &got); err != nil || len(got.Content) != 1 || got.Content[0].Text != `{"a":1}` || string(got.Body) != `{"a":1}` || got.Meta["content"] == nil {
		t.Errorf("%s, %v", data, err)
	}
}

func BenchmarkReadResult(b *testing.B) {
	text := bytes.Repeat([]byte("A line of sixty-four bytes, as text of programs and of people is\n"), readMaxBytes/65)
	out := bufio.NewWriterSize(io.Discard, 64<<10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		body, err := readResult{Path: "a.txt", Version: "v", Bytes: len(text), text: text}.encode()
		if err != nil || resultBytes(body) > MaxResultBytes-frameBytes {
			b.Fatal(err)
		}
		(&result{before: []byte("{"), after: []byte("}"), body: body}).writeMessage(out, []byte("1"))
	}
}
