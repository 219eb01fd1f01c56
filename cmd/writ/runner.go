package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"writ"
	"writ/remote"
	"writ/runner"
	"writ/sandbox"
)

// runnerCmd is the runner process. Its flags are all that it is told; it reads no
// configuration, holds no key and opens no database.
type runnerCmd struct {
	Socket    string        `required:"" help:"Unix socket to serve, to processes of this user." type:"path"`
	State     string        `help:"Private folder of what must outlive the process; without one no workspace is served." type:"path"`
	Slots     int           `help:"Runs at one time; 0 means one per core."`
	Queue     int           `help:"Runs that may wait." default:"64"`
	QueueWait time.Duration `help:"How long one may wait." default:"30s"`
	Warm      int           `help:"Boxes kept ready." default:"2"`
	Live      int           `help:"Commands in workspaces at one time." default:"8"`
	UIDBase   int           `help:"As root: first of the user ids that boxes run under." default:"861000"`
	Bwrap     string        `help:"Path of bwrap; nothing means the one on PATH."`
	Limits    string        `help:"Limits of the boxes kept ready, as JSON." placeholder:"JSON"`
	Strict    bool          `help:"Refuse to run when a layer is missing."`

	InterpreterWarm   int    `help:"Boxes kept ready for the code interpreter."`
	InterpreterLimits string `help:"Limits of those, as JSON." placeholder:"JSON"`

	Child bool `hidden:"" help:"End with standard input: serve starts it so."`
}

func limitsFlag(l writ.Limits) string {
	b, err := json.Marshal(l)
	if err != nil {
		panic("writ: limits always encode: " + err.Error())
	}
	return string(b)
}

// parseLimits reads what limitsFlag made; nothing are the default ones.
func parseLimits(flag, text string) (writ.Limits, error) {
	l := writ.DefaultLimits
	if text == "" {
		return l, nil
	}
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, &writ.Error{Kind: writ.Invalid, Op: "start runner", Msg: flag + ": " + err.Error()}
	}
	return l, nil
}

// Run serves until it is told to end, or, as a child, until the parent is gone: its end
// of stdin closes with it.
func (r *runnerCmd) Run(ctx context.Context, e env) (failed error) {
	limits, err := parseLimits("--limits", r.Limits)
	if err != nil {
		return err
	}
	interpreter, err := parseLimits("--interpreter-limits", r.InterpreterLimits)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var files remote.Files
	if r.State != "" {
		f, err := runner.OpenFiles(ctx, runner.FilesOptions{State: r.State, Log: log})
		if err != nil {
			return err
		}
		defer func() { failed = errors.Join(failed, f.Close()) }() // after Main: no call is under way then
		files = f
	}
	provider, err := sandbox.New(sandbox.Options{Bwrap: r.Bwrap, UIDBase: r.UIDBase, Strict: r.Strict})
	if err != nil {
		return err
	}
	run := runner.New(provider, runner.Options{
		Slots: r.Slots, Queue: r.Queue, QueueWait: r.QueueWait, Warm: r.Warm, Limits: limits,
		InterpreterWarm: r.InterpreterWarm, Interpreter: interpreter, Log: log,
	})
	var processes remote.LocalProcesses
	if r.State != "" {
		processes = runner.NewProcesses(provider, runner.ProcessesOptions{Live: r.Live, Log: log})
	}
	var parent io.Reader
	if r.Child {
		parent = os.Stdin
	}
	return remote.Main(ctx, r.Socket, parent, run, files, processes)
}

// hands is the runner that a server works through: its child, or one apart.
type hands interface {
	Client() *remote.Client
	Done() <-chan struct{} // closed when it is gone for good
	Close(ctx context.Context) error
}

// apart is a runner that somebody else started. It may go and come again.
type apart struct{ client *remote.Client }

func (a apart) Client() *remote.Client      { return a.client }
func (apart) Done() <-chan struct{}         { return nil }
func (a apart) Close(context.Context) error { return a.client.Close() }
