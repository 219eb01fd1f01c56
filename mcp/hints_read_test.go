package mcp_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"writ"
	"writ/mcp"
)

// together is a desk and its works, in which a read and the hint of its result each wait
// for the other to begin.
type together struct {
	*desk
	noWorks
	reading, asked chan struct{}
}

func (d together) Read(ctx context.Context, who writ.Principal, id writ.WorkspaceID, path string, offset, limit int64) (writ.FileWindow, error) {
	close(d.reading)
	select {
	case <-d.asked:
		return d.desk.Read(ctx, who, id, path, offset, limit)
	case <-ctx.Done():
		return writ.FileWindow{}, ctx.Err()
	}
}

func (d together) Hint(ctx context.Context, _ writ.Principal, _ writ.WorkspaceID, _ writ.WorkID) (writ.WorkHint, bool, error) {
	close(d.asked)
	select {
	case <-d.reading:
		return writ.WorkHint{Work: "work-1", Pending: 1}, true, nil
	case <-ctx.Done():
		return writ.WorkHint{}, false, ctx.Err()
	}
}

// TestScenario139_AHintIsHadMeanwhile: asking for it does not prolong a read.
func TestScenario139_AHintIsHadMeanwhile(t *testing.T) {
	d := together{newDesk(writ.ApprovalsOff), noWorks{}, make(chan struct{}), make(chan struct{})}
	s := mcp.New(slog.New(slog.DiscardHandler), mcp.Services{Workspaces: d, Processes: d, Sandbox: d, Works: d}, mcp.Options{})
	t.Cleanup(s.Close)
	var got struct {
		Content      string        `json:"content"`
		Coordination writ.WorkHint `json:"coordination"`
	}
	callTool(t, connections[0].client(t, s, nil), "read", `{"workspace_id":"main","path":"ok.txt"}`, &got)
	if got.Content != "hello\n" || got.Coordination.Pending != 1 {
		t.Errorf("%+v", got)
	}
}

// broken are works whose hints fail in the way of a fault in the program.
type broken struct{ noWorks }

func (broken) Hint(context.Context, writ.Principal, writ.WorkspaceID, writ.WorkID) (writ.WorkHint, bool, error) {
	panic("no hint")
}

// TestScenario139_NoHintEndsNoRead: a fault in a hint is neither the read's nor the
// server's, and the log says it only for what was read.
func TestScenario139_NoHintEndsNoRead(t *testing.T) {
	var log syncBuffer
	d := newDesk(writ.ApprovalsOff)
	s := mcp.New(slog.New(slog.NewTextHandler(&log, nil)), mcp.Services{Workspaces: d, Processes: d, Sandbox: d, Works: broken{}}, mcp.Options{})
	t.Cleanup(s.Close)
	client := connections[0].client(t, s, nil)
	if code, _ := callTool(t, client, "read", `{"workspace_id":"gone","path":"ok.txt"}`, nil); code != "WORKSPACE_NOT_FOUND" || strings.Contains(log.String(), "hint") {
		t.Errorf("%s, log %s", code, log.String())
	}
	var got map[string]any
	callTool(t, client, "read", `{"workspace_id":"main","path":"ok.txt"}`, &got)
	if got["content"] != "hello\n" || got["coordination"] != nil || strings.Count(log.String(), "no coordination hint") != 1 {
		t.Errorf("%v, log %s", got, log.String())
	}
}
