package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"writ"
	"writ/admin"
	"writ/audit"
	"writ/config"
	"writ/gateway"
	"writ/mcp"
	"writ/policy"
	"writ/remote"
	"writ/rest"
	"writ/store"
	"writ/task"
	"writ/work"
)

// A stopping server gives what is under way at most this long to end by itself. Runs
// are cancelled some seconds before the end of the grace, which they need to end in
// order and to be recorded.
const (
	grace       = 10 * time.Second
	requestsEnd = 2 * time.Second
	runsEnd     = 7 * time.Second
)

// system is a whole server: gateway, store, log, and the runner as a child.
type system struct {
	folder *dataFolder
	cfg    config.Config
	slog   *slog.Logger
	db     *store.DB
	log    *audit.Log
	runner hands
	gw     *gateway.Gateway
	admin  *admin.Service
	door   *admin.Door
	api    *rest.API

	metrics *metrics
	tasks   *task.Service

	interpreter codeInterpreter
	refusals    audit.Bound // of the code interpreter's users

	places     places
	workspaces *gateway.Workspaces
	works      *work.Service
	tools      *mcp.Server // over HTTP
	endpoint   *mcp.Handler
	sessions   *sessions // on the socket

	stopping atomic.Bool // nothing new is let in
	stopJobs func(context.Context) error
	servers  []*http.Server
	work     sync.WaitGroup     // listeners, sweeper, policy watcher
	stop     context.CancelFunc // ends the sweeper and the policy watcher
	failed   chan error         // has the first failure of a part that must not end
}

// openSystem opens everything on a data folder, from the ground up, and serves the
// API on the socket of that name in it. The folder is the system's from here on; on
// error it is released and nothing is left running.
func openSystem(ctx context.Context, e env, folder *dataFolder, cfg config.Config, socket string, logger *slog.Logger) (*system, error) {
	s := &system{folder: folder, cfg: cfg, slog: logger, sessions: newSessions(), failed: make(chan error, 4)}
	if err := s.open(ctx, e, socket); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *system) open(ctx context.Context, e env, socket string) (err error) {
	if s.places, err = placesOf(s.cfg, s.folder.path); err != nil {
		return err
	}
	dir := s.cfg.PolicyDir(s.folder.path)
	if err := checkTrusted(dir); err != nil {
		return err
	}
	rules, err := loadPolicy(dir)
	if err != nil {
		return err
	}
	if s.db, err = store.Open(ctx, s.cfg.DatabaseURL(s.folder.path).Reveal(), store.Options{Log: s.slog}); err != nil {
		return err
	}
	if s.log, err = openLog(ctx, s.db, s.folder.path); err != nil {
		return err
	}
	if s.runner, err = startRunner(ctx, e, filepath.Join(s.folder.path, "runner"), s.cfg); err != nil {
		return err
	}
	if err := s.openBlobs(ctx); err != nil {
		return err
	}
	if err := s.start(ctx, rules); err != nil {
		return err
	}
	return s.serveSocket(socket)
}

// start wires the parts that are open and brings them to work.
func (s *system) start(ctx context.Context, rules *policy.Set) error {
	owner, err := s.folder.gatewayID()
	if err != nil {
		return err
	}
	slots := s.cfg.Runner.Slots
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	hub := &task.Hub{}
	opt := gateway.Options{
		Owner: owner, Defaults: s.cfg.Limits.Default, Max: s.cfg.Limits.Max,
		ApprovalTTL: s.cfg.Approvals.TTL, Held: s.cfg.Approvals.Pending, Identities: s.cfg.Identities,
		Slots: slots, Backlog: s.cfg.Runner.Queue, Share: max(1, (slots+s.cfg.Runner.Queue+1)/2),
	}
	if s.interpreter.blobs != nil { // not a folder that is nil
		opt.Users, opt.Blobs = s.cfg.Interpreter.Scopes, s.interpreter.blobs
	}
	s.metrics = newMetrics()
	s.gw = gateway.New(s.db, s.runner.Client(), s.log, rules, observer{hub, s.metrics}, s.slog, opt)
	s.metrics.carrying(s.gw.Carrying)
	if s.interpreter.files != nil {
		s.metrics.files(s.interpreter.files)
	}
	s.tasks = task.New(s.gw, s.db, hub, s.log)
	s.workspaces = gateway.NewWorkspaces(s.gw, gateway.Parts{
		Files: s.runner.Client().Files(), Processes: s.runner.Client().Processes(), Limits: s.cfg.Processes.Limits,
	}, s.places.registry)
	s.works = work.New(s.db, s.log, s.workspaces, s.workspaces)
	s.admin = admin.New(s.gw, s.db, s.log, s.runner.Client())
	if err := firstOperator(ctx, s); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	if s.stopJobs, err = s.db.Work(ctx, s.gw.Do); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.work.Go(func() { s.gw.Watch(background) })
	s.work.Go(func() { s.workspaces.Watch(background) })
	s.work.Go(func() { s.watchPolicy(background) })
	s.work.Go(func() { s.watchRunner(background) })
	s.work.Go(func() { s.watchFiles(background) })

	s.door = admin.NewDoor(s.admin, s.slog)
	s.api = rest.New(s.slog, rest.Services{
		Auth: s.door, Tasks: s.tasks, Approvals: s.gw, Workspaces: ledger{s.workspaces, s.places, s.gw},
		Inbox: s.works, Files: keptFiles{s.interpreter.files}, Audit: s.admin, Access: s.admin, Policy: s.admin, Metrics: s.metrics.handler(),
	}, rest.Options{})
	return nil
}

