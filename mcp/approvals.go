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
			must("tool", oneOf("Tool whose call to hold.", applyPatchName)),
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
}

func approvalCreate(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Tool      string         `json:"tool"`
		Arguments jsontext.Value `json:"arguments"`
	}](c)
	if err != nil {
		return nil, err
	}
	switch in.Tool {
	case applyPatchName:
	case "exec_command":
		return nil, &writ.Error{Kind: writ.Denied, Code: codeUnauthorized, Msg: "exec_command is not offered by this server"}
	default:
		return nil, invalidParams("arguments/tool: want apply_patch")
	}
	// Arguments that do not decode are the held tool's error, in the envelope of this
	// one (spec/02 §5.13).
	args, err := decode[patchArgs](&call{tool: applyPatchTool(), args: in.Arguments})
	if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, &writ.Error{Kind: writ.Invalid, Code: codeInvalidPatch, Msg: "arguments of apply_patch: " + e.Message}
	}
	a, err := c.ws.CreateApproval(ctx, c.who, in.Tool, args.request())
	if err != nil {
		return nil, err
	}
	return approvalResult{Approval: a.ID, State: a.State}, nil
}

func approvalResolveTool() tool {
	return tool{
		name: "approval_resolve", title: "Grant or deny an approval",
		description: "Decide a pending approval. A grant lets operation_resume carry the change out: ask your user before you grant. Where an operator must decide, your grant is refused.",
		// It changes no file. What it decides cannot be undone, and a grant is what
		// stands between a held change and the files.
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
		name: "operation_resume", title: "Carry out an approved change",
		description: "Carry out what a granted approval holds, once. Again, it answers the same. An approval that is still pending is APPROVAL_CONFLICT.",
		hints:       hints{destructive: true, idempotent: true},
		in:          object{approvalID()},
		out: object{
			must("approval_id", text("")),
			must("state", text("consumed.")),
			may(applyPatchName, object(operationOutcome()).within("Result of the held apply_patch.")),
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
	a, op, err := c.ws.Resume(ctx, c.who, in.Approval)
	if err != nil {
		return nil, err
	}
	out := outcomeOf(op, false)
	return approvalResult{Approval: a.ID, State: a.State, Patch: &out}, nil
}
