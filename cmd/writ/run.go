package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"writ"
	"writ/client"
	"writ/lang"
	"writ/sandbox"
)

type runCmd struct {
	File     string            `arg:"" help:"The program, or - for standard input."`
	Args     []string          `arg:"" optional:"" passthrough:"" help:"Arguments of the program."`
	Language string            `short:"l" help:"Its language; by default the one of the file's ending."`
	Identity string            `help:"The registered identity that runs it." env:"WRIT_IDENTITY"`
	Role     string            `help:"The role that it acts in."`
	Timeout  time.Duration     `help:"Wall time limit of the run." placeholder:"30s"`
	Input    []string          `short:"i" help:"A file to place in the workspace: FILE, or NAME=FILE for another name." placeholder:"FILE"`
	Env      map[string]string `short:"e" help:"A variable of the program's environment." placeholder:"NAME=VALUE"`
	Stdin    string            `help:"A file that the program reads as its standard input." type:"existingfile" placeholder:"FILE"`
	Task     string            `name:"task-key" help:"Your own name for the task: sent twice, it runs once." placeholder:"NAME"`
	NoWait   bool              `help:"Do not wait for a held task's approval."`
	JSON     bool              `name:"json" help:"Print the task as JSON at its end, instead of its output."`
}

func (*runCmd) Help() string {
	return `The program's own exit code is passed on (128+N when signal N ended it). Other codes:
  120  the task was cancelled, or ended for a limit that is not time or memory
  121  denied, by policy or by a person
  122  held for an approval, with --no-wait
  123  nobody decided in time
  124  time limit reached
  125  it could not be run, or contact with it was lost; stderr says why
  137  out of memory`
}

// Run submits the task, streams what it writes, and ends as it ends.
func (r *runCmd) Run(ctx context.Context, c *cli, e env) error {
	req, err := r.request(e)
	if err != nil {
		return err
	}
	cl, done, err := connectToRun(ctx, c, e)
	if err != nil {
		return notRun(e, err)
	}
	defer done()
	t, _, err := cl.Submit(ctx, req)
	if err != nil {
		return notRun(e, err)
	}
	if t.State == writ.TaskHeld && r.NoWait {
		sayHeld(e, c, t)
		if r.JSON {
			if err := document(e.stdout, t); err != nil {
				return err
			}
		}
		return exit(exitHeld)
	}
	t, err = r.follow(ctx, c, e, cl, t)
	if writ.KindOf(err) == writ.Unavailable {
		// Not a failure of the task: it may be held, run, or have run.
		fmt.Fprintf(e.stderr, "writ: contact with task %s was lost: %s\n", t.ID, writ.Message(err))
		fmt.Fprintf(e.stderr, "writ: once the server answers, see   writ tasks show %s\n", t.ID)
		return exit(exitNotRun)
	}
	if err != nil {
		return err
	}
	return r.end(e, t)
}

// notRun tells a server that cannot be had from one that refuses.
func notRun(e env, err error) error {
	if writ.KindOf(err) != writ.Unavailable {
		return err
	}
	_ = exitCode(err, e.stderr)
	return exit(exitNotRun)
}

// follow watches the task to its end. Being interrupted cancels it: who started it
// is gone.
func (r *runCmd) follow(ctx context.Context, c *cli, e env, cl *client.Client, t writ.Task) (writ.Task, error) {
	held := false
	err := cl.Watch(ctx, t.ID, func(ev writ.TaskEvent) error {
		if ev.Output != nil {
			return r.write(e, *ev.Output)
		}
		t = *ev.Task
		if t.State == writ.TaskHeld && !held {
			sayHeld(e, c, t)
		}
		held = t.State == writ.TaskHeld
		return nil
	})
	if ctx.Err() == nil {
		return t, err
	}
	after, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if _, err := cl.Cancel(after, t.ID, "interrupted"); err != nil && writ.KindOf(err) != writ.Conflict {
		return t, err
	}
	return cl.Wait(after, t.ID, grace)
}

func (r *runCmd) write(e env, c writ.Chunk) error {
	if r.JSON {
		return nil
	}
	w := e.stdout
	if c.Stream == writ.Stderr {
		w = e.stderr
	}
	_, err := w.Write(c.Data)
	return err
}

func sayHeld(e env, c *cli, t writ.Task) {
	fmt.Fprintf(e.stderr, "writ: task %s is held: %s\n", t.ID, oneLine(t.Reason))
	fmt.Fprintf(e.stderr, "writ: an operator can see it with   writ approvals show %s\n", t.Approval)
	fmt.Fprintf(e.stderr, "writ: and let it run with           writ approvals grant %s\n", t.Approval)
}

