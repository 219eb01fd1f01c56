package remote

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// ownListener accepts connections of one uid. Any other is closed unread.
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
		if uid, err := peerUID(conn); err == nil && uid == l.uid {
			return conn, nil
		}
		_ = conn.Close()
	}
}

// peerUID is the uid of the process that connected a unix socket, as the kernel
// noted it then.
func peerUID(conn net.Conn) (uint32, error) {
	u, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("not a unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return cred.Uid, nil
}
