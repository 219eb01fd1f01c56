package remote

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
	"writ/sandbox/jail"
)

// TestMain makes this binary each of the processes that the tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		var err error
		switch os.Args[1] {
		case jail.Arg:
			jail.Main()
		case "runner":
			err = runnerProcess(os.Args[2:])
		case "gateway":
			err = gatewayProcess(os.Args[2], os.Args[3])
		default:
			goleak.VerifyTestMain(m)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// runnerProcess is what "writ runner" does.
func runnerProcess(args []string) error {
	flags := flag.NewFlagSet("runner", flag.ContinueOnError)
	socket := flags.String("socket", "", "")
	bwrap := flags.String("bwrap", "", "")
	mode := flags.String("mode", "", "")
	state := flags.String("state", "", "")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch *mode {
	case "fail":
		fmt.Fprintln(os.Stderr, "starting")
		return fmt.Errorf("no good: %s", *socket)
	case "silent":
		select {}
	case "heir": // which has its log, for a while after it
		if err := (&exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "3"}, Stderr: os.Stderr}).Start(); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if *state != "" { // files alone, which need no sandbox
		files, err := runner.OpenFiles(ctx, runner.FilesOptions{State: *state})
		if err != nil {
			return err
		}
		return errors.Join(Main(ctx, *socket, os.Stdin, idle{}, files, nil), files.Close())
	}
	p, err := sandbox.New(sandbox.Options{Bwrap: *bwrap})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "runner is up")
	var stdin io.Reader = os.Stdin
	if *mode == "apart" {
		stdin = nil
	}
	err = Main(ctx, *socket, stdin, runner.New(p, runner.Options{Slots: 4}), nil, runner.NewProcesses(p, runner.ProcessesOptions{}))
	return errors.Join(err, p.Close())
}

// idle is a runner that runs nothing, and whose sandbox is never ready.
type idle struct{ fake }

func (idle) Probe(ctx context.Context) (writ.Enforcement, error) {
	<-ctx.Done()
	return writ.Enforcement{}, ctx.Err()
}

func (idle) Close(context.Context) error { return nil }

// gatewayProcess starts a runner, a run in it, says the runner's pid and waits to
// be killed.
func gatewayProcess(dir, mark string) error {
	p, err := Start(context.Background(), "/proc/self/exe", dir, nil, os.Stderr)
	if err != nil {
		return err
	}
	up := testkit.NewFlag("ready")
	spec := testkit.Sleeper(mark)
	_, err = p.Client().Run(context.Background(), "r", spec, spec.Digest(), &writ.Exchange{Emit: func(c writ.Chunk) {
		up.Emit(c)
		fmt.Printf("%d\n", p.cmd.Process.Pid)
	}})
	return err
}
