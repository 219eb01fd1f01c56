package main

import (
	"context"
	"path/filepath"
	"time"

	"writ"
	"writ/config"
	"writ/doctor"
	"writ/lang"
	"writ/sandbox"
)

// doctorCmd examines this host, for a server with these flags. It needs no server, no data
// folder and no rights.
type doctorCmd struct {
	interpreterFlags
	JSON bool `name:"json" help:"As JSON."`
}

// Run exits with exitFailed when nothing can run here.
func (d *doctorCmd) Run(ctx context.Context, c *cli, e env) error {
	c.Serve.interpreterFlags = d.interpreterFlags
	over := overlay(c)
	cfg, err := config.Load(filepath.Join(c.Data, config.FileName), over)
	switch {
	case writ.KindOf(err) == writ.NotFound: // a first start writes one with the defaults
		cfg = config.Default()
		over.Apply(&cfg)
		err = over.Validate(cfg)
	case err != nil:
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
	host.Interpreter = examined(cfg, over)
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

// examined is the code interpreter of cfg as doctor looks at it, nil when it is switched
// off.
func examined(cfg config.Config, over *config.Overlay) *doctor.Interpreter {
	in := cfg.Interpreter
	if in.Listen == "" {
		return nil
	}
	d := &doctor.Interpreter{
		Listen: in.Listen, Auth: string(in.Auth), Exposed: in.Auth != config.AuthJWT && in.Exposed(),
		Languages: lang.For(writ.RunInterpreter), Blobs: in.Blobs,
	}
	if in.Auth == config.AuthJWT {
		_, d.Keys = tokensOf(in, time.Now(), nil)
	}
	for _, v := range over.Applied() {
		d.Applied = append(d.Applied, doctor.Variable{Name: v.Name, What: v.Key})
	}
	for _, v := range over.Unused() {
		d.Unused = append(d.Unused, doctor.Variable{Name: v.Name, What: v.Why})
	}
	return d
}
