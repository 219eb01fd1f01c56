package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"reflect"
	"syscall"
	"time"

	"github.com/lmittmann/tint"

	"writ"
	"writ/config"
	"writ/policy"
)

type serveCmd struct{}

// Run serves until it is told to stop.
func (*serveCmd) Run(ctx context.Context, c *cli, e env) error {
	if err := makeData(c.Data, e.stderr); err != nil {
		return err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	s, err := openSystem(ctx, c, e, newLogger(e, cfg.Log))
	if err != nil {
		return err
	}
	defer s.close()
	addr, err := s.serveTCP()
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "API:           http://%s (bearer key)\n", addr)
	fmt.Fprintf(e.stderr, "socket:        %s (this user)\n", filepath.Join(s.data, socketName))
	if path := filepath.Join(s.data, operatorKeyName); fileExists(path) {
		fmt.Fprintf(e.stderr, "operator key:  %s\n", path)
	}
	if err := s.reportSandbox(ctx, e); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		s.slog.Info("stopping")
		return nil
	case err := <-s.failed:
		return err
	}
}

// reportSandbox says at the start what holds a run and what is missing, not at the
// first run (cases BW-01, BW-06).
func (s *system) reportSandbox(ctx context.Context, e env) error {
	enf, err := s.runner.Client().Probe(ctx)
	if err != nil {
		if s.cfg.Runner.Strict {
			return err
		}
		s.slog.Error("nothing can be run on this host", "err", writ.Message(err), "mend", "writ doctor")
		fmt.Fprintf(e.stderr, "sandbox:       UNAVAILABLE: %s\n", writ.Message(err))
		return nil
	}
	fmt.Fprintf(e.stderr, "sandbox:       %s\n", enf.Provider)
	if len(enf.Missing) > 0 {
		s.slog.Warn("the sandbox lacks layers on this host", "missing", enf.Missing, "mend", "writ doctor")
	}
	return nil
}

func fileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// newLogger logs to stderr: text for a terminal, JSON else.
func newLogger(e env, cfg config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo // config.Validate has refused other words
	}
	terminal := onTerminal(e.stderr)
	if cfg.Format == "json" || cfg.Format == "auto" && !terminal {
		return slog.New(slog.NewJSONHandler(e.stderr, &slog.HandlerOptions{Level: level}))
	}
	return slog.New(tint.NewTextHandler(e.stderr, &tint.Options{Level: level, NoColor: !terminal}))
}

// loadPolicy compiles the *.cedar files of dir.
func loadPolicy(dir string) (*policy.Set, error) {
	files, err := readPolicy(dir)
	if err != nil {
		return nil, err
	}
	return policy.Compile(files)
}

func readPolicy(dir string) ([]policy.File, error) {
	if !fileExists(dir) {
		return nil, &writ.Error{Kind: writ.Invalid, Op: "load policy", Msg: fmt.Sprintf("there is no policy folder %s: without policy everything is denied, so an empty one must be made on purpose", dir)}
	}
	files, err := policy.FromFS(os.DirFS(dir))
	if err != nil {
		return nil, fmt.Errorf("read policy folder %s: %w", dir, err)
	}
	return files, nil
}

// policyPoll is how soon a change in the policy folder is in force.
const policyPoll = time.Second

// watchPolicy puts the policy in force anew when its files change, and on SIGHUP.
// What does not compile is logged, and the old set stays in force.
func (s *system) watchPolicy(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tick := time.NewTicker(policyPoll)
	defer tick.Stop()
	dir := s.cfg.PolicyDir(s.data)
	var seen []policy.File // what was last tried, good or bad
	bad := ""              // the fault that was logged last
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-hup:
			seen = nil
		}
		files, err := readPolicy(dir)
		if err == nil && reflect.DeepEqual(files, seen) {
			continue
		}
		if seen = files; err == nil {
			err = s.applyPolicy(ctx, files)
		}
		if err == nil {
			bad = ""
		} else if text := err.Error(); text != bad && ctx.Err() == nil {
			bad = text
			s.slog.Error("the policy folder does not load, the old policy stays in force", "err", err)
		}
	}
}

func (s *system) applyPolicy(ctx context.Context, files []policy.File) error {
	rules, err := policy.Compile(files)
	if err != nil || rules.Version() == s.gw.Policy().Version() {
		return err
	}
	local := writ.Principal{Kind: writ.KindLocal, ID: "policy-folder", Tenant: writ.DefaultTenant}
	if err := s.gw.SetPolicy(ctx, local, rules); err != nil {
		return err
	}
	s.slog.Info("policy in force", "version", rules.Version())
	return nil
}
