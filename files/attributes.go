package files

import (
	"bytes"
	"strings"

	"golang.org/x/sys/unix"
)

// aclAttribute holds a file's access control list, which is part of who may read it.
const aclAttribute = "system.posix_acl_access"

// copyAttributes gives to the owner, the group, the access control list and the user
// attributes of from. Capabilities are not among them: they were given to the content
// that was there.
func copyAttributes(from, to int) error {
	was, err := statOf(from)
	if err != nil {
		return err
	}
	now, err := statOf(to)
	if err != nil {
		return err
	}
	if now.Uid != was.Uid || now.Gid != was.Gid {
		if err := retry(func() error { return unix.Fchown(to, int(was.Uid), int(was.Gid)) }); err != nil {
			return err
		}
	}
	names := make([]byte, 64<<10) // the most that Linux keeps
	n, err := unix.Flistxattr(from, names)
	if err == unix.EOPNOTSUPP || n == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	value := make([]byte, 64<<10)
	for name := range bytes.SplitSeq(names[:n], []byte{0}) {
		name := string(name)
		if name != aclAttribute && !strings.HasPrefix(name, "user.") {
			continue
		}
		n, err := unix.Fgetxattr(from, name, value)
		if err == unix.ENODATA {
			continue // gone since
		}
		if err == nil {
			err = unix.Fsetxattr(to, name, value[:n], 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
