package mcp_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/mcp"
)

// waiting is works in which two instructions wait, in workspace main.
type waiting struct{ noWorks }

func (waiting) Hint(_ context.Context, _ writ.Principal, w writ.WorkspaceID, work writ.WorkID) (writ.WorkHint, bool, error) {
	return writ.WorkHint{Work: "work-1", Pending: 2, Revision: 5}, w == "main" && work == "", nil
}

// TestScenario139_HintsOfProcesses: the tools that take a process find its workspace by
// themselves, and ask for it once.
func TestScenario139_HintsOfProcesses(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	d.as(func() {
		for _, w := range []writ.WorkspaceID{"main", "docs"} {
			if _, err := d.start(writ.CommandRequest{Workspace: w, Command: []string{"x"}, TTY: true}); err != nil {
				t.Fatal(err)
			}
		}
	})
	s := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Processes: d, Sandbox: d, Works: waiting{}}, mcp.Options{})
	t.Cleanup(s.Close)
	client := connections[0].client(t, s, nil)
	calls := []struct{ tool, more string }{
		{"write_stdin", `,"data":"x"`}, {"read_process", ""}, {"process_resize", `,"rows":1,"cols":1`}, {"process_status", ""}, {"terminate_process", ""},
	}
	want := map[string]any{"work_id": "work-1", "pending_user_items": 2.0, "queue_revision": 5.0}
	for _, c := range calls {
		var got, elsewhere map[string]any
		callTool(t, client, c.tool, `{"process_id":"proc-1"`+c.more+`}`, &got)
		callTool(t, client, c.tool, `{"process_id":"proc-2"`+c.more+`}`, &elsewhere)
		if diff := cmp.Diff(want, got["coordination"]); diff != "" || elsewhere["coordination"] != nil {
			t.Errorf("%s (-want +got):\n%s\nand elsewhere %v", c.tool, diff, elsewhere["coordination"])
		}
	}
	if d.looks != 4 { // one for each process, and one for each status
		t.Errorf("processes were looked up %d times", d.looks)
	}
}

// TestScenario139_NoHintOfAProcessIsNoFailure: neither where hints, nor where the process
// cannot be had.
func TestScenario139_NoHintOfAProcessIsNoFailure(t *testing.T) {
	d := newDesk(writ.ApprovalsOff)
	s := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Processes: forgetful{d}, Sandbox: d, Works: mute{noWorks{}}}, mcp.Options{})
	t.Cleanup(s.Close)
	client := connections[0].client(t, s, nil)
	p := run(t, d, client, `{"workspace_id":"main","command":["x"]}`)
	var got map[string]any
	callTool(t, client, "write_stdin", `{"process_id":"proc-1","data":"x"}`, &got)
	if !cmp.Equal(got, map[string]any{"ok": true}) || p.input != "x" {
		t.Errorf("%v, input %q", got, p.input)
	}
	again := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Processes: forgetful{d}, Sandbox: d, Works: waiting{}}, mcp.Options{})
	t.Cleanup(again.Close)
	callTool(t, connections[0].client(t, again, nil), "write_stdin", `{"process_id":"proc-1","data":"y"}`, &got)
	if !cmp.Equal(got, map[string]any{"ok": true}) || p.input != "xy" {
		t.Errorf("%v, input %q", got, p.input)
	}
}

// forgetful is a desk that cannot say what a process is.
type forgetful struct{ *desk }

func (forgetful) Process(context.Context, writ.Principal, writ.ProcessID) (writ.Process, error) {
	return writ.Process{}, fail(writ.Unavailable, "", "the database does not answer")
}
