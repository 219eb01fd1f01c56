package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const readCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt"}}}`

// TestGuard_LetsPass: what says one thing.
func TestGuard_LetsPass(t *testing.T) {
	for _, m := range []string{
		readCall,
		`{"jsonrpc":"2.0","id":"a","method":"ping"}`,
		`{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"Action":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}`,
		// Paths are told apart by case.
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"apply_patch","arguments":{"expected_versions":{"Makefile":"absent","makefile":"absent","path":"absent"}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approval_create","arguments":{"tool":"apply_patch","arguments":{"expected_versions":{"A":"absent","a":"absent"}}}}}`,
		// What nobody knows means nothing.
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"approved":true,"network":true}},"extra":[{"a":1}]}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":null}}`,
	} {
		if _, r := inspect([]byte(m)); r != nil {
			t.Errorf("%s\nrefused: %s", m, r.msg)
		}
	}
}

// TestMCP22And32_LookAlikeNames: are refused wherever a decoder could take them for
// the name that counts.
func TestMCP22And32_LookAlikeNames(t *testing.T) {
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call","params":{},"Params":{"name":"exec_command","arguments":{"cmd":"touch pwn"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"workspace_id":"main","path":"ok.txt","PATH":"/etc/passwd"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"ok.txt"}},"param\u017f":{"name":"exec_command","arguments":{"cmd":"touch fold"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","param\u017f":{"name":"read"}}`,
		`{"jsonrpc":"2.0","id":1,"METHOD":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","name":"apply_patch"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"wor\u212aspace_id":"x"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"apply_patch","arguments":{"expected_versions":{"a":"1","a":"2"}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"approval_create","arguments":{"tool":"apply_patch","arguments":{"Patch":"x"}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","inputResponses":{"approve":{"action":"decline","Action":"accept"}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","inputResponses":{"approve":{"Action":"accept"}}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"action":"decline","ACTION":"accept"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","_meta":{"a/b":1,"a/B":2}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"Elicitation":{}}}}`,
	} {
		_, r := inspect([]byte(m))
		if r == nil || r.code != jsonrpc.CodeInvalidRequest || string(r.id) != "1" {
			t.Errorf("%s\n%+v, want -32600 for id 1", m, r)
		}
	}
}

func TestGuard_Refuses(t *testing.T) {
	for m, code := range map[string]int64{
		``:                                     jsonrpc.CodeParseError,
		`{`:                                    jsonrpc.CodeParseError,
		`{"jsonrpc":"2.0","id":1,}`:            jsonrpc.CodeParseError,
		readCall + readCall:                    jsonrpc.CodeParseError,
		"\ufeff" + readCall:                    jsonrpc.CodeParseError,
		`{"jsonrpc":"2.0","a":"\xff"}`:         jsonrpc.CodeParseError,
		"{\"jsonrpc\":\"2.0\",\"a\":\"\xff\"}": jsonrpc.CodeParseError,
		`{"jsonrpc":"2.0","id":1,"method":"\ud800"}`: jsonrpc.CodeParseError,
		`[]`: jsonrpc.CodeInvalidRequest,
		`5`:  jsonrpc.CodeInvalidRequest,
		`{}`: jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"1.0","id":1,"method":"ping"}`:                                                                          jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":2,"id":1,"method":"ping"}`:                                                                              jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1}`:                                                                                          jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":""}`:                                                                              jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":null}`:                                                                            jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":{}}`:                                                                              jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":{},"result":{}}`:                                                                  jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`:                                                                         jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","result":{}}`:                                                                                     jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`:                                                              jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}`:                                                     jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                                                                    jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`:                                                jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":"{}"}}`:                          jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","requestState":{}}}`:                         jsonrpc.CodeInvalidParams,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 100) + `1` + strings.Repeat(`}`, 101): jsonrpc.CodeInvalidRequest,
		`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"` + strings.Repeat("x", maxSmall) + `"}}`:                   jsonrpc.CodeInvalidRequest,
	} {
		_, r := inspect([]byte(m))
		if r == nil || r.code != code {
			t.Errorf("%.200q: %+v, want %d", m, r, code)
			continue
		}
		if !json.Valid(r.response()) {
			t.Errorf("the answer is not JSON: %s", r.response())
		}
	}
}

