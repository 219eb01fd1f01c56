package runner_test

import (
	"testing"

	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

func TestInterpreterConforms(t *testing.T) {
	needBubblewrap(t)
	testkit.Interpreter(t, func(t *testing.T, opt runner.Options) testkit.AnyRunner {
		return start(t, sandbox.Options{}, opt)
	})
}
