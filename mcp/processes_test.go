package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
	"writ/mcp"
)

// run starts a command and gives its process.
func run(t *testing.T, d *desk, client *sdk.ClientSession, args string) *process {
	t.Helper()
	var out map[string]any
	if code, b := callTool(t, client, "exec_command", args, &out); code != "" {
		t.Fatalf("exec_command %s: %+v", args, b)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	p, err := d.find(writ.ProcessID(out["process_id"].(string)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// as has d.mu held while f changes a process.
func (d *desk) as(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
}

// TestScenario101_CommandsTakeNoMore: an agent chooses neither folder, variables, time,
// size nor environment, unless its operator lets it choose the folder.
func TestScenario101_CommandsTakeNoMore(t *testing.T) {
	props := func(s *mcp.Server) []string {
		client := connections[0].client(t, s, nil)
		res, err := client.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range res.Tools {
			if tool.Name == "exec_command" {
				for name := range tool.InputSchema.(map[string]any)["properties"].(map[string]any) {
					names = append(names, name)
				}
			}
		}
		slices.Sort(names)
		return names
	}
	d := newDesk(writ.ApprovalsOff)
	if diff := cmp.Diff([]string{"command", "tty", "work_id", "workspace_id"}, props(newServer(t, d))); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	free := newServerWith(t, d, mcp.Options{Commands: mcp.Commands{Dir: true}})
	if diff := cmp.Diff([]string{"command", "cwd", "tty", "work_id", "workspace_id"}, props(free)); diff != "" {
		t.Errorf("arguments where the folder is free (-want +got):\n%s", diff)
	}
	// One that is not there means nothing (spec/02 §2).
	args := `{"workspace_id":"main","command":["x"],"cwd":"sub","env":{"A":"b"},"timeout":1,"tty_size":[1,1],"environment_id":"e"}`
	if p := run(t, d, connections[0].client(t, newServer(t, d), nil), args); p.request.Dir != "" {
		t.Errorf("started in %q", p.request.Dir)
	}
	if p := run(t, d, connections[0].client(t, free, nil), args); p.request.Dir != "sub" {
		t.Errorf("started in %q, want sub", p.request.Dir)
	}
}

// TestExec_AsItIsSent: in each era, with what the contract says it answers.
func TestExec_AsItIsSent(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		d := newDesk(writ.ApprovalsOff)
		client := c.client(t, newServer(t, d), nil)
		var sure, lost map[string]any
		callTool(t, client, "exec_command", `{"workspace_id":"main","command":["bash","-c","echo \u00e9 \"$0\""," "],"tty":true,"network":true}`, &sure)
		callTool(t, client, "exec_command", `{"workspace_id":"main","command":["lost",""]}`, &lost)
		if diff := cmp.Diff([]map[string]any{
			{"process_id": "proc-1", "dispatch_status": "confirmed"},
			{"process_id": "proc-2", "dispatch_status": "unknown"}, // a success: it may run
		}, []map[string]any{sure, lost}); diff != "" {
			t.Errorf("answers (-want +got):\n%s", diff)
		}
		want := []writ.CommandRequest{
			{Workspace: "main", Command: []string{"bash", "-c", `echo é "$0"`, " "}, TTY: true},
			{Workspace: "main", Command: []string{"lost", ""}},
		}
		if diff := cmp.Diff(want, []writ.CommandRequest{d.processes[0].request, d.processes[1].request}); diff != "" {
			t.Errorf("commands (-sent +made):\n%s", diff)
		}
	})
}

// TestScenario88To90_NothingIsStarted: what is refused has no process.
func TestScenario88To90_NothingIsStarted(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[1].client(t, newServer(t, d), nil)
	for args, want := range map[string]string{
		`{"workspace_id":"docs","command":["x"],"approved":true}`: "UNAUTHORIZED",
		`{"workspace_id":"gone","command":["x"]}`:                 "WORKSPACE_NOT_FOUND",
		`{"workspace_id":"main","command":[]}`:                    "INVALID_COMMAND",
		`{"workspace_id":"main","command":["","x"]}`:              "INVALID_COMMAND",
		`{"workspace_id":"main","command":["a\u0000b"]}`:          "INVALID_COMMAND",
		`{"workspace_id":"main","command":["missing"]}`:           "PROCESS_SPAWN_FAILED",
	} {
		if code, b := callTool(t, client, "exec_command", args, nil); code != want {
			t.Errorf("%s: %+v, want %s", args, b, want)
		}
	}
	if len(d.processes) > 0 {
		t.Errorf("%d processes", len(d.processes))
	}
}

// TestScenario85_InputIsEchoed: what is written is written as it is, through a pipe and
// at a terminal, until the input is closed.
func TestScenario85_InputIsEchoed(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		d := newDesk(writ.ApprovalsOff)
		client := c.client(t, newServer(t, d), nil)
		pipe := run(t, d, client, `{"workspace_id":"main","command":["/bin/cat"]}`)
		terminal := run(t, d, client, `{"workspace_id":"main","command":["cat"],"tty":true}`)
		var ok, echo, typed, end map[string]any
		callTool(t, client, "write_stdin", `{"process_id":"proc-1","data":"h\u00e9\n\u0000"}`, &ok)
		if diff := cmp.Diff(map[string]any{"ok": true}, ok); diff != "" {
			t.Error(diff)
		}
		callTool(t, client, "write_stdin", `{"process_id":"proc-2","data":"a\r\u0003"}`, nil)
		callTool(t, client, "read_process", `{"process_id":"proc-1"}`, &echo)
		callTool(t, client, "read_process", `{"process_id":"proc-2"}`, &typed)
		callTool(t, client, "write_stdin", `{"process_id":"proc-1","data":"","close":true}`, nil)
		callTool(t, client, "read_process", `{"process_id":"proc-1","cursor":5}`, &end)
		want := []map[string]any{
			{"process_id": "proc-1", "cursor": 5.0, "chunk": "hé\n\x00", "eof": false, "output_lost": false, "retained_from": 0.0},
			{"process_id": "proc-2", "cursor": 4.0, "chunk": "a\r\n\x03", "eof": false, "output_lost": false, "retained_from": 0.0},
			{"process_id": "proc-1", "cursor": 5.0, "chunk": "", "eof": true, "output_lost": false, "retained_from": 0.0},
		}
		if diff := cmp.Diff(want, []map[string]any{echo, typed, end}); diff != "" {
			t.Errorf("output (-want +got):\n%s", diff)
		}
		if pipe.input != "hé\n\x00" || terminal.input != "a\r\x03" || terminal.closed {
			t.Errorf("input %q and %q", pipe.input, terminal.input)
		}
		if code, _ := callTool(t, client, "write_stdin", `{"process_id":"proc-1","data":"more"}`, nil); code != "PROCESS_NOT_FOUND" {
			t.Errorf("after its end: %q", code)
		}
	})
}

