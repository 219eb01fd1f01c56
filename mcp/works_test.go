package mcp_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"writ"
	"writ/internal/testkit"
	"writ/mcp"
)

// steered is a server over a desk and real works, which a person steers.
type steered struct {
	*testkit.Steering
	t      *testing.T
	desk   *desk
	client *sdk.ClientSession
}

func newSteered(t *testing.T, c connection) *steered {
	t.Helper()
	d := newDesk(writ.ApprovalsOff)
	var spaces []writ.Workspace
	for _, w := range d.spaces {
		w.Tenant, w.Environment = writ.DefaultTenant, "local"
		spaces = append(spaces, w)
	}
	s := &steered{Steering: testkit.NewSteering(t, "sqlite:"+filepath.Join(t.TempDir(), "writ.db"), spaces...), t: t, desk: d}
	srv := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Processes: d, Sandbox: d, Works: s}, mcp.Options{Version: "1.2.3"})
	t.Cleanup(srv.Close)
	s.client = c.client(t, srv, nil)
	return s
}

var person = writ.Principal{Kind: writ.KindOperator, ID: "olga", Tenant: writ.DefaultTenant}

// queue gives the agent of a work an instruction.
func (s *steered) queue(work, body string, d writ.Delivery) writ.Intent {
	s.t.Helper()
	i, err := s.AddIntent(s.t.Context(), person, writ.WorkID(work), writ.IntentRequest{Body: body, Delivery: d})
	if err == nil {
		i, err = s.QueueIntent(s.t.Context(), person, i.ID, i.Revision)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return i
}

// call calls a tool and gives its result.
func (s *steered) call(name, args string) map[string]any {
	s.t.Helper()
	var got map[string]any
	if code, body := callTool(s.t, s.client, name, args, &got); code != "" {
		s.t.Fatalf("%s %s: %+v", name, args, body)
	}
	return got
}

// open opens a work in a workspace.
func (s *steered) open(workspace string) string {
	s.t.Helper()
	return s.call("work_open", `{"workspace_id":"`+workspace+`"}`)["work_id"].(string)
}

func (s *steered) want(name, args string, want map[string]any) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.call(name, args)); diff != "" {
		s.t.Errorf("%s %s (-want +got):\n%s", name, args, diff)
	}
}

func (s *steered) wantCode(name, args, code string) {
	s.t.Helper()
	if got, body := callTool(s.t, s.client, name, args, nil); got != code {
		s.t.Errorf("%s %s: %+v, want %s", name, args, body, code)
	}
}

