package runner_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"writ"
	"writ/internal/testkit"
	"writ/runner"
)

// The benchmarks of processes take turns with the same in the plainest use of bwrap, in
// the same moments, and tell the ratio of both: x-bwrap.

// bare is a program in a workspace by bwrap alone.
func bare(ctx context.Context, root string, argv ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "bwrap", append([]string{
		"--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib",
		"--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", root, root, "--chdir", root, "--",
	}, argv...)...)
}

// turns takes ours and the floor in turns, and reports both.
func turns(b *testing.B, floor, ours func()) {
	b.Helper()
	var low, high time.Duration
	timed := func(sum *time.Duration, f func()) {
		began := time.Now()
		f()
		*sum += time.Since(began)
	}
	timed(new(time.Duration), floor) // the first finds nothing in memory
	timed(new(time.Duration), ours)
	n := 0
	for b.Loop() {
		timed(&low, floor)
		timed(&high, ours)
		n++
	}
	b.ReportMetric(0, "ns/op") // of both together
	b.ReportMetric(float64(high.Microseconds())/float64(n), "µs")
	b.ReportMetric(float64(low.Microseconds())/float64(n), "µs-bwrap")
	b.ReportMetric(float64(high)/float64(low), "x-bwrap")
}

// follow reads all output of a process as it comes, and gives how many bytes there were.
func follow(b *testing.B, m *runner.Processes, id writ.ProcessID) int64 {
	b.Helper()
	for cursor := int64(0); ; {
		out, err := m.Output(b.Context(), id, writ.OutputQuery{Cursor: cursor, Wait: writ.MaxOutputWait})
		if err != nil {
			b.Fatal(err)
		}
		if cursor = out.Cursor; out.EOF {
			return out.Total
		}
	}
}

// BenchmarkProcessTrue is a command that does nothing, until its exit is seen.
func BenchmarkProcessTrue(b *testing.B) {
	needBubblewrap(b)
	m, _ := startProcesses(b, runner.ProcessesOptions{})
	w := testkit.WorkspaceAt(b.TempDir())
	turns(b, func() {
		if err := bare(b.Context(), w.Root, "true").Run(); err != nil {
			b.Fatal(err)
		}
	}, func() {
		o := testkit.Order(w, "true")
		if err := m.Start(b.Context(), o); err != nil {
			b.Fatal(err)
		}
		follow(b, m, o.ID)
	})
}

// BenchmarkProcessOutput is 100 MB through the ring, with somebody who reads along.
func BenchmarkProcessOutput(b *testing.B) {
	needBubblewrap(b)
	m, _ := startProcesses(b, runner.ProcessesOptions{})
	w := testkit.WorkspaceAt(b.TempDir())
	const size = 100_000_000
	argv := []string{"head", "-c", strconv.Itoa(size), "/dev/zero"}
	turns(b, func() {
		cmd := bare(b.Context(), w.Root, argv...)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{out}, make([]byte, 64<<10))
		if err := errors.Join(err, cmd.Wait()); err != nil || n != size {
			b.Fatalf("%d bytes, %v", n, err)
		}
	}, func() {
		o := testkit.Order(w, argv...)
		if err := m.Start(b.Context(), o); err != nil {
			b.Fatal(err)
		}
		if n := follow(b, m, o.ID); n != size {
			b.Fatalf("%d bytes", n)
		}
	})
}

// BenchmarkProcessTerminal is a letter that is typed into a terminal until it comes back.
func BenchmarkProcessTerminal(b *testing.B) {
	needBubblewrap(b)
	m, _ := startProcesses(b, runner.ProcessesOptions{})
	w := testkit.WorkspaceAt(b.TempDir())
	argv := []string{"sh", "-c", "stty raw -echo; echo up; exec cat"}

	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	master := terminalOf(b, bare(ctx, w.Root, argv...))
	buf := make([]byte, 64)
	for got := []byte(nil); !bytes.Contains(got, []byte("up")); {
		n, err := master.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		got = append(got, buf[:n]...)
	}

	o := testkit.Order(w, argv...)
	o.TTY, o.Limits.WallMS, o.Limits.CPUMS = true, writ.MaxLimits.WallMS, writ.MaxLimits.CPUMS
	testkit.Begin(b, m, o).Sees("up\n")
	cursor := int64(3)
	turns(b, func() {
		if _, err := master.Write([]byte("x")); err != nil {
			b.Fatal(err)
		}
		if n, err := master.Read(buf); n != 1 || err != nil {
			b.Fatalf("%q, %v", buf[:n], err)
		}
	}, func() {
		if _, err := m.Input(b.Context(), o.ID, []byte("x")); err != nil {
			b.Fatal(err)
		}
		out, err := m.Output(b.Context(), o.ID, writ.OutputQuery{Cursor: cursor, Wait: writ.MaxOutputWait})
		if string(out.Chunk) != "x" || err != nil {
			b.Fatalf("%q, %v", out.Chunk, err)
		}
		cursor = out.Cursor
	})
}

// terminalOf starts cmd with a new terminal, which ends with b, and gives its other end.
func terminalOf(b *testing.B, cmd *exec.Cmd) *os.File {
	b.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		b.Fatal(err)
	}
	number := 0
	raw, err := master.SyscallConn()
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) {
			failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
			if failed == nil {
				number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
			}
		})
		err = errors.Join(err, failed)
	}
	if err != nil {
		b.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := errors.Join(cmd.Start(), slave.Close()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = master.Close()
	})
	return master
}