// settle ends what an earlier process left, before anything new comes in, and records
// this start with all that decides about requests.
func (s *system) settle(ctx context.Context) error {
	err := s.gw.Sweep(ctx, true)
	if err == nil {
		err = s.workspaces.Sweep(ctx, true)
	}
	if err == nil {
		err = s.gw.Announce(ctx, localAs("start"))
	}
	switch {
	case errors.Is(err, audit.ErrOtherKey): // since it was opened
		return otherKey(s.folder.path, err)
	case errors.Is(err, audit.ErrDamaged):
		// It must be possible to read where. Without a record nothing is started.
		s.slog.Error("nothing can be recorded, and so nothing will run", "err", err, "see", "writ audit verify")
		return nil
	}
	return err
}

func (s *system) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// watchRunner ends the server when its runner is gone: without it nothing can run,
// and a supervisor starts both anew.
func (s *system) watchRunner(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.runner.Done():
		if ctx.Err() == nil {
			s.fail(&writ.Error{Kind: writ.Unavailable, Op: "serve", Msg: "the runner process ended; start the server again"})
		}
	}
}

// within calls fn with a time of its own.
func within(d time.Duration, fn func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	fn(ctx)
}

// close stops the parts in the reverse of their order. Each has time of its own: what
// one uses up is not the next one's.
func (s *system) close() {
	// First: nothing new is admitted, and who asks the code interpreter for something new is
	// told why. The tools before the HTTP servers, which wait for the streams of their
	// sessions.
	s.stopping.Store(true)
	within(requestsEnd, s.sessions.end)
	if s.tools != nil {
		s.tools.Close()
		within(requestsEnd, s.endpoint.Close)
	}
	within(requestsEnd, s.stopServing)
	if s.stopJobs != nil {
		within(requestsEnd, func(ctx context.Context) {
			if err := s.stopJobs(ctx); err != nil {
				s.slog.Error("stop jobs", "err", err)
			}
		})
	}
	// Then: what is under way ends and is recorded, which needs runner and store.
	if s.workspaces != nil {
		within(runsEnd, s.workspaces.Close)
		if s.cfg.Runner.Socket == "" { // else they outlive this server
			within(requestsEnd, s.workspaces.EndProcesses)
		}
	}
	if s.gw != nil {
		within(runsEnd, s.gw.Close)
	}
	// Its requests wait for runs, which are over now.
	within(requestsEnd, s.endInterpreter)
	if s.stop != nil {
		s.stop()
	}
	s.work.Wait()
	if s.runner != nil {
		within(grace, func(ctx context.Context) {
			if err := s.runner.Close(ctx); err != nil {
				s.slog.Error("stop runner", "err", err)
			}
		})
	}
	// Last: everything above may still write.
	if s.interpreter.blobs != nil {
		if err := s.interpreter.blobs.Close(); err != nil {
			s.slog.Error("close folder of files", "err", err)
		}
	}
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			s.slog.Error("close store", "err", err)
		}
	}
	s.folder.release()
}

// finish closes a system that a command started for itself and needs no more. Others
// may use it meanwhile: their sessions, their requests and their runs end first, however
// long that takes. When ctx ends they have the time that a stopping server gives them.
func (s *system) finish(ctx context.Context, stderr io.Writer) {
	until, cancel := context.WithCancel(context.Background())
	defer context.AfterFunc(ctx, func() { time.AfterFunc(runsEnd, cancel) })()
	note := time.AfterFunc(time.Second, func() {
		if tasks, sessions := s.gw.Carrying(), s.sessions.count(); tasks+sessions > 0 {
			fmt.Fprintf(stderr, "writ: waiting for %d other task(s) and %d session(s) of workspace tools that came to this command; interrupt it to end them\n", tasks, sessions)
		}
	})
	defer note.Stop()
	// A session does not end by itself when this command is told to.
	sessions, enough := context.WithCancel(ctx)
	s.work.Go(func() {
		select {
		case <-s.failed:
			enough()
		case <-sessions.Done():
		}
	})
	s.sessions.wait(sessions)
	enough()
	within(requestsEnd, s.sessions.end)
	s.gw.Close(until)
	s.stopServing(until)
	cancel()
	s.close()
}

// startRunner starts the runner as a child that holds no key and no database, or finds
// the one apart that the configuration names.
func startRunner(ctx context.Context, e env, dir string, cfg config.Config) (hands, error) {
	if cfg.Runner.Socket != "" {
		client, err := remote.Dial(ctx, cfg.Runner.Socket)
		if err != nil {
			return nil, err
		}
		return apart{client}, nil
	}
	dir, err := filepath.Abs(dir) // the runner works elsewhere
	if err != nil {
		return nil, err
	}
	r := cfg.Runner
	args := []string{
		"--child", "--slots", strconv.Itoa(r.Slots), "--queue", strconv.Itoa(r.Queue), "--queue-wait", r.QueueWait.String(),
		"--warm", strconv.Itoa(r.Warm), "--live", strconv.Itoa(cfg.Processes.Live), "--uid-base", strconv.Itoa(r.UIDBase), "--bwrap", r.Bwrap,
		"--limits", limitsFlag(cfg.Limits.Default), fmt.Sprintf("--strict=%t", r.Strict),
		"--state", filepath.Join(dir, "state"),
	}
	if in := cfg.Interpreter; in.Listen != "" {
		args = append(args, "--interpreter-warm", strconv.Itoa(in.Warm), "--interpreter-limits", limitsFlag(boxLimits(in)))
	}
	child, err := remote.Start(ctx, e.exe, dir, args, e.stderr)
	if err != nil {
		return nil, err // not a child that is nil
	}
	return child, nil
}
