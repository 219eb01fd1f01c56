package runner_test

import (
	"testing"

	"writ/internal/testkit"
	"writ/runner"
)

func TestFiles(t *testing.T) {
	testkit.Files(t, func(t *testing.T, opt runner.FilesOptions) (testkit.AnyFiles, func()) {
		f, err := runner.OpenFiles(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		stop := func() {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
		t.Cleanup(stop)
		return f, stop
	})
}
