package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"writ"
)

const applyPatchName = "apply_patch"

func approvalID() property {
	return must("approval_id", text("As the error APPROVAL_REQUIRED or approval_create answered it."))
}

func approvalCreateTool() tool {
	return tool{
		name: "approval_create", title: "Open an approval",
		description: "Hold a call of another tool for approval before it is made. The same call again answers the same approval while it is open.",
		hints:       hints{idempotent: true},
		in: object{
			must("tool", oneOf("Tool whose call to hold.", applyPatchName, execCommandName)),
			must("arguments", typed("object", "Arguments of that tool.")),
		},
		out: object{must("approval_id", text("")), must("state", text("pending until it is resolved."))},
		run: approvalCreate,
	}
}

// approvalResult is an approval on the wire, and what it was given for once that is
// done.
type approvalResult struct {
	Approval writ.ApprovalID    `json:"approval_id"`
	State    writ.ApprovalState `json:"state"`
	Patch    *outcome           `json:"apply_patch,omitempty"`
	Exec     *startResult       `json:"exec_command,omitempty"`
	Input    *doneResult        `json:"write_stdin,omitempty"`
}

func approvalCreate(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Tool      string         `json:"tool"`
		Arguments jsontext.Value `json:"arguments"`
	}](c)
	if err != nil {
		return nil, err
	}
	held, err := c.heldCall(in.Tool, in.Arguments)
	if err != nil {
		return nil, err
	}
	a, err := c.ws.CreateApproval(ctx, c.who, held)
	if err != nil {
		return nil, err
	}
	return approvalResult{Approval: a.ID, State: a.State}, nil
}

// heldCall is the call of the tool name with args. Arguments that do not decode are that
// tool's error, in the envelope of this one (spec/02 §5.13).
func (c *call) heldCall(name string, args []byte) (writ.ToolCall, error) {
	var (
		held writ.ToolCall
		code string
		err  error
	)
	switch name {
	case applyPatchName:
		var in patchArgs
		in, err = decode[patchArgs](&call{Server: c.Server, tool: applyPatchTool(), args: args})
		req := in.request()
		held.Patch, code = &req, codeInvalidPatch
	case execCommandName:
		var in execArgs
		in, err = decodeExec(&call{Server: c.Server, tool: execCommandTool(c.commands), args: args})
		req := in.request()
		held.Command, code = &req, codeInvalidCommand
	default:
		return held, invalidParams(fmt.Sprintf("arguments/tool: want %s or %s", applyPatchName, execCommandName))
	}
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		err = &writ.Error{Kind: writ.Invalid, Code: code, Msg: "arguments of " + name + ": " + e.Message}
	}
	return held, err
}

func approvalResolveTool() tool {
	return tool{
		name: "approval_resolve", title: "Grant or deny an approval",
		description: "Decide a pending approval. A grant lets operation_resume carry the call out: ask your user before you grant. Where an operator must decide, your grant is refused.",
		// It changes no file. What it decides cannot be undone, and a grant is what
		// stands between a held call and what it does.
		hints: hints{destructive: true},
		in: object{
			approvalID(),
			must("decision", oneOf("", "grant", "deny")),
		},
		out: object{must("approval_id", text("")), must("state", text("granted or denied."))},
		run: approvalResolve,
	}
}

func approvalResolve(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Approval writ.ApprovalID `json:"approval_id"`
		Decision writ.Verdict    `json:"decision"`
	}](c)
	if err != nil {
		return nil, err
	}
	if in.Decision != writ.Grant && in.Decision != writ.Refuse {
		return nil, invalidParams(fmt.Sprintf("arguments/decision: want %s or %s", writ.Grant, writ.Refuse))
	}
	c.approval = in.Approval
	a, err := c.ws.ResolveApproval(ctx, c.who, in.Approval, in.Decision == writ.Grant)
	if err != nil {
		return nil, err
	}
	return approvalResult{Approval: a.ID, State: a.State}, nil
}

func operationResumeTool() tool {
	return tool{
		name: "operation_resume", title: "Carry out an approved call",
		description: "Carry out what a granted approval holds, once. Again, it answers the same. An approval that is still pending is APPROVAL_CONFLICT.",
		hints:       hints{destructive: true, idempotent: true},
		in:          object{approvalID()},
		out: object{
			must("approval_id", text("")),
			must("state", text("consumed.")),
			may(applyPatchName, object(operationOutcome()).within("Result of the held apply_patch.")),
			may(execCommandName, object(started()).within("Result of the held exec_command.")),
			may(writeStdinName, object{done()}.within("Result of the held write_stdin.")),
		},
		run: operationResume,
	}
}

func operationResume(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Approval writ.ApprovalID `json:"approval_id"`
	}](c)
	if err != nil {
		return nil, err
	}
	c.approval = in.Approval
	r, err := c.ws.Resume(ctx, c.who, in.Approval)
	if err != nil {
		return nil, err
	}
	out := approvalResult{Approval: r.Approval.ID, State: r.Approval.State}
	switch {
	case r.Operation != nil:
		patched := outcomeOf(*r.Operation, false)
		out.Patch = &patched
	case r.Process != nil && r.Approval.Action == writ.ActionInput:
		out.Input = &doneResult{OK: true}
	case r.Process != nil:
		c.process = r.Process.ID
		started := startOf(*r.Process)
		out.Exec = &started
	default:
		return nil, fmt.Errorf("resuming %s came to neither an operation nor a process", r.Approval.ID)
	}
	return out, nil
}
