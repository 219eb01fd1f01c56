package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"writ"
	"writ/remote"
	"writ/runner"
	"writ/sandbox"
)

// program is one that is run in every way.
type program struct {
	name string
	argv []string // by itself
	spec writ.RunSpec
}

func programs() []program {
	spec := func(l writ.Language, code string) writ.RunSpec {
		return writ.RunSpec{Language: l, Code: code, Limits: writ.DefaultLimits}
	}
	return []program{
		{"`true`", []string{"/bin/sh", "-c", "true"}, spec("sh", "true")},
		{"`print(1)`", []string{"/usr/bin/python3", "-c", "print(1)"}, spec("python", "print(1)")},
	}
}

// runs takes every way of running each program in turns, n times.
func runs(ctx context.Context, exe, dir string, n int) (tables []*table, err error) {
	provider, err := sandbox.New(sandbox.Options{})
	if err != nil {
		return nil, err
	}
	defer provider.Close()
	near := runner.New(provider, runner.Options{Warm: 1})
	defer near.Close(context.WithoutCancel(ctx))
	far, err := remote.Start(ctx, exe, filepath.Join(dir, "runner"), []string{"--warm", "1", "--uid-base", "871000", "--limits", "{}"}, nil)
	if err != nil {
		return nil, err
	}
	defer far.Close(context.WithoutCancel(ctx))
	srv, err := startServer(ctx, exe, filepath.Join(dir, "data"))
	if err != nil {
		return nil, err
	}
	defer srv.stop()

	b := boxes{provider}
	for _, p := range programs() {
		t := &table{name: p.name, bases: []string{"spawn", "bwrap"}, rows: []*series{
			{id: "spawn", name: "bare spawn"},
			{id: "bwrap", name: "bare bwrap"},
			{id: "cold", name: "sandbox, cold"},
			{id: "warm", name: "sandbox, warm"},
			{id: "runner", name: "runner, warm, in process"},
			{id: "wire", name: "runner, warm, over the wire"},
			{id: "REST", name: "REST: POST and wait"},
		}}
		ways := []func() (time.Duration, error){
			timed(func() error { return exec.CommandContext(ctx, p.argv[0], p.argv[1:]...).Run() }),
			timed(func() error { return exec.CommandContext(ctx, "bwrap", bareArgs(p.argv)...).Run() }),
			func() (time.Duration, error) { return b.cold(ctx, p.argv) },
			func() (time.Duration, error) { return b.warm(ctx, p.argv) },
			timed(func() error { return runOn(ctx, near, p.spec) }),
			timed(func() error { return runOn(ctx, far.Client(), p.spec) }),
			timed(func() error { return srv.run(ctx, p.spec) }),
		}
		for range n {
			for i, way := range ways {
				if err := t.rows[i].measure(way); err != nil {
					return nil, err
				}
				settle(ctx)
			}
		}
		tables = append(tables, t)
	}
	return tables, nil
}

// settle lets what follows a run go on by itself: boxes are taken apart and made
// ready while nobody waits for them.
func settle(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Millisecond):
	}
}

// bareArgs is the plainest use of bwrap with every namespace.
func bareArgs(argv []string) []string {
	return append([]string{
		"--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
		"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--",
	}, argv...)
}

// executor is a runner, here or behind the wire.
type executor interface {
	Run(ctx context.Context, id string, spec writ.RunSpec, digest writ.Digest, x *writ.Exchange) (writ.Result, error)
}

func runOn(ctx context.Context, r executor, spec writ.RunSpec) error {
	res, err := r.Run(ctx, writ.NewID("run"), spec, spec.Digest(), nil)
	if err == nil && res.Outcome != writ.Succeeded {
		err = fmt.Errorf("it ended %s: %s", res.Outcome, res.Reason)
	}
	return err
}

// boxes runs programs in boxes of a provider.
type boxes struct{ provider sandbox.Provider }

// cold takes the making of the box as a part of the run, as for one that finds no
// box ready.
func (b boxes) cold(ctx context.Context, argv []string) (time.Duration, error) {
	began := time.Now()
	box, err := b.provider.Prepare(ctx, sandbox.Template{Limits: writ.DefaultLimits})
	if err != nil {
		return 0, err
	}
	err = runIn(ctx, box, argv)
	return time.Since(began), closing(box, err)
}

func (b boxes) warm(ctx context.Context, argv []string) (time.Duration, error) {
	box, err := b.provider.Prepare(ctx, sandbox.Template{Limits: writ.DefaultLimits})
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = runIn(ctx, box, argv)
	return time.Since(began), closing(box, err)
}

func closing(box sandbox.Box, err error) error {
	if e := box.Close(); err == nil {
		err = e
	}
	return err
}

func runIn(ctx context.Context, box sandbox.Box, argv []string) error {
	run, err := box.Start(ctx, sandbox.Command{
		Argv: argv, Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"}, Dir: "/", Limits: writ.DefaultLimits,
	})
	if err != nil {
		return err
	}
	if res := run.Wait(); res.Outcome != writ.Succeeded {
		return fmt.Errorf("it ended %s: %s", res.Outcome, res.Reason)
	}
	return nil
}