// TestScenario98_HowAProcessEnded: and nothing of it that the contract does not have
// together (spec/02 §15, invariant 11).
func TestScenario98_HowAProcessEnded(t *testing.T) {
	three, odd := 3, -1
	kill := &writ.Signal{Number: 9, Name: "SIGKILL"}
	d := newDesk(writ.ApprovalsOff)
	client := connections[0].client(t, newServer(t, d), nil)
	p := run(t, d, client, `{"workspace_id":"main","command":["x"]}`)
	for name, test := range map[string]struct {
		is   writ.ProcessStatus
		want map[string]any
	}{
		"runs":         {writ.ProcessStatus{State: writ.ProcessRunning}, map[string]any{"state": "running"}},
		"is recorded":  {writ.ProcessStatus{}, map[string]any{"state": "running"}},
		"runs, oddly":  {writ.ProcessStatus{State: writ.ProcessRunning, Termination: writ.TerminationExited, ExitCode: &three, Signal: kill}, map[string]any{"state": "running"}},
		"exited":       {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationExited, ExitCode: &three, EOF: true}, map[string]any{"state": "exited", "termination": "exited", "exit_code": 3.0, "eof": true}},
		"exited 0":     {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationExited, ExitCode: new(int)}, map[string]any{"state": "exited", "termination": "exited", "exit_code": 0.0}},
		"signaled":     {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationSignaled, Signal: kill, ExitCode: &odd}, map[string]any{"state": "exited", "termination": "signaled", "signal": map[string]any{"number": 9.0, "name": "SIGKILL"}}},
		"signal 40":    {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationSignaled, Signal: &writ.Signal{Number: 40}}, map[string]any{"state": "exited", "termination": "signaled", "signal": map[string]any{"number": 40.0}}},
		"signal 23":    {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationSignaled, Signal: &writ.Signal{Number: 23, Name: "SIGURG"}}, map[string]any{"state": "exited", "termination": "signaled", "signal": map[string]any{"number": 23.0}}},
		"timeout":      {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationTimeout, Signal: kill}, map[string]any{"state": "exited", "termination": "timeout"}},
		"terminated":   {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationTerminated, Signal: kill, ExitCode: &odd, Reason: "ended by terminate_process"}, map[string]any{"state": "exited", "termination": "terminated", "reason": "ended by terminate_process"}},
		"unknown":      {writ.ProcessStatus{State: writ.ProcessExited, Termination: writ.TerminationUnknown, Signal: kill, ExitCode: &odd}, map[string]any{"state": "exited", "termination": "unknown"}},
		"nobody knows": {writ.ProcessStatus{State: writ.ProcessExited, ExitCode: &odd}, map[string]any{"state": "exited", "termination": "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			d.as(func() {
				test.is.ID = p.ID
				p.ProcessStatus, p.stdout, p.from = test.is, []byte("abc"), 4
			})
			test.want["process_id"], test.want["output_total"], test.want["output_retained_from"] = "proc-1", 7.0, 4.0
			if test.want["eof"] == nil {
				test.want["eof"] = false
			}
			var got map[string]any
			callTool(t, client, "process_status", `{"process_id":"proc-1"}`, &got)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestScenario93_ResizeInOrder: a size of zero is said first, whatever process it is for.
