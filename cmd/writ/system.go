package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"writ"
	"writ/admin"
	"writ/audit"
	"writ/auth"
	"writ/config"
	"writ/gateway"
	"writ/policy"
	"writ/remote"
	"writ/rest"
	"writ/store"
	"writ/task"
)

// grace is how long a stopping server waits for runs before it ends them.
const grace = 10 * time.Second

// socketName is the API's unix socket in the data folder.
const socketName = "writ.sock"

// system is a whole server: gateway, store, log, and the runner as a child.
type system struct {
	data   string
	cfg    config.Config
	slog   *slog.Logger
	db     *store.DB
	log    *audit.Log
	runner *remote.Process
	gw     *gateway.Gateway
	admin  *admin.Service
	api    *rest.API

	stopJobs func(context.Context) error
	servers  []*http.Server
	work     sync.WaitGroup     // listeners, sweeper, policy watcher
	stop     context.CancelFunc // ends the sweeper and the policy watcher
	failed   chan error         // has the first failure of a part that must not end
}

// openSystem opens the data folder and everything on it, from the ground up, and
// serves the API on the folder's socket. On error nothing is left running.
func openSystem(ctx context.Context, c *cli, e env, logger *slog.Logger) (*system, error) {
	s := &system{data: c.Data, slog: logger, failed: make(chan error, 4)}
	if err := s.open(ctx, c, e); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *system) open(ctx context.Context, c *cli, e env) (err error) {
	if s.cfg, err = loadConfig(c); err != nil {
		return err
	}
	rules, err := loadPolicy(s.cfg.PolicyDir(s.data))
	if err != nil {
		return err
	}
	// Before anything that writes: it is what tells a second process to go away.
	if s.db, err = store.Open(ctx, s.cfg.DatabaseURL(s.data).Reveal(), store.Options{Log: s.slog}); err != nil {
		return err
	}
	if s.log, err = openLog(s.data); err != nil {
		return err
	}
	if s.runner, err = startRunner(ctx, e, filepath.Join(s.data, "runner"), s.cfg); err != nil {
		return err
	}
	return s.start(ctx, rules)
}

// start wires the parts that are open and brings them to work.
func (s *system) start(ctx context.Context, rules *policy.Set) error {
	owner, err := ownerID(s.data)
	if err != nil {
		return err
	}
	slots := s.cfg.Runner.Slots
	if slots == 0 {
		slots = runtime.NumCPU()
	}
	hub := &task.Hub{}
	s.gw = gateway.New(s.db, s.runner.Client(), s.log, rules, hub, s.slog, gateway.Options{
		Owner: owner, Defaults: s.cfg.Limits.Default, Max: s.cfg.Limits.Max,
		ApprovalTTL: s.cfg.Approvals.TTL, Slots: slots, Backlog: s.cfg.Runner.Queue,
		Share: max(1, (slots+s.cfg.Runner.Queue+1)/2), Held: 50,
		Identities: s.cfg.Identities,
	})
	s.admin = admin.New(s.gw, s.db, s.log, s.runner.Client())
	if err := firstOperator(ctx, s); err != nil {
		return err
	}
	// What an earlier process left is settled before anything new comes in.
	if err := s.gw.Sweep(ctx, true); err != nil {
		return err
	}
	if s.stopJobs, err = s.db.Work(ctx, s.gw.Do); err != nil {
		return err
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.work.Go(func() { s.gw.Watch(background) })
	s.work.Go(func() { s.watchPolicy(background) })
	s.work.Go(func() { s.watchRunner(background) })

	s.api = rest.New(s.slog, rest.Services{
		Auth: admin.NewDoor(s.admin, s.slog), Tasks: task.New(s.gw, s.db, hub, s.log), Approvals: s.gw, Audit: s.admin, Access: s.admin, Policy: s.admin,
	}, rest.Options{})
	return s.serveSocket()
}

// serveSocket serves the API on the data folder's socket, to the folder's owner.
func (s *system) serveSocket() error {
	path := filepath.Join(s.data, socketName)
	// The store's lock is ours: a socket that is there is a dead server's.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	ln, err := net.Listen("unix", path)
	if err != nil {
		return &writ.Error{Kind: writ.Unavailable, Op: "listen", Err: err, Msg: fmt.Sprintf("cannot listen on %s: %v", path, err)}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	s.serveOn(ln, s.api.Unix(localPeer))
	return nil
}

// serveTCP serves the API on the configured address and answers the real one.
func (s *system) serveTCP() (string, error) {
	ln, err := net.Listen("tcp", s.cfg.Listen)
	if err != nil {
		return "", &writ.Error{Kind: writ.Unavailable, Op: "listen", Err: err, Msg: fmt.Sprintf("cannot listen on %s: %v (choose another with --listen)", s.cfg.Listen, err)}
	}
	host, _, _ := net.SplitHostPort(s.cfg.Listen)
	s.serveOn(ln, s.api.TCP(host))
	return ln.Addr().String(), nil
}

func (s *system) serveOn(ln net.Listener, srv *http.Server) {
	s.servers = append(s.servers, srv)
	s.work.Go(func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve %s: %w", ln.Addr(), err))
		}
	})
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

// close stops the parts in the reverse of their order.
func (s *system) close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	// First: nothing new is admitted. Event streams end with it.
	for _, srv := range s.servers {
		_ = srv.Shutdown(ctx)
	}
	if s.stopJobs != nil {
		if err := s.stopJobs(ctx); err != nil {
			s.slog.Error("stop jobs", "err", err)
		}
	}
	// Then: what runs ends and is recorded, which needs runner and store.
	if s.gw != nil {
		s.gw.Close(ctx)
	}
	if s.stop != nil {
		s.stop()
	}
	s.work.Wait()
	if s.runner != nil {
		// Time of its own: runs may have used up the rest, and it still cleans up.
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		if err := s.runner.Close(ctx); err != nil {
			s.slog.Error("stop runner", "err", err)
		}
	}
	// Last: everything above may still write.
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			s.slog.Error("close store", "err", err)
		}
	}
}

