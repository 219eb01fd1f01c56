package sandbox

import (
	"os/exec"
	"testing"

	"writ"
)

// The programs that are measured: the least there is, and the least Python.
var benchPrograms = map[string][]string{
	"true":   {"/bin/true"},
	"print1": {"/usr/bin/python3", "-c", "print(1)"},
}

// BenchmarkBareExec is a program without any sandbox: what all else is compared to.
func BenchmarkBareExec(b *testing.B) {
	for name, argv := range benchPrograms {
		b.Run(name, func(b *testing.B) {
			need(b, name, argv[0])
			for b.Loop() {
				if err := exec.Command(argv[0], argv[1:]...).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkBareBwrap is a program in the plainest use of bwrap with all namespaces.
func BenchmarkBareBwrap(b *testing.B) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		missing(b, "bwrap", err)
	}
	for name, argv := range benchPrograms {
		b.Run(name, func(b *testing.B) {
			need(b, name, argv[0])
			args := append([]string{"--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
				"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--"}, argv...)
			for b.Loop() {
				if err := exec.Command("bwrap", args...).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCold makes a box and runs a program in it: what a caller waits for when
// no box is ready. Closing the box is not in it, as nobody waits for that.
func BenchmarkCold(b *testing.B) {
	p := newProvider(b, Options{})
	for name, argv := range benchPrograms {
		b.Run(name, func(b *testing.B) {
			need(b, name, argv[0])
			for b.Loop() {
				box, err := p.Prepare(b.Context(), Template{Limits: writ.DefaultLimits})
				if err != nil {
					b.Fatal(err)
				}
				benchRun(b, box, argv)
			}
		})
	}
}

// BenchmarkWarm runs a program in a box that was ready: what a caller waits for
// when the runner's pool had one.
func BenchmarkWarm(b *testing.B) {
	p := newProvider(b, Options{})
	for name, argv := range benchPrograms {
		b.Run(name, func(b *testing.B) {
			need(b, name, argv[0])
			for b.Loop() {
				b.StopTimer()
				box, err := p.Prepare(b.Context(), Template{Limits: writ.DefaultLimits})
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				benchRun(b, box, argv)
			}
		})
	}
}

// benchRun runs argv to its end and closes the box with the clock stopped.
func benchRun(b *testing.B, box Box, argv []string) {
	cmd := program(argv...)
	cmd.Limits = writ.DefaultLimits
	run, err := box.Start(b.Context(), cmd)
	if err != nil {
		b.Fatal(err)
	}
	if r := run.Wait(); r.Outcome != writ.Succeeded {
		b.Fatal(show(r))
	}
	b.StopTimer()
	if err := box.Close(); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}