// end says what the output does not, and answers the exit code.
func (r *runCmd) end(e env, t writ.Task) error {
	if r.JSON {
		if err := document(e.stdout, t); err != nil {
			return err
		}
	} else if res := t.Result; res != nil {
		for _, o := range []struct {
			name writ.Stream
			out  writ.Output
		}{{writ.Stdout, res.Stdout}, {writ.Stderr, res.Stderr}} {
			if o.out.Truncated {
				fmt.Fprintf(e.stderr, "writ: %s was cut: %d of %d bytes kept\n", o.name, o.out.Kept, o.out.Bytes)
			}
		}
	}
	code := taskExit(t)
	if quiet := t.State == writ.TaskSucceeded || t.State == writ.TaskFailed && t.Result.Started; !quiet || t.Reason != "" && t.Result != nil {
		fmt.Fprintf(e.stderr, "writ: task %s %s", t.ID, t.State)
		if t.Reason != "" {
			fmt.Fprintf(e.stderr, ": %s", oneLine(t.Reason))
		}
		for _, rule := range t.Rules {
			if t.State == writ.TaskDenied && !strings.Contains(t.Reason, rule.String()) {
				fmt.Fprintf(e.stderr, " [%s]", rule)
			}
		}
		fmt.Fprintln(e.stderr)
	}
	if code == 0 {
		return nil
	}
	return exit(code)
}

// taskExit is the exit code that tells how t ended.
func taskExit(t writ.Task) int {
	switch t.State {
	case writ.TaskSucceeded, writ.TaskNoted:
		return 0
	case writ.TaskFailed:
		switch {
		case t.Result == nil || !t.Result.Started:
			return exitNotRun
		case t.Result.ExitCode != nil:
			return *t.Result.ExitCode
		}
		return 128 + sandbox.SignalNumber(t.Result.Signal)
	case writ.TaskDenied:
		return exitDenied
	case writ.TaskExpired:
		return exitExpired
	case writ.TaskTimedOut:
		return exitTimedOut
	case writ.TaskOutOfMemory:
		return exitOutOfMemory
	case writ.TaskCancelled, writ.TaskKilled:
		return exitCancelled
	case writ.TaskHeld, writ.TaskQueued, writ.TaskRunning:
		return exitHeld
	}
	return exitNotRun
}

// request is what the command line asks for.
func (r *runCmd) request(e env) (writ.TaskRequest, error) {
	spec := writ.RunSpec{Language: writ.Language(r.Language), Args: r.Args, Env: r.Env}
	var err error
	if spec.Code, err = readCode(r.File, e.stdin); err != nil {
		return writ.TaskRequest{}, err
	}
	if spec.Language == "" {
		if spec.Language, err = languageOf(r.File); err != nil {
			return writ.TaskRequest{}, err
		}
	}
	if r.Timeout != 0 {
		spec.Limits.WallMS = max(r.Timeout.Milliseconds(), 1)
	}
	if r.Stdin != "" {
		b, err := readFile(r.Stdin, writ.MaxStdinBytes)
		if err != nil {
			return writ.TaskRequest{}, err
		}
		spec.Stdin = string(b)
	}
	for _, arg := range r.Input {
		in, err := readInput(arg)
		if err != nil {
			return writ.TaskRequest{}, err
		}
		spec.Inputs = append(spec.Inputs, in)
	}
	req := writ.TaskRequest{Key: r.Task, Identity: writ.IdentityID(r.Identity), Role: r.Role, Spec: &spec}
	if err := req.Validate(); err != nil {
		return req, &writ.Error{Kind: writ.Invalid, Op: "run", Msg: err.Error()}
	}
	return req, nil
}

func readCode(file string, stdin io.Reader) (string, error) {
	if file != "-" {
		b, err := readFile(file, writ.MaxCodeBytes)
		return string(b), err
	}
	b, err := io.ReadAll(io.LimitReader(stdin, writ.MaxCodeBytes+1))
	return string(b), err
}

// readFile reads at most one byte more than max, which validation then refuses.
func readFile(name string, max int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max+1))
}

func readInput(arg string) (writ.Input, error) {
	name, file, renamed := strings.Cut(arg, "=")
	if !renamed {
		name, file = filepath.Base(arg), arg
	}
	b, err := readFile(file, writ.MaxInputBytes)
	return writ.Input{Path: name, Content: b}, err
}

// languageOf is the language whose programs have the file's ending.
func languageOf(file string) (writ.Language, error) {
	if ext := path.Ext(file); ext != "" {
		for _, l := range lang.All() {
			if path.Ext(l.File) == ext {
				return l.Name, nil
			}
		}
	}
	return "", &writ.Error{Kind: writ.Invalid, Op: "run", Msg: fmt.Sprintf("the language of %q is not clear from its name: give it with -l", file)}
}
