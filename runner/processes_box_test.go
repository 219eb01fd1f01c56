package runner_test

import (
	"context"
	"testing"

	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

// startProcesses makes processes over Bubblewrap that end with t.
func startProcesses(t testing.TB, opt runner.ProcessesOptions) (m *runner.Processes, stop func()) {
	t.Helper()
	p, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m = runner.NewProcesses(p, opt)
	stop = func() {
		if err := m.Close(context.Background()); err != nil {
			t.Errorf("close processes: %v", err)
		}
	}
	t.Cleanup(func() {
		stop()
		if err := p.Close(); err != nil {
			t.Errorf("close sandbox: %v", err)
		}
	})
	return m, stop
}

func TestProcesses(t *testing.T) {
	needBubblewrap(t)
	testkit.Processes(t, func(t *testing.T, opt runner.ProcessesOptions) (testkit.AnyProcesses, func()) {
		return startProcesses(t, opt)
	})
}
