package mcp

import (
	"context"

	"writ"
)

const infoNote = "A workspace_id is a name, not a credential: what a call may do is decided for who makes it. This server calls no model."

// Caps of one call (spec/02 §3.3): told to clients, and what a call gets that names
// no limit. The service holds them.
const (
	readMaxBytes = 1 << 20
	findMaxPaths = 10_000
)

// maxListed bounds the list of workspaces in workspace_info.
const maxListed = 1000

func workspaceInfoTool() tool {
	return tool{
		name: "workspace_info", title: "Workspace info",
		description: "What this server and a workspace offer: permissions, limits, approvals, isolation. Without workspace_id it lists the workspaces you may use. Reads no files.",
		hints:       hints{readOnly: true, idempotent: true},
		in:          object{may("workspace_id", text("Workspace to describe; absent or empty for the server alone."))},
		out: object{
			must("server", text("")),
			must("version", text("")),
			must("internal_model_calls", flag("Always false.")),
			must("tools_exposed", listOf(text(""), "")),
			must("transports", listOf(text(""), "")),
			must("workspace_id", map[string]any{"type": []string{"string", "null"}}),
			must("workspace_id_is_credential", flag("Always false.")),
			must("note", text("")),
			may("workspaces", listOf(text(""), "Ids you may use; only without workspace_id.")),
			may("profile", oneOf("", "read-only", "workspace-write")),
			may("root", text("Absolute path on the server.")),
			may("execution", executionSchema()),
		},
		run: workspaceInfo,
	}
}

// executionSchema names the parts of execution and leaves their inside open.
func executionSchema() map[string]any {
	part := func(name string) property { return must(name, typed("object", "")) }
	return object{
		part("environment"), part("permissions"), part("files"), part("process"),
		part("serialization"), part("isolation"), part("network"),
		must("approvals", oneOf("off: changes happen at once. confirm: the caller grants its own. review: an operator decides.", "off", "confirm", "review")),
	}.within("Only with a workspace_id.")
}

type infoResult struct {
	Server       string            `json:"server"`
	Version      string            `json:"version"`
	ModelCalls   bool              `json:"internal_model_calls"`
	Tools        []string          `json:"tools_exposed"`
	Transports   []string          `json:"transports"`
	Workspace    *writ.WorkspaceID `json:"workspace_id"`
	IsCredential bool              `json:"workspace_id_is_credential"`
	Note         string            `json:"note"`
	Workspaces   []string          `json:"workspaces,omitempty"`
	Profile      writ.Profile      `json:"profile,omitempty"`
	Root         string            `json:"root,omitempty"`
	Execution    map[string]any    `json:"execution,omitempty"`
}

func workspaceInfo(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Workspace writ.WorkspaceID `json:"workspace_id"`
	}](c)
	if err != nil {
		return nil, err
	}
	out := infoResult{
		Server: serverName, Version: c.version, Note: infoNote,
		Transports: []string{"stdio", "streamable-http"},
	}
	for _, t := range c.tools {
		out.Tools = append(out.Tools, t.name)
	}
	if in.Workspace == "" {
		for _, w := range c.ws.Workspaces(c.who) {
			if len(out.Workspaces) < maxListed {
				out.Workspaces = append(out.Workspaces, string(w.ID))
			}
		}
		return out, nil
	}
	w, err := c.ws.Workspace(c.who, in.Workspace)
	if err != nil {
		return nil, err
	}
	_, unsafe := c.sandbox.Probe(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	out.Workspace, out.Profile, out.Root, out.Execution = &w.ID, w.Profile, w.Root, execution(w, c.commands, unsafe == nil)
	return out, nil
}

// execution is what can be done in w (spec/02 §5.1): what is permitted and supported,
// never what is free at the moment. sandboxed says that there are sandboxes: no command
// runs without one.
func execution(w writ.Workspace, cmds Commands, sandboxed bool) map[string]any {
	type m = map[string]any
	here := w.EnvironmentKind == writ.EnvironmentHost
	write := w.Profile == writ.WorkspaceWrite
	exec := here && sandboxed
	sandbox, enforcement := "none", "none"
	if exec {
		sandbox, enforcement = "linux-sandbox", "enforced"
	}
	process := m{"available": false}
	if exec && write && w.Participation != writ.ParticipationRequired && (w.Network == writ.NetworkRestricted || cmds.Egress) {
		process = m{"available": true, "capabilities": processCapabilities(cmds)}
	}
	return m{
		"environment": m{
			"kind": w.EnvironmentKind, "client_selectable": false,
			"exec_supported": exec, "file_read_supported": here, "file_write_supported": here,
		},
		"permissions": m{"read": true, "write": write, "exec": write},
		"files": m{
			"read": m{"available": here}, "find": m{"available": here}, "patch": m{"available": here && write},
			"capabilities": m{
				"read_range": true, "find_pagination": true,
				"read_max_bytes": readMaxBytes, "find_max_paths": findMaxPaths,
			},
		},
		"process": process,
		"serialization": m{
			"scope": "workspace", "live_process_holds_mutation_lease": true, "parallel_exec": false,
			"read_while_process_live": true, "find_while_process_live": true, "patch_while_process_live": false,
			"request_conflict": "wait-fifo", "process_conflict": "reject", "queue_durable": false,
			"max_waiters_per_resource": 64, "conflict_error": "WORKSPACE_BUSY", "queue_full_error": "RESOURCE_QUEUE_FULL",
		},
		"isolation": m{"file_tools_workspace_scoped": true, "command_sandbox": sandbox},
		"network":   m{"policy": w.Network, "enforcement": enforcement, "client_may_escalate": false},
		"approvals": w.Approvals,
	}
}

// processCapabilities are those of every process (spec/02 §5.1). Of its lifetime the
// contract knows a server that takes everything with it: here an id still answers how its
// process ended, or a runner apart keeps it running and both are found again.
func processCapabilities(cmds Commands) map[string]any {
	type m = map[string]any
	atEnd, recovery := "terminate", "handles"
	if cmds.Apart {
		atEnd, recovery = "keep_running", "processes"
	}
	return m{
		"handles": true, "survives_request_end": true, "write_stdin": true, "incremental_read": true, "terminate": true,
		"output_combined": true,
		"tty": m{
			"supported": true, "default": false, "resize_supported": true,
			"initial_rows": writ.FirstTerminalSize.Rows, "initial_cols": writ.FirstTerminalSize.Cols,
		},
		"lifetime": m{
			"owner": "runner", "client_disconnect": "keep_running",
			"runner_disconnect": atEnd, "gateway_shutdown": atEnd, "restart_recovery": recovery,
		},
	}
}
