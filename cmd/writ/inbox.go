package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"writ"
	"writ/client"
)

type inboxCmd struct {
	List    inboxListCmd    `cmd:"" help:"List the instructions of a work, and those that wait for the next one in its workspace."`
	Add     inboxAddCmd     `cmd:"" help:"Write an instruction: a draft, unless --queue is given."`
	Edit    inboxEditCmd    `cmd:"" help:"Change the text of a draft or of a queued instruction."`
	Queue   inboxQueueCmd   `cmd:"" help:"Give a draft to the agent: it comes after all that are queued."`
	Cancel  inboxCancelCmd  `cmd:"" help:"Withdraw an instruction that no agent has claimed."`
	Reorder inboxReorderCmd `cmd:"" help:"Put the queued instructions of a work in another order."`
	Stop    inboxStopCmd    `cmd:"" help:"End the processes of a work's workspace, and tell its agent."`
}

func (*inboxCmd) Help() string {
	return `An agent claims its instructions one by one, at checkpoints of its own. Delivery says when: next_checkpoint, when it asks next;
after_current_work, once it says that it is done; next_work, in the work that is opened after this one. What it has claimed does not
change any more.`
}

type inboxListCmd struct {
	workArg
	JSON bool `name:"json" help:"One JSON object a line."`
}

func (l *inboxListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		intents, err := cl.Intents(ctx, l.ID)
		if err != nil {
			return err
		}
		return listIntents(e, intents, l.JSON)
	})
}

type intentArg struct {
	ID writ.IntentID `arg:"" name:"intent" help:"Id of the instruction."`
}

// Validate is as that of taskArg.
func (a intentArg) Validate() error { return named("intent", a.ID) }

// textArg is an instruction on the command line.
type textArg struct {
	Text []string `arg:"" help:"What the agent is to do; - reads it from standard input."`
}

func (a textArg) read(e env) (string, error) {
	if len(a.Text) != 1 || a.Text[0] != "-" {
		return strings.Join(a.Text, " "), nil
	}
	b, err := io.ReadAll(io.LimitReader(e.stdin, writ.MaxIntentBytes+1))
	if err != nil {
		return "", fmt.Errorf("read the instruction: %w", err)
	}
	return string(b), nil
}

type inboxAddCmd struct {
	workArg
	textArg
	Delivery writ.Delivery `short:"d" help:"next_checkpoint, after_current_work or next_work." enum:"next_checkpoint,after_current_work,next_work" default:"after_current_work"`
	Note     bool          `help:"A note: nothing to be done about."`
	Queue    bool          `short:"q" help:"Give it to the agent at once."`
	JSON     bool          `name:"json" help:"As JSON."`
}

// Validate is that of its work: both parts have one.
func (a *inboxAddCmd) Validate() error { return a.workArg.Validate() }

func (a *inboxAddCmd) Run(ctx context.Context, c *cli, e env) error {
	text, err := a.read(e)
	if err != nil {
		return err
	}
	req := writ.IntentRequest{Body: text, Delivery: a.Delivery}
	if a.Note {
		req.Kind = writ.IntentNote
	}
	if err := req.Validate(); err != nil {
		return &writ.Error{Kind: writ.Invalid, Op: "add", Msg: err.Error()}
	}
	return withTask(ctx, c, e, func(cl *client.Client) error {
		i, err := cl.AddIntent(ctx, a.ID, req)
		if err == nil && a.Queue {
			i, err = cl.QueueIntent(ctx, i.ID, i.Revision)
		}
		if err != nil {
			return err
		}
		if i.State == writ.IntentDraft {
			defer fmt.Fprintf(e.stderr, "writ: a draft, which no agent sees; give it to the agent with   writ inbox queue %s --revision %d\n", i.ID, i.Revision)
		}
		if i.Work == "" {
			defer fmt.Fprintf(e.stderr, "writ: work %s is closed: it waits for the next one in workspace %s\n", a.ID, i.Workspace)
		}
		return reportIntent(e, i, a.JSON)
	})
}

func reportIntent(e env, i writ.Intent, asJSON bool) error {
	if asJSON {
		return document(e.stdout, i)
	}
	fmt.Fprintf(e.stdout, "%s %s, revision %d\n", i.ID, i.State, i.Revision)
	return nil
}

type inboxEditCmd struct {
	intentArg
	textArg
	Revision int64         `required:"" help:"The revision that you have seen: when it has another, nothing changes." placeholder:"N"`
	Delivery writ.Delivery `short:"d" help:"Also when it is delivered." enum:"next_checkpoint,after_current_work,next_work," default:""`
	JSON     bool          `name:"json" help:"As JSON."`
}

func (a *inboxEditCmd) Run(ctx context.Context, c *cli, e env) error {
	text, err := a.read(e)
	if err != nil {
		return err
	}
	req := writ.IntentEdit{Revision: a.Revision, Body: text, Delivery: a.Delivery}
	if err := req.Validate(); err != nil {
		return &writ.Error{Kind: writ.Invalid, Op: "edit", Msg: err.Error()}
	}
	return withTask(ctx, c, e, func(cl *client.Client) error {
		i, err := cl.EditIntent(ctx, a.ID, req)
		if err != nil {
			return err
		}
		return reportIntent(e, i, a.JSON)
	})
}

type inboxQueueCmd struct {
	intentArg
	Revision int64 `required:"" help:"The revision that you have seen: when it has another, nothing changes." placeholder:"N"`
	JSON     bool  `name:"json" help:"As JSON."`
}

func (q *inboxQueueCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		i, err := cl.QueueIntent(ctx, q.ID, q.Revision)
		if err != nil {
			return err
		}
		return reportIntent(e, i, q.JSON)
	})
}

type inboxCancelCmd struct {
	intentArg
	JSON bool `name:"json" help:"As JSON."`
}

func (x *inboxCancelCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		i, err := cl.CancelIntent(ctx, x.ID)
		if err != nil {
			return err
		}
		return reportIntent(e, i, x.JSON)
	})
}

type inboxReorderCmd struct {
	workArg
	Intents []writ.IntentID `arg:"" name:"intents" help:"Ids of all that are queued, the first one first."`
	JSON    bool            `name:"json" help:"One JSON object a line."`
}

func (r *inboxReorderCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		intents, err := cl.ReorderIntents(ctx, r.ID, r.Intents)
		if err != nil {
			return err
		}
		return listIntents(e, intents, r.JSON)
	})
}

type inboxStopCmd struct {
	workArg
	Reason string `short:"r" help:"What the agent is told."`
	JSON   bool   `name:"json" help:"As JSON."`
}

func (s *inboxStopCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		stop, err := cl.StopWork(ctx, s.ID, s.Reason)
		if err != nil {
			return err
		}
		if s.JSON {
			return document(e.stdout, stop)
		}
		fmt.Fprintf(e.stdout, "%d process(es) ended\n", stop.Killed)
		return reportIntent(e, stop.Intent, false)
	})
}
