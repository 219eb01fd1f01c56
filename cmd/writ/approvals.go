package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"strings"

	"writ"
	"writ/client"
)

type approvalsCmd struct {
	List   approvalsListCmd   `cmd:"" help:"List held requests, newest first."`
	Show   approvalsShowCmd   `cmd:"" help:"Show exactly what would run or change, and who asked."`
	Grant  approvalsGrantCmd  `cmd:"" help:"Allow a request: on a terminal shows it and asks, else takes the digest of what you were shown."`
	Deny   approvalsDenyCmd   `cmd:"" help:"Refuse a request."`
	Resume approvalsResumeCmd `cmd:"" help:"Carry out a patch that was granted."`
}

type approvalsListCmd struct {
	All    bool   `short:"a" help:"Also those that are decided."`
	Limit  int    `help:"How many." default:"50"`
	Cursor string `help:"Where an earlier list ended."`
	JSON   bool   `name:"json" help:"One JSON object a line."`
}

func (l *approvalsListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		f := writ.ApprovalFilter{Page: writ.Page{Limit: l.Limit, Cursor: l.Cursor}}
		if !l.All {
			f.States = []writ.ApprovalState{writ.ApprovalPending}
		}
		items, next, err := cl.Approvals(ctx, f)
		if err != nil {
			return err
		}
		if next != "" {
			defer fmt.Fprintf(e.stderr, "more with --cursor %s\n", next)
		}
		return list(e.stdout, l.JSON, items, "APPROVAL STATE REQUESTER HELD EXPIRES REASON", func(a writ.Approval) []string {
			return []string{string(a.ID), string(a.State), requesterOf(a), whatIsHeld(a), when(a.Expires), a.Reason}
		})
	})
}

// requesterOf is the identity that something is for, else who asked for it.
func requesterOf(a writ.Approval) string { return cmp.Or(string(a.Identity), a.Requester.String()) }

// whatIsHeld is the task of a run, or what a tool would do and in which workspace.
func whatIsHeld(a writ.Approval) string {
	if a.Call != nil {
		return string(a.Action) + " in " + string(a.Call.Workspace)
	}
	return string(a.Task)
}

type approvalArg struct {
	ID writ.ApprovalID `arg:"" name:"approval" help:"Id of the approval."`
}

// Validate is as that of taskArg.
func (a approvalArg) Validate() error { return named("approval", a.ID) }

type approvalsShowCmd struct {
	approvalArg
	JSON bool `name:"json" help:"As JSON."`
}

func (s *approvalsShowCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		v, err := cl.Approval(ctx, s.ID)
		if err != nil {
			return err
		}
		if s.JSON {
			return document(e.stdout, v)
		}
		printView(e, v)
		return nil
	})
}

// printView prints what an approver must read, and its digest: what a grant names.
func printView(e env, v writ.ApprovalView) {
	fmt.Fprint(e.stdout, v.Text)
	fmt.Fprintf(e.stdout, "\nstate: %s\nshown: %s\n", v.State, v.Shown)
	for _, vote := range v.Votes {
		fmt.Fprintf(e.stdout, "vote:  %s by %s: %s\n", vote.Verdict, vote.By, oneLine(vote.Reason))
	}
}

type approvalsGrantCmd struct {
	approvalArg
	Reason string      `short:"r" help:"Why; it is recorded, and some rules ask for it."`
	Shown  writ.Digest `xor:"seen" help:"The digest that 'approvals show' printed: what you read is then all that you grant."`
	Unseen bool        `xor:"seen" help:"Grant what you have not read. That is recorded."`
}

