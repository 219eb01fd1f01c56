package runner_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

// start makes a runner over Bubblewrap that ends with t.
func start(t *testing.T, box sandbox.Options, opt runner.Options) *runner.Runner {
	t.Helper()
	p, err := sandbox.New(box)
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(p, opt)
	t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			t.Errorf("close runner: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("close sandbox: %v", err)
		}
	})
	return r
}

func needBubblewrap(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("bwrap"); err != nil {
		testkit.Missing(t, "bwrap", "bwrap is not installed")
	}
}

func TestRunnerConforms(t *testing.T) {
	needBubblewrap(t)
	testkit.Runner(t, func(t *testing.T, opt runner.Options) testkit.AnyRunner {
		return start(t, sandbox.Options{}, opt)
	})
}

func TestScenario15_WrongBubblewrapRunsNothing(t *testing.T) {
	r := start(t, sandbox.Options{Bwrap: "/nonexistent/bwrap"}, runner.Options{Warm: 1})
	spec := testkit.Spec("sh", "echo ran")
	for range 2 {
		res, err := r.Run(t.Context(), "r", spec, spec.Digest(), &writ.Exchange{Emit: func(writ.Chunk) { t.Error("there was output") }})
		if writ.KindOf(err) != writ.Unavailable || !strings.Contains(writ.Message(err), "/nonexistent/bwrap") {
			t.Errorf("Run = %+v, %v; want unavailable, naming the path", res, err)
		}
	}
	if e, err := r.Probe(t.Context()); writ.KindOf(err) != writ.Unavailable {
		t.Errorf("Probe = %+v, %v; want unavailable", e, err)
	}
}

func TestCloseKillsWhatRuns(t *testing.T) {
	needBubblewrap(t)
	r := start(t, sandbox.Options{}, runner.Options{Slots: 1, Warm: 1})
	mark := writ.NewID("mark")
	spec := testkit.Sleeper(mark)
	up := testkit.NewFlag("ready")
	done := make(chan writ.Result, 1)
	go func() {
		res, err := r.Run(context.Background(), "r", spec, spec.Digest(), &writ.Exchange{Emit: up.Emit})
		if err != nil {
			t.Error(err)
		}
		done <- res
	}()
	up.Wait(t)
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if res := testkit.Receive(t, "the result", done); res.Outcome != writ.Killed || !res.Started {
		t.Errorf("result %+v, want killed", res)
	}
	if pids := testkit.Alive(t, mark); pids != nil {
		t.Errorf("processes %v are alive", pids)
	}
}
