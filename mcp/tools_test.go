package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var wantTools = []string{
	"apply_patch", "approval_create", "approval_resolve", "exec_command", "find", "operation_resume", "operation_status",
	"process_list", "process_resize", "process_status", "read", "read_process", "steer_claim_next", "steer_complete",
	"steer_status", "terminate_process", "work_finish", "work_open", "workspace_info", "write_stdin",
}

// TestTools_AsClientsAreShownThem pins what a model sees: changing it is a change of
// the contract.
func TestTools_AsClientsAreShownThem(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		client := c.client(t, newServer(t, newDesk(writ.ApprovalsOff)), nil)
		res, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range res.Tools {
			names = append(names, tool.Name)
			golden(t, tool.Name+".golden", tool)
		}
		if diff := cmp.Diff(wantTools, names); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
		init := client.InitializeResult()
		if init.ServerInfo == nil || init.ServerInfo.Name != "writ" || init.ServerInfo.Version != "1.2.3" {
			t.Errorf("server info %+v", init.ServerInfo)
		}
		if caps, err := json.Marshal(init.Capabilities); err != nil || string(caps) != `{"tools":{}}` {
			t.Errorf("capabilities %s: want tools only", caps)
		}
	})
}

func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run with -update", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestMCP21_AnnotationsAreExplicit(t *testing.T) {
	client := connections[0].client(t, newServer(t, newDesk(writ.ApprovalsOff)), nil)
	res, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	readOnly := map[string]bool{
		"workspace_info": true, "read": true, "find": true, "operation_status": true, "steer_status": true,
		"read_process": true, "process_status": true, "process_list": true,
	}
	destructive := map[string]bool{
		"apply_patch": true, "approval_resolve": true, "operation_resume": true,
		"exec_command": true, "write_stdin": true, "terminate_process": true,
	}
	for _, tool := range res.Tools {
		a := tool.Annotations
		if a == nil || a.DestructiveHint == nil || a.OpenWorldHint == nil {
			t.Errorf("%s leaves a hint to the client's imagination", tool.Name)
			continue
		}
		if a.ReadOnlyHint != readOnly[tool.Name] || *a.DestructiveHint != destructive[tool.Name] || *a.OpenWorldHint {
			t.Errorf("%s: readOnly %v destructive %v openWorld %v", tool.Name, a.ReadOnlyHint, *a.DestructiveHint, *a.OpenWorldHint)
		}
	}
}

// TestSchemas_AreFlat: no references and no alternatives, which some clients do not
// follow, and no argument that the contract forbids.
func TestSchemas_AreFlat(t *testing.T) {
	client := connections[0].client(t, newServer(t, newDesk(writ.ApprovalsOff)), nil)
	res, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
			m := schema.(map[string]any)
			if m["type"] != "object" {
				t.Errorf("%s: a schema that is not of an object", tool.Name)
			}
			text, _ := json.Marshal(m)
			for _, word := range []string{"$ref", "anyOf", "oneOf", "allOf", "environment_id"} {
				if bytes.Contains(text, []byte(word)) {
					t.Errorf("%s: a schema has %s", tool.Name, word)
				}
			}
		}
	}
}

// call calls a tool and gives its structured result in v, which is checked against the
// schema that the tool declares, or the error body.
func callTool(t *testing.T, client *sdk.ClientSession, name, args string, v any) (code string, body errorBody) {
	t.Helper()
	res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(res.Content) != 1 {
		t.Fatalf("%s: %d content items, want one", name, len(res.Content))
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		if res.StructuredContent != nil {
			t.Errorf("MCP-13: %s: an error with structured content %v", name, res.StructuredContent)
		}
		if err := json.Unmarshal([]byte(text), &body); err != nil || body.Code == "" || body.Message == "" {
			t.Errorf("%s: the error body is %s", name, text)
		}
		return body.Code, body
	}
	structured, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(structured, &a) != nil || json.Unmarshal([]byte(text), &b) != nil || !cmp.Equal(a, b) {
		t.Errorf("%s: text %s is not structured %s", name, text, structured)
	}
	tools, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools.Tools {
		if tool.Name == name {
			fits(t, tool, a)
		}
	}
	if v != nil {
		if err := json.Unmarshal(structured, v); err != nil {
			t.Fatal(err)
		}
	}
	return "", errorBody{}
}