// Run grants what somebody has read: what it shows and asks about, what --shown names,
// or, said so and recorded so, nothing.
func (g *approvalsGrantCmd) Run(ctx context.Context, c *cli, e env) error {
	asks := onTerminal(e.stdin) && onTerminal(e.stdout)
	if g.Shown == "" && !g.Unseen && !asks {
		return &writ.Error{Kind: writ.Invalid, Op: "grant", Msg: fmt.Sprintf(
			"a grant is for what somebody has read: run 'writ approvals show %s', and give the digest it ends with as --shown (or say --unseen, which is recorded)", g.ID)}
	}
	return withOperator(ctx, c, e, func(cl *client.Client) error {
		req := writ.VoteRequest{Verdict: writ.Grant, Reason: g.Reason, Shown: g.Shown}
		if g.Shown == "" {
			v, err := cl.Approval(ctx, g.ID)
			if err != nil {
				return err
			}
			req.Shown = v.Shown
			if g.Unseen {
				req.Reason = unseenReason(g.Reason, v.Need)
			} else {
				printView(e, v)
				question := "let it run?"
				if v.Action == writ.ActionPatch {
					question = "let it change the files?"
				}
				if !confirmed(e, question) {
					return &writ.Error{Kind: writ.Denied, Op: "grant", Msg: fmt.Sprintf("not granted; %s is still pending", g.ID)}
				}
			}
		}
		return vote(ctx, e, cl, g.ID, req)
	})
}

// unseenReason says in the record that nobody read what was granted. It is no reason
// where one is needed.
func unseenReason(reason string, need writ.Need) string {
	switch {
	case reason != "":
		return "(unseen) " + reason
	case need.Reason:
		return ""
	}
	return "(unseen)"
}

// confirmed asks a person at the terminal; anything but yes is no.
func confirmed(e env, question string) bool {
	fmt.Fprintf(e.stderr, "%s [y/N] ", question)
	line, _ := bufio.NewReader(e.stdin).ReadString('\n') // the end of the input is no answer
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true
	}
	return false
}

type approvalsDenyCmd struct {
	approvalArg
	Reason string `short:"r" help:"Why; the requester is told."`
}

func (d *approvalsDenyCmd) Run(ctx context.Context, c *cli, e env) error {
	return withOperator(ctx, c, e, func(cl *client.Client) error {
		return vote(ctx, e, cl, d.ID, writ.VoteRequest{Verdict: writ.Refuse, Reason: d.Reason})
	})
}

func vote(ctx context.Context, e env, cl *client.Client, id writ.ApprovalID, v writ.VoteRequest) error {
	a, err := cl.Vote(ctx, id, v)
	if err != nil {
		return err
	}
	if a.State == writ.ApprovalPending {
		n := 0
		for _, v := range a.Votes {
			if v.Verdict == writ.Grant {
				n++
			}
		}
		fmt.Fprintf(e.stdout, "%s %s: %d of %d grants\n", a.ID, a.State, n, a.Need.Grants)
		return nil
	}
	fmt.Fprintf(e.stdout, "%s %s\n", a.ID, a.State)
	if a.State == writ.ApprovalGranted && a.Call != nil {
		fmt.Fprintf(e.stderr, "writ: nothing has changed yet: who asked for it carries it out, or   writ approvals resume %s\n", a.ID)
	}
	return nil
}

type approvalsResumeCmd struct {
	approvalArg
	JSON bool `name:"json" help:"Print the operation, or the process, as JSON."`
}

// Run carries a granted call out, once: again, it says the same.
func (r *approvalsResumeCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		done, err := cl.Resume(ctx, r.ID)
		switch {
		case err != nil:
			return held(e, err)
		case done.Operation != nil && r.JSON:
			return document(e.stdout, done.Operation)
		case done.Operation != nil:
			return reportOperation(e, *done.Operation)
		case done.Process != nil && r.JSON:
			return document(e.stdout, done.Process)
		case done.Process != nil:
			return reportProcess(e, *done.Process)
		}
		return fmt.Errorf("resume %s: the server answered neither an operation nor a process", r.ID)
	})
}

// reportProcess says where a process stands that was started, or got its input.
func reportProcess(e env, p writ.Process) error {
	fmt.Fprintf(e.stdout, "%s %s\n", p.ID, cmp.Or(p.State, writ.ProcessRunning))
	if p.Dispatch == writ.DispatchUnknown {
		fmt.Fprintf(e.stderr, "writ: whether it was started is not known\n")
		return exit(exitFailed)
	}
	return nil
}

// withOperator calls fn with a client of an operator's rights.
func withOperator(ctx context.Context, c *cli, e env, fn func(*client.Client) error) error {
	cl, done, err := connect(ctx, c, e, true)
	if err != nil {
		return err
	}
	defer done()
	return fn(cl)
}
