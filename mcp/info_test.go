package mcp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/mcp"
)

// TestWorkspaceInfo_ClaimsNoMoreThanIsTrue of commands: of this workspace, with this
// server, on this host.
func TestWorkspaceInfo_ClaimsNoMoreThanIsTrue(t *testing.T) {
	type facts struct {
		Supported, Available      bool
		Sandbox, Network          string
		RunnerGone, Gone, Restart string
	}
	child := facts{true, true, "linux-sandbox", "enforced", "terminate", "terminate", "handles"}
	none := func(f facts) facts { f.Available, f.RunnerGone, f.Gone, f.Restart = false, "", "", ""; return f }
	bare := facts{Sandbox: "none", Network: "none"}
	same := func(*writ.Workspace) {}
	for name, test := range map[string]struct {
		with func(*writ.Workspace)
		opt  mcp.Commands
		bare bool
		want facts
	}{
		"a child":                {same, mcp.Commands{}, false, child},
		"a runner apart":         {same, mcp.Commands{Apart: true}, false, facts{true, true, "linux-sandbox", "enforced", "keep_running", "keep_running", "processes"}},
		"no sandbox":             {same, mcp.Commands{Apart: true, Egress: true}, true, bare},
		"for reading":            {func(w *writ.Workspace) { w.Profile = writ.ReadOnly }, mcp.Commands{}, false, none(child)},
		"a container":            {func(w *writ.Workspace) { w.EnvironmentKind = writ.EnvironmentContainer }, mcp.Commands{}, false, bare},
		"a network without exit": {func(w *writ.Workspace) { w.Network = writ.NetworkEnabled }, mcp.Commands{}, false, none(child)},
		"a network":              {func(w *writ.Workspace) { w.Network = writ.NetworkEnabled }, mcp.Commands{Egress: true}, false, child},
		"an authority":           {func(w *writ.Workspace) { w.Participation = writ.ParticipationRequired }, mcp.Commands{}, false, none(child)},
		"no authority":           {func(w *writ.Workspace) { w.Participation = writ.ParticipationOff }, mcp.Commands{}, false, child},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(writ.ApprovalsOff)
			d.bare = test.bare
			test.with(&d.spaces[0])
			var out struct {
				Execution struct {
					Environment struct {
						Exec bool `json:"exec_supported"`
					} `json:"environment"`
					Process struct {
						Available    bool `json:"available"`
						Capabilities *struct {
							Lifetime struct {
								Runner   string `json:"runner_disconnect"`
								Gateway  string `json:"gateway_shutdown"`
								Recovery string `json:"restart_recovery"`
							} `json:"lifetime"`
						} `json:"capabilities"`
					} `json:"process"`
					Isolation struct {
						Sandbox string `json:"command_sandbox"`
					} `json:"isolation"`
					Network struct {
						Enforcement string `json:"enforcement"`
					} `json:"network"`
				} `json:"execution"`
			}
			callTool(t, connections[0].client(t, newServerWith(t, d, mcp.Options{Commands: test.opt}), nil), "workspace_info", `{"workspace_id":"main"}`, &out)
			e := out.Execution
			got := facts{Supported: e.Environment.Exec, Available: e.Process.Available, Sandbox: e.Isolation.Sandbox, Network: e.Network.Enforcement}
			if c := e.Process.Capabilities; c != nil {
				got.RunnerGone, got.Gone, got.Restart = c.Lifetime.Runner, c.Lifetime.Gateway, c.Lifetime.Recovery
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestMCP21_CommandsThatReachTheNetwork are open to the world, and no other tool is.
func TestMCP21_CommandsThatReachTheNetwork(t *testing.T) {
	client := connections[0].client(t, newServerWith(t, newDesk(writ.ApprovalsOff), mcp.Options{Commands: mcp.Commands{Egress: true}}), nil)
	res, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range res.Tools {
		if open := *tool.Annotations.OpenWorldHint; open != (tool.Name == "exec_command" || tool.Name == "write_stdin") {
			t.Errorf("%s: openWorld %v", tool.Name, open)
		}
	}
}