// TestScenario134And135_WorkTools: the five tools, with the results of spec/02 §5.12.
func TestScenario134And135_WorkTools(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		s := newSteered(t, c)
		opened := s.call("work_open", `{"workspace_id":"main","title":"mend it","approved":true}`)
		id, _ := opened["work_id"].(string)
		if !strings.HasPrefix(id, "work-") || opened["workspace_id"] != "main" || opened["state"] != "active" || len(opened) != 3 {
			t.Fatalf("work_open: %v", opened)
		}
		work := `{"work_id":"` + id + `"}`
		s.want("steer_status", work, map[string]any{
			"work_id": id, "state": "active", "queued": 0.0, "claimed": 0.0, "claimable_now": 0.0, "queue_revision": 1.0,
		})
		s.want("steer_claim_next", work, map[string]any{})

		now := s.queue(id, "use <b> & \u2028 ☃", writ.DeliverCheckpoint)
		later := s.queue(id, "then this", writ.DeliverAfter)
		s.want("steer_claim_next", work, map[string]any{"item": map[string]any{
			"intent_id": string(now.ID), "revision": float64(now.Revision), "kind": "follow_up", "delivery": "next_checkpoint", "content": "use <b> & \u2028 ☃",
		}})
		status := s.call("steer_status", work)
		items, _ := status["claimed_items"].([]any)
		if status["queued"] != 1.0 || status["claimed"] != 1.0 || status["claimable_now"] != 0.0 || len(items) != 1 || items[0].(map[string]any)["intent_id"] != string(now.ID) {
			t.Errorf("status with a claim: %v", status)
		}
		s.want("work_finish", work, map[string]any{"work_id": id, "closed": false, "reason": "pending_user_input", "queued": 2.0, "state": "active"})

		done := s.call("steer_complete", `{"work_id":"`+id+`","intent_id":"`+string(now.ID)+`"}`)
		if done["state"] != "done" || done["body"] != now.Body || done["work_id"] != id || done["workspace_id"] != "main" {
			t.Errorf("steer_complete: %v", done)
		}
		s.want("work_finish", work, map[string]any{"work_id": id, "closed": false, "reason": "pending_user_input", "queued": 1.0, "state": "closing"})
		s.call("steer_claim_next", work)
		s.wantCode("steer_complete", `{"work_id":"`+id+`","intent_id":"`+string(now.ID)+`"}`, "INTENT_NOT_EDITABLE")
		s.wantCode("steer_complete", `{"work_id":"`+id+`","intent_id":"fb-none"}`, "INTENT_NOT_FOUND")
		blocked := s.call("steer_complete", `{"work_id":"`+id+`","intent_id":"`+string(later.ID)+`","outcome":"blocked"}`)
		if blocked["state"] != "blocked" {
			t.Errorf("steer_complete: %v", blocked)
		}
		s.want("work_finish", work, map[string]any{"work_id": id, "closed": true, "queued": 0.0, "state": "closed"})

		s.wantCode("work_finish", work, "WORK_CLOSED")
		s.wantCode("steer_claim_next", work, "WORK_CLOSED")
		s.wantCode("steer_status", `{"work_id":"work-none"}`, "WORK_NOT_FOUND")
		s.wantCode("work_finish", `{"work_id":""}`, "WORK_NOT_FOUND")
		s.wantCode("work_open", `{"workspace_id":"none"}`, "WORKSPACE_NOT_FOUND")
		s.Bar("alice")
		s.wantCode("work_open", `{"workspace_id":"main"}`, "UNAUTHORIZED")
		s.wantCode("steer_status", work, "UNAUTHORIZED")
	})
}

func TestWorkTools_ArgumentsOfAnotherForm(t *testing.T) {
	s := newSteered(t, connections[0])
	for _, c := range [][2]string{
		{"work_open", `{}`}, {"work_open", `{"workspace_id":1}`}, {"work_open", `{"workspace_id":"main","title":"` + strings.Repeat("x", writ.MaxTitleBytes+1) + `"}`},
		{"steer_status", `{}`}, {"steer_claim_next", `{"work_id":null}`}, {"steer_complete", `{"work_id":"w"}`},
		{"steer_complete", `{"work_id":"w","intent_id":"i","outcome":"claimed"}`}, {"work_finish", `{"work_id":[]}`},
	} {
		_, err := s.client.CallTool(t.Context(), &sdk.CallToolParams{Name: c[0], Arguments: []byte(c[1])})
		if err == nil || !strings.Contains(err.Error(), "arguments") {
			t.Errorf("%s %.60s: %v, want invalid params", c[0], c[1], err)
		}
	}
}

// TestScenario138_StopNoticeReachesTheAgent though it cannot be claimed.
func TestScenario138_StopNoticeReachesTheAgent(t *testing.T) {
	s := newSteered(t, connections[1])
	id := s.open("main")
	if _, err := s.StopWork(t.Context(), person, writ.WorkID(id), writ.StopRequest{Reason: "enough"}); err != nil {
		t.Fatal(err)
	}
	work := `{"work_id":"` + id + `"}`
	s.want("steer_claim_next", work, map[string]any{})
	notice := s.call("steer_status", work)["claimed_items"].([]any)[0].(map[string]any)
	if notice["kind"] != "stop_notice" || notice["content"] != "enough" {
		t.Errorf("the notice is %v", notice)
	}
	s.call("steer_complete", `{"work_id":"`+id+`","intent_id":"`+notice["intent_id"].(string)+`"}`)
	if got := s.call("work_finish", work); got["closed"] != true {
		t.Errorf("finish: %v", got)
	}
}