type errorBody struct {
	Code      string `json:"code"`
	Message   string `json:"message"`
	Operation string `json:"operation_id"`
	Approval  string `json:"approval_id"`
}

// fits checks a result against the output schema of its tool, in which every property
// of the result must be declared.
func fits(t *testing.T, tool *sdk.Tool, result any) {
	t.Helper()
	text, err := json.Marshal(tool.OutputSchema)
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	schema.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(result); err != nil {
		t.Errorf("%s: the result does not fit the schema that is declared: %v", tool.Name, err)
	}
}

func TestWorkspaceInfo(t *testing.T) {
	client := connections[1].client(t, newServer(t, newDesk(writ.ApprovalsConfirm)), nil)
	var alone, main map[string]any
	callTool(t, client, "workspace_info", `{"workspace_id":""}`, &alone)
	if id, there := alone["workspace_id"]; !there || id != nil {
		t.Errorf("workspace_id is %v, want null", id)
	}
	if diff := cmp.Diff([]any{"main", "docs"}, alone["workspaces"]); diff != "" {
		t.Error(diff)
	}
	if alone["execution"] != nil || alone["root"] != nil {
		t.Errorf("a workspace shows without being asked for: %v", alone)
	}
	callTool(t, client, "workspace_info", `{"workspace_id":"main"}`, &main)
	golden(t, "workspace_info_result.golden", main)
	if code, _ := callTool(t, client, "workspace_info", `{"workspace_id":"gone"}`, nil); code != "WORKSPACE_NOT_FOUND" {
		t.Errorf("code %q", code)
	}
}

func TestScenario68And69_ReadWindows(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		d := newDesk(writ.ApprovalsOff)
		d.files["abc"] = "abcdef"
		client := c.client(t, newServer(t, d), nil)
		var first, second, past map[string]any
		callTool(t, client, "read", `{"workspace_id":"main","path":"abc","limit":3}`, &first)
		callTool(t, client, "read", `{"workspace_id":"main","path":"abc","offset":3,"limit":3,"approved":true}`, &second)
		callTool(t, client, "read", `{"workspace_id":"main","path":"abc","offset":18446744073709551615}`, &past)
		version := first["version"]
		want := []map[string]any{
			{"path": "abc", "content": "abc", "version": version, "truncated": true, "byte_count": 3.0, "content_lossy": false, "next_offset": 3.0},
			{"path": "abc", "content": "def", "version": version, "truncated": false, "byte_count": 3.0, "content_lossy": false, "offset": 3.0},
		}
		if diff := cmp.Diff(want, []map[string]any{first, second}); diff != "" {
			t.Errorf("windows (-want +got):\n%s", diff)
		}
		if past["content"] != "" || past["byte_count"] != 0.0 || past["truncated"] != false || past["next_offset"] != nil || past["version"] != version {
			t.Errorf("past the end: %v", past)
		}
	})
}

func TestScenario70And71_ReadLimitsAndLossyBytes(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.files["bad"] = "a\xffb"
	client := connections[0].client(t, newServer(t, d), nil)
	for _, limit := range []string{"0", "1048577"} {
		if code, _ := callTool(t, client, "read", `{"workspace_id":"main","path":"bad","limit":`+limit+`}`, nil); code != "OUTPUT_LIMIT" {
			t.Errorf("limit %s: code %q", limit, code)
		}
		if code, _ := callTool(t, client, "find", `{"workspace_id":"main","limit":`+limit+`}`, nil); code != "OUTPUT_LIMIT" {
			t.Errorf("find, limit %s: code %q", limit, code)
		}
	}
	var got map[string]any
	callTool(t, client, "read", `{"workspace_id":"main","path":"bad"}`, &got)
	if got["content"] != "a\ufffdb" || got["byte_count"] != 3.0 || got["content_lossy"] != true {
		t.Errorf("lossy: %v", got)
	}
}

