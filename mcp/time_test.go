package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
	"writ/mcp"
)

// TestCall_WaitsAtMost50Seconds: for a user who does not answer, whose hold stays as
// it is, and for a service that does not.
func TestCall_WaitsAtMost50Seconds(t *testing.T) {
	for name, test := range map[string]struct{ tool, args, code string }{
		"a user":                  {"apply_patch", patchArgs, "APPROVAL_REQUIRED"},
		"a user, about a command": {"exec_command", execArgs, "APPROVAL_REQUIRED"},
		"a service":               {"read", `{"workspace_id":"main","path":"ok.txt"}`, "TIMEOUT"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(writ.ApprovalsConfirm)
				if test.tool == "read" {
					d.stall = make(chan struct{}, 1)
				}
				s := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Processes: d, Sandbox: d, Works: noWorks{}}, mcp.Options{})
				clientOut, serverIn := io.Pipe()
				serverOut, clientIn := io.Pipe()
				done := make(chan error, 1)
				go func() { done <- s.Stdio(t.Context(), serverOut, serverIn, agent("alice")) }()
				client, err := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, &sdk.ClientOptions{
					ElicitationHandler: func(ctx context.Context, _ *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
						<-ctx.Done() // the user is away
						return nil, ctx.Err()
					},
				}).Connect(t.Context(), &sdk.IOTransport{Reader: clientOut, Writer: clientIn}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				res, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: test.tool, Arguments: json.RawMessage(test.args)})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took > 50*time.Second { // the bound of the contract, on fake time
					t.Errorf("it took %v", took)
				}
				var body errorBody
				if err := json.Unmarshal([]byte(res.Content[0].(*sdk.TextContent).Text), &body); err != nil || body.Code != test.code {
					t.Errorf("%+v %v, want %s", body, err, test.code)
				}
				if state, writes := d.state("appr-1"); test.tool != "read" && (state != writ.ApprovalPending || writes+len(d.processes) != 0) {
					t.Errorf("approval %s, %d writes", state, writes)
				}
				client.Close()
				clientIn.Close()
				serverIn.Close()
				s.Close()
				<-done
			})
		})
	}
}

// TestLog_HasOneLineForEachCall: with what happened, and nothing that the client or
// its key said.
func TestLog_HasOneLineForEachCall(t *testing.T) {
	var out syncBuffer
	d := newDesk(writ.ApprovalsOff)
	s := mcp.New(slog.New(slog.NewJSONHandler(&out, nil)), mcp.Services{Workspaces: d, Processes: d, Sandbox: d, Works: noWorks{}}, mcp.Options{})
	t.Cleanup(s.Close)
	w := newWeb(t, s)
	w.initialize()
	call := func(tool, args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
	}
	w.post(200, call("read", `{"workspace_id":"main","path":"private.txt"}`))
	w.post(200, call("apply_patch", `{"workspace_id":"main","patch":"conflict private"}`))
	w.post(200, call("read", `{"workspace_id":"main","path":7,"private":1}`))
	w.post(200, call("exec_command", `{"workspace_id":"main","command":["cat","private"]}`))
	w.post(200, call("write_stdin", `{"process_id":"proc-1","data":"private"}`))
	w.post(200, call("write_stdin", `{"process_id":"private","data":"private"}`))
	w.post(200, call("read_process", `{"process_id":"proc-1"}`))
	d.crash = true
	w.post(200, call("read", `{"workspace_id":"main","path":"private.txt"}`))
	w.post(400, `{"jsonrpc":"2.0","id":1,"method":"ping","private":1,"PRIVATE":2}`)
	if res, _ := w.with("Authorization", "Bearer private-key").do("POST", ""); res.StatusCode != 401 {
		t.Errorf("a wrong key: %d", res.StatusCode)
	}
	text := out.String()
	for _, word := range []string{"private", "alice-key"} {
		if strings.Contains(text, word) {
			t.Errorf("the log tells %q:\n%s", word, text)
		}
	}
	var got []string
	for line := range strings.Lines(text) {
		var l struct {
			Level, Msg, Tool, By, Outcome, Operation, Process, Error, Stack string
			Status                                                          int
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Msg == "tool called" && l.By != "agent:alice" {
			t.Errorf("a call by %q", l.By)
		}
		if l.Outcome == "INTERNAL" && (l.Level != "ERROR" || l.Error == "" || l.Stack == "") {
			t.Errorf("a panic is logged as %s", line)
		}
		if l.Outcome == "VERSION_CONFLICT" && l.Operation != "op-1" {
			t.Errorf("the operation is not named: %s", line)
		}
		if (l.Process == "proc-1") != (l.Tool == "exec_command") {
			t.Errorf("a process that was started: %s", line)
		}
		got = append(got, l.Tool+" "+l.Outcome)
	}
	want := "read FILE_NOT_FOUND|apply_patch VERSION_CONFLICT|read invalid_params|" +
		"exec_command ok|write_stdin ok|write_stdin PROCESS_NOT_FOUND|read_process ok|read INTERNAL| | "
	if strings.Join(got, "|") != want {
		t.Errorf("lines %q, want %q", strings.Join(got, "|"), want)
	}
}