func TestScenario93_ResizeInOrder(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[0].client(t, newServer(t, d), nil)
	pipe := run(t, d, client, `{"workspace_id":"main","command":["x"]}`)
	terminal := run(t, d, client, `{"workspace_id":"main","command":["x"],"tty":true}`)
	resize := func(id string, rows, cols int) (code string, out map[string]any) {
		code, _ = callTool(t, client, "process_resize", fmt.Sprintf(`{"process_id":%q,"rows":%d,"cols":%d}`, id, rows, cols), &out)
		return code, out
	}
	want := func(want, id string, rows, cols int) {
		t.Helper()
		if code, _ := resize(id, rows, cols); code != want {
			t.Errorf("%s to %dx%d: %q, want %q", id, rows, cols, code, want)
		}
	}
	want("INVALID_COMMAND", "proc-9", 0, 80)
	want("INVALID_COMMAND", "proc-9", 24, 0)
	want("PROCESS_NOT_FOUND", "proc-9", 24, 80)
	want("PROCESS_NOT_TTY", "proc-1", 24, 80)
	if _, out := resize("proc-2", 40, 65535); !cmp.Equal(out, map[string]any{"ok": true, "rows": 40.0, "cols": 65535.0}) || terminal.size != (writ.TerminalSize{Rows: 40, Cols: 65535}) {
		t.Errorf("%v, and the terminal is %v", out, terminal.size)
	}
	d.as(func() { pipe.end(writ.TerminationExited); terminal.end(writ.TerminationExited) })
	want("INVALID_COMMAND", "proc-1", 0, 0)
	want("PROCESS_NOT_RUNNING", "proc-1", 24, 80) // and not that it has no terminal
	want("PROCESS_NOT_RUNNING", "proc-2", 24, 80)
}

