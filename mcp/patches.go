package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"writ"
)

func applyPatchTool() tool {
	return tool{
		name: "apply_patch", title: "Apply patch",
		description: "Change files of a workspace with one V4A patch: all of it, or nothing. Where the workspace wants approval, the answer is APPROVAL_REQUIRED or a question to the user.",
		hints:       hints{destructive: true},
		in: object{
			workspaceID(),
			must("patch", text("*** Begin Patch, then *** Add File: / *** Update File: / *** Delete File: sections with relative paths, then *** End Patch.")),
			may("expected_versions", mapOf(text(""), "Path to the version it must have, as read answered it, or \"absent\". A file that has another is VERSION_CONFLICT and nothing changes.")),
			may("operation_key", text("Name of your choice for this request: sent again, it is answered again and not applied twice.")),
			may("check_only", flag("True to change nothing and say what would happen.")),
			workID(),
		},
		out: append(object(operationOutcome()), may("work_id", text("")), coordination()),
		run: applyPatch,
	}
}

// patchArgs are the arguments of apply_patch, also where approval_create takes them.
type patchArgs struct {
	Workspace writ.WorkspaceID  `json:"workspace_id"`
	Patch     string            `json:"patch"`
	Expected  map[string]string `json:"expected_versions"`
	Key       string            `json:"operation_key"`
	CheckOnly bool              `json:"check_only"`
	Work      writ.WorkID       `json:"work_id"`
}

func (a patchArgs) request() writ.PatchRequest {
	return writ.PatchRequest{Workspace: a.Workspace, Patch: a.Patch, Expected: a.Expected, CheckOnly: a.CheckOnly, Key: a.Key}
}

func applyPatch(ctx context.Context, c *call) (any, error) {
	in, err := decode[patchArgs](c)
	if err != nil {
		return nil, err
	}
	return c.unlessHeld(ctx, in, func() (any, error) {
		op, replayed, err := c.ws.Patch(ctx, c.who, in.request())
		if err != nil {
			return nil, err
		}
		return c.patched(ctx, in, op, replayed), nil
	})
}

func (a patchArgs) digest() writ.Digest {
	req := a.request()
	return writ.DigestOf([]byte("writ mcp apply_patch v1\n" + string(req.Fingerprint()) + "\n" + req.Key))
}

// maxNamed bounds how many files a question names.
const maxNamed = 20

func (a patchArgs) question(_ context.Context, _ *call, id writ.ApprovalID) string {
	var b strings.Builder
	verb := "Change"
	if a.CheckOnly {
		verb = "Check, without changing,"
	}
	fmt.Fprintf(&b, "%s files in workspace %s?", verb, shown(string(a.Workspace)))
	n := 0
	for line := range strings.Lines(a.Patch) {
		what, path, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "*** "), ": ")
		if !ok || !strings.HasPrefix(strings.TrimSpace(line), "*** ") {
			continue
		}
		if n++; n <= maxNamed {
			fmt.Fprintf(&b, "\n%s: %s", shown(what), shown(path))
		}
	}
	if n > maxNamed {
		fmt.Fprintf(&b, "\nand %d more", n-maxNamed)
	}
	fmt.Fprintf(&b, "\nApproval %s: \"writ approvals show %s\" shows the diff.", id, id)
	return b.String()
}

func (a patchArgs) resumed(ctx context.Context, c *call, r writ.Resumed) (any, error) {
	if r.Operation == nil {
		return nil, errors.New("a held patch was carried out as something else")
	}
	return c.patched(ctx, a, *r.Operation, false), nil
}

// patchResult is what apply_patch answers.
type patchResult struct {
	outcome
	Work         writ.WorkID    `json:"work_id,omitempty"` // the open work that the call named
	Coordination *writ.WorkHint `json:"coordination,omitempty"`
}

func (c *call) patched(ctx context.Context, in patchArgs, op writ.Operation, replayed bool) patchResult {
	out := patchResult{outcome: outcomeOf(op, replayed), Coordination: c.hint(ctx, in.Workspace, in.Work)}
	if in.Work != "" && out.Coordination != nil {
		out.Work = in.Work
	}
	return out
}