// TestScenario139_HintsAreCounts: in the results of the tools that have them, of the one
// open work or of the one that is named, and never a word of what users wrote.
func TestScenario139_HintsAreCounts(t *testing.T) {
	everywhere(t, func(t *testing.T, c connection) {
		s := newSteered(t, c)
		tools := map[string]string{
			"read":        `"workspace_id":"main","path":"ok.txt"`,
			"find":        `"workspace_id":"main"`,
			"apply_patch": `"workspace_id":"main","patch":"p"`,

			"exec_command": `"workspace_id":"main","command":["x"]`,
			"process_list": `"workspace_id":"main"`,
		}
		// hints calls each tool and wants that hint, or none.
		hints := func(when, more string, want map[string]any) {
			t.Helper()
			for name, args := range tools {
				got := s.call(name, "{"+args+more+"}")
				hint, _ := got["coordination"].(map[string]any)
				if diff := cmp.Diff(want, hint); diff != "" {
					t.Errorf("%s, %s: hint (-want +got):\n%s", name, when, diff)
				}
				if text := cmp.Diff(nil, got); strings.Contains(text, "classified") {
					t.Errorf("%s, %s: the result tells what a user wrote: %s", name, when, text)
				}
				if work, named := got["work_id"]; named != (name == "apply_patch" && more != "" && want != nil) || named && work != want["work_id"] {
					t.Errorf("%s, %s: work_id %v", name, when, work)
				}
			}
		}
		hints("no work is open", "", nil)
		id := s.open("main")
		s.queue(id, "classified", writ.DeliverCheckpoint)
		s.queue(id, "classified", writ.DeliverNextWork)
		if _, err := s.AddIntent(t.Context(), person, writ.WorkID(id), writ.IntentRequest{Body: "classified"}); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"work_id": id, "pending_user_items": 1.0, "queue_revision": 6.0}
		hints("one is open", "", want)
		hints("it is named", `,"work_id":"`+id+`"`, want)
		hints("another is named", `,"work_id":"work-none"`, nil)
		other := s.open("main")
		hints("two are open", "", nil)
		hints("one of two is named", `,"work_id":"`+id+`"`, want)
		s.call("work_finish", `{"work_id":"`+other+`"}`)
		hints("one is closed", "", want)
		hints("a closed one is named", `,"work_id":"`+other+`"`, nil)
		foreign := s.open("docs")
		hints("one elsewhere is named", `,"work_id":"`+foreign+`"`, nil)
		if got := s.call("read", `{"workspace_id":"docs","path":"ok.txt"}`); got["coordination"].(map[string]any)["work_id"] != foreign {
			t.Errorf("the hint elsewhere: %v", got)
		}
	})
}

// mute is works whose hints cannot be had.
type mute struct{ mcp.Works }

func (mute) Hint(context.Context, writ.Principal, writ.WorkspaceID, writ.WorkID) (writ.WorkHint, bool, error) {
	return writ.WorkHint{}, false, fail(writ.Unavailable, "", "the database does not answer")
}

// TestScenario139_NoHintIsNoFailure: what a tool did stays done.
func TestScenario139_NoHintIsNoFailure(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	srv := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Works: mute{noWorks{}}}, mcp.Options{})
	t.Cleanup(srv.Close)
	var got map[string]any
	callTool(t, connections[0].client(t, srv, nil), "apply_patch", `{"workspace_id":"main","patch":"p"}`, &got)
	if got["status"] != "applied" || got["coordination"] != nil {
		t.Errorf("without hints: %v", got)
	}
}