// TestScenario84And99_Terminate: at once by default, twice as once, and with the signal
// and the grace that are asked for.
func TestScenario84And99_Terminate(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[1].client(t, newServer(t, d), nil)
	p := run(t, d, client, `{"workspace_id":"main","command":["x"]}`)
	for more, want := range map[string]writ.Kill{
		``:                                      {},
		`,"signal":null,"grace_ms":null`:        {},
		`,"signal":"INT"`:                       {Signal: "INT"},
		`,"signal":"SIGHUP","grace_ms":60000`:   {Signal: "SIGHUP", Grace: time.Minute},
		`,"grace_ms":1500`:                      {Signal: "TERM", Grace: 1500 * time.Millisecond},
		`,"signal":"QUIT","grace_ms":0`:         {Signal: "QUIT", Grace: time.Millisecond}, // the default is longer
		`,"signal":"KILL","grace_ms":5`:         {Signal: "KILL", Grace: 5 * time.Millisecond},
		`,"force":true,"signal":"TERM","pid":1`: {Signal: "TERM"},
	} {
		var out map[string]any
		callTool(t, client, "terminate_process", `{"process_id":"proc-1"`+more+`}`, &out)
		if got := p.kills[len(p.kills)-1]; got != want || out["ok"] != true {
			t.Errorf("%s: %+v, want %+v", more, got, want)
		}
	}
	n := len(p.kills)
	for _, more := range []string{`"signal":"STOP"`, `"grace_ms":60001`} {
		if code, _ := callTool(t, client, "terminate_process", `{"process_id":"proc-1",`+more+`}`, nil); code != "INVALID_COMMAND" {
			t.Errorf("%s: %q", more, code)
		}
	}
	if len(p.kills) != n || p.Termination != writ.TerminationTerminated {
		t.Errorf("%d kills, want %d; %s", len(p.kills), n, p.Termination)
	}
}

// TestScenario100_InventedProcess: no tool knows it.
func TestScenario100_InventedProcess(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[0].client(t, newServer(t, d), nil)
	for tool, more := range map[string]string{
		"read_process": "", "process_status": "", "terminate_process": "", "write_stdin": `,"data":"x"`, "process_resize": `,"rows":1,"cols":1`,
	} {
		code, b := callTool(t, client, tool, `{"process_id":"proc-\u202e"`+more+`}`, nil)
		if code != "PROCESS_NOT_FOUND" {
			t.Errorf("%s: %+v", tool, b)
		}
	}
}

