package main

import (
	"context"
	"errors"
	"fmt"

	"writ"
	"writ/client"
)

type workspacesCmd struct {
	List workspacesListCmd `cmd:"" default:"1" help:"List the registered workspaces."`
}

type workspacesListCmd struct {
	JSON bool `name:"json" help:"One JSON object a line."`
}

func (l *workspacesListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		all, err := cl.Workspaces(ctx)
		if err != nil {
			return err
		}
		return list(e.stdout, l.JSON, all, "WORKSPACE TENANT PROFILE APPROVALS NETWORK ENVIRONMENT ROOT", func(w writ.Workspace) []string {
			return []string{string(w.ID), string(w.Tenant), string(w.Profile), string(w.Approvals), string(w.Network), w.Environment, w.Root}
		})
	})
}

type operationsCmd struct {
	List operationsListCmd `cmd:"" help:"List what was done to workspaces, newest first."`
	Show operationsShowCmd `cmd:"" help:"Show one operation: who, what, and how it ended."`
	Undo operationsUndoCmd `cmd:"" help:"Take back what an operation changed: shows what that does and asks."`
}

type operationArg struct {
	ID writ.OperationID `arg:"" name:"operation" help:"Id of the operation."`
}

// Validate is as that of taskArg.
func (a operationArg) Validate() error { return named("operation", a.ID) }

type operationsListCmd struct {
	Workspace writ.WorkspaceID `help:"Only operations in this workspace."`
	Limit     int              `help:"How many." default:"50"`
	Cursor    string           `help:"Where an earlier list ended."`
	JSON      bool             `name:"json" help:"One JSON object a line."`
}

func (l *operationsListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		all, next, err := cl.Operations(ctx, writ.OperationFilter{Workspace: l.Workspace, Page: writ.Page{Limit: l.Limit, Cursor: l.Cursor}})
		if err != nil {
			return err
		}
		if next != "" {
			defer fmt.Fprintf(e.stderr, "more with --cursor %s\n", next)
		}
		return list(e.stdout, l.JSON, all, "OPERATION STATUS WORKSPACE BY CREATED FILES", func(op writ.Operation) []string {
			return []string{string(op.ID), string(op.Result.Status), string(op.Workspace), op.By.String(), when(op.Created), changedFiles(op.Result.Changes)}
		})
	})
}

// changedFiles names the first file of several.
func changedFiles(changes []writ.FileChange) string {
	switch len(changes) {
	case 0:
		return ""
	case 1:
		return changes[0].Path
	}
	return fmt.Sprintf("%s and %d more", changes[0].Path, len(changes)-1)
}

type operationsShowCmd struct {
	operationArg
	JSON bool `name:"json" help:"As JSON."`
}

func (s *operationsShowCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		op, err := cl.Operation(ctx, s.ID)
		if err != nil {
			return err
		}
		if s.JSON {
			return document(e.stdout, op)
		}
		return showOperation(e, op)
	})
}

func showOperation(e env, op writ.Operation) error {
	finished := ""
	if op.Finished != nil {
		finished = when(*op.Finished)
	}
	status := string(op.Result.Status)
	if op.CheckOnly {
		status += " (only checked)"
	}
	pairs := []string{
		"operation", string(op.ID), "status", status, "reason", op.Result.Reason, "code", op.Code, "message", op.Message,
		"workspace", string(op.Workspace), "root", op.Root, "by", op.By.String(), "key", op.Key, "undoes", string(op.Undoes),
		"approval", string(op.Approval), "created", when(op.Created), "finished", finished,
	}
	for _, ch := range op.Result.Changes {
		pairs = append(pairs, ch.Kind, ch.Path, "  before", ch.Before, "  after", ch.After)
	}
	return fields(e.stdout, pairs...)
}

type operationsUndoCmd struct {
	operationArg
	Check bool   `xor:"how" help:"Only show what it would do."`
	Yes   bool   `short:"y" xor:"how" help:"Do it without asking."`
	Key   string `name:"operation-key" help:"Your own name for it: sent twice, it is done once." placeholder:"NAME"`
	JSON  bool   `name:"json" help:"Print the operation as JSON."`
}

