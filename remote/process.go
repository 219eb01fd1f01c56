package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"writ"
)

const (
	startWait = 30 * time.Second // for a child's first answer
	endWait   = 15 * time.Second // for a child to end when it is told to: more than closeWait and drainWait
)

// defaultPath is where programs are looked for when nothing says where.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Process is a runner that is a child of this process. It ends when this process
// does, however that ends.
type Process struct {
	socket string
	client *Client
	cmd    *exec.Cmd
	stdin  io.Closer // its end of file tells the child to end
	tail   *tail
	done   chan struct{} // closed when the child is gone
	err    error         // why it ended; set before done is closed

	closing sync.Once
	closed  error // the result of Close; set within closing
}

// Start runs "EXE runner --socket DIR/runner.sock ARGS...", where exe is a path, and returns
// when it serves. It makes no box for that, which would take longer than all else: that it
// runs does not mean that it can run anything, which Probe says. dir is made with mode 0700;
// one that is there must be this user's alone. The child gets no environment but PATH, as it
// is here, and a locale, and no descriptor but its pipes. Its log goes to log, a line at a
// time or more.
//
// When the child ends, or gives no answer until ctx ends or 30 s have passed, Start
// leaves nothing behind and answers a *writ.Error of kind writ.Unavailable with the
// last line that the child logged. Otherwise the caller must Close the process.
func Start(ctx context.Context, exe, dir string, args []string, log io.Writer) (*Process, error) {
	// The child works in "/": neither may be relative.
	exe, err := filepath.Abs(exe)
	if err != nil {
		return nil, fmt.Errorf("start runner: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("start runner: %w", err)
	}
	if err := makePrivate(dir); err != nil {
		return nil, fmt.Errorf("start runner: %w", err)
	}
	p := &Process{socket: filepath.Join(dir, "runner.sock"), tail: &tail{to: log}, done: make(chan struct{})}
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("start runner: remove the socket of the one before: %w", err)
	}
	p.cmd = exec.Command(exe, append([]string{"runner", "--socket", p.socket}, args...)...)
	p.cmd.Dir = "/"
	// It finds bubblewrap where this process would, so that what an operator is told of one
	// is true of the other.
	p.cmd.Env = []string{"PATH=" + cmp.Or(os.Getenv("PATH"), defaultPath), "LANG=C.UTF-8"}
	p.cmd.Stderr = p.tail
	p.cmd.WaitDelay = time.Second // something else may hold its standard error
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Setsid:    true,            // a terminal's Ctrl-C is for us: we end the child in order
		Pdeathsig: syscall.SIGTERM, // with the end of stdin, so that it can clean up
	}
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start runner: %w", err)
	}
	p.stdin = stdin
	client, err := dial(p.socket)
	if err != nil {
		return nil, errors.Join(err, stdin.Close())
	}
	p.client = client
	if err := p.launch(); err != nil {
		return nil, errors.Join(fmt.Errorf("start runner: %w", err), stdin.Close(), client.Close())
	}
	if err := p.await(ctx); err != nil {
		_ = p.kill()
		why := cmp.Or(p.tail.last(), err.Error())
		return nil, &writ.Error{Kind: writ.Unavailable, Op: "start runner", Msg: "the runner did not start: " + why, Err: err}
	}
	return p, nil
}

// launch starts the child and a goroutine that waits for its end.
func (p *Process) launch() error {
	started := make(chan error, 1)
	go func() { // ends with the child, which Close ends
		// The death signal comes when the thread that forked ends, not the process:
		// so this thread stays until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		p.err = p.cmd.Wait()
		if errors.Is(p.err, exec.ErrWaitDelay) {
			// It ended well. What else has its log open, or how late we were to read the
			// last of it, is no fault of its.
			p.err = nil
		}
		close(p.done)
	}()
	return <-started
}

// await returns when the child serves.
func (p *Process) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWait)
	defer cancel()
	ready := make(chan error, 1)
	go func() { ready <- p.client.ready(ctx) }() // ends with cancel, if not before
	select {
	case <-p.done:
		cancel()
		<-ready
		return fmt.Errorf("it ended: %w", cmp.Or(p.err, errors.New("exit status 0")))
	case err := <-ready:
		if err != nil {
			return fmt.Errorf("no answer: %w", err)
		}
		return nil
	}
}

// Client is the way to the runner. Close closes it.
func (p *Process) Client() *Client { return p.client }

// Done is closed when the child is gone, whoever ended it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says why the child is gone, with the last line that it logged. It may be
// called after Done is closed.
func (p *Process) Err() error {
	<-p.done
	return fmt.Errorf("the runner ended (%v): %s", cmp.Or(p.err, errors.New("exit status 0")), p.tail.last())
}

// Close tells the child to end its runs and itself, kills it when it has not done
// so until ctx ends or 15 s have passed, and waits until it is gone. An error means
// that it had to be killed, or ended with an error. A second call answers what the
// first did.
func (p *Process) Close(ctx context.Context) error {
	p.closing.Do(func() { p.closed = p.end(ctx) })
	return p.closed
}

func (p *Process) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endWait)
	defer cancel()
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-ctx.Done():
		return errors.Join(errors.New("the runner did not end and was killed"), p.kill())
	}
	err := errors.Join(p.client.Close(), p.sweep())
	if p.err != nil {
		err = errors.Join(p.Err(), err)
	}
	return err
}

// kill ends the child at once; its sandboxes die with it.
func (p *Process) kill() error {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.done
	return errors.Join(p.client.Close(), p.sweep())
}

// sweep removes the socket of a child that was killed.
func (p *Process) sweep() error {
	if err := os.Remove(p.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makePrivate makes dir, or checks that nobody but this user may enter it.
func makePrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case !ok || int(st.Uid) != os.Getuid():
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %v): chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// maxTail bounds the last line that is kept.
const maxTail = 2 << 10

// tail passes a log on and remembers its last line.
type tail struct {
	to io.Writer

	mu   sync.Mutex
	line []byte // guarded by mu; the last line, with what follows of it
}

// Write never fails: a log that cannot be written must not end the child.
func (t *tail) Write(p []byte) (int, error) {
	if t.to != nil {
		_, _ = t.to.Write(p)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range bytes.Lines(p) {
		if bytes.HasSuffix(t.line, []byte("\n")) {
			t.line = t.line[:0]
		}
		end := bytes.HasSuffix(line, []byte("\n"))
		t.line = append(t.line, line[:min(len(line), max(maxTail-len(t.line), 0))]...)
		if end && !bytes.HasSuffix(t.line, []byte("\n")) {
			t.line = append(t.line, '\n')
		}
	}
	return len(p), nil
}

func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(bytes.TrimSpace(t.line), []byte("?")))
}
