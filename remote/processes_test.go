package remote

import (
	"context"
	"testing"

	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

// The same suite as in one process, over the wire.
func TestProcessesOverTheWire(t *testing.T) {
	needBubblewrap(t)
	testkit.Processes(t, func(t *testing.T, opt runner.ProcessesOptions) (testkit.AnyProcesses, func()) {
		p, err := sandbox.New(sandbox.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := runner.NewProcesses(p, opt)
		c, stopServer := serveParts(t, Parts{Runner: fake{}, Processes: m}, ownUID())
		stop := func() {
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(func() {
			stop()
			_ = c.Close()
			stopServer()
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return c.Processes(), stop
	})
}
