package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// closeWait is how long a runner may take to end its runs and processes.
const closeWait = 10 * time.Second

// Local is a runner of this process, which Main closes.
type Local interface {
	Runner
	Close(ctx context.Context) error
}

// LocalProcesses are the processes of this process, which Main closes.
type LocalProcesses interface {
	Processes
	Close(ctx context.Context) error
}

// Main is the life of a runner process: it serves r, and f and p where they are not nil,
// on a new unix socket to processes of its own uid until ctx ends or stdin does, which
// says that the parent is gone; then it ends every run and process, lets their results
// out, and returns. A nil stdin never ends: that is a runner apart, whose processes stay
// while gateways come and go. Main closes r and p in any case; f is the caller's to close,
// and no call to it is under way any more.
//
// A socket that is there already is replaced when nobody serves it. It stays at the end:
// whoever started Main removes it.
//
// One goroutine goes on reading stdin when ctx ended first.
func Main(ctx context.Context, socket string, stdin io.Reader, r Local, f Files, p LocalProcesses) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := listen(socket)
	if err != nil {
		return errors.Join(err, shut(r, p))
	}
	if stdin != nil {
		go func() { // ends with stdin
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}

	parts := Parts{Runner: r, Files: f}
	if p != nil {
		parts.Processes = p
	}
	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- Serve(serving, ln, parts, uint32(os.Getuid())) }()
	select {
	case err := <-served:
		return errors.Join(err, shut(r, p))
	case <-ctx.Done():
	}
	// Runs and processes first, then the listener: what is killed still has an end to tell.
	err = shut(r, p)
	stopServing()
	return errors.Join(err, <-served)
}

func shut(r Local, p LocalProcesses) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	var wg sync.WaitGroup
	var runs, processes error
	wg.Go(func() { runs = r.Close(ctx) })
	if p != nil {
		wg.Go(func() { processes = p.Close(ctx) })
	}
	wg.Wait()
	if runs != nil {
		runs = fmt.Errorf("close runner: %w", runs)
	}
	if processes != nil {
		processes = fmt.Errorf("close processes: %w", processes)
	}
	return errors.Join(runs, processes)
}

// maxSocketPath is what the kernel takes.
const maxSocketPath = 107

// listen makes a unix socket that only its owner may connect.
func listen(socket string) (net.Listener, error) {
	if len(socket) > maxSocketPath {
		return nil, fmt.Errorf("socket path of %d bytes, the most is %d: choose a shorter folder: %s", len(socket), maxSocketPath, socket)
	}
	ln, err := net.Listen("unix", socket)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(socket) {
		if err := os.Remove(socket); err != nil {
			return nil, fmt.Errorf("remove a socket that nobody serves: %w", err)
		}
		ln, err = net.Listen("unix", socket)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	// The one who started us removes it. When that one was killed, the next runner may
	// have put its own socket there before we are gone.
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close(), os.Remove(socket))
	}
	return ln, nil
}

// abandoned reports whether socket is one that nobody serves, as a killed runner leaves it.
func abandoned(socket string) bool {
	info, err := os.Lstat(socket)
	if err != nil || info.Mode().Type() != os.ModeSocket {
		return false
	}
	conn, err := net.Dial("unix", socket)
	if err == nil {
		_ = conn.Close()
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
