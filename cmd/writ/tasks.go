package main

import (
	"context"
	"fmt"
	"time"

	"writ"
	"writ/client"
)

type tasksCmd struct {
	List   tasksListCmd   `cmd:"" help:"List tasks, newest first."`
	Show   tasksShowCmd   `cmd:"" help:"Show one task."`
	Output tasksOutputCmd `cmd:"" help:"Print what a task wrote: exactly, but on a terminal what does not show is written out."`
	Code   tasksCodeCmd   `cmd:"" help:"Print the code that a task runs, as output does."`
	Wait   tasksWaitCmd   `cmd:"" help:"Wait until a task is over; the exit code is that of 'writ run'."`
	Cancel tasksCancelCmd `cmd:"" help:"Cancel a task."`
	Forget tasksForgetCmd `cmd:"" help:"Delete code, inputs and output of a task; its record stays."`
}

type taskArg struct {
	ID writ.TaskID `arg:"" name:"task" help:"Id of the task."`
}

// Validate has an empty id, as of a variable that is not set, refused as a wrong
// command line: in a path it would name another thing.
func (a taskArg) Validate() error { return named("task", a.ID) }

func named[T ~string](what string, id T) error {
	if id == "" {
		return fmt.Errorf("the id of the %s is empty", what)
	}
	return nil
}

type tasksListCmd struct {
	State    []writ.TaskState `help:"Only tasks in one of these states."`
	Identity writ.IdentityID  `help:"Only tasks of this identity."`
	Limit    int              `help:"How many." default:"50"`
	Cursor   string           `help:"Where an earlier list ended."`
	JSON     bool             `name:"json" help:"One JSON object a line."`
}

func (l *tasksListCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		tasks, next, err := cl.Tasks(ctx, writ.TaskFilter{States: l.State, Identity: l.Identity, Page: writ.Page{Limit: l.Limit, Cursor: l.Cursor}})
		if err != nil {
			return err
		}
		if next != "" {
			defer fmt.Fprintf(e.stderr, "more with --cursor %s\n", next)
		}
		return list(e.stdout, l.JSON, tasks, "TASK STATE IDENTITY LANGUAGE CREATED REASON", func(t writ.Task) []string {
			return []string{string(t.ID), string(t.State), string(t.Identity), string(t.Language), when(t.Created), t.Reason}
		})
	})
}

type tasksShowCmd struct {
	taskArg
	JSON bool `name:"json" help:"As JSON."`
}

func (s *tasksShowCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		t, err := cl.Task(ctx, s.ID)
		if err != nil {
			return err
		}
		if s.JSON {
			return document(e.stdout, t)
		}
		return showTask(e, t)
	})
}

func showTask(e env, t writ.Task) error {
	pairs := []string{
		"task", string(t.ID), "state", string(t.State), "reason", t.Reason, "tenant", string(t.Tenant),
		"identity", string(t.Identity), "role", t.Role, "requester", t.Requester.String(), "key", t.Key, "step", t.Step,
		"language", string(t.Language), "digest", string(t.Digest), "approval", string(t.Approval),
		"retry of", string(t.RetryOf), "created", when(t.Created),
	}
	for _, r := range t.Rules {
		pairs = append(pairs, "rule", r.String())
	}
	if len(t.Clamped) > 0 {
		pairs = append(pairs, "limits cut", fmt.Sprint(t.Clamped))
	}
	if r := t.Result; r != nil {
		code := ""
		if r.ExitCode != nil {
			code = fmt.Sprint(*r.ExitCode)
		}
		pairs = append(pairs,
			"exit code", code, "signal", r.Signal,
			"wall", (time.Duration(r.WallMS) * time.Millisecond).String(), "cpu", (time.Duration(r.CPUMS) * time.Millisecond).String(),
			"peak memory", fmt.Sprintf("%d bytes", r.PeakBytes), "sandbox", r.Sandbox.Provider,
			"stdout", outputLine(r.Stdout), "stderr", outputLine(r.Stderr))
	}
	return fields(e.stdout, pairs...)
}

func outputLine(o writ.Output) string {
	s := fmt.Sprintf("%d bytes", o.Bytes)
	if o.Truncated {
		s += fmt.Sprintf(", %d kept", o.Kept)
	}
	return s
}

type tasksOutputCmd struct {
	taskArg
	Stderr bool `help:"Standard error instead of standard output."`
}

func (o *tasksOutputCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		stream := writ.Stdout
		if o.Stderr {
			stream = writ.Stderr
		}
		b, err := cl.Output(ctx, o.ID, stream)
		if err != nil {
			return err
		}
		return untrusted(e.stdout, string(b))
	})
}

type tasksCodeCmd struct{ taskArg }

func (o *tasksCodeCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		spec, err := cl.Spec(ctx, o.ID)
		if err != nil {
			return err
		}
		return untrusted(e.stdout, spec.Code)
	})
}

type tasksWaitCmd struct {
	taskArg
	Timeout time.Duration `help:"How long; 0 waits for ever." default:"0"`
}

func (w *tasksWaitCmd) Run(ctx context.Context, c *cli, e env) error {
	if w.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.Timeout)
		defer cancel()
	}
	return withTask(ctx, c, e, func(cl *client.Client) error {
		for {
			t, err := cl.Wait(ctx, w.ID, 30*time.Second)
			if err != nil && ctx.Err() == nil {
				return err
			}
			if err != nil {
				return &writ.Error{Kind: writ.Unavailable, Op: "wait", Msg: fmt.Sprintf("task %s is not over after %v", w.ID, w.Timeout)}
			}
			if t.State.Terminal() {
				fmt.Fprintln(e.stdout, t.State)
				if code := taskExit(t); code != 0 {
					return exit(code)
				}
				return nil
			}
		}
	})
}

type tasksCancelCmd struct {
	taskArg
	Reason string `short:"r" help:"Why; it is recorded."`
}

func (k *tasksCancelCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error {
		t, err := cl.Cancel(ctx, k.ID, k.Reason)
		if err != nil {
			return err
		}
		if t.State == writ.TaskRunning {
			t, err = cl.Wait(ctx, k.ID, grace)
		}
		fmt.Fprintf(e.stdout, "%s %s\n", t.ID, t.State)
		return err
	})
}

type tasksForgetCmd struct{ taskArg }

func (f *tasksForgetCmd) Run(ctx context.Context, c *cli, e env) error {
	return withTask(ctx, c, e, func(cl *client.Client) error { return cl.DeleteBodies(ctx, f.ID) })
}

// withTask calls fn with a client of the user's own rights.
func withTask(ctx context.Context, c *cli, e env, fn func(*client.Client) error) error {
	cl, done, err := connect(ctx, c, e, false)
	if err != nil {
		return err
	}
	defer done()
	return fn(cl)
}
