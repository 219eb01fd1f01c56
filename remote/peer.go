package remote

import (
	"net"
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

// isOf reports whether a process of uid connected conn.
func isOf(conn net.Conn, uid uint32) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	peer, _, err := auth.PeerUID(c)
	return err == nil && peer == uid
}