// TestNames_AreThoseOfTheTools: the guard knows every argument that a tool takes.
func TestNames_AreThoseOfTheTools(t *testing.T) {
	taken := map[string]bool{}
	for _, tool := range allTools(Commands{Dir: true}) {
		for _, p := range tool.in {
			taken[p.name] = true
			if arguments.known(fold(p.name)) != p.name {
				t.Errorf("%s takes %s, which the guard does not know", tool.name, p.name)
			}
		}
	}
	for _, name := range counting[arguments] {
		if !taken[name] {
			t.Errorf("the guard knows the argument %s, which no tool takes", name)
		}
	}
}

// FuzzGuard: what passes reads the same for a decoder that folds names and for one
// that does not, is one message for the SDK, and passes again; what does not is
// answered with JSON.
func FuzzGuard(f *testing.F) {
	for _, m := range []string{
		readCall, `{"jsonrpc":"2.0","id":1,"Method":"x","method":"y"}`, `[1]`, `{"jsonrpc":"2.0","id":"\u0000","method":"a","params":{"_meta":{}}}`,
		`{"jsonrpc":"2.0","id":-0,"result":{"action":"accept"}}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","param\u017f":1,"arguments":{"\u212a":1,"k":2}}}`,
	} {
		f.Add([]byte(m))
	}
	type args struct {
		Workspace string            `json:"workspace_id"`
		Path      string            `json:"path"`
		Patch     string            `json:"patch"`
		Expected  map[string]string `json:"expected_versions"`
	}
	type wire struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, r := inspect(data)
		if r != nil {
			var answer struct{ Error struct{ Code int64 } }
			if err := json.Unmarshal(r.response(), &answer); err != nil || answer.Error.Code != r.code {
				t.Fatalf("the answer %s: %v", r.response(), err)
			}
			return
		}
		msg, err := jsonrpc.DecodeMessage(data)
		if err != nil {
			return // answered, and nothing was done
		}
		var folding wire // encoding/json takes look-alikes, and the last of two
		if err := json.Unmarshal(data, &folding); err == nil {
			req, _ := msg.(*jsonrpc.Request)
			switch {
			case folding.Method != m.method, req != nil && req.Method != m.method, req == nil && m.method != "":
				t.Fatalf("method %q for us, %q for encoding/json, %+v for the SDK", m.method, folding.Method, msg)
			case (m.id == nil) != (len(folding.ID) == 0):
				t.Fatalf("id %s for us, %s for encoding/json", m.id, folding.ID)
			}
			var loose, strict args
			if m.method == "tools/call" && json.Unmarshal(folding.Params.Arguments, &loose) == nil {
				given, err := decode[args](&call{args: folding.Params.Arguments})
				if err != nil {
					return
				}
				if strict = given; strict.Path != loose.Path || strict.Patch != loose.Patch || strict.Workspace != loose.Workspace || len(strict.Expected) != len(loose.Expected) {
					t.Fatalf("arguments %+v for us, %+v for encoding/json", strict, loose)
				}
			}
		}
		var b bytes.Buffer
		if json.Compact(&b, data) == nil {
			if _, r := inspect(b.Bytes()); r != nil {
				t.Fatalf("refused when it comes again: %s", r.msg)
			}
		}
	})
}

// FuzzFold: names are one exactly when encoding/json takes them for one.
func FuzzFold(f *testing.F) {
	f.Add("params", "param\u017f")
	f.Add("k", "\u212a")
	f.Add("\u03c3", "\u03c2")
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, unicode.ReplacementChar) {
			return
		}
		if got, want := fold(a) == fold(b), strings.EqualFold(a, b); got != want {
			t.Errorf("%q and %q: %v, want %v", a, b, got, want)
		}
	})
}