// outcome is an operation as apply_patch answers it.
type outcome struct {
	Status    writ.PatchStatus  `json:"status"`
	Operation writ.OperationID  `json:"operation_id"`
	Replayed  bool              `json:"replayed"`
	Files     []string          `json:"files"`
	Changes   []writ.FileChange `json:"changes"`
	Truncated bool              `json:"truncated,omitzero"`
}

func outcomeOf(op writ.Operation, replayed bool) outcome {
	out := outcome{
		Status: op.Result.Status, Operation: op.ID, Replayed: replayed,
		Files: []string{}, Changes: []writ.FileChange{},
	}
	room := MaxResultBytes - envelopeBytes
	seen := map[string]bool{}
	for _, ch := range op.Result.Changes {
		cost := textCost(ch.Path) + 2*len(ch.Before) + 2*len(ch.After) + elementBytes
		if !seen[ch.Path] {
			cost += textCost(ch.Path) + elementBytes
		}
		if room -= cost; room < 0 {
			out.Truncated = true
			break
		}
		out.Changes = append(out.Changes, ch)
		if !seen[ch.Path] {
			seen[ch.Path] = true
			out.Files = append(out.Files, ch.Path)
		}
	}
	return out
}

func operationStatusTool() tool {
	return tool{
		name: "operation_status", title: "Operation status",
		description: "What became of a patch, by its operation_id or its operation_key: exactly one of them. Nothing is carried out.",
		hints:       hints{readOnly: true, idempotent: true},
		in: object{
			may("operation_id", text("As apply_patch answered it.")),
			may("operation_key", text("As apply_patch was given it.")),
		},
		out: append(object(operationOutcome()),
			must("kind", oneOf("", "patch")),
			must("workspace_id", text("")),
			must("created_at", count(0, 0, "Unix seconds.")),
			may("finished_at", count(0, 0, "Unix seconds; absent while it is not finished.")),
			must("events", listOf(object{
				must("name", oneOf("", "minted", "finished")),
				must("at", count(0, 0, "Unix seconds.")),
				may("status", text("")),
				may("reason", text("unknown means closed without a confirmed result.")),
			}.schema(), "")),
		),
		run: operationStatus,
	}
}

type statusResult struct {
	outcome
	Kind      string           `json:"kind"`
	Workspace writ.WorkspaceID `json:"workspace_id"`
	Created   int64            `json:"created_at"`
	Finished  int64            `json:"finished_at,omitzero"`
	Events    []statusEvent    `json:"events"`
}

type statusEvent struct {
	Name   string           `json:"name"`
	At     int64            `json:"at"`
	Status writ.PatchStatus `json:"status,omitempty"`
	Reason string           `json:"reason,omitempty"`
}

func operationStatus(ctx context.Context, c *call) (any, error) {
	in, err := decode[struct {
		Operation writ.OperationID `json:"operation_id"`
		Key       string           `json:"operation_key"`
	}](c)
	if err != nil {
		return nil, err
	}
	if (in.Operation == "") == (in.Key == "") {
		return nil, &writ.Error{
			Kind: writ.NotFound, Code: codeOperationNotFound,
			Msg: "want exactly one of operation_id and operation_key",
		}
	}
	op, err := c.ws.Operation(ctx, c.who, in.Operation, in.Key)
	if err != nil {
		return nil, err
	}
	return statusOf(op), nil
}

func statusOf(op writ.Operation) statusResult {
	out := statusResult{
		outcome: outcomeOf(op, false), Kind: "patch", Workspace: op.Workspace, Created: op.Created.Unix(),
		Events: []statusEvent{{Name: "minted", At: op.Created.Unix()}},
	}
	if op.Finished == nil {
		out.Status = writ.PatchUnknown
		return out
	}
	out.Finished = op.Finished.Unix()
	end := statusEvent{Name: "finished", At: out.Finished, Status: op.Result.Status, Reason: op.Result.Reason}
	switch {
	case op.Result.Status == writ.PatchUnknown:
		end.Reason = "unknown" // spec/02 §5.5
	case op.Code != "":
		end.Reason = op.Code
	}
	end.Reason = shorten(end.Reason)
	out.Events = slices.Insert(out.Events, 1, end)
	return out
}
