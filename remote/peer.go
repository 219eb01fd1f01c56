package remote

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"

	"writ/auth"
)

// ownListener accepts connections of one uid, which the kernel noted when they
// were made. Any other is closed unread, and so is what is not a unix socket.
type ownListener struct {
	net.Listener
	uid uint32
}

func (l ownListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if isOf(conn, l.uid) {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// dialOwn connects a unix socket that a process of our own uid listens on. Anybody else
// who does would be given what is meant for the runner.
func dialOwn(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if !isOf(conn, uint32(os.Getuid())) {
		_ = conn.Close()
		return nil, errors.New("it is served by another user")
	}
	return conn, nil
}

// isOf reports whether a process of uid is the other end of conn.
func isOf(conn net.Conn, uid uint32) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	peer, _, err := auth.PeerUID(c)
	return err == nil && peer == uid
}
