package mcpclients

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// usedTools are those that these tests call. Package mcp pins the whole list.
var usedTools = []string{"apply_patch", "approval_resolve", "find", "operation_resume", "operation_status", "read", "workspace_info"}

// TestInspector: each of its calls is a connection of its own.
func TestInspector(t *testing.T) {
	over(t, across, func(t *testing.T, d *desk, era string) { work(t, d, inspector{t, era, d}) })
}

// TestMCPDo_ClientThatAsks: the client can ask its user, whom the server asks where the
// user may decide.
func TestMCPDo_ClientThatAsks(t *testing.T) {
	over(t, ways, func(t *testing.T, d *desk, era string) {
		c := connect(t, d, era, "both")
		work(t, d, c)
		asked(t, d, c)
		reviewed(t, d, c)
	})
}

// TestMCPDo_ClientThatCannotAsk: what is held waits for a call of its own.
func TestMCPDo_ClientThatCannotAsk(t *testing.T) {
	over(t, across, func(t *testing.T, d *desk, era string) { confirmed(t, d, connect(t, d, era, "off")) })
}

// work has c do once what a coding agent does all day.
func work(t *testing.T, d *desk, c client) {
	listed := c.tools()
	for _, name := range usedTools {
		if !slices.Contains(listed, name) {
			t.Errorf("the client is shown no %s: %q", name, listed)
		}
	}
	if got := c.call("workspace_info", map[string]any{}).Workspaces; !slices.Contains(got, "off") || !slices.Contains(got, "review") {
		t.Errorf("workspaces %q", got)
	}
	read := c.call("read", map[string]any{"workspace_id": "off", "path": "greeting.txt"})
	if read.failed || read.body.Content != "hello\n" || read.Version == "" {
		t.Errorf("read: %+v", read)
	}
	found := c.call("find", map[string]any{"workspace_id": "off", "glob": "*.md"})
	if diff := cmp.Diff([]string{"deep/notes.md"}, found.Paths); diff != "" || found.failed {
		t.Errorf("find: %+v\n%s", found, diff)
	}
	if out := c.call("read", map[string]any{"workspace_id": "off", "path": "../review/greeting.txt"}); !out.failed || out.Code != "PATH_ESCAPE" {
		t.Errorf("read outside: %+v", out)
	}

	patch := map[string]any{
		"workspace_id": "off", "patch": change("hello", "hello, world"), "operation_key": "greet",
		"expected_versions": map[string]string{"greeting.txt": read.Version},
	}
	done := c.call("apply_patch", patch)
	if done.failed || done.Status != "applied" || done.Replayed || d.greeting("off") != "hello, world\n" {
		t.Errorf("apply_patch: %+v, the file has %q", done, d.greeting("off"))
	}
	again := c.call("apply_patch", patch)
	if again.failed || again.Operation != done.Operation || !again.Replayed {
		t.Errorf("the same key again: %+v, want the answer of %s", again, done.Operation)
	}
	status := c.call("operation_status", map[string]any{"operation_id": done.Operation})
	if status.failed || status.Status != "applied" {
		t.Errorf("operation_status: %+v", status)
	}
	delete(patch, "operation_key")
	if out := c.call("apply_patch", patch); !out.failed || out.Code != "VERSION_CONFLICT" || d.greeting("off") != "hello, world\n" {
		t.Errorf("apply_patch of a version that is gone: %+v, the file has %q", out, d.greeting("off"))
	}
}

// confirmed: the answer names the approval, which the client grants when its user says
// so.
func confirmed(t *testing.T, d *desk, c client) {
	held := c.call("apply_patch", map[string]any{"workspace_id": "confirm", "patch": change("hello", "hello, world")})
	if !held.failed || held.Code != "APPROVAL_REQUIRED" || held.Approval == "" {
		t.Fatalf("apply_patch: %+v", held)
	}
	id := map[string]any{"approval_id": held.Approval}
	if out := c.call("operation_resume", id); !out.failed || out.Code != "APPROVAL_CONFLICT" {
		t.Errorf("operation_resume before the grant: %+v", out)
	}
	if out := c.call("approval_resolve", map[string]any{"approval_id": held.Approval, "decision": "grant"}); out.failed || out.State != "granted" {
		t.Errorf("approval_resolve: %+v", out)
	}
	if got := d.greeting("confirm"); got != "hello\n" {
		t.Errorf("a grant alone changed the file to %q", got)
	}
	if out := c.call("operation_resume", id); out.failed || out.Resumed.Status != "applied" || d.greeting("confirm") != "hello, world\n" {
		t.Errorf("operation_resume: %+v, the file has %q", out, d.greeting("confirm"))
	}
}

// asked: the client's user is asked while the call is open, with a form or, in the newer
// era, through a result that says what is required.
func asked(t *testing.T, d *desk, c mcpdo) {
	ask := func(from, to string) string {
		t.Helper()
		out := c.call("apply_patch", map[string]any{"workspace_id": "confirm", "patch": change(from, to)})
		if out.pending == "" {
			t.Fatalf("the user was not asked: %+v", out)
		}
		return out.pending
	}
	if out := c.respond(ask("hello", "hello, no"), "--decline"); !out.failed || out.Code != "APPROVAL_CONFLICT" || d.greeting("confirm") != "hello\n" {
		t.Errorf("declined: %+v, the file has %q", out, d.greeting("confirm"))
	}
	if out := c.respond(ask("hello", "hello, perhaps"), "--cancel"); !out.failed || out.Code != "APPROVAL_REQUIRED" || d.greeting("confirm") != "hello\n" {
		t.Errorf("cancelled: %+v, the file has %q", out, d.greeting("confirm"))
	}
	if out := c.respond(ask("hello", "hello, world"), "{}"); out.failed || out.Status != "applied" || d.greeting("confirm") != "hello, world\n" {
		t.Errorf("accepted: %+v, the file has %q", out, d.greeting("confirm"))
	}
}

// reviewed: the client is not asked, and may not grant; an operator does.
func reviewed(t *testing.T, d *desk, c client) {
	held := c.call("apply_patch", map[string]any{"workspace_id": "review", "patch": change("hello", "hello, world")})
	if !held.failed || held.Code != "APPROVAL_REQUIRED" || held.Approval == "" {
		t.Fatalf("apply_patch: %+v", held)
	}
	if out := c.call("approval_resolve", map[string]any{"approval_id": held.Approval, "decision": "grant"}); !out.failed || out.Code != "UNAUTHORIZED" {
		t.Errorf("a client grants what it asked for: %+v", out)
	}
	d.writ("approvals", "grant", held.Approval, "--unseen")
	out := c.call("operation_resume", map[string]any{"approval_id": held.Approval})
	if out.failed || out.Resumed.Status != "applied" || d.greeting("review") != "hello, world\n" {
		t.Errorf("operation_resume: %+v, the file has %q", out, d.greeting("review"))
	}
}
