package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// closeWait is how long a runner may take to end its runs.
const closeWait = 10 * time.Second

// Local is a runner of this process, which Main closes.
type Local interface {
	Runner
	Close(ctx context.Context) error
}

// Main is the life of a runner process: it serves r, and f if that is not nil, on a
// new unix socket to processes of its own uid until ctx ends or stdin does, which says
// that the parent is gone; then it ends every run, lets their results out, and
// returns. A nil stdin never ends. Main closes r in any case; f is the caller's to
// close, and no call to it is under way any more. The socket stays: whoever started
// Main removes it.
//
// One goroutine goes on reading stdin when ctx ended first.
func Main(ctx context.Context, socket string, stdin io.Reader, r Local, f Files) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ln, err := listen(socket)
	if err != nil {
		return errors.Join(err, shut(r))
	}
	if stdin != nil {
		go func() { // ends with stdin
			_, _ = io.Copy(io.Discard, stdin)
			cancel()
		}()
	}

	serving, stopServing := context.WithCancel(context.Background())
	defer stopServing()
	served := make(chan error, 1)
	go func() { served <- Serve(serving, ln, r, f, uint32(os.Getuid())) }()
	select {
	case err := <-served:
		return errors.Join(err, shut(r))
	case <-ctx.Done():
	}
	// Runs first, then the listener: a killed run still has a result to send.
	err = shut(r)
	stopServing()
	return errors.Join(err, <-served)
}

func shut(r Local) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if err := r.Close(ctx); err != nil {
		return fmt.Errorf("close runner: %w", err)
	}
	return nil
}

// maxSocketPath is what the kernel takes.
const maxSocketPath = 107

// listen makes a unix socket that only its owner may connect.
func listen(socket string) (net.Listener, error) {
	if len(socket) > maxSocketPath {
		return nil, fmt.Errorf("socket path of %d bytes, the most is %d: choose a shorter folder: %s", len(socket), maxSocketPath, socket)
	}
	ln, err := net.Listen("unix", socket)
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