func TestScenario73_FindPages(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.paths = []string{"a", "b", "c"}
	client := connections[0].client(t, newServer(t, d), nil)
	var first, last, none map[string]any
	callTool(t, client, "find", `{"workspace_id":"main","limit":2,"content":"x"}`, &first)
	callTool(t, client, "find", `{"workspace_id":"main","offset":2}`, &last)
	callTool(t, client, "find", `{"workspace_id":"main","offset":9}`, &none)
	want := []map[string]any{
		{
			"paths": []any{"a", "b"}, "truncated": true, "next_offset": 2.0, "incomplete": false, "listing_version": "list-1",
			"matches": []any{map[string]any{"path": "a", "line": 1.0, "text": "has x"}, map[string]any{"path": "b", "line": 1.0, "text": "has x"}},
		},
		{"paths": []any{"c"}, "truncated": false, "offset": 2.0, "incomplete": false, "listing_version": "list-1"},
		{"paths": []any{}, "truncated": false, "offset": 9.0, "incomplete": false, "listing_version": "list-1"},
	}
	if diff := cmp.Diff(want, []map[string]any{first, last, none}); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// TestScenario56And59_PatchesAndTheirStatus: applied once, replayed by key, found by
// id or key and by exactly one of them.
func TestScenario56And59_PatchesAndTheirStatus(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		d := newDesk(writ.ApprovalsOff)
		client := c.client(t, newServer(t, d), nil)
		args := `{"workspace_id":"main","patch":"p","operation_key":"k","expected_versions":{"A":"absent","a":"absent"},"network":true}`
		var first, again, status map[string]any
		callTool(t, client, "apply_patch", args, &first)
		callTool(t, client, "apply_patch", args, &again)
		change := map[string]any{"path": "0000x", "before_version": "absent", "after_version": "sha256:b", "kind": "add"}
		want := map[string]any{"status": "applied", "operation_id": "op-1", "replayed": false, "files": []any{"0000x"}, "changes": []any{change}}
		if diff := cmp.Diff(want, first); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if want["replayed"] = true; !cmp.Equal(want, again) || d.applied != 1 {
			t.Errorf("replay %v after %d writes", again, d.applied)
		}
		callTool(t, client, "operation_status", `{"operation_key":"k"}`, &status)
		want["replayed"], want["kind"], want["workspace_id"] = false, "patch", "main"
		want["created_at"], want["finished_at"] = 1.8e9, 1.8e9
		want["events"] = []any{map[string]any{"name": "minted", "at": 1.8e9}, map[string]any{"name": "finished", "at": 1.8e9, "status": "applied"}}
		if diff := cmp.Diff(want, status); diff != "" {
			t.Errorf("status (-want +got):\n%s", diff)
		}
		for _, args := range []string{`{}`, `{"operation_id":"op-1","operation_key":"k"}`, `{"operation_id":"op-9"}`} {
			if code, _ := callTool(t, client, "operation_status", args, nil); code != "OPERATION_NOT_FOUND" {
				t.Errorf("%s: code %q", args, code)
			}
		}
		if code, b := callTool(t, client, "apply_patch", `{"workspace_id":"main","patch":"q","operation_key":"k"}`, nil); code != "OPERATION_KEY_CONFLICT" || b.Operation != "" {
			t.Errorf("scenario 57: %+v", b)
		}
		if code, b := callTool(t, client, "apply_patch", `{"workspace_id":"main","patch":"conflict"}`, nil); code != "VERSION_CONFLICT" || b.Operation != "op-2" {
			t.Errorf("scenario 54: %+v", b)
		}
		if code, _ := callTool(t, client, "apply_patch", `{"workspace_id":"docs","patch":"p","approved":true}`, nil); code != "UNAUTHORIZED" {
			t.Errorf("scenario 63: %s", code)
		}
		var rejected map[string]any
		callTool(t, client, "operation_status", `{"operation_id":"op-2"}`, &rejected)
		if end := rejected["events"].([]any)[1].(map[string]any); end["status"] != "rejected" || end["reason"] != "VERSION_CONFLICT" {
			t.Errorf("end of a rejected operation: %v", end)
		}
	})
}

// TestScenario60_UnfinishedOperationIsUnknown: whatever the row holds.
func TestScenario60_UnfinishedOperationIsUnknown(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.ops = []writ.Operation{{ID: "op-7", Workspace: "main", Created: time.Unix(1, 0)}}
	client := connections[0].client(t, newServer(t, d), nil)
	var got map[string]any
	callTool(t, client, "operation_status", `{"operation_id":"op-7"}`, &got)
	if got["status"] != "unknown" || got["finished_at"] != nil || len(got["events"].([]any)) != 1 {
		t.Errorf("%v", got)
	}
}

