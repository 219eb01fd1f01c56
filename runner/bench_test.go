package runner_test

import (
	"testing"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
	"writ/sandbox"
)

// BenchmarkRun is one run at a time, from the call to its result, with the box gone
// at the end. A warm box was made while the run before it was going on.
func BenchmarkRun(b *testing.B) {
	for _, bm := range []struct {
		name string
		warm int
		spec writ.RunSpec
	}{
		{"cold/true", 0, testkit.Spec("sh", "exit 0")},
		{"warm/true", 2, testkit.Spec("sh", "exit 0")},
		{"cold/python", 0, testkit.Spec("python", "print(1)")},
		{"warm/python", 2, testkit.Spec("python", "print(1)")},
	} {
		b.Run(bm.name, func(b *testing.B) {
			p, err := sandbox.New(sandbox.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer p.Close()
			r := runner.New(p, runner.Options{Warm: bm.warm})
			defer r.Close(b.Context())
			d := bm.spec.Digest()
			for b.Loop() {
				if res, err := r.Run(b.Context(), writ.NewID("run"), bm.spec, d, nil); err != nil || res.Outcome != writ.Succeeded {
					b.Fatalf("%+v, %v", res, err)
				}
			}
		})
	}
}