// TestProcessList_FindsThemAgain: the latest first, with what tells them apart.
func TestProcessList_FindsThemAgain(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[0].client(t, newServer(t, d), nil)
	var none, list map[string]any
	callTool(t, client, "process_list", `{"workspace_id":"main"}`, &none)
	if diff := cmp.Diff(map[string]any{"processes": []any{}}, none); diff != "" {
		t.Error(diff)
	}
	ended := run(t, d, client, `{"workspace_id":"main","command":["/usr/bin/true"]}`)
	run(t, d, client, `{"workspace_id":"main","command":["lost"],"tty":true}`)
	d.as(func() {
		ended.end(writ.TerminationExited)
		ended.Approval, ended.Program = "appr-7", "tr\xffue"
	})
	callTool(t, client, "process_list", `{"workspace_id":"main"}`, &list)
	want := map[string]any{"processes": []any{
		map[string]any{
			"process_id": "proc-2", "state": "running", "output_total": 0.0, "output_retained_from": 0.0, "eof": false,
			"program": "lost", "tty": true, "dispatch_status": "unknown", "started_at": 1.8e9,
		},
		map[string]any{
			"process_id": "proc-1", "state": "exited", "termination": "exited", "exit_code": 0.0, "output_total": 0.0, "output_retained_from": 0.0, "eof": true,
			"program": "tr\ufffdue", "tty": false, "dispatch_status": "confirmed", "started_at": 1.8e9, "ended_at": 1.8e9 + 60, "approval_id": "appr-7",
		},
	}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if code, _ := callTool(t, client, "process_list", `{"workspace_id":"gone"}`, nil); code != "WORKSPACE_NOT_FOUND" {
		t.Errorf("code %q", code)
	}
}

// TestMCP15_ManyProcesses: the list says that it was cut.
func TestMCP15_ManyProcesses(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	for i := range 3000 {
		d.processes = append(d.processes, &process{Process: writ.Process{
			Workspace: "main", Program: strings.Repeat("p", 2000), ProcessStatus: writ.ProcessStatus{ID: writ.ProcessID(fmt.Sprint("proc-", i)), Started: time.Unix(1, 0)},
		}})
	}
	client := connections[1].client(t, newServer(t, d), nil)
	var out struct {
		Processes []struct {
			ID string `json:"process_id"`
		} `json:"processes"`
		Truncated bool `json:"truncated"`
	}
	callTool(t, client, "process_list", `{"workspace_id":"main"}`, &out)
	text, _ := json.Marshal(out)
	if !out.Truncated || len(out.Processes) == 0 || out.Processes[0].ID != "proc-2999" || 2*len(text) > mcp.MaxResultBytes {
		t.Errorf("truncated %v, %d processes", out.Truncated, len(out.Processes))
	}
}

// TestProcessArguments_OfAnotherTypeAreInvalidParams (spec/02 §2): and reach nobody.
func TestProcessArguments_OfAnotherTypeAreInvalidParams(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[1].client(t, newServer(t, d), nil)
	p := run(t, d, client, `{"workspace_id":"main","command":["x"],"tty":true}`)
	for tool, list := range map[string][]string{
		"exec_command": {
			`{"workspace_id":"main"}`, `{"command":["x"]}`, `{"workspace_id":"main","command":"x"}`, `{"workspace_id":"main","command":["x",1]}`,
			`{"workspace_id":"main","command":["x",null]}`, `{"workspace_id":"main","command":["x",["y"]]}`, `{"workspace_id":"main","command":["x",{}]}`,
			`{"workspace_id":"main","command":null}`, `{"workspace_id":"main","command":["x"],"tty":"yes"}`,
		},
		"write_stdin": {`{"process_id":"proc-1"}`, `{"data":"x"}`, `{"process_id":"proc-1","data":5}`, `{"process_id":"proc-1","data":"x","close":1}`},
		"read_process": {
			`{}`, `{"process_id":"proc-1","cursor":-1}`, `{"process_id":"proc-1","wait_ms":-1}`, `{"process_id":"proc-1","wait_ms":4294967296}`,
			`{"process_id":"proc-1","limit":"9"}`, `{"process_id":"proc-1","stream":"stdin"}`, `{"process_id":"proc-1","stream":1}`,
		},
		"process_status":    {`{}`, `{"process_id":1}`},
		"process_list":      {`{}`},
		"terminate_process": {`{}`, `{"process_id":"proc-1","signal":9}`, `{"process_id":"proc-1","grace_ms":-1}`},
		"process_resize":    {`{"process_id":"proc-1","rows":1}`, `{"process_id":"proc-1","rows":1,"cols":65536}`, `{"process_id":"proc-1","rows":-1,"cols":1}`, `{"process_id":"proc-1","rows":1.5,"cols":1}`},
	} {
		for _, args := range list {
			_, err := client.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s %s: %v, want -32602", tool, args, err)
			}
		}
	}
	if len(d.processes) != 1 || p.input != "" || p.closed || len(p.kills) > 0 || p.size != (writ.TerminalSize{}) || p.query != (writ.OutputQuery{}) {
		t.Errorf("something was done: %d processes, %+v", len(d.processes), p)
	}
}