// localPeer makes the principal of a connection to the socket: the owner of the
// server's process, or root.
func localPeer(c net.Conn) (writ.Principal, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return writ.Principal{}, fmt.Errorf("connection of type %T has no credentials", c)
	}
	uid, _, err := auth.PeerUID(sc)
	if err != nil {
		return writ.Principal{}, err
	}
	if uid != uint32(os.Geteuid()) && uid != 0 {
		return writ.Principal{}, &writ.Error{Kind: writ.Unauthenticated, Op: "authenticate", Msg: "this socket is for the server's own user: send an API key"}
	}
	return auth.Local(uid, strconv.FormatUint(uint64(uid), 10)), nil
}

// ownerID names this data folder's gateway among all on one database. It is kept,
// so that a restarted gateway knows its own runs.
func ownerID(data string) (string, error) {
	path := filepath.Join(data, "gateway.id")
	b, err := os.ReadFile(path)
	if err == nil && len(b) > 0 {
		return string(b), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	id := "gw_" + rand.Text()
	return id, writeSecret(path, id)
}

// openLog opens the audit log's key, or makes one.
func openLog(data string) (*audit.Log, error) {
	path := filepath.Join(data, "audit.key")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		private, public, err := audit.GenerateKey("writ")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(data, "audit.pub"), []byte(public+"\n"), 0o644); err != nil {
			return nil, err
		}
		if err := writeSecret(path, private.Reveal()); err != nil {
			return nil, err
		}
		return audit.New(private)
	}
	if err != nil {
		return nil, err
	}
	return audit.New(writ.Secret(b))
}

// startRunner starts the runner as a child that holds no key and no database.
func startRunner(ctx context.Context, e env, dir string, cfg config.Config) (*remote.Process, error) {
	r := cfg.Runner
	args := []string{
		"--slots", strconv.Itoa(r.Slots), "--queue", strconv.Itoa(r.Queue), "--queue-wait", r.QueueWait.String(),
		"--warm", strconv.Itoa(r.Warm), "--uid-base", strconv.Itoa(r.UIDBase), "--bwrap", r.Bwrap,
		"--limits", limitsFlag(cfg.Limits.Default), fmt.Sprintf("--strict=%t", r.Strict),
	}
	return remote.Start(ctx, e.exe, dir, args, e.stderr)
}

// writeSecret makes a file that only its owner reads, whole or not at all.
func writeSecret(path, value string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = io.WriteString(f, value)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
