package main

import (
	"context"
	"path/filepath"

	"writ"
	"writ/config"
	"writ/doctor"
	"writ/sandbox"
)

// doctorCmd examines this host. It needs no server, no data folder and no rights.
type doctorCmd struct {
	JSON bool `name:"json" help:"As JSON."`
}

// Run exits with exitFailed when nothing can run here.
func (d *doctorCmd) Run(ctx context.Context, c *cli, e env) error {
	cfg, err := loadConfig(c)
	if writ.KindOf(err) == writ.NotFound {
		err = nil // a first start writes one with the defaults
	}
	if cfg.Runner == (config.Runner{}) {
		cfg = config.Default()
	}
	probe := func(ctx context.Context) (writ.Enforcement, error) {
		provider, err := sandbox.New(sandbox.Options{Bwrap: cfg.Runner.Bwrap, UIDBase: cfg.Runner.UIDBase, Strict: cfg.Runner.Strict})
		if err != nil {
			return writ.Enforcement{}, err
		}
		defer provider.Close()
		return provider.Probe(ctx)
	}
	data, absErr := filepath.Abs(c.Data)
	if absErr != nil {
		data = c.Data
	}
	host := doctor.Local(cfg.Runner.Bwrap, data, probe)
	host.Config = err
	report := doctor.Examine(ctx, host)
	write := report.WriteText
	if d.JSON {
		write = report.WriteJSON
	}
	if err := write(e.stdout); err != nil {
		return err
	}
	if !report.OK {
		return exit(exitFailed)
	}
	return nil
}
