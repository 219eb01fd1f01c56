package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is one tool: what clients are shown of it, and what a call does.
type tool struct {
	name, title, description string
	hints                    hints
	in, out                  object
	faults                   faults
	// run answers what encodes to the tool's output schema, a result as the SDK has
	// it, or an error.
	run func(context.Context, *call) (any, error)
}

// hints are what a client may assume about a tool when it decides whether to ask its
// user. They are always told: what is left out is assumed the worst.
type hints struct {
	readOnly    bool
	destructive bool // may change or remove what is there, or let that happen
	idempotent  bool // the same arguments again change nothing more
	open        bool // reaches beyond the workspace
}

// allTools are the tools of a server on which cmds is true of commands, in the order of
// the contract (spec/02 §2).
func allTools(cmds Commands) []tool {
	return []tool{
		workspaceInfoTool(), readTool(), findTool(), applyPatchTool(), operationStatusTool(),
		execCommandTool(cmds), writeStdinTool(cmds), readProcessTool(), processStatusTool(),
		processResizeTool(), terminateProcessTool(), processListTool(),
		workOpenTool(), steerStatusTool(), steerClaimNextTool(), steerCompleteTool(), workFinishTool(),
		approvalCreateTool(), approvalResolveTool(), operationResumeTool(),
	}
}

// listing is the tool as clients are shown it.
func (t tool) listing() *sdk.Tool {
	return &sdk.Tool{
		Name: t.name, Title: t.title, Description: t.description,
		InputSchema: t.in.schema(), OutputSchema: t.out.schema(),
		Annotations: &sdk.ToolAnnotations{
			Title: t.title, ReadOnlyHint: t.hints.readOnly, IdempotentHint: t.hints.idempotent,
			DestructiveHint: &t.hints.destructive, OpenWorldHint: &t.hints.open,
		},
	}
}
