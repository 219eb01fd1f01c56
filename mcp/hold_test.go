package mcp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
)

const patchArgs = `{"workspace_id":"main","patch":"*** Begin Patch\n*** Add File: a\u202eb.txt\n+x\n*** End Patch","operation_key":"k"}`

// TestHold_ByWhatTheUserSays: a client that can ask brings the question before its
// user, in both eras.
func TestHold_ByWhatTheUserSays(t *testing.T) {
	for _, test := range []struct {
		action string
		code   string
		state  writ.ApprovalState
		writes int
	}{
		{"accept", "", writ.ApprovalConsumed, 1},
		{"decline", "APPROVAL_CONFLICT", writ.ApprovalDenied, 0},
		{"cancel", "APPROVAL_REQUIRED", writ.ApprovalPending, 0},
	} {
		t.Run(test.action, func(t *testing.T) {
			everywhere(t, func(t *testing.T, c connection) {
				d := newDesk(writ.ApprovalsConfirm)
				var asked atomic.Pointer[sdk.ElicitParams]
				client := c.client(t, newServer(t, d), func(req *sdk.ElicitRequest) string {
					asked.Store(req.Params)
					return test.action
				})
				var out map[string]any
				code, body := callTool(t, client, "apply_patch", patchArgs, &out)
				state, writes := d.state("appr-1")
				if code != test.code || state != test.state || writes != test.writes {
					t.Errorf("code %q, approval %s, %d writes; want %q, %s, %d", code, state, writes, test.code, test.state, test.writes)
				}
				if code == "" && (out["status"] != "applied" || out["operation_id"] != "op-1") {
					t.Errorf("result %v", out)
				}
				if code != "" && body.Approval != "appr-1" {
					t.Errorf("the error does not name the approval: %+v", body)
				}
				p := asked.Load()
				if p == nil {
					t.Fatal("nobody was asked")
				}
				for _, part := range []string{"main", `Add File: a\u202eb.txt`, "appr-1"} {
					if !strings.Contains(p.Message, part) {
						t.Errorf("the question does not show %q: %s", part, p.Message)
					}
				}
				if strings.ContainsRune(p.Message, '\u202e') {
					t.Error("the question turns its text around")
				}
			})
		})
	}
}

// TestHold_WithoutAUserToAsk: a client that cannot ask, and any client where an
// operator decides, is told the id at once.
func TestHold_WithoutAUserToAsk(t *testing.T) {
	for _, mode := range []writ.ApprovalMode{writ.ApprovalsConfirm, writ.ApprovalsReview} {
		t.Run(string(mode), func(t *testing.T) {
			everywhere(t, func(t *testing.T, c connection) {
				d := newDesk(mode)
				ask := func(*sdk.ElicitRequest) string {
					t.Error("the requester was asked to review itself")
					return "accept"
				}
				if mode == writ.ApprovalsConfirm {
					ask = nil
				}
				client := c.client(t, newServer(t, d), ask)
				for range 2 { // scenario 121: the same request has the same hold
					if code, body := callTool(t, client, "apply_patch", patchArgs, nil); code != "APPROVAL_REQUIRED" || body.Approval != "appr-1" || body.Operation != "" {
						t.Errorf("%+v", body)
					}
				}
				if state, writes := d.state("appr-1"); state != writ.ApprovalPending || writes != 0 {
					t.Errorf("approval %s, %d writes", state, writes)
				}
				if mode == writ.ApprovalsReview {
					if code, _ := callTool(t, client, "approval_resolve", `{"approval_id":"appr-1","decision":"grant"}`, nil); code != "UNAUTHORIZED" {
						t.Errorf("own grant: code %q", code)
					}
				}
			})
		})
	}
}

