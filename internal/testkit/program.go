package testkit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
)

// Program is writ as a suite runs it: built from the module at Root when the first test
// asks for it.
type Program struct {
	Root string

	dir  string
	once sync.Once
	err  error
}

// Main runs the tests of m, for a TestMain, and removes the program after them.
func (p *Program) Main(m *testing.M) (code int) {
	if p.dir, p.err = os.MkdirTemp("", "writ-program-"); p.err == nil {
		defer os.RemoveAll(p.dir)
	}
	return m.Run()
}

// Path is the file of the program.
func (p *Program) Path(t testing.TB) string {
	t.Helper()
	exe := filepath.Join(p.dir, "writ")
	p.once.Do(func() {
		if p.err == nil {
			p.err = build(p.Root, exe)
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return exe
}

// build builds writ from the module at root into the file exe.
func build(root, exe string) error {
	// go test's cache sees what this process looks at, not what the compiler does:
	// without this walk it would answer for a program that has changed.
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && (d.Name()[0] == '.' || d.Name() == "build" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if errors.Is(err, fs.ErrNotExist) { // a file that an editor made and removed meanwhile
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", exe, "./cmd/writ")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// Spawn starts cmd in a session of its own; it is killed when this process ends. done is
// closed when it has ended: how is in cmd.ProcessState.
func Spawn(t testing.TB, cmd *exec.Cmd) (done <-chan struct{}) {
	t.Helper()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error), make(chan struct{})
	go func() { // ends with the process
		// The death signal comes with the end of the thread that forked.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in cmd.ProcessState
			close(ended)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return ended
}