func TestMCP13_ErrorsAreBodies(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		client := c.client(t, newServer(t, newDesk(writ.ApprovalsOff)), nil)
		code, body := callTool(t, client, "read", `{"workspace_id":"main","path":"nope.txt"}`, nil)
		if code != "FILE_NOT_FOUND" || !strings.Contains(body.Message, "nope.txt") {
			t.Errorf("%+v", body)
		}
	})
}

// TestArguments_OfAnotherTypeAreInvalidParams (spec/02 §2).
func TestArguments_OfAnotherTypeAreInvalidParams(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[1].client(t, newServer(t, d), nil)
	for tool, list := range map[string][]string{
		"read": {
			`{}`, `{"workspace_id":"main"}`, `{"workspace_id":"main","path":null}`, `{"workspace_id":"main","path":5}`,
			`{"workspace_id":"main","path":"ok.txt","offset":-1}`, `{"workspace_id":"main","path":"ok.txt","offset":1.5}`,
			`{"workspace_id":"main","path":"ok.txt","limit":"9"}`, `{"workspace_id":"main","path":"ok.txt","limit":4294967296}`,
		},
		"apply_patch":      {`{"workspace_id":"main"}`, `{"workspace_id":"main","patch":"p","expected_versions":[]}`, `{"workspace_id":"main","patch":"p","check_only":"yes"}`},
		"approval_create":  {`{"tool":"apply_patch"}`, `{"tool":"read","arguments":{}}`},
		"approval_resolve": {`{"approval_id":"a"}`, `{"approval_id":"a","decision":"maybe"}`},
		"none":             {`{}`},
	} {
		for _, args := range list {
			_, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s %s: %v, want -32602", tool, args, err)
			}
		}
	}
	if len(d.reads)+d.applied > 0 {
		t.Errorf("something was done: %v, %d", d.reads, d.applied)
	}
	// An optional argument that is null is absent.
	if code, _ := callTool(t, client, "read", `{"workspace_id":"main","path":"ok.txt","offset":null,"limit":null}`, nil); code != "" {
		t.Errorf("null for absent: %s", code)
	}
}

// TestPanic_IsAnInternalError: and the connection goes on.
func TestPanic_IsAnInternalError(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.crash = true
	client := connections[0].client(t, newServer(t, d), nil)
	code, body := callTool(t, client, "read", `{"workspace_id":"main","path":"ok.txt"}`, nil)
	if code != "INTERNAL" || strings.Contains(body.Message, "desk") {
		t.Errorf("%+v", body)
	}
	if err := client.Ping(context.Background(), nil); err == nil {
		t.Log("ping is answered in this revision")
	}
	d.crash = false
	if code, _ := callTool(t, client, "read", `{"workspace_id":"main","path":"ok.txt"}`, nil); code != "" {
		t.Errorf("afterwards: %s", code)
	}
}

func TestInstructions_SayWhatTheContractWants(t *testing.T) {
	client := connections[0].client(t, newServer(t, newDesk(writ.ApprovalsOff)), nil)
	text := client.InitializeResult().Instructions
	for _, word := range []string{
		"relative paths", "offset", "limit", "next_offset", "content_lossy", "incomplete", "listing_version", "OUTPUT_LIMIT",
		"does not end the process", "24x80", "PTY", "process_resize", "tty_size", "not an argument", "lease", "WORKSPACE_BUSY",
		"RESOURCE_QUEUE_FULL", "sandbox", "no enforcement is not permission", "managed proxy", "status=unknown", "dispatch_status=unknown",
		"process_status", "EOF", "output_lost", "runner", "disconnect", "PROCESS_NOT_TTY", "PROCESS_NOT_RUNNING", "approvals=confirm",
		"APPROVAL_REQUIRED", "neither privilege nor isolation", "same caller can grant", "major checkpoints",
	} {
		if !strings.Contains(text, word) {
			t.Errorf("the instructions do not mention %q", word)
		}
	}
}
