package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
func benchRun(b *testing.B, box Box, argv []string) { benchRunIn(b, box, "/workspace", argv) }

func benchRunIn(b *testing.B, box Box, dir string, argv []string) {
	cmd := program(argv...)
	cmd.Dir = dir
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

// largeWorkspace has 20,000 files in 200 folders.
func largeWorkspace(b *testing.B) Workspace {
	w := newWorkspace(b, nil)
	for d := range 200 {
		dir := filepath.Join(w.Root, fmt.Sprint("d", d))
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for f := range 100 {
			writeFile(b, filepath.Join(dir, fmt.Sprint(f)), "x")
		}
	}
	return w
}

// BenchmarkWorkspaceBareBwrap is the plainest bwrap with all namespaces and the mounts
// of a workspace: its folder, and the paths that are held in it.
func BenchmarkWorkspaceBareBwrap(b *testing.B) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		missing(b, "bwrap", err)
	}
	w := largeWorkspace(b)
	for _, n := range []int{0, 10, 1000} {
		b.Run(fmt.Sprint("held", n), func(b *testing.B) {
			args := []string{"--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
				"--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", w.Root, w.Root}
			for _, p := range someFiles(n) {
				args = append(args, "--ro-bind", filepath.Join(w.Root, p), filepath.Join(w.Root, p))
			}
			args = append(args, "--chdir", w.Root, "--", "/bin/true")
			for b.Loop() {
				if err := exec.Command("bwrap", args...).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWorkspace makes a box in a workspace and runs a program in it: what a caller
// waits for each time, as boxes with a workspace are not kept ready.
func BenchmarkWorkspace(b *testing.B) {
	p := newProvider(b, Options{})
	w := largeWorkspace(b)
	for _, n := range []int{0, 10, 1000, 10_000} {
		b.Run(fmt.Sprint("held", n), func(b *testing.B) {
			w.Protected = someFiles(n)
			for b.Loop() {
				box, err := p.Prepare(b.Context(), Template{Limits: writ.DefaultLimits, Workspace: &w})
				if err != nil {
					b.Fatal(err)
				}
				benchRunIn(b, box, w.Root, []string{"/bin/true"})
			}
		})
	}
}

// someFiles are the names of n files of largeWorkspace.
func someFiles(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("d%d/%d", i/100, i%100))
	}
	return names
}
