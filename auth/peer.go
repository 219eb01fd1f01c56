package auth

import (
	"errors"
	"fmt"
	"math"
	"syscall"

	"golang.org/x/sys/unix"

	"writ"
)

// PeerUID is the user and the process at the other end of the unix socket c, as the
// kernel noted them when it connected: the process may have ended since, and its id
// is 0 when it is in another pid namespace. A connection that is not a unix socket
// is an error.
func PeerUID(c syscall.Conn) (uid uint32, pid int32, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, fmt.Errorf("peer credentials: %w", err)
	}
	var cred *unix.Ucred
	ctlErr := raw.Control(func(fd uintptr) {
		var domain int
		if domain, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil {
			return
		}
		if domain != unix.AF_UNIX {
			err = errors.New("not a unix socket")
			return
		}
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(ctlErr, err); err != nil {
		return 0, 0, fmt.Errorf("peer credentials: %w", err)
	}
	if cred.Uid == math.MaxUint32 {
		return 0, 0, errors.New("peer credentials: the socket has no peer")
	}
	return cred.Uid, cred.Pid, nil
}

// Local is the principal of the user uid of this machine. Its id is "uid-1000", or
// "uid-1000.name" when the user's name is known and is a name here too; a name that
// begins with a digit is taken for the number. Who may come in as one is for the
// caller to decide.
func Local(uid uint32, name string) writ.Principal {
	id := fmt.Sprintf("uid-%d", uid)
	if long := id + "." + name; writ.ValidName(name) && writ.ValidName(long) && (name[0] < '0' || name[0] > '9') {
		id = long
	}
	return writ.Principal{Kind: writ.KindLocal, ID: id, Tenant: writ.DefaultTenant}
}
