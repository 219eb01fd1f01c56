package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"time"

	"writ"
	"writ/blob"
	"writ/codeapi"
	"writ/config"
	"writ/interpreter"
	"writ/lang"
	"writ/limit"
	"writ/policy"
	"writ/session"
	"writ/store"
)

// codeInterpreter is the parts of the code interpreter. Its files are kept, and are
// removed when their time is over, also while its API is switched off.
type codeInterpreter struct {
	blobs *blob.Folder     // nil when there never was one
	files *session.Service // nil without blobs
	srv   *http.Server     // nil when the API is switched off, or this is not writ serve
}

// Bounds of connections to the API. There is no WriteTimeout: a run may take long, and
// the API sets deadlines of bodies and of writes where they happen.
const (
	headerTime     = 10 * time.Second
	idleTime       = 2 * time.Minute
	maxHeaderBytes = 64 << 10
)

// openBlobs opens the folder of files, which is made when the code interpreter is
// switched on.
func (s *system) openBlobs(ctx context.Context) error {
	dir := s.cfg.BlobsDir(s.folder.path)
	if s.cfg.Interpreter.Listen == "" {
		if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	var err error
	if s.interpreter.blobs, err = blob.OpenFolder(dir); err != nil {
		return err
	}
	if err := session.Bind(ctx, s.db, s.interpreter.blobs); err != nil {
		return err
	}
	opt := sessionOptions(s.cfg.Interpreter)
	opt.Foreign = s.foreign
	opt.Record = func(ctx context.Context, tx *store.Tx, e writ.Event) error {
		_, err := s.log.Append(ctx, tx, e)
		return err
	}
	s.interpreter.files, err = session.New(s.db, s.interpreter.blobs, opt)
	return err
}

// watchFiles removes files whose time is over, until ctx ends.
func (s *system) watchFiles(ctx context.Context) {
	if s.interpreter.files == nil {
		return
	}
	in := s.cfg.Interpreter.Retention
	done := "files removed whose time is over"
	if !in.Remove {
		done = "files whose time is over stay, as interpreter.retention.remove is false"
	}
	s.interpreter.files.Watch(ctx, in.Every, !in.Remove, func(r writ.FileRemoval, err error) {
		switch {
		case err != nil && ctx.Err() == nil:
			s.metrics.failed.Inc()
			s.slog.Error("files whose time is over were not removed", "err", err)
		case r != writ.FileRemoval{}:
			s.slog.Info(done, "sessions", r.Sessions, "objects", r.Objects, "runtimes", r.Runtimes, "bodies", r.Bodies, "blobs", r.Blobs, "bytes", r.BlobBytes)
		}
	})
}

// serveInterpreter serves the API on its address, if it is switched on, and says so on w.
func (s *system) serveInterpreter(w io.Writer) error {
	in := s.cfg.Interpreter
	if in.Listen == "" {
		return nil
	}
	front, err := s.newFront(in)
	if err != nil {
		return err
	}
	rates := rulesOf(in.Rates)
	if err := rates.Validate(); err != nil {
		return fmt.Errorf("rate limits: %w", err)
	}
	ln, err := net.Listen("tcp", in.Listen)
	if err != nil {
		return &writ.Error{Kind: writ.Unavailable, Op: "listen", Err: err, Msg: fmt.Sprintf("cannot listen on %s: %v (choose another with --interpreter)", in.Listen, err)}
	}
	runs := interpreter.New(s.tasks, s.interpreter.files, session.NewRuntimes(s.interpreter.files), s.runner.Client(), s.slog, runOptions(in))
	opt := codeapi.Options{
		JSONBytes: in.JSONBytes,
		FileBytes: func(who writ.Principal) int64 { return runs.PlanOf(who).FileBytes },
		Observe:   s.metrics.request,
	}
	if in.Auth != config.AuthJWT { // a page in a browser has no token, and needs none here
		opt.Hosts = append([]string{}, s.cfg.Hosts...)
	}
	s.interpreter.srv = &http.Server{
		Handler: codeapi.New(s.slog, codeapi.Services{
			Auth: front, Limits: limit.NewCounter(s.db, rates, nil),
			Sessions: s.interpreter.files, Runs: runs, Live: s.live,
		}, opt),
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: slog.NewLogLogger(s.slog.Handler(), slog.LevelDebug),
	}
	s.serve(ln, s.interpreter.srv)
	fmt.Fprintf(w, "interpreter:   http://%s/v1 (%s)\n", ln.Addr(), s.whoComesIn(ln.Addr()))
	if !s.lets(in) {
		dir := s.cfg.PolicyDir(s.folder.path)
		s.slog.Warn("the policy denies a user of the code interpreter every run; that of an older release has no rule for users",
			"mend", "add the rule allow-interpreter, as it is shown on standard error, to a file in "+dir)
		fmt.Fprintf(w, "policy:        denies users of the code interpreter every run. What lets them is this rule,\n"+
			"               in any .cedar file in %s; it counts without a start:\n%s", dir, allowUsers)
	}
	return nil
}

// allowUsers is the rule of the default policy for users.
const allowUsers = `
    @id("allow-interpreter")
    permit (principal is User, action == Action::"run", resource);

`

// lets reports whether the policy now in force lets a user run anything, without a word or
// once somebody agrees.
func (s *system) lets(in config.Interpreter) bool {
	who := writ.Principal{Kind: writ.KindUser, ID: "somebody", Tenant: in.JWT.SingleTenant, Scopes: in.Scopes}
	if in.Auth != config.AuthJWT {
		who.Tenant = "local"
	}
	return slices.ContainsFunc(lang.For(writ.RunInterpreter), func(l lang.Language) bool {
		spec := writ.RunSpec{Kind: writ.RunInterpreter, Language: l.Name, Code: "1", Limits: boxLimits(in)}
		return who.Has(l.Scope) && s.gw.Policy().Decide(policy.Request{
			Principal: who, Requester: who, Action: writ.ActionRun, Scope: l.Scope, Run: policy.FactsOf(spec), Now: time.Now(),
		}).Effect != writ.Deny
	})
}

// whoComesIn says to people whom the API on that address lets in. What others can misuse
// is in the log as well.
func (s *system) whoComesIn(addr net.Addr) string {
	in := s.cfg.Interpreter
	if exposed(addr) {
		const mend = "listen on loopback, with a TLS proxy in front"
		if in.Auth == config.AuthJWT {
			s.slog.Warn("other machines can reach the code interpreter, which is plain HTTP: tokens, code and files cross the network in clear", "listen", addr.String(), "mend", mend)
		} else {
			s.slog.Warn("other machines can reach the code interpreter, and whoever does is who they say", "listen", addr.String(), "mend", "set interpreter.auth to jwt, or "+mend)
		}
	}
	switch in.Auth {
	case config.AuthLocal:
		return "auth local: without tokens, all are one user"
	case config.AuthNone:
		return "auth none: users are who they say"
	}
	return "auth jwt: issuer " + in.JWT.Issuer
}

// endInterpreter lets the requests under way end; those that have not when ctx ends are cut
// off.
func (s *system) endInterpreter(ctx context.Context) {
	if srv := s.interpreter.srv; srv != nil && srv.Shutdown(ctx) != nil {
		_ = srv.Close()
	}
}

// pingTime bounds the wait for a store that does not answer.
const pingTime = 2 * time.Second

// live reports why the API can answer nothing, in the contract's words.
func (s *system) live(ctx context.Context) error {
	unavailable := func(msg string, err error) error {
		return &writ.Error{Kind: writ.Unavailable, Op: "serve", Msg: msg, Err: err}
	}
	if s.stopping.Load() {
		return unavailable("Service is shutting down", nil)
	}
	select {
	case <-s.runner.Done():
		return unavailable("Service Unavailable", errors.New("the runner process ended"))
	default:
	}
	ctx, stop := context.WithTimeout(ctx, pingTime)
	defer stop()
	if err := s.db.View(ctx, func(*store.Tx) error { return nil }); err != nil {
		return unavailable("Service Unavailable", err)
	}
	return nil
}

// sessionOptions are the settings of what is kept.
func sessionOptions(in config.Interpreter) session.Options {
	opt := session.Defaults()
	opt.TTL, opt.Retention, opt.RuntimeTTL = in.Retention.TTL, in.Retention.Keep, in.Runtime.TTL
	opt.Limits.SessionObjects, opt.Limits.SessionBytes = in.Quotas.SessionObjects, in.Quotas.SessionBytes
	opt.Limits.TenantSessions, opt.Limits.TenantBytes = in.Quotas.TenantSessions, in.Quotas.TenantBytes
	opt.Limits.RuntimeBytes = in.Runtime.SessionBytes
	return opt
}

// runOptions are the settings of runs.
func runOptions(in config.Interpreter) interpreter.Options {
	plans := map[string]interpreter.Plan{}
	for _, p := range in.Plans {
		plans[p.ID] = interpreter.Plan{MemoryBytes: p.MemoryBytes, FileBytes: p.FileBytes}
	}
	return interpreter.Options{
		Limits: in.Limits, Compile: in.Compile, Collect: in.Collect.Bounds(), OutputUnits: in.OutputUnits, Inputs: int(in.Inputs),
		Plans: plans, Plan: interpreter.Plan{MemoryBytes: in.Limits.MemoryBytes, FileBytes: in.FileBytes},
		Mode: interpreter.Mode(in.Runtime.Mode), LockWait: in.Runtime.LockWait, Deadline: in.JobTimeout,
	}
}

// boxLimits are those of most runs, for the boxes that are kept ready: a box counts its
// files in memory as well.
func boxLimits(in config.Interpreter) writ.Limits {
	l := in.Limits
	l.MemoryBytes += l.WorkspaceBytes
	return l
}

func rulesOf(r config.Rates) limit.Rules {
	rule := func(r config.Rate) limit.Rule { return limit.Rule{Most: r.Most, Window: r.Window} }
	return limit.Rules{Exec: rule(r.Exec), Upload: rule(r.Upload), Download: rule(r.Download), Fetch: rule(r.Fetch)}
}