// TestScenario116And117_ApprovalTools: hold, grant, resume once, replay; deny.
func TestScenario116And117_ApprovalTools(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		d := newDesk(writ.ApprovalsConfirm)
		client := c.client(t, newServer(t, d), nil)
		callTool(t, client, "apply_patch", patchArgs, nil)
		if code, b := callTool(t, client, "operation_resume", `{"approval_id":"appr-1"}`, nil); code != "APPROVAL_CONFLICT" || b.Approval != "appr-1" {
			t.Errorf("resume of a pending one: %+v", b)
		}
		var granted, done, again map[string]any
		callTool(t, client, "approval_resolve", `{"approval_id":"appr-1","decision":"grant"}`, &granted)
		callTool(t, client, "operation_resume", `{"approval_id":"appr-1"}`, &done)
		callTool(t, client, "operation_resume", `{"approval_id":"appr-1"}`, &again)
		if diff := cmp.Diff(map[string]any{"approval_id": "appr-1", "state": "granted"}, granted); diff != "" {
			t.Error(diff)
		}
		if done["state"] != "consumed" || done["apply_patch"].(map[string]any)["operation_id"] != "op-1" || !cmp.Equal(done, again) || d.applied != 1 {
			t.Errorf("%v, again %v, %d writes", done, again, d.applied)
		}
		if code, _ := callTool(t, client, "approval_resolve", `{"approval_id":"appr-1","decision":"deny"}`, nil); code != "APPROVAL_CONFLICT" {
			t.Errorf("resolved twice: %q", code)
		}
		var made map[string]any
		callTool(t, client, "approval_create", `{"tool":"apply_patch","arguments":{"workspace_id":"main","patch":"q"}}`, &made)
		if diff := cmp.Diff(map[string]any{"approval_id": "appr-2", "state": "pending"}, made); diff != "" {
			t.Error(diff)
		}
		callTool(t, client, "approval_resolve", `{"approval_id":"appr-2","decision":"deny"}`, nil)
		if code, _ := callTool(t, client, "operation_resume", `{"approval_id":"appr-2"}`, nil); code != "APPROVAL_CONFLICT" {
			t.Errorf("scenario 117: %q", code)
		}
		for args, want := range map[string]string{
			`{"tool":"apply_patch","arguments":{"workspace_id":"gone","patch":"q"}}`:              "WORKSPACE_NOT_FOUND",
			`{"tool":"apply_patch","arguments":{"workspace_id":"main"}}`:                          "INVALID_PATCH",
			`{"tool":"exec_command","arguments":{"workspace_id":"main"}}`:                         "INVALID_COMMAND",
			`{"tool":"exec_command","arguments":{"workspace_id":"main","command":["true",null]}}`: "INVALID_COMMAND",
			`{"tool":"exec_command","arguments":{"workspace_id":"main","command":[]}}`:            "INVALID_COMMAND",
			`{"tool":"exec_command","arguments":{"workspace_id":"docs","command":["true"]}}`:      "UNAUTHORIZED",
		} {
			if code, _ := callTool(t, client, "approval_create", args, nil); code != want {
				t.Errorf("%s: %q, want %s", args, code, want)
			}
		}
		if code, _ := callTool(t, client, "approval_resolve", `{"approval_id":"no","decision":"deny"}`, nil); code != "APPROVAL_NOT_FOUND" {
			t.Errorf("unknown: %q", code)
		}
	})
}

// alone is a call of revision 2026-07-28 by a client that can ask its user.
func alone(args, more string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"apply_patch","arguments":%s%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, args, more)
}

func answering(state, action string) string {
	text, _ := json.Marshal(state)
	return fmt.Sprintf(`,"requestState":%s,"inputResponses":{"approve":{"action":%q}}`, text, action)
}

// TestRequestState_IsSealed: what a client keeps is bound to who asked and what, and
// is good once. Nothing is decided by one that is not.
func TestRequestState_IsSealed(t *testing.T) {
	d := newDesk(writ.ApprovalsConfirm)
	w := newWeb(t, newServer(t, d)).with("Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "apply_patch")
	asked := w.post(http.StatusOK, alone(patchArgs, "")).Result
	if asked.ResultType != "input_required" || asked.RequestState == "" || asked.InputRequests == nil {
		t.Fatalf("no question: %+v", asked)
	}
	if strings.Contains(asked.RequestState, "appr-1") {
		t.Error("the state can be read")
	}
	refused := func(name string, w *web, args, state string) {
		t.Helper()
		if r := w.post(http.StatusBadRequest, alone(args, answering(state, "accept"))); r.code() != -32602 {
			t.Errorf("%s: %+v, want -32602", name, r)
		}
		if st, writes := d.state("appr-1"); st != writ.ApprovalPending || writes != 0 {
			t.Fatalf("%s: approval %s, %d writes", name, st, writes)
		}
	}
	flipped := []byte(asked.RequestState)
	flipped[len(flipped)/2] ^= 1
	refused("altered", w, patchArgs, string(flipped))
	refused("made up", w, patchArgs, "x")
	refused("cut", w, patchArgs, asked.RequestState[:20])
	refused("of another request", w, strings.Replace(patchArgs, "+x", "+y", 1), asked.RequestState)
	refused("of another key", w, strings.Replace(patchArgs, `"k"`, `"l"`, 1), asked.RequestState)
	refused("of another principal", w.with("Authorization", "Bearer bob-key"), patchArgs, asked.RequestState)

	// A state without an answer is a question again.
	if r := w.post(http.StatusOK, alone(patchArgs, `,"requestState":"`+asked.RequestState+`"`)); r.Result.ResultType != "input_required" {
		t.Errorf("without an answer: %+v", r)
	}
	if r := w.post(http.StatusOK, alone(patchArgs, answering(asked.RequestState, "accept"))); r.Result.IsError || r.Result.ResultType != "complete" {
		t.Fatalf("accepted: %+v", r)
	}
	if st, writes := d.state("appr-1"); st != writ.ApprovalConsumed || writes != 1 {
		t.Errorf("approval %s, %d writes", st, writes)
	}
	if r := w.post(http.StatusBadRequest, alone(patchArgs, answering(asked.RequestState, "accept"))); r.code() != -32602 || d.applied != 1 {
		t.Errorf("used twice: %+v, %d writes", r, d.applied)
	}
}

// TestRequestState_OfAnotherServer: a key is a server's own unless it is given.
func TestRequestState_OfAnotherServer(t *testing.T) {
	d := newDesk(writ.ApprovalsConfirm)
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "apply_patch"}
	one, two := newWeb(t, newServer(t, d)).with(headers...), newWeb(t, newServer(t, d)).with(headers...)
	state := one.post(http.StatusOK, alone(patchArgs, "")).Result.RequestState
	if r := two.post(http.StatusBadRequest, alone(patchArgs, answering(state, "accept"))); r.code() != -32602 {
		t.Errorf("%+v", r)
	}
}
