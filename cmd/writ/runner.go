package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	Socket    string        `required:"" help:"Unix socket to serve."`
	Slots     int           `help:"Runs at one time."`
	Queue     int           `help:"Runs that may wait."`
	QueueWait time.Duration `help:"How long one may wait."`
	Warm      int           `help:"Boxes kept ready."`
	UIDBase   int           `help:"First host user id of boxes."`
	Bwrap     string        `help:"Path of bwrap."`
	Limits    string        `help:"Default limits, as JSON."`
	Strict    bool          `help:"Refuse to run when a layer is missing."`
	State     string        `help:"Private folder of what must outlive the process; without one no workspace is served."`
}

func limitsFlag(l writ.Limits) string {
	b, err := json.Marshal(l)
	if err != nil {
		panic("writ: limits always encode: " + err.Error())
	}
	return string(b)
}

// Run serves until the parent is gone: its end of stdin closes with it.
func (r *runnerCmd) Run(ctx context.Context, e env) (failed error) {
	var limits writ.Limits
	if err := json.Unmarshal([]byte(r.Limits), &limits); err != nil {
		return fmt.Errorf("--limits: %w", err)
	}
	log := slog.New(slog.NewJSONHandler(e.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	var files remote.Files
	if r.State != "" {
		f, err := runner.OpenFiles(ctx, runner.FilesOptions{State: r.State})
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
		Slots: r.Slots, Queue: r.Queue, QueueWait: r.QueueWait, Warm: r.Warm, Limits: limits, Log: log,
	})
	var processes remote.LocalProcesses
	if r.State != "" {
		processes = runner.NewProcesses(provider, runner.ProcessesOptions{Log: log})
	}
	return remote.Main(ctx, r.Socket, os.Stdin, run, files, processes)
}