func (*operationsUndoCmd) Help() string {
	return `When a file is not as the operation left it, nothing changes. Where the workspace wants approval the undoing is held: the
approval's id is printed and the exit code is 122.`
}

func (u *operationsUndoCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		if !u.Yes {
			if done, err := u.look(ctx, e, cl); done || err != nil {
				return err
			}
		}
		op, err := cl.Undo(ctx, u.ID, writ.UndoRequest{Key: u.Key})
		if err != nil {
			return held(e, err)
		}
		return u.report(e, op)
	})
}

// look shows what the undoing would do and, unless that was all that is wanted, asks. A
// look at a workspace that wants approval would be held as well: there the approval has
// the diff.
func (u *operationsUndoCmd) look(ctx context.Context, e env, cl *client.Client) (done bool, err error) {
	question := "take it back?"
	holds, err := holdsChanges(ctx, cl, u.ID)
	if err != nil {
		return true, err
	}
	if holds && !u.Check {
		fmt.Fprintln(e.stderr, "writ: the workspace wants approval: what it would do stands in the approval")
		question = "ask for approval?"
	} else {
		would, err := cl.Undo(ctx, u.ID, writ.UndoRequest{CheckOnly: true})
		if err != nil {
			return true, held(e, err)
		}
		if u.Check {
			return true, u.report(e, would)
		}
		if err := printChanges(e, would.Result.Changes); err != nil {
			return true, err
		}
	}
	if !onTerminal(e.stdin) {
		return true, &writ.Error{Kind: writ.Invalid, Op: "undo", Msg: "nothing was changed: there is no terminal to ask at, say --yes (or --check, to look)"}
	}
	if !confirmed(e, question) {
		return true, &writ.Error{Kind: writ.Denied, Op: "undo", Msg: "nothing was changed"}
	}
	return false, nil
}

// holdsChanges reports whether the workspace of an operation is registered to want
// approval.
func holdsChanges(ctx context.Context, cl *client.Client, id writ.OperationID) (bool, error) {
	op, err := cl.Operation(ctx, id)
	if err != nil {
		return false, err
	}
	all, err := cl.Workspaces(ctx)
	if err != nil {
		return false, err
	}
	for _, w := range all {
		if w.ID == op.Workspace && w.Root == op.Root {
			return w.Approvals != writ.ApprovalsOff, nil
		}
	}
	return false, nil
}

func printChanges(e env, changes []writ.FileChange) error {
	return list(e.stdout, false, changes, "CHANGE FILE", func(ch writ.FileChange) []string { return []string{ch.Kind, ch.Path} })
}

func (u *operationsUndoCmd) report(e env, op writ.Operation) error {
	if u.JSON {
		return document(e.stdout, op)
	}
	if u.Check {
		if err := printChanges(e, op.Result.Changes); err != nil {
			return err
		}
	}
	return reportOperation(e, op)
}

// reportOperation says how an operation ended, and fails when it did not do what it was
// for.
func reportOperation(e env, op writ.Operation) error {
	fmt.Fprintf(e.stdout, "%s %s\n", op.ID, op.Result.Status)
	switch op.Result.Status {
	case writ.PatchApplied, writ.PatchChecked:
		return nil
	}
	fmt.Fprintf(e.stderr, "writ: %s\n", oneLine(op.Result.Reason))
	return exit(exitFailed)
}

// held says which approval an error waits for, if it is such a one.
func held(e env, err error) error {
	h, ok := errors.AsType[*writ.Held](err)
	if !ok {
		return err
	}
	fmt.Fprintln(e.stdout, h.Approval)
	fmt.Fprintf(e.stderr, "writ: %s\n", oneLine(writ.Message(err)))
	fmt.Fprintf(e.stderr, "writ: an operator can see it with   writ approvals show %s\n", h.Approval)
	fmt.Fprintf(e.stderr, "writ: and let it happen with        writ approvals grant %s   and   writ approvals resume %s\n", h.Approval, h.Approval)
	return exit(exitHeld)
}
