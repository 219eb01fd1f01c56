package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/lmittmann/tint"

	"writ"
	"writ/config"
	"writ/mcp"
)

type serveCmd struct {
	Runner string `help:"Socket of a runner that somebody else started, instead of one of its own." placeholder:"FILE" type:"path"`
	interpreterFlags
}

// interpreterFlags switch the code interpreter on, and have it looked at.
type interpreterFlags struct {
	Interpreter      string `help:"Serve the code interpreter's API, for LibreChat, on this TCP address." env:"WRIT_INTERPRETER" placeholder:"HOST:PORT"`
	LocalInterpreter bool   `help:"Serve it without tokens, to this machine alone: all who reach it are one user." env:"WRIT_LOCAL_INTERPRETER"`
}

// Run serves until it is told to stop.
func (v *serveCmd) Run(ctx context.Context, c *cli, e env) error {
	folder, err := openFolder(c.Data, e.stderr)
	if err != nil {
		return err
	}
	cfg, err := loadConfig(c)
	if err != nil {
		folder.release()
		return err
	}
	if v.Runner != "" {
		cfg.Runner.Socket = v.Runner
	}
	s, err := openSystem(ctx, e, folder, cfg, socketName, newLogger(e, cfg.Log))
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.serveSessions(); err != nil {
		return err
	}
	addr, err := s.serveTCP()
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "API:           http://%s (bearer key)\n", addr)
	fmt.Fprintf(e.stderr, "MCP:           http://%s%s (bearer key; on this machine also: writ mcp)\n", addr, mcp.Path)
	if exposed(addr) {
		s.slog.Warn("other machines can reach the API, which is plain HTTP: keys and code cross the network in clear",
			"listen", addr.String(), "mend", "listen on loopback, with a TLS proxy in front whose name stands under hosts in the configuration")
	}
	if err := s.serveInterpreter(e.stderr); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "socket:        %s (this user)\n", filepath.Join(c.Data, socketName))
	if path := filepath.Join(c.Data, operatorKeyName); fileExists(path) {
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

// loadConfig reads the data folder's configuration and puts the environment and the flags
// over it. Its error names every fault of all of them.
func loadConfig(c *cli) (config.Config, error) {
	return config.Load(filepath.Join(c.Data, config.FileName), overlay(c))
}

// overlay is what stands above the file.
func overlay(c *cli) *config.Overlay {
	over := config.NewOverlay(os.Environ())
	if v := c.Listen; v != "" {
		over.Flag("listen", "listen", func(cfg *config.Config) { cfg.Listen = v })
	}
	if v := c.Serve.Interpreter; v != "" {
		over.Flag("interpreter", "interpreter.listen", func(cfg *config.Config) { cfg.Interpreter.Listen = v })
	}
	if c.Serve.LocalInterpreter {
		over.Flag("local-interpreter", "interpreter.auth", func(cfg *config.Config) { cfg.Interpreter.Auth = config.AuthLocal })
	}
	return over
}
