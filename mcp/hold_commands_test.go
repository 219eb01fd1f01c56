package mcp_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

const execArgs = `{"workspace_id":"main","command":["bash","-c","rm \u202e x"," "],"tty":true}`

// typing is a desk whose one process was started before its workspace wanted approvals.
func typing(t *testing.T) (d *desk, p *process) {
	t.Helper()
	d = newDesk(writ.ApprovalsConfirm)
	d.as(func() {
		if _, err := d.start(writ.CommandRequest{Workspace: "main", Command: []string{"/bin/sh"}}); err != nil {
			t.Fatal(err)
		}
		p = d.processes[0]
	})
	return d, p
}

const inputLine = `{"process_id":"proc-1","data":"rm -r \u202e.\n","close":true}`

// TestScenario119_HeldCommandAndInput: as with a patch, a client that can ask brings the
// question before its user, in both eras, and nothing happens unless it is accepted.
func TestScenario119_HeldCommandAndInput(t *testing.T) {
	for _, test := range []struct {
		action, code string
		state        writ.ApprovalState
		done         bool
	}{
		{"accept", "", writ.ApprovalConsumed, true},
		{"decline", "APPROVAL_CONFLICT", writ.ApprovalDenied, false},
		{"cancel", "APPROVAL_REQUIRED", writ.ApprovalPending, false},
	} {
		asking := func(t *testing.T, c connection, d *desk, tool, args string, shows ...string) map[string]any {
			var asked atomic.Pointer[sdk.ElicitParams]
			client := c.client(t, newServer(t, d), func(req *sdk.ElicitRequest) string {
				asked.Store(req.Params)
				return test.action
			})
			var out map[string]any
			code, body := callTool(t, client, tool, args, &out)
			if state, _ := d.state("appr-1"); code != test.code || state != test.state {
				t.Errorf("code %q, approval %s; want %q, %s", code, state, test.code, test.state)
			}
			if code != "" && body.Approval != "appr-1" {
				t.Errorf("the error does not name the approval: %+v", body)
			}
			p := asked.Load()
			if p == nil {
				t.Fatal("nobody was asked")
			}
			for _, part := range append(shows, "main", "appr-1") {
				if !strings.Contains(p.Message, part) {
					t.Errorf("the question does not show %s: %s", part, p.Message)
				}
			}
			if strings.ContainsRune(p.Message, '\u202e') {
				t.Error("the question turns its text around")
			}
			return out
		}
		t.Run("exec_command/"+test.action, func(t *testing.T) {
			everywhere(t, func(t *testing.T, c connection) {
				d := newDesk(writ.ApprovalsConfirm)
				out := asking(t, c, d, "exec_command", execArgs, `"bash" "-c" "rm \u202e x" " "`, "terminal")
				if (len(d.processes) == 1) != test.done {
					t.Fatalf("%d processes", len(d.processes))
				}
				if test.done {
					if diff := cmp.Diff(map[string]any{"process_id": "proc-1", "dispatch_status": "confirmed"}, out); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		})
		t.Run("write_stdin/"+test.action, func(t *testing.T) {
			everywhere(t, func(t *testing.T, c connection) {
				d, p := typing(t)
				out := asking(t, c, d, "write_stdin", inputLine, "proc-1", "sh", `"rm -r \u202e.\n"`, "end its input")
				if (p.input == "rm -r \u202e.\n" && p.closed) != test.done || !test.done && p.input != "" {
					t.Errorf("input %q, closed %v", p.input, p.closed)
				}
				if test.done && !cmp.Equal(out, map[string]any{"ok": true}) {
					t.Errorf("result %v", out)
				}
			})
		})
	}
}

// TestHeldCommandAndInput_WithoutAUserToAsk: the id is told at once, and the approval
// tools go on from there, once.
func TestHeldCommandAndInput_WithoutAUserToAsk(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		d, p := typing(t)
		client := c.client(t, newServer(t, d), nil)
		for i, held := range []struct {
			tool, args string
			want       map[string]any
		}{
			{"exec_command", execArgs, map[string]any{"exec_command": map[string]any{"process_id": "proc-2", "dispatch_status": "confirmed"}}},
			{"write_stdin", inputLine, map[string]any{"write_stdin": map[string]any{"ok": true}}},
			{"exec_command", `{"workspace_id":"main","command":["lost"]}`, map[string]any{"exec_command": map[string]any{"process_id": "proc-3", "dispatch_status": "unknown"}}},
		} {
			id := fmt.Sprint("appr-", i+1)
			for range 2 { // scenario 121
				if code, b := callTool(t, client, held.tool, held.args, nil); code != "APPROVAL_REQUIRED" || b.Approval != id {
					t.Fatalf("%s: %+v", held.tool, b)
				}
			}
			if code, b := callTool(t, client, "operation_resume", `{"approval_id":"`+id+`"}`, nil); code != "APPROVAL_CONFLICT" || b.Approval != id {
				t.Errorf("resume of a pending one: %+v", b)
			}
			var done, again map[string]any
			callTool(t, client, "approval_resolve", `{"approval_id":"`+id+`","decision":"grant"}`, nil)
			callTool(t, client, "operation_resume", `{"approval_id":"`+id+`"}`, &done)
			callTool(t, client, "operation_resume", `{"approval_id":"`+id+`"}`, &again)
			held.want["approval_id"], held.want["state"] = id, "consumed"
			if diff := cmp.Diff([]map[string]any{held.want, held.want}, []map[string]any{done, again}); diff != "" {
				t.Errorf("%s, twice (-want +got):\n%s", held.tool, diff)
			}
		}
		if len(d.processes) != 3 || p.input != "rm -r \u202e.\n" {
			t.Errorf("%d processes, input %q", len(d.processes), p.input)
		}
	})
}

// TestScenario120_ApprovalOfACommand: opened before the call is made, also where no
// approval is asked for.
func TestScenario120_ApprovalOfACommand(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	client := connections[0].client(t, newServer(t, d), nil)
	var made, again, done map[string]any
	callTool(t, client, "approval_create", `{"tool":"exec_command","arguments":`+execArgs+`}`, &made)
	callTool(t, client, "approval_create", `{"tool":"exec_command","arguments":`+execArgs+`}`, &again)
	if want := (map[string]any{"approval_id": "appr-1", "state": "pending"}); !cmp.Equal(want, made) || !cmp.Equal(want, again) || len(d.processes) > 0 {
		t.Errorf("%v, again %v, %d processes", made, again, len(d.processes))
	}
	callTool(t, client, "approval_resolve", `{"approval_id":"appr-1","decision":"grant"}`, nil)
	callTool(t, client, "operation_resume", `{"approval_id":"appr-1"}`, &done)
	if done["exec_command"] == nil || done["apply_patch"] != nil {
		t.Fatalf("%v", done)
	}
	want := writ.CommandRequest{Workspace: "main", Command: []string{"bash", "-c", "rm \u202e x", " "}, TTY: true}
	if diff := cmp.Diff(want, d.processes[0].request); diff != "" {
		t.Errorf("(-asked +made):\n%s", diff)
	}
}

// TestHeldCommandAndInput_InReview: the requester is not asked.
func TestHeldCommandAndInput_InReview(t *testing.T) {
	d, p := typing(t)
	d.spaces[0].Approvals = writ.ApprovalsReview
	for i, c := range connections[:2] {
		client := c.client(t, newServer(t, d), func(*sdk.ElicitRequest) string {
			t.Error("the requester was asked to review itself")
			return "accept"
		})
		for tool, args := range map[string]string{"exec_command": execArgs, "write_stdin": inputLine} {
			if code, _ := callTool(t, client, tool, args, nil); code != "APPROVAL_REQUIRED" {
				t.Errorf("%d: %s: %q", i, tool, code)
			}
		}
	}
	if len(d.processes) != 1 || p.input != "" {
		t.Error("something was done")
	}
}

// TestRequestState_OfACommand: is of this command, and of this tool.
func TestRequestState_OfACommand(t *testing.T) {
	d, p := typing(t)
	web := newWeb(t, newServer(t, d)).with("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call")
	send := func(status int, tool, args, more string) reply {
		t.Helper()
		return web.with("Mcp-Name", tool).post(status, strings.Replace(alone(args, more), "apply_patch", tool, 1))
	}
	command := send(http.StatusOK, "exec_command", execArgs, "").Result
	input := send(http.StatusOK, "write_stdin", inputLine, "").Result
	if command.ResultType != "input_required" || input.ResultType != "input_required" {
		t.Fatalf("no question: %+v, %+v", command, input)
	}
	for name, other := range map[string][3]string{
		"another command":   {"exec_command", strings.Replace(execArgs, "rm", "mv", 1), command.RequestState},
		"another split":     {"exec_command", strings.Replace(execArgs, `"-c","rm`, `"-c rm`, 1), command.RequestState},
		"no terminal":       {"exec_command", strings.Replace(execArgs, "true", "false", 1), command.RequestState},
		"another workspace": {"exec_command", strings.Replace(execArgs, "main", "docs", 1), command.RequestState},
		"of an input":       {"exec_command", execArgs, input.RequestState},
		"of a command":      {"write_stdin", inputLine, command.RequestState},
		"as a patch":        {"apply_patch", patchArgs, command.RequestState},
		"another input":     {"write_stdin", strings.Replace(inputLine, "-r", "-f", 1), input.RequestState},
		"another process":   {"write_stdin", strings.Replace(inputLine, "proc-1", "proc-2", 1), input.RequestState},
		"left open":         {"write_stdin", strings.Replace(inputLine, "true", "false", 1), input.RequestState},
	} {
		if r := send(http.StatusBadRequest, other[0], other[1], answering(other[2], "accept")); r.code() != -32602 {
			t.Errorf("%s: %+v, want -32602", name, r)
		}
	}
	if len(d.processes) != 1 || p.input != "" || d.applied > 0 {
		t.Fatalf("something was done: %d processes, input %q", len(d.processes), p.input)
	}
	for range 2 {
		send(http.StatusOK, "exec_command", execArgs, `,"requestState":"`+command.RequestState+`"`) // a question again
	}
	if r := send(http.StatusOK, "exec_command", execArgs, answering(command.RequestState, "accept")); r.Result.IsError || len(d.processes) != 2 {
		t.Errorf("%+v, %d processes", r, len(d.processes))
	}
	if r := send(http.StatusBadRequest, "exec_command", execArgs, answering(command.RequestState, "accept")); r.code() != -32602 || len(d.processes) != 2 {
		t.Errorf("used twice: %+v, %d processes", r, len(d.processes))
	}
}

// TestQuestions_SayWhatTheyLeaveOut: nobody agrees to a text that only begins here.
func TestQuestions_SayWhatTheyLeaveOut(t *testing.T) {
	d, _ := typing(t)
	long := strings.Repeat("y", 5000)
	var asked []string
	client := connections[1].client(t, newServer(t, d), func(req *sdk.ElicitRequest) string {
		asked = append(asked, req.Params.Message)
		return "cancel"
	})
	callTool(t, client, "exec_command", `{"workspace_id":"main","command":["sh","-c","`+long+`","last"]}`, nil)
	callTool(t, client, "write_stdin", `{"process_id":"proc-1","data":"`+long+`"}`, nil)
	callTool(t, client, "exec_command", `{"workspace_id":"main","command":["x"`+strings.Repeat(`,""`, 4095)+`]}`, nil)
	callTool(t, client, "exec_command", `{"workspace_id":"main","command":["`+strings.Repeat("y", 3998)+`","é"]}`, nil)
	for i, want := range []string{"element 3 of 4 goes on", "1000 bytes more", "element 4000 of 4096 goes on", "element 2 of 2 goes on"} {
		if i >= len(asked) || !strings.Contains(asked[i], want) || len(asked[i]) > 16_000 {
			t.Errorf("question %d does not say %q: %.300s", i, want, asked[min(i, len(asked)-1)])
		}
	}
}
