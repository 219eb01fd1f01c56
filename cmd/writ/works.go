package main

import (
	"context"
	"fmt"
	"strconv"

	"writ"
	"writ/client"
)

type worksCmd struct {
	List worksListCmd `cmd:"" default:"withargs" help:"List what agents work on, newest first."`
	Show worksShowCmd `cmd:"" help:"Show one work, and what waits in it."`
}

type worksListCmd struct {
	Workspace writ.WorkspaceID `help:"Only works in this workspace."`
	All       bool             `short:"a" help:"Also those that are closed."`
	Limit     int              `help:"How many." default:"50"`
	Cursor    string           `help:"Where an earlier list ended."`
	JSON      bool             `name:"json" help:"One JSON object a line."`
}

func (l *worksListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		f := writ.WorkFilter{Workspace: l.Workspace, Page: writ.Page{Limit: l.Limit, Cursor: l.Cursor}}
		if !l.All {
			f.States = []writ.WorkState{writ.WorkActive, writ.WorkClosing}
		}
		works, next, err := cl.Works(ctx, f)
		if err != nil {
			return err
		}
		if next != "" {
			defer fmt.Fprintf(e.stderr, "more with --cursor %s\n", next)
		}
		return list(e.stdout, l.JSON, works, "WORK STATE WORKSPACE BY OPENED TITLE", func(w writ.Work) []string {
			return []string{string(w.ID), string(w.State), string(w.Workspace), w.By.String(), when(w.Created), w.Title}
		})
	})
}

type workArg struct {
	ID writ.WorkID `arg:"" name:"work" help:"Id of the work."`
}

// Validate is as that of taskArg.
func (a workArg) Validate() error { return named("work", a.ID) }

type worksShowCmd struct {
	workArg
	JSON bool `name:"json" help:"As JSON, with its intents."`
}

func (s *worksShowCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		w, err := cl.Work(ctx, s.ID)
		if err != nil {
			return err
		}
		intents, err := cl.Intents(ctx, s.ID)
		if err != nil {
			return err
		}
		if s.JSON {
			return document(e.stdout, struct {
				writ.Work
				Intents []writ.Intent `json:"intents"`
			}{w, intents})
		}
		closed := ""
		if w.Closed != nil {
			closed = when(*w.Closed)
		}
		if err := fields(e.stdout,
			"work", string(w.ID), "state", string(w.State), "title", w.Title, "workspace", string(w.Workspace), "root", w.Root,
			"by", w.By.String(), "opened", when(w.Created), "closed", closed, "revision", strconv.FormatInt(w.Revision, 10)); err != nil {
			return err
		}
		if len(intents) == 0 {
			return nil
		}
		fmt.Fprintln(e.stdout)
		return listIntents(e, intents, false)
	})
}

// listIntents prints intents; the last column has the beginning of each text.
func listIntents(e env, intents []writ.Intent, asJSON bool) error {
	return list(e.stdout, asJSON, intents, "INTENT STATE REVISION DELIVERY KIND BY TEXT", func(i writ.Intent) []string {
		text := []rune(i.Body)
		if len(text) > shownText {
			text = append(text[:shownText], '…')
		}
		return []string{string(i.ID), string(i.State), strconv.FormatInt(i.Revision, 10), string(i.Delivery), string(i.Kind), i.By.String(), string(text)}
	})
}

// shownText is how many characters of an intent a list shows.
const shownText = 80
